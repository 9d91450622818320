// Numbers, times and durations as people of a language write them.
import { languages, words } from './index.svelte';
import { en } from './en';
import { zh } from './zh';

/** Made once for each language: making one takes longer than a hundred uses. */
function kept<F, M>(make: (tag: string, form: F) => M): (form: F) => M {
  const made = new Map<string, M>();
  return (form) => {
    const key = `${languages.tag} ${JSON.stringify(form)}`;
    const formatter = made.get(key) ?? make(languages.tag, form);
    made.set(key, formatter);
    return formatter;
  };
}

const numbers = kept((tag, form: Intl.NumberFormatOptions) => new Intl.NumberFormat(tag, form));
const times = kept((tag, form: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(tag, form));

export function number(value: number, digits = 0): string {
  return numbers({ maximumFractionDigits: digits }).format(value);
}

export function percent(fraction: number): string {
  return numbers({ style: 'percent' }).format(fraction);
}

/** The time of day, with milliseconds: events of one turn are often within one second. */
export function clock(at: string | number | Date, milliseconds = false): string {
  const form: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false };
  if (milliseconds) form.fractionalSecondDigits = 3;
  return times(form).format(new Date(at));
}

export function moment(at: string | number | Date): string {
  return times({ dateStyle: 'medium', timeStyle: 'medium', hour12: false }).format(new Date(at));
}

/** How long something took that often takes less than a second. */
export function latency(milliseconds: number): string {
  if (milliseconds >= 1000) return duration(milliseconds);
  return numbers({ style: 'unit', unit: 'millisecond', maximumFractionDigits: 0 }).format(milliseconds);
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
  return numbers(form).format(count / 1000 ** step);
}
