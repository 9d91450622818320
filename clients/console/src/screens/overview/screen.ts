import type { Screen } from '../screen';

export const overview: Screen = {
  path: '/',
  title: { en: 'Overview', zh: '概览' },
  purpose: { en: 'Who is there, and where to look.', zh: '谁在这里，以及该看哪里。' },
  key: 'o',
  icon: 'M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5h-4.5zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5h-4.5z',
  load: () => import('./Overview.svelte'),
};
