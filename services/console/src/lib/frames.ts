// Much comes at once, a screen is drawn sixty times a second: what changed is shown with the next frame, once.

/** A function that has `show` called with the next frame, however often it is called until then. */
export function eachFrame(show: () => void): { soon: () => void; stop: () => void } {
  let frame = 0;
  const run = () => {
    frame = 0;
    show();
  };
  return {
    soon: () => {
      // A page in the background draws no frames, and is looked at again later.
      if (frame === 0) frame = requestAnimationFrame(run);
    },
    stop: () => cancelAnimationFrame(frame),
  };
}
