// Light or dark: as the system has it, or as somebody chose.

export type Theme = 'system' | 'light' | 'dark';

export const THEMES: readonly Theme[] = ['system', 'light', 'dark'];
const KEPT = 'kairo.theme';

function kept(): Theme {
  const found = localStorage.getItem(KEPT);
  return THEMES.find((theme) => theme === found) ?? 'system';
}

class Themes {
  chosen = $state<Theme>(kept());
  #dark = matchMedia('(prefers-color-scheme: dark)');

  /** Shows it, now and whenever the system changes. */
  begin() {
    this.#dark.addEventListener('change', () => this.#show());
    this.#show();
  }

  choose(theme: Theme) {
    this.chosen = theme;
    localStorage.setItem(KEPT, theme);
    this.#show();
  }

  #show() {
    const system = this.#dark.matches ? 'dark' : 'light';
    document.documentElement.dataset['theme'] = this.chosen === 'system' ? system : this.chosen;
  }
}

export const themes = new Themes();
