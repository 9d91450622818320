import type { Screen } from '../screen';

export const teams: Screen = {
  path: '/teams',
  title: { en: 'Teams', zh: '团队' },
  purpose: {
    en: 'Who works at what, what was asked of whom, what it may cost, and when it goes on.',
    zh: '谁在做什么、委派给谁、预算多少，以及何时继续。',
  },
  key: 'w',
  icon: 'M8 2.5a2 2 0 110 4 2 2 0 010-4M4 9.5a2 2 0 110 4 2 2 0 010-4M12 9.5a2 2 0 110 4 2 2 0 010-4M8 6.5v1.5M8 8H4v1.5M8 8h4v1.5',
  load: () => import('./Teams.svelte'),
};
