// Much comes at once, a screen is drawn sixty times a second: what changed is shown with the next frame, once.

/** What comes is taken so often while nobody looks. */
const UNSEEN_MS = 1_000;

/** A function that has `show` called with the next frame, however often it is called until then. */
export function eachFrame(show: () => void): { soon: () => void; stop: () => void } {
  let frame = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = 0;
  };
  const run = () => {
    stop();
    show();
  };
  return {
    soon: () => {
      if (frame !== 0) return;
      frame = requestAnimationFrame(run);
      // A page in the background draws no frames, and what waits for one must not grow without end.
      timer = setTimeout(run, UNSEEN_MS);
    },
    stop,
  };
}
