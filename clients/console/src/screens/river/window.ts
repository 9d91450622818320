// Which rows of a long list are to be drawn. Pure.

export interface Window {
  first: number;
  /** The row behind the last one. */
  end: number;
}

/** Rows that are drawn above and below what is seen, so that scrolling shows no gaps. */
const BESIDE = 12;

export function rows(count: number, top: number, height: number, row: number): Window {
  const first = Math.max(0, Math.floor(top / row) - BESIDE);
  const end = Math.min(count, Math.ceil((top + height) / row) + BESIDE);
  return { first: Math.min(first, end), end };
}

/** How a list must be scrolled so that a row is seen, from where it is. */
export function towards(index: number, top: number, height: number, row: number): number {
  const above = index * row;
  if (above < top) return above;
  return above + row > top + height ? above + row - height : top;
}
