// What is written and not sent yet: kept in the tab, so that neither a reload nor another agent takes it away.
import type { Part } from './fold';

export interface Unsent {
  text: string;
  /** They are stored already. */
  parts: Part[];
}

const NOTHING: Unsent = { text: '', parts: [] };

function keyOf(user: string, agent: string): string {
  return `kairo.unsent.${user}.${agent}`;
}

export function unsent(user: string, agent: string): Unsent {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(keyOf(user, agent)) ?? 'null');
    return { ...NOTHING, ...(kept as Partial<Unsent> | null) };
  } catch {
    return NOTHING;
  }
}

export function keep(user: string, agent: string, written: Unsent) {
  const isNothing = written.text === '' && written.parts.length === 0;
  try {
    if (isNothing) sessionStorage.removeItem(keyOf(user, agent));
    else sessionStorage.setItem(keyOf(user, agent), JSON.stringify(written));
  } catch {
    // There is no room: it is still in the field.
  }
}
