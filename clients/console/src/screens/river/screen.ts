import type { Screen } from '../screen';

export const river: Screen = {
  path: '/river',
  title: { en: 'River', zh: '事件流' },
  purpose: {
    en: 'Every event of the log as it happens, with what caused it and what it caused.',
    zh: '日志中的每个事件，实时呈现，附其起因与结果。',
  },
  key: 'r',
  icon: 'M2 5c2-1.6 4-1.6 6 0s4 1.6 6 0M2 9c2-1.6 4-1.6 6 0s4 1.6 6 0M2 13c2-1.6 4-1.6 6 0s4 1.6 6 0',
  load: () => import('./River.svelte'),
};
