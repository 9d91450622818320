// The colour of how it is with an action or a process.
export type Tone = 'plain' | 'accent' | 'good' | 'warn' | 'bad';

const TONES: Record<string, Tone> = { asked: 'plain', running: 'accent', done: 'good', exited: 'good', canceled: 'warn' };

/** Whatever else there is, is a way to fail. */
export function toneOf(status: string): Tone {
  return TONES[status] ?? 'bad';
}
