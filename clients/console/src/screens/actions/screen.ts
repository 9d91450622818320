import type { Screen } from '../screen';

export const actions: Screen = {
  path: '/actions/{id?}',
  title: { en: 'Actions', zh: '动作与进程' },
  purpose: {
    en: 'What agents asked the world for and the processes they run: how long, how far, what they write, and how to stop them.',
    zh: '智能体对外部的请求及其运行的进程：已用时间、进度、输出，以及如何停止。',
  },
  key: 'a',
  icon: 'M8.5 1.5l-5 7.5h4l-1 5.5 6-8.5h-4.5z',
  load: () => import('./Actions.svelte'),
};
