/* What one drags in a handle's picture: a mark that names the control which moves it. It goes to
   that stop at which it lies nearest to the pointer, above all to the side: marks lie on curves. */
const REACH = 24; // px about a mark
const UPRIGHT = 0.1; // what a px up or down counts, of one to the side

const middle = (mark) => {
  const { left, top, width, height } = mark.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
};
const far = (mark, { clientX, clientY }) => {
  const [x, y] = middle(mark);
  return Math.hypot(x - clientX, y - clientY);
};

export function draggable(handle) {
  const { answer } = handle;
  let held;

  const marks = () => [...answer.querySelectorAll("[data-moves]")].filter((one) => one.checkVisibility());
  const near = (event) => {
    const [nearest] = marks().sort((a, b) => far(a, event) - far(b, event));
    return nearest && far(nearest, event) < REACH ? nearest : undefined;
  };

  answer.addEventListener("pointerdown", async (event) => {
    const mark = near(event);
    if (!mark || event.button) return;
    event.preventDefault(); // no text is selected
    const name = mark.dataset.moves;
    const order = marks().filter((one) => one.dataset.moves === name).indexOf(mark);
    const [x, y] = middle(mark);
    const now = { name, aside: [event.clientX - x, event.clientY - y], toScreen: mark.getScreenCTM() };
    held = now;
    answer.setPointerCapture(event.pointerId);
    answer.classList.add("live-held");
    now.stops = (await handle.marks(name)).map((all) => all[order]);
  });

  answer.addEventListener("pointermove", (event) => {
    if (!held?.stops) return;
    const [x, y] = [event.clientX - held.aside[0], event.clientY - held.aside[1]];
    const to = new DOMPoint(x, y).matrixTransform(held.toScreen.inverse());
    const away = held.stops.map((spot) => (spot ? Math.hypot(spot[0] - to.x, UPRIGHT * (spot[1] - to.y)) : Infinity));
    const stop = away.indexOf(Math.min(...away));
    if (away[stop] === Infinity || stop === held.stop) return;
    held.stop = stop;
    handle.slide(held.name, stop);
  });

  for (const end of ["pointerup", "pointercancel"])
    answer.addEventListener(end, () => {
      held = undefined;
      answer.classList.remove("live-held");
    });
}
