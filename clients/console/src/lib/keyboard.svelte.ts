// Keys of the screen that is shown. They do nothing while somebody writes.
import { untrack } from 'svelte';

export interface Shortcut {
  /** As `KeyboardEvent.key` has it, or two after one another: `g r`. */
  keys: string;
  /** For people. */
  does: string;
  run: () => void;
}

/** How long the first of two keys counts. */
const PAIR_MS = 1200;

class Keyboard {
  /** What is in force, for the help. */
  shortcuts = $state.raw<readonly Shortcut[]>([]);
  #first: { key: string; at: number } | null = null;

  begin() {
    addEventListener('keydown', (event) => this.#press(event));
  }

  /** Puts shortcuts in force until what this returns is called: `$effect(() => keyboard.use([…]))`. */
  use(shortcuts: readonly Shortcut[]): () => void {
    // Whose effect this is in depends on what the shortcuts are made of, not on those of others.
    const others = untrack(() => this.shortcuts);
    this.shortcuts = [...others, ...shortcuts];
    return () => {
      this.shortcuts = untrack(() => this.shortcuts).filter((shortcut) => !shortcuts.includes(shortcut));
    };
  }

  #press(event: KeyboardEvent) {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || writes(event.target)) return;
    const first = this.#first !== null && event.timeStamp - this.#first.at < PAIR_MS ? this.#first.key : null;
    const found = this.#find(first === null ? event.key : `${first} ${event.key}`) ?? this.#find(event.key);
    this.#first = { key: event.key, at: event.timeStamp };
    if (!found) return;
    event.preventDefault();
    this.#first = null;
    found.run();
  }

  #find(keys: string): Shortcut | undefined {
    return this.shortcuts.findLast((shortcut) => shortcut.keys === keys);
  }
}

function writes(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName);
}

export const keyboard = new Keyboard();
