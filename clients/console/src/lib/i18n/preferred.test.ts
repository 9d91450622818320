import { expect, test } from 'vitest';
import { preferred } from './preferred';

test('what somebody chose goes before what the browser asks for', () => {
  expect(preferred(['zh-CN', 'en'], null)).toBe('zh');
  expect(preferred(['de', 'zh-Hant', 'en'], null)).toBe('zh');
  expect(preferred(['zh-CN'], 'en')).toBe('en');
  expect(preferred(['de', 'fr'], null)).toBe('en');
  expect(preferred([], 'xx')).toBe('en');
});
