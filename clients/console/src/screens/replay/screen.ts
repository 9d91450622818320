import type { Screen } from '../screen';

export const replay: Screen = {
  path: '/replay/{agent?}',
  title: { en: 'Replay lab', zh: '回放实验室' },
  purpose: {
    en: 'What an agent knew and what its models were asked at any place of its log, its decisions made again with changes, and incident files.',
    zh: '智能体在其日志任意位置所知的一切及其模型收到的请求、带修改重新作出的决定，以及事故文件。',
  },
  needs: 'admin',
  key: 'l',
  icon: 'M2.5 8a5.5 5.5 0 105.5-5.5A5.5 5.5 0 003.5 5M3 2v3h3M8 5v3l2 1.5',
  load: () => import('./Replay.svelte'),
};
