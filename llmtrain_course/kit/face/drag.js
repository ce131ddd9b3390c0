/* What one drags in a handle's picture: a mark that names the control which moves it. It goes to
   that stop at which it lies nearest to the pointer, above all to the side: marks lie on curves. */
const REACH = 24; // px about a mark
const UPRIGHT = 0.1; // what a px up or down counts, of one to the side

const middle = (mark) => {
  const { left, top, width, height } = mark.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
};
const distance = (mark, { clientX, clientY }) => {
  const [x, y] = middle(mark);
  return Math.hypot(x - clientX, y - clientY);
};

export function makeDraggable(handle) {
  const { answer } = handle;
  let drag;

  const marks = () => [...answer.querySelectorAll("[data-moves]")].filter((one) => one.checkVisibility());
  const near = (event) => {
    const [nearest] = marks().sort((a, b) => distance(a, event) - distance(b, event));
    return nearest && distance(nearest, event) < REACH ? nearest : undefined;
  };

  const keepPage = (event) => near(event.targetTouches[0]) && event.preventDefault(); // it would scroll
  answer.addEventListener("touchstart", keepPage, { passive: false });

  answer.addEventListener("pointerdown", async (event) => {
    const mark = near(event);
    if (!mark || event.button) return;
    event.preventDefault(); // no text is selected
    const name = mark.dataset.moves;
    const order = marks().filter((one) => one.dataset.moves === name).indexOf(mark);
    const [x, y] = middle(mark);
    const now = { name, aside: [event.clientX - x, event.clientY - y], toScreen: mark.getScreenCTM() };
    drag = now;
    answer.setPointerCapture(event.pointerId);
    answer.classList.add("live-dragging");
    now.stops = (await handle.marks(name)).map((all) => all[order]);
    if (now.last) move(now, now.last); // the pointer went on while they were asked for
  });

  answer.addEventListener("pointermove", (event) => {
    if (drag) move(drag, (drag.last = event));
  });

  function move(drag, event) {
    if (!drag.stops) return;
    const [x, y] = [event.clientX - drag.aside[0], event.clientY - drag.aside[1]];
    const to = new DOMPoint(x, y).matrixTransform(drag.toScreen.inverse());
    const away = drag.stops.map((spot) => (spot ? Math.hypot(spot[0] - to.x, UPRIGHT * (spot[1] - to.y)) : Infinity));
    const stop = away.indexOf(Math.min(...away));
    if (away[stop] === Infinity || stop === drag.stop) return;
    drag.stop = stop;
    handle.slide(drag.name, stop);
  }

  for (const end of ["pointerup", "pointercancel"])
    answer.addEventListener(end, () => {
      drag = undefined;
      answer.classList.remove("live-dragging");
    });
}
