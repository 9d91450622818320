import { expect, test } from 'vitest';
import { authorization, base64url, exchange, NOT_BEGUN, returned, tokenOf, type Begun } from './code-flow';

const begun: Begun = {
  at: {
    issuer: 'https://login.example.com/',
    client_id: 'console',
    scope: 'openid kairo:read',
    authorization_endpoint: 'https://login.example.com/authorize?tenant=7',
    token_endpoint: 'https://login.example.com/token',
  },
  state: 's-1',
  verifier: 'v-1',
  redirect: 'https://kairo.example.com/console/signed-in',
  place: '/console/river',
};

test('one is sent to the issuer with everything it needs, and no secret', () => {
  const url = new URL(authorization(begun, 'c-1'));
  expect(Object.fromEntries(url.searchParams)).toEqual({
    tenant: '7',
    response_type: 'code',
    client_id: 'console',
    redirect_uri: begun.redirect,
    scope: 'openid kairo:read',
    state: 's-1',
    code_challenge: 'c-1',
    code_challenge_method: 'S256',
  });
  expect(exchange(begun, 'x').get('code_verifier')).toBe('v-1');
});

test('only the answer to what was begun here counts', () => {
  expect(returned('?code=x&state=s-1', begun)).toEqual({ code: 'x' });
  expect(returned('?code=x&state=s-1&iss=https://login.example.com/', begun)).toEqual({ code: 'x' });
  expect(returned('?code=x&state=s-2', begun)).toEqual({ wrong: NOT_BEGUN });
  expect(returned('?code=x&state=s-1', null)).toEqual({ wrong: NOT_BEGUN });
  expect(returned('?code=x&state=s-1&iss=https://evil.example.com/', begun)).toEqual({ wrong: expect.stringContaining('iss') });
  expect(returned('?error=access_denied&error_description=no&state=s-1', begun)).toEqual({ wrong: 'access_denied: no' });
  expect(returned('?state=s-1', begun)).toEqual({ wrong: expect.stringContaining('no code') });
});

test('the gateway is shown what it can read', () => {
  expect(tokenOf({ access_token: 'a.b.c', id_token: 'd.e.f' })).toBe('a.b.c');
  expect(tokenOf({ access_token: 'opaque', id_token: 'd.e.f' })).toBe('d.e.f');
  expect(tokenOf({ access_token: 'opaque' })).toBe('');
  expect(tokenOf(null)).toBe('');
  expect(base64url(new Uint8Array([251, 255, 254]))).toBe('-__-');
});
