// What a screen says of itself. Each is a folder beside this file: `screen.ts` (this), the component, and its dictionary.
import type { Component } from 'svelte';
import type { Locale } from '$lib/i18n/index.svelte';
import type { Scope } from '$lib/session.svelte';

export interface Screen {
  /** The path below `/console`, such as `/chat/{agent?}`: its parts are the component's `params`. */
  path: string;
  title: Record<Locale, string>;
  /** What it is for, in a sentence. */
  purpose: Record<Locale, string>;
  /** What it takes to see anything there; `read` where it does not say. Whose key has less is not shown it. */
  needs?: Scope;
  /** Pressed after `g`. */
  key: string;
  /** The path of a 16 × 16 drawing of lines. */
  icon: string;
  /** It is loaded when it is first shown. It is given the parts of its path as `params: Params`, if it wants them. */
  load: () => Promise<{ default: Component<any> }>;
}
