// English and Chinese. Each screen has its own dictionary, `en.ts` and `zh.ts`, typed so that a key that is missing in one
// of them does not compile.

import { preferred, type Locale } from './preferred';

export type { Locale };

export const LOCALES: Record<Locale, string> = { en: 'English', zh: '中文' };
const KEPT = 'kairo.locale';

class Languages {
  locale = $state<Locale>(preferred(navigator.languages, localStorage.getItem(KEPT)));

  begin() {
    document.documentElement.lang = this.tag;
  }

  choose(locale: Locale) {
    this.locale = locale;
    localStorage.setItem(KEPT, locale);
    this.begin();
  }

  /** As numbers and times want it. */
  get tag(): string {
    return this.locale === 'zh' ? 'zh-CN' : 'en';
  }
}

export const languages = new Languages();

/** The dictionary in the language at hand: in a component, `const t = $derived(words({ en, zh }))`. */
export function words<T>(dictionary: Record<Locale, NoInfer<T>> & { en: T }): T {
  return dictionary[languages.locale];
}
