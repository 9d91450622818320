// In what two states differ. Pure.

export interface Change {
  path: string[];
  kind: 'added' | 'removed' | 'changed';
  before: unknown;
  after: unknown;
}

/** So many are told; what is more is only counted as more. */
export const MOST = 300;

export function changes(before: unknown, after: unknown): Change[] {
  const found: Change[] = [];
  compare([], before, after, found);
  return found;
}

function compare(path: string[], before: unknown, after: unknown, found: Change[]) {
  if (found.length > MOST || same(before, after)) return;
  if (Array.isArray(before) && Array.isArray(after)) return lists(path, before, after, found);
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      if (!(key in before)) found.push({ path: [...path, key], kind: 'added', before: undefined, after: after[key] });
      else if (!(key in after)) found.push({ path: [...path, key], kind: 'removed', before: before[key], after: undefined });
      else compare([...path, key], before[key], after[key], found);
    }
    return;
  }
  found.push({ path, kind: 'changed', before, after });
}

/** Lists grow at their ends and lose what is old, so what is the same at both ends is left alone. */
function lists(path: string[], before: unknown[], after: unknown[], found: Change[]) {
  let from = 0;
  while (from < before.length && from < after.length && same(before[from], after[from])) from += 1;
  let end = 0;
  while (end < Math.min(before.length, after.length) - from && same(before.at(-1 - end), after.at(-1 - end))) end += 1;
  const old = before.slice(from, before.length - end);
  const fresh = after.slice(from, after.length - end);
  if (old.length === fresh.length) {
    for (const [index, value] of old.entries()) compare([...path, String(from + index)], value, fresh[index], found);
    return;
  }
  for (const [index, value] of old.entries()) found.push({ path: [...path, String(from + index)], kind: 'removed', before: value, after: undefined });
  for (const [index, value] of fresh.entries()) found.push({ path: [...path, String(from + index)], kind: 'added', before: undefined, after: value });
}

function same(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
