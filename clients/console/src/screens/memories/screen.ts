import type { Screen } from '../screen';

export const memories: Screen = {
  path: '/memories/{agent?}/{id?}',
  title: { en: 'Memories', zh: '记忆' },
  purpose: {
    en: 'What agents remember and keep in their inner state, where it comes from, and what stood there before.',
    zh: '智能体记住的内容与其内在状态、来源，以及之前的内容。',
  },
  key: 'm',
  icon: 'M4 2.5h8.5v11H4a1.5 1.5 0 0 1 0-3h8.5M4 2.5a1.5 1.5 0 0 0-1.5 1.5v8M5.5 5.5h4.5',
  load: () => import('./Memories.svelte'),
};
