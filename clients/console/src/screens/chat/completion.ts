// What the beginning of a command or of an agent's name may become, as in `kairo chat`. Pure.
import type { AgentRow, DeclaredCommand } from '$lib/api/types';

export interface Offer {
  /** What is written when it is taken. */
  text: string;
  /** In a few words, for people. */
  about: string;
}

/** As many as are offered at once. */
const MOST = 8;

/** Where what is written is nothing to be sent yet: a command is offered until it is whole, a name as long as nothing is said. */
export function offers(written: string, commands: readonly DeclaredCommand[], agents: readonly AgentRow[]): Offer[] {
  if (/\s/.test(written)) return [];
  if (written.startsWith('/')) {
    if (commands.some(({ command }) => `/${command}` === written)) return [];
    const begun = commands.filter(({ command }) => `/${command}`.startsWith(written));
    return begun.slice(0, MOST).map(({ command, label, help }) => ({ text: `/${command} `, about: help || label }));
  }
  if (written.startsWith('@')) {
    const begun = agents.filter(({ agent }) => `@${agent}`.startsWith(written));
    return begun.slice(0, MOST).map(({ agent, profile }) => ({ text: `@${agent} `, about: descriptionOf(profile) }));
  }
  return [];
}

/** Whom a message is for that begins with `@name`, and the rest of it; none where it names nobody that there is. */
export function named(written: string, agents: readonly AgentRow[]): { agent: string; words: string } | null {
  const found = /^@([a-z0-9_-]+)\s+(\S[^]*)$/.exec(written);
  const [, agent = '', words = ''] = found ?? [];
  return agents.some((row) => row.agent === agent) ? { agent, words } : null;
}

function descriptionOf(profile: unknown): string {
  const given = typeof profile === 'object' && profile !== null ? (profile as { description?: unknown }).description : '';
  return typeof given === 'string' ? given : '';
}
