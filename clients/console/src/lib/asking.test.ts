import { describe, expect, it } from 'vitest';
import { APART_MS, pause, type Asking } from './asking';

const answered: Asking = { wanted: 8, position: 7, askedAt: 1_000, open: false, failed: false };

describe('a question', () => {
  it('is asked at once when none was lately', () => {
    expect(pause(answered, 1_000 + APART_MS)).toBe(0);
    expect(pause(answered, 90_000)).toBe(0);
  });

  it('waits for what else comes when one was', () => {
    expect(pause(answered, 1_100)).toBe(APART_MS - 100);
  });

  it('is not asked for what the answer has', () => {
    expect(pause({ ...answered, wanted: 7 }, 90_000)).toBeNull();
  });

  it('is not asked beside another, after one that failed, or before the first is answered', () => {
    expect(pause({ ...answered, open: true }, 90_000)).toBeNull();
    expect(pause({ ...answered, failed: true }, 90_000)).toBeNull();
    expect(pause({ ...answered, position: null }, 90_000)).toBeNull();
  });
});
