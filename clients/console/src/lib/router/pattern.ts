// Paths of screens, such as `/chat/{agent?}`. Pure.

export type Params = Record<string, string | undefined>;

/** What the named parts of a path are; nothing where it is another path. */
export function match(pattern: string, path: string): Params | null {
  const wanted = segments(pattern);
  const given = segments(path);
  if (given.length > wanted.length) return null;
  const params: Params = {};
  for (const [index, part] of wanted.entries()) {
    const named = /^\{(\w+)(\?)?\}$/.exec(part);
    const found = given[index];
    if (!named) {
      if (part !== found) return null;
    } else if (found !== undefined) {
      const value = decoded(found);
      if (value === null) return null;
      params[named[1]!] = value;
    } else if (!named[2]) {
      return null;
    }
  }
  return params;
}

/** The path of a pattern with these parts. */
export function path(pattern: string, params: Params = {}): string {
  const parts: string[] = [];
  for (const part of segments(pattern)) {
    const named = /^\{(\w+)\??\}$/.exec(part);
    if (!named) {
      parts.push(part);
      continue;
    }
    const value = params[named[1]!];
    if (value === undefined || value === '') break;
    parts.push(encodeURIComponent(value));
  }
  return `/${parts.join('/')}`;
}

/** A query with some fields changed; what is empty is left out. */
export function withFields(query: URLSearchParams, fields: Params): URLSearchParams {
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === '') changed.delete(name);
    else changed.set(name, value);
  }
  return changed;
}

function segments(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
