// The screens that are of use to whoever looks.
import { session } from '$lib/session.svelte';
import { screens } from '.';
import type { Screen } from './screen';

/** Whether there is anything to see for them. */
export function isOurs({ needs = 'read' }: Screen): boolean {
  return session.may(needs);
}

export function ours(): Screen[] {
  return screens.filter(isOurs);
}
