import { expect, test } from 'vitest';
import { fits, pieces, wanted } from './words';

test('what somebody looks for', () => {
  expect(wanted(' 42 ')).toEqual({ kind: 'sequence', text: '42' });
  expect(wanted('42.1')).toEqual({ kind: 'sequence', text: '42' });
  expect(wanted('#7')).toEqual({ kind: 'sequence', text: '7' });
  expect(wanted('CAD4D526-cffe-52e0-a641-86fde2525731').kind).toBe('id');
  expect(wanted('42 apples')).toEqual({ kind: 'words', text: '42 apples' });
});

test('snippets become text', () => {
  expect(pieces('a <mark>b</mark> &lt;img&gt; &amp;lt;')).toEqual([
    { text: 'a ', found: false },
    { text: 'b', found: true },
    { text: ' <img> &lt;', found: false },
  ]);
  expect(pieces('<script>x</script>')).toEqual([{ text: '<script>x</script>', found: false }]);
  expect(pieces('')).toEqual([]);
});

test('words fit in any order', () => {
  expect(fits('Replay lab nvidia', 'nvi rep')).toBe(true);
  expect(fits('Replay lab', 'fleet')).toBe(false);
});
