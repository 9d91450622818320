import type { Screen } from '../screen';

export const search: Screen = {
  path: '/search',
  title: { en: 'Search', zh: '搜索' },
  purpose: {
    en: 'Threads, tasks, memories, messages and inner state by words; anything by its id or its place in the log.',
    zh: '按词查找线程、任务、记忆、消息与内部状态；按标识或日志位置查找一切。',
  },
  key: 's',
  icon: 'M7 2.5a4.5 4.5 0 110 9 4.5 4.5 0 010-9M10.3 10.3l3.2 3.2',
  load: () => import('./Search.svelte'),
};
