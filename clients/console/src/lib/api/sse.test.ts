import { expect, test } from 'vitest';
import { Reader } from './sse';

const WHOLE = 'id: 7.0\n\n: alive\n\nid: 8.0\ndata: {"a":1}\n\nevent: token\r\ndata: one\r\ndata:two\r\n\r\n';

test('messages are the same however the text is cut', () => {
  const whole = new Reader().read(WHOLE).filter(({ data }) => data !== '');
  expect(whole).toEqual([
    { event: 'message', data: '{"a":1}', id: '8.0' },
    { event: 'token', data: 'one\ntwo', id: '8.0' },
  ]);
  for (let at = 1; at < WHOLE.length; at += 1) {
    const reader = new Reader();
    const cut = [...reader.read(WHOLE.slice(0, at)), ...reader.read(WHOLE.slice(at))];
    expect(cut.filter(({ data }) => data !== '')).toEqual(whole);
  }
});

test('an id without data is where the stream begins', () => {
  expect(new Reader().read('id: 7.0\n\n')).toEqual([{ event: 'message', data: '', id: '7.0' }]);
});
