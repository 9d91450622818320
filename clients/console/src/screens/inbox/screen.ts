import type { Screen } from '../screen';

export const inbox: Screen = {
  path: '/inbox/{id?}',
  title: { en: 'Inbox', zh: '收件箱' },
  purpose: {
    en: 'What waits for your answer, with what it leads to, and what you were told unasked.',
    zh: '等待你答复的事项及其后果，以及未经询问就告知你的内容。',
  },
  key: 'i',
  icon: 'M2.5 9l2-6h7l2 6v4h-11zM2.5 9h3.2l.9 1.8h2.8l.9-1.8h3.2',
  load: () => import('./Inbox.svelte'),
};
