import type { Screen } from '../screen';

export const fleet: Screen = {
  path: '/fleet',
  title: { en: 'Fleet', zh: '集群' },
  purpose: {
    en: 'Which services are there, what they own, how far they are, and what was set aside.',
    zh: '有哪些服务、各自负责什么、进度如何，以及被搁置的消息。',
  },
  needs: 'admin',
  key: 'f',
  icon: 'M2.5 3h11v3.5h-11zM2.5 9.5h11v3.5h-11zM5 4.75h.01M5 11.25h.01',
  load: () => import('./Fleet.svelte'),
};
