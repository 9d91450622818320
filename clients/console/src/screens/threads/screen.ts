import type { Screen } from '../screen';

export const threads: Screen = {
  path: '/threads/{agent?}/{thread?}',
  title: { en: 'Threads', zh: '线程' },
  purpose: {
    en: 'Conversations and sessions of work: the steps of their chains, what was summed up, and what was learned.',
    zh: '话题与工作会话：链的步骤、被归纳的内容以及学到的知识。',
  },
  key: 't',
  icon: 'M5 2v4.5a3 3 0 0 0 3 3h0a3 3 0 0 1 3 3V14M5 9.5V14',
  load: () => import('./Threads.svelte'),
};
