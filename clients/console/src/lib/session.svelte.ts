// Who one is to the gateway: nobody in particular where no key is required, else whoever has the key.
import type { components } from './api/openapi';
import { message, ProblemError } from './api/problem';
import { finish } from './sign-in/sign-in';

type Rights = components['schemas']['Whoami'];
export type Scope = 'read' | 'write' | 'admin';

const KEY = 'kairo.key';
const USER = 'kairo.user';
/** As `kairo chat` calls its user where nobody says. */
const DEFAULT_USER = 'you';
const NAME = /^[a-z0-9_-]{1,64}$/;

export type Standing = 'asking' | 'in' | 'out' | 'unreachable';

/** The key in the fragment of the address, which shows it no longer. */
function takeKey(): string | null {
  const key = new URLSearchParams(location.hash.slice(1)).get('key');
  if (key !== null) history.replaceState(null, '', location.pathname + location.search);
  return key;
}

class Session {
  standing = $state<Standing>('asking');
  /** Whether the key that was given was refused. */
  refused = $state(false);
  /** Whether the gateway let one in without a key before. */
  couldStay = $state(false);
  /** Why signing in at an issuer came to nothing. */
  failed = $state('');
  key = $state(sessionStorage.getItem(KEY) ?? '');
  /** What one may do, as the gateway said when one came in. It refuses the rest in any case. */
  #rights = $state.raw<Rights | null>(null);
  #chosen = $state(localStorage.getItem(USER) ?? DEFAULT_USER);

  /** In whose name one speaks. */
  get user(): string {
    return this.#rights?.user ?? this.#chosen;
  }

  /** Whether the key is limited to that user. */
  get isBound(): boolean {
    return this.#rights?.user !== undefined;
  }

  /** The only agents that the key is good for; none where it is good for all. */
  get agents(): readonly string[] | null {
    return this.#rights?.agents ?? null;
  }

  may(scope: Scope): boolean {
    return this.#rights?.scopes.includes(scope) ?? false;
  }

  /** Whether it is the gateway that lets one in without a key, on its own machine. */
  get isKeyless(): boolean {
    return this.standing === 'in' && this.key === '';
  }

  /** Comes in with the key that `kairo console` puts into the address, with what one came back with from an issuer, or as before. */
  async arrive() {
    const brought = takeKey();
    if (brought !== null) return await this.enter(brought);
    try {
      const token = await finish();
      if (token !== null) return await this.enter(token);
    } catch (error) {
      this.failed = message(error);
    }
    await this.begin();
  }

  /** Asks the gateway whom it takes us for. */
  async begin() {
    this.standing = 'asking';
    try {
      const answer = await fetch('/v1/whoami', { headers: this.headers(), cache: 'no-store' });
      if (answer.ok) {
        this.#rights = (await answer.json()) as Rights;
        this.refused = false;
        this.couldStay = this.key === '';
        this.standing = 'in';
      } else if (answer.status === 401) this.lost();
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
    this.#rights = null;
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
    this.#chosen = user;
    localStorage.setItem(USER, user);
    return true;
  }

  /** What to do about an error of an answer. */
  heed(error: unknown) {
    if (error instanceof ProblemError && error.status === 401) this.lost();
  }
}

export const session = new Session();
