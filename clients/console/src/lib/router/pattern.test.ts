import { expect, test } from 'vitest';
import { match, path, withFields } from './pattern';

test('parts of a path are named', () => {
  expect(match('/chat/{agent?}', '/chat')).toEqual({});
  expect(match('/chat/{agent?}', '/chat/')).toEqual({});
  expect(match('/chat/{agent?}', '/chat/cook')).toEqual({ agent: 'cook' });
  expect(match('/chat/{agent?}', '/chat/a%2Fb')).toEqual({ agent: 'a/b' });
  expect(match('/', '/')).toEqual({});
  expect(match('/x/{a}/{b?}', '/x/1')).toEqual({ a: '1' });
});

test('what is another path is none', () => {
  for (const other of ['/', '/river', '/chat/a/b', '/chat/%E0%A4%A']) expect(match('/chat/{agent?}', other)).toBeNull();
  expect(match('/x/{a}', '/x')).toBeNull();
});

test('a path is made of what it is matched from', () => {
  for (const agent of ['cook', 'a/b', '汉字', '%']) {
    expect(match('/chat/{agent?}', path('/chat/{agent?}', { agent }))).toEqual({ agent });
  }
  expect(path('/chat/{agent?}')).toBe('/chat');
  expect(path('/')).toBe('/');
});

test('fields that are empty are left out of a query', () => {
  const query = withFields(new URLSearchParams('agent=a&text=x'), { text: '', kinds: 'tool agent' });
  expect(query.toString()).toBe('agent=a&kinds=tool+agent');
});
