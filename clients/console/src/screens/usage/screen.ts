import type { Screen } from '../screen';

export const usage: Screen = {
  path: '/usage',
  title: { en: 'Usage', zh: '用量' },
  purpose: {
    en: 'What models took and what it cost, exactly: by day, agent, user, model and thread, down to turns.',
    zh: '模型的用量与费用，精确计算：按日、智能体、用户、模型与线程，直至每个回合。',
  },
  key: 'u',
  icon: 'M2.5 13.5h11M4 13.5v-4M7 13.5v-8M10 13.5v-6M13 13.5v-10.5',
  load: () => import('./Usage.svelte'),
};
