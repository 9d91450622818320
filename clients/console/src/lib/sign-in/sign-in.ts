// Signing in at an issuer that the gateway trusts, and coming back with a token of it.
import { authorization, base64url, exchange, NOT_BEGUN, returned, tokenOf, type Begun, type SignIn } from './code-flow';

const KEPT = 'kairo.signing-in';
/** Where issuers send one back to, which they are told beforehand. */
const RETURN = '/console/signed-in';

/** Where one may sign in; nowhere where the gateway does not say. */
export async function offered(): Promise<SignIn[]> {
  // Pages that came neither over TLS nor from this machine make no digests.
  if (!crypto.subtle) return [];
  const answer = await fetch('/console/sign-in.json', { cache: 'no-store' });
  return answer.ok ? ((await answer.json()) as SignIn[]) : [];
}

/** Goes to the issuer. */
export async function begin(at: SignIn) {
  const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));
  const place = location.pathname === RETURN ? '/console/' : location.pathname + location.search;
  const begun: Begun = { at, state: random(), verifier: random(), redirect: location.origin + RETURN, place };
  sessionStorage.setItem(KEPT, JSON.stringify(begun));
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(begun.verifier));
  location.assign(authorization(begun, base64url(new Uint8Array(digest))));
}

/** The token that one came back for from the issuer; none where one did not come from there. Fails with what is wrong. */
export async function finish(): Promise<string | null> {
  if (location.pathname !== RETURN) return null;
  const kept = sessionStorage.getItem(KEPT);
  const begun = kept === null ? null : (JSON.parse(kept) as Begun);
  const answer = returned(location.search, begun);
  // A code is good once.
  sessionStorage.removeItem(KEPT);
  history.replaceState(null, '', begun?.place ?? '/console/');
  if (!begun || 'wrong' in answer) throw new Error('wrong' in answer ? answer.wrong : NOT_BEGUN);
  const given = await fetch(begun.at.token_endpoint, { method: 'POST', body: exchange(begun, answer.code), cache: 'no-store', credentials: 'omit' });
  const token = tokenOf(await given.json().catch(() => null));
  if (!given.ok || token === '') throw new Error(`${begun.at.token_endpoint}: ${given.status}`);
  return token;
}
