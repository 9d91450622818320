// What was used, told apart by one thing, and the bars of a chart of it. Pure. Costs are exact decimal numbers that the gateway
// added up: they are passed on as they are, and never become numbers of this language, which round.
import type { components } from '$lib/api/openapi';

export const BYS = ['day', 'agent', 'user', 'model', 'module', 'thread'] as const;
export type By = (typeof BYS)[number];
export type UsageRow = components['schemas']['UsageRow'];

export function isBy(text: string): text is By {
  return (BYS as readonly string[]).includes(text);
}

/** What a row is of; none where nothing is named, as of calls that no user is behind. */
export function valueOf(row: UsageRow, by: By): string | null {
  return (by === 'thread' ? row.thread_id : row[by]) ?? null;
}

export interface Bar {
  day: string;
  input: number;
  output: number;
  /** Of the highest, 0 to 1. */
  inputPart: number;
  outputPart: number;
}

/** A bar for each day from the first to the last, those without anything among them; the newest where there are too many. */
export function bars(rows: readonly UsageRow[], most = 60): Bar[] {
  const days = new Map<string, { input: number; output: number }>();
  for (const { day, input_tokens, output_tokens } of rows) if (day) days.set(day, { input: input_tokens, output: output_tokens });
  const known = [...days.keys()].sort();
  const [first, last] = [known[0], known.at(-1)];
  if (!first || !last) return [];
  const all: { day: string; input: number; output: number }[] = [];
  for (let at = Date.parse(last); at >= Date.parse(first) && all.length < most; at -= 86_400_000) {
    const day = new Date(at).toISOString().slice(0, 10);
    all.unshift({ day, ...(days.get(day) ?? { input: 0, output: 0 }) });
  }
  const highest = Math.max(1, ...all.map(({ input, output }) => input + output));
  return all.map((bar) => ({ ...bar, inputPart: bar.input / highest, outputPart: bar.output / highest }));
}
