import type { Screen } from '../screen';

export const tasks: Screen = {
  path: '/tasks/{id?}',
  title: { en: 'Tasks', zh: '任务' },
  purpose: {
    en: 'What agents are to do at a time, in turn, or when something happens: when next, and what came of it.',
    zh: '智能体按时间、按次序或在某事发生时要做的事：下次时间与结果。',
  },
  key: 'k',
  icon: 'M3 3.5h10v10H3zM3 6.5h10M5.5 2v2.5M10.5 2v2.5M5.5 9.5l1.8 1.8 3.2-3',
  load: () => import('./Tasks.svelte'),
};
