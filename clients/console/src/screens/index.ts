// Every screen, in the order of the navigation.
import { match, type Params } from '$lib/router/pattern';
import { actions } from './actions/screen';
import { chat } from './chat/screen';
import { fleet } from './fleet/screen';
import { graph } from './graph/screen';
import { inbox } from './inbox/screen';
import { memories } from './memories/screen';
import { overview } from './overview/screen';
import { replay } from './replay/screen';
import { river } from './river/screen';
import { search } from './search/screen';
import { tasks } from './tasks/screen';
import { teams } from './teams/screen';
import { threads } from './threads/screen';
import { usage } from './usage/screen';
import type { Screen } from './screen';

export const screens: readonly Screen[] = [
  overview,
  chat,
  inbox,
  actions,
  threads,
  tasks,
  memories,
  teams,
  river,
  search,
  graph,
  replay,
  usage,
  fleet,
];

/** The screen at a path, and the parts of the path. */
export function screenAt(path: string): { screen: Screen; params: Params } | null {
  for (const screen of screens) {
    const params = match(screen.path, path);
    if (params) return { screen, params };
  }
  return null;
}
