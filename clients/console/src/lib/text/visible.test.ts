import { expect, test } from 'vitest';
import { head, line, visible } from './visible';

const told = (text: string) => visible(text).map(({ text, named }) => (named ? `<${text}>` : text)).join('');

test('what steers terminals and turns directions is named', () => {
  expect(told('\u001b[31mred\u0007')).toBe('<␛>[31mred<␇>');
  expect(told('a\u202ebc\u2066d\u200b\ufeff')).toBe('a<U+202E>bc<U+2066>d<U+200B><U+FEFF>');
  expect(told('\ud800x')).toBe('<U+D800>x');
});

test('what is written stays as it is', () => {
  for (const text of ['', '<b>&amp;</b>', 'one\n\ttwo', '汉字 العربية 🎉', '{{x}}']) expect(told(text)).toBe(text);
  expect(told('one\r\ntwo\rthree')).toBe('one\ntwo<␍>three');
});

test('a line is one, and short', () => {
  expect(line(' a\n\n b\u001b ')).toBe('a b⟨␛⟩');
  expect(line('x'.repeat(400))).toBe(`${'x'.repeat(300)}…`);
});

test('no character is cut in two', () => {
  expect(head('a🎉', 2)).toBe('a');
  expect(head('a🎉', 3)).toBe('a🎉');
});
