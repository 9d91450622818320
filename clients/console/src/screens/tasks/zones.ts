// Clocks on the wall of a time zone, as `Intl` knows them. Pure. A wall time is milliseconds as if it were UTC.

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known) return known;
  const form = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' } as const;
  const made = new Intl.DateTimeFormat('en-US', { ...form, timeZone: zone, hourCycle: 'h23', calendar: 'iso8601', numberingSystem: 'latn' });
  formats.set(zone, made);
  return made;
}

export function isZone(zone: string): boolean {
  try {
    format(zone);
    return true;
  } catch {
    return false;
  }
}

/** What the clock shows at a moment. */
export function wallOf(moment: number, zone: string): number {
  const parts: Record<string, number> = {};
  for (const { type, value } of format(zone).formatToParts(moment)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) + (((moment % 1000) + 1000) % 1000);
}

export function offsetOf(moment: number, zone: string): number {
  return wallOf(moment, zone) - moment;
}

const DAY = 86_400_000;

/** When the clock shows this, the first time; or the first moment after the gap, if it never does. */
export function momentOf(wall: number, zone: string): number {
  const before = offsetOf(wall - DAY, zone);
  const after = offsetOf(wall + DAY, zone);
  const shows = [wall - before, wall - after].filter((moment) => wallOf(moment, zone) === wall);
  if (shows.length > 0) return Math.min(...shows);
  return change(wall - DAY, wall + DAY, zone);
}

/** When the clock was changed between two moments. */
function change(from: number, to: number, zone: string): number {
  const offset = offsetOf(from, zone);
  let [low, high] = [from, to];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetOf(middle, zone) === offset) low = middle;
    else high = middle;
  }
  return high;
}
