import type { Screen } from '../screen';

export const graph: Screen = {
  path: '/graph/{turn?}',
  title: { en: 'Causes', zh: '因果图' },
  purpose: {
    en: 'What a turn set off: what caused what, how long each step took, and which steps the answer waited for.',
    zh: '一个回合引发了什么：因果关系、每步耗时，以及回答在等待哪些步骤。',
  },
  key: 'g',
  icon: 'M3 3.5h.01M3 8h.01M13 5.5h.01M13 10.5h.01M3 12.5h.01M4.5 3.5c4 0 4 2 7 2M4.5 8c4 0 4-2.5 7-2.5M4.5 8c4 0 4 2.5 7 2.5',
  load: () => import('./Graph.svelte'),
};
