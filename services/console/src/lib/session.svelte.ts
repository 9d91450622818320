// Who one is to the gateway: nobody in particular where no key is required, else whoever has the key.
import { ProblemError } from './api/problem';

const KEY = 'kairo.key';
const USER = 'kairo.user';
/** As `kairo chat` calls its user where nobody says. */
const DEFAULT_USER = 'you';
const NAME = /^[a-z0-9_-]{1,64}$/;

export type Standing = 'asking' | 'in' | 'out' | 'unreachable';

class Session {
  standing = $state<Standing>('asking');
  /** Whether the key that was given was refused. */
  refused = $state(false);
  key = $state(sessionStorage.getItem(KEY) ?? '');
  /** In whose name one speaks. */
  user = $state(localStorage.getItem(USER) ?? DEFAULT_USER);

  /** Asks the gateway whether it takes us as we are. */
  async begin() {
    this.standing = 'asking';
    try {
      const answer = await fetch('/v1/agents?limit=1', { headers: this.headers() });
      // A key that may not read may still be a good one.
      if (answer.ok || answer.status === 403) this.standing = 'in';
      else if (answer.status === 401) this.lost();
      else this.standing = 'unreachable';
    } catch {
      this.standing = 'unreachable';
    }
  }

  async enter(key: string) {
    this.key = key.trim();
    sessionStorage.setItem(KEY, this.key);
    await this.begin();
  }

  leave() {
    this.key = '';
    sessionStorage.removeItem(KEY);
    this.refused = false;
    this.standing = 'out';
  }

  /** The gateway does not know us, or no longer. */
  lost() {
    const had = this.key !== '';
    this.leave();
    this.refused = had;
  }

  headers(): Record<string, string> {
    return this.key === '' ? {} : { authorization: `Bearer ${this.key}` };
  }

  /** Speaks in another name from here on, if it is one. */
  speakAs(user: string): boolean {
    if (!NAME.test(user)) return false;
    this.user = user;
    localStorage.setItem(USER, user);
    return true;
  }

  /** What to do about an error of an answer. */
  heed(error: unknown) {
    if (error instanceof ProblemError && error.status === 401) this.lost();
  }
}

export const session = new Session();
