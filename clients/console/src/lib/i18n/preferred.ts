export type Locale = 'en' | 'zh';

/** The language that somebody chose, or that their browser asks for, as far as it is one of these. */
export function preferred(languages: readonly string[], chosen: string | null): Locale {
  for (const wanted of [chosen, ...languages]) {
    if (wanted?.toLowerCase().startsWith('zh')) return 'zh';
    if (wanted?.toLowerCase().startsWith('en')) return 'en';
  }
  return 'en';
}
