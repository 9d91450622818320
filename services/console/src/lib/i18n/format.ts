// Numbers, times and durations as people of a language write them.
import { languages, words } from './index.svelte';
import { en } from './en';
import { zh } from './zh';

export function number(value: number, digits = 0): string {
  return new Intl.NumberFormat(languages.tag, { maximumFractionDigits: digits }).format(value);
}

export function percent(fraction: number): string {
  return new Intl.NumberFormat(languages.tag, { style: 'percent' }).format(fraction);
}

/** The time of day, with milliseconds: events of one turn are often within one second. */
export function clock(at: string | number | Date, milliseconds = false): string {
  const form: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false };
  if (milliseconds) form.fractionalSecondDigits = 3;
  return new Intl.DateTimeFormat(languages.tag, form).format(new Date(at));
}

export function moment(at: string | number | Date): string {
  return new Intl.DateTimeFormat(languages.tag, { dateStyle: 'medium', timeStyle: 'medium', hour12: false }).format(new Date(at));
}

/** How long something took that often takes less than a second. */
export function latency(milliseconds: number): string {
  if (milliseconds >= 1000) return duration(milliseconds);
  return new Intl.NumberFormat(languages.tag, { style: 'unit', unit: 'millisecond', maximumFractionDigits: 0 }).format(milliseconds);
}

export function duration(milliseconds: number): string {
  const t = words({ en, zh });
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 60) return t.seconds(number(seconds, seconds < 10 ? 1 : 0));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return t.minutes(number(minutes), number(Math.floor(seconds % 60)));
  return t.hours(number(Math.floor(minutes / 60)), number(minutes % 60));
}

export function bytes(count: number): string {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'];
  const step = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(count) / 3));
  const form: Intl.NumberFormatOptions = { style: 'unit', unit: units[step]!, maximumFractionDigits: 1 };
  return new Intl.NumberFormat(languages.tag, form).format(count / 1000 ** step);
}
