// Every screen, in the order of the navigation.
import { match, type Params } from '$lib/router/pattern';
import { chat } from './chat/screen';
import { fleet } from './fleet/screen';
import { graph } from './graph/screen';
import { overview } from './overview/screen';
import { replay } from './replay/screen';
import { river } from './river/screen';
import { search } from './search/screen';
import { teams } from './teams/screen';
import { usage } from './usage/screen';
import type { Screen } from './screen';

export const screens: readonly Screen[] = [overview, chat, river, search, graph, replay, teams, usage, fleet];

/** The screen at a path, and the parts of the path. */
export function screenAt(path: string): { screen: Screen; params: Params } | null {
  for (const screen of screens) {
    const params = match(screen.path, path);
    if (params) return { screen, params };
  }
  return null;
}
