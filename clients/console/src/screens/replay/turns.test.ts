import { expect, test } from 'vitest';
import { inTurn } from './turns';

test('one after the other, and only what is still wanted', async () => {
  const told: string[] = [];
  let wanted = true;
  const ask = (name: string, fails = false) =>
    inTurn(
      async () => {
        told.push(`${name} begins`);
        await Promise.resolve();
        told.push(`${name} ends`);
        if (fails) throw new Error(name);
        return name;
      },
      () => wanted || name !== 'b',
    );
  const all = Promise.allSettled([ask('a', true), ask('b'), ask('c')]);
  wanted = false;
  expect((await all).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
  expect(told).toEqual(['a begins', 'a ends', 'c begins', 'c ends']);
});
