import type { Screen } from '../screen';

export const chat: Screen = {
  path: '/chat/{agent?}',
  title: { en: 'Chat', zh: '对话' },
  purpose: {
    en: 'Speak with an agent, also while it works, and see what becomes of every message.',
    zh: '与智能体交谈（它工作时也可以），并看到每条消息的去向。',
  },
  key: 'c',
  icon: 'M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z',
  load: () => import('./Chat.svelte'),
};
