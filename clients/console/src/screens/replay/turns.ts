// A gateway makes few answers at once that take an agent's whole log, and refuses more: they are asked for one after the other.
let last: Promise<unknown> = Promise.resolve();

/** In its turn, if it is still wanted then. */
export function inTurn<T>(request: () => Promise<T>, wanted: () => boolean): Promise<T> {
  const run = last.then(() => (wanted() ? request() : Promise.reject(new Error('it is not wanted any more'))));
  last = run.catch(() => {});
  return run;
}
