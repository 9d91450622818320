// Where in the console one is: the path below `/console/` and the query, both of the browser's address.
import { path, withFields, type Params } from './pattern';

const BASE = '/console';

class Router {
  path = $state('/');
  query = $state(new URLSearchParams());

  begin() {
    addEventListener('popstate', () => this.#read());
    // Links are plain ones, so that they can be opened elsewhere and copied.
    addEventListener('click', (event) => this.#follow(event));
    this.#read();
  }

  /** The address of a place in the console. */
  href(pattern: string, params: Params = {}, query: Params = {}): string {
    const fields = withFields(new URLSearchParams(), query).toString();
    return `${BASE}${path(pattern, params)}${fields && `?${fields}`}`;
  }

  go(href: string) {
    history.pushState(null, '', href);
    this.#read();
  }

  /** Changes fields of the query, without a step in the history: filters are no places. */
  set(fields: Params) {
    const query = withFields(this.query, fields).toString();
    history.replaceState(null, '', location.pathname + (query && `?${query}`));
    this.#read();
  }

  field(name: string): string {
    return this.query.get(name) ?? '';
  }

  #read() {
    this.path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) || '/' : '/';
    this.query = new URLSearchParams(location.search);
  }

  #follow(event: MouseEvent) {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (!link.pathname.startsWith(`${BASE}/`) || link.hash) return;
    event.preventDefault();
    this.go(link.href);
  }
}

export const router = new Router();
