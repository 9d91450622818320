// Turns slides by keys; a slide that is taller than the window is scrolled by the arrows up and down.
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const slides = [...document.querySelectorAll("section")];
  const at = Math.max(0, slides.findIndex((slide) => slide.getBoundingClientRect().bottom > innerHeight / 2));
  const tall = slides[at].offsetHeight > innerHeight + 1;
  const to = {
    ArrowRight: at + 1,
    ArrowLeft: at - 1,
    ArrowDown: tall ? -1 : at + 1,
    ArrowUp: tall ? -1 : at - 1,
    PageDown: at + 1,
    PageUp: at - 1,
    " ": event.shiftKey ? at - 1 : at + 1,
    Home: 0,
    End: slides.length - 1,
  }[event.key];
  if (!slides[to]) return;
  event.preventDefault();
  slides[to].scrollIntoView();
});
