// When a task is due next, and then. The first time is the gateway's; those after it are worked out here from how the task
// repeats, and only where that gives the gateway's first time, too. Pure.
import { Cron } from 'croner';
import { RRule } from 'rrule';
import type { TaskRow } from '$lib/api/types';
import { isZone, momentOf, wallOf } from './zones';

/** Times that are due next, the first one as the gateway has it. */
export function upcoming(task: TaskRow, count: number): number[] {
  if (task.next_at === null || task.ended_at !== null) return [];
  const first = Date.parse(task.next_at);
  if (task.type !== 'repeat') return [first];
  try {
    const [same, ...others] = following(task, first, count);
    return same === first ? [first, ...others] : [first];
  } catch {
    // A way to repeat that is not known here.
    return [first];
  }
}

/** The first times from `first` on. */
function following(task: TaskRow, first: number, count: number): number[] {
  const zone = task.time_zone || 'UTC';
  if (!isZone(zone)) return [];
  if (task.cron) return cron(task.cron, zone, first, count);
  if (task.rrule) return rule(task.rrule, task.at ?? '', zone, first, count);
  if (task.interval) return every(first, Number(/^(\d+)s$/.exec(task.interval)?.[1]) * 1000, count);
  return task.at ? daily(task.at, zone, first, count) : [];
}

function every(first: number, step: number, count: number): number[] {
  if (!(step > 0)) return [];
  return Array.from({ length: count }, (_, index) => first + index * step);
}

function cron(expression: string, zone: string, first: number, count: number): number[] {
  const runs = new Cron(expression, { timezone: zone, paused: true }).nextRuns(count, new Date(first - 1000));
  return runs.map((run) => run.getTime());
}

const DAY = 86_400_000;

/** Every day at this time on the wall clock. */
function daily(at: string, zone: string, first: number, count: number): number[] {
  const [, hours, minutes] = /^(\d\d):(\d\d)/.exec(at) ?? [];
  if (hours === undefined) return [];
  const wall = wallOf(first, zone);
  const today = wall - (wall % DAY) + (Number(hours) * 60 + Number(minutes)) * 60_000;
  const moments = Array.from({ length: count + 2 }, (_, index) => momentOf(today + (index - 1) * DAY, zone));
  return moments.filter((moment) => moment >= first).slice(0, count);
}

/** Rules whose steps are days or longer, which go by the wall clock, and plain steps of hours and minutes, which do not. */
function rule(text: string, at: string, zone: string, first: number, count: number): number[] {
  const start = Date.parse(`${at}Z`);
  if (Number.isNaN(start)) return [];
  const parts = text.replace(/^RRULE:/i, '').toUpperCase().split(';').filter(Boolean);
  const isSteps = parts.some((part) => /^FREQ=(HOURLY|MINUTELY)$/.test(part));
  if (isSteps && parts.some((part) => part.startsWith('BY'))) return [];
  const toMoment = isSteps ? (wall: number) => momentOf(start, zone) + (wall - start) : (wall: number) => momentOf(wall, zone);
  // Until a moment, that is: the library takes what it is given for the wall clock.
  const until = parts.map((part) => /^UNTIL=(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(part)).find((found) => found);
  const last = until ? Date.UTC(+until[1]!, +until[2]! - 1, +until[3]!, +until[4]!, +until[5]!, +until[6]!) : Infinity;
  const kept = parts.filter((part) => !/^UNTIL=.*Z$/.test(part)).join(';');
  const read = new RRule({ ...RRule.parseString(kept), dtstart: new Date(start) });
  const moments: number[] = [];
  let wall: Date | null = read.after(new Date((isSteps ? start + (first - momentOf(start, zone)) : wallOf(first, zone)) - 2 * 3_600_000), true);
  while (wall && moments.length < count) {
    const moment = toMoment(wall.getTime());
    if (moment > last) break;
    if (moment >= first) moments.push(moment);
    wall = read.after(wall, false);
  }
  return moments;
}
