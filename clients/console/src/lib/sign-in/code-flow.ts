// The authorization code flow of a public client with PKCE (RFC 6749, RFC 7636), as far as it is no request. Pure.

/** Where one signs in, as the gateway is configured. */
export interface SignIn {
  issuer: string;
  client_id: string;
  scope: string;
  authorization_endpoint: string;
  token_endpoint: string;
}

/** What stays here while one is at the issuer. */
export interface Begun {
  at: SignIn;
  state: string;
  verifier: string;
  /** Where the issuer sends one back to. */
  redirect: string;
  /** Where one wanted to go, below the page's origin. */
  place: string;
}

export function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** Where one goes to sign in; the challenge is the SHA-256 of the verifier, in base64url. */
export function authorization({ at, state, redirect }: Begun, challenge: string): string {
  const url = new URL(at.authorization_endpoint);
  const fields = {
    response_type: 'code',
    client_id: at.client_id,
    redirect_uri: redirect,
    scope: at.scope,
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value);
  return url.href;
}

/** Such as after a link that somebody else made. */
export const NOT_BEGUN = 'the answer is not to what was begun in this tab (state)';

/** What one came back with: a code, or what is wrong. */
export type Returned = { code: string } | { wrong: string };

export function returned(search: string, begun: Begun | null): Returned {
  const fields = new URLSearchParams(search);
  const [code, state, issuer, error] = ['code', 'state', 'iss', 'error'].map((name) => fields.get(name) ?? '');
  if (!begun || state !== begun.state) return { wrong: NOT_BEGUN };
  // Another issuer's answer, where it says whose it is (RFC 9207).
  if (issuer && issuer !== begun.at.issuer) return { wrong: 'the answer is of another issuer (iss)' };
  if (error) return { wrong: [error, fields.get('error_description') ?? ''].filter((said) => said !== '').join(': ') };
  return code ? { code } : { wrong: 'the answer has no code' };
}

/** What the code is exchanged with. */
export function exchange({ at, verifier, redirect }: Begun, code: string): URLSearchParams {
  return new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirect,
    client_id: at.client_id,
    code_verifier: verifier,
  });
}

/** What to show the gateway, of what the issuer gave: the access token, or where that is not for others to read, the id token. */
export function tokenOf(answer: unknown): string {
  const { access_token, id_token } = (answer ?? {}) as Record<string, unknown>;
  const isJwt = (token: unknown): token is string => typeof token === 'string' && token.split('.').length === 3;
  if (isJwt(access_token)) return access_token;
  return isJwt(id_token) ? id_token : '';
}
