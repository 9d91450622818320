// How it is with a decision that was made again, and with a message that a change reaches.
export type Tone = 'plain' | 'accent' | 'good' | 'warn' | 'bad' | 'note';

const TONES: Record<string, Tone> = {
  same: 'good',
  forgotten: 'plain',
  reworded: 'note',
  drifted: 'warn',
  differs: 'bad',
  not_replayable: 'bad',
  dropped: 'bad',
  edited: 'accent',
  vanished: 'bad',
  kept: 'good',
  changed: 'warn',
  unknown: 'note',
};

export function toneOf(outcome: string): Tone {
  return TONES[outcome] ?? 'plain';
}
