/* What one clicks in a handle's picture: a shape that names a control and the value it sets.
   What one drags: a mark that names the control which moves it. It goes to
   that stop at which it lies nearest to the pointer, above all to the side: marks lie on curves.
   A mark that names two controls goes to the side with the first, and up and down with the second,
   from where the first has put it: that may be along a slope. */
const REACH = 24; // px about a mark
const ALONG = [1, 0.1]; // what a px to the side counts, and one up or down
const EACH = [[1, 0], [0, 1]]; // the same for each of two controls

const middle = (mark) => {
  const { left, top, width, height } = mark.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
};
const distance = (mark, { clientX, clientY }) => {
  const [x, y] = middle(mark);
  return Math.hypot(x - clientX, y - clientY);
};

/** The place of the spot that's nearest to a point; -1 where there's none. */
function nearest(spots, to, [side, upright]) {
  const away = spots.map((spot) => (spot ? Math.hypot(side * (spot[0] - to.x), upright * (spot[1] - to.y)) : Infinity));
  const least = Math.min(...away);
  return least === Infinity ? -1 : away.indexOf(least);
}

/** A click on a shape sets its control, and so do Enter and Space on one that has the focus. */
export function makeClickable(handle) {
  const set = (event) => {
    const shape = event.target.closest("[data-sets]");
    if (!shape || (event.type === "keydown" && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    const [name, value] = shape.dataset.sets.split("=");
    handle.act("write", name, value);
  };
  handle.answer.addEventListener("click", set);
  handle.answer.addEventListener("keydown", set);
}

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
    const { moves } = mark.dataset;
    const names = moves.split(" ");
    const order = marks().filter((one) => one.dataset.moves === moves).indexOf(mark);
    const [x, y] = middle(mark);
    const now = { names, aside: [event.clientX - x, event.clientY - y], toScreen: mark.getScreenCTM(), y: mark.cy.baseVal.value };
    drag = now;
    answer.setPointerCapture(event.pointerId);
    answer.classList.add("live-dragging");
    const stops = await Promise.all(names.map((name) => handle.marks(name)));
    now.stops = stops.map((of) => of.map((all) => all[order]));
    if (now.last) move(now, now.last); // the pointer went on while they were asked for
  });

  answer.addEventListener("pointermove", (event) => {
    if (drag) move(drag, (drag.last = event));
  });

  function move(drag, event) {
    if (!drag.stops) return;
    const [x, y] = [event.clientX - drag.aside[0], event.clientY - drag.aside[1]];
    const to = new DOMPoint(x, y).matrixTransform(drag.toScreen.inverse());
    const counts = drag.names.length > 1 ? EACH : [ALONG];
    const places = drag.stops.map((spots, at) => {
      const place = nearest(spots, to, counts[at]);
      if (place >= 0) to.y -= spots[place][1] - drag.y;
      return place;
    });
    if (places.includes(-1) || `${places}` === drag.places) return;
    drag.places = `${places}`;
    handle.slide(drag.names, places);
  }

  for (const end of ["pointerup", "pointercancel"])
    answer.addEventListener(end, () => {
      drag = undefined;
      answer.classList.remove("live-dragging");
    });
}
