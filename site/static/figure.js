/* A figure that people can link to: its state in the address, and its picture to paste. */
import { create } from "./elements.js";

const LINK = /^#fig-(\w+)(?:\?(.*))?$/;
const SCALE = 2; // a picture's pixels for each of its own

/** What the controls are set to, as far as it isn't how the figure begins. */
const state = (face, start) =>
  new URLSearchParams(face.fields.flatMap(({ name, control, input }) => {
    const value = control.kind === "flag" ? input.checked : input.value;
    return value === start[name].text ? [] : [[name, value]];
  }));

/** The address of a figure as it's set: in its chapter, or of its own page. */
function linkTo(name, set) {
  const alone = document.querySelector("html.figure");
  const address = new URL(location.href);
  address.search = alone ? set : "";
  address.hash = alone ? "" : `fig-${name}${set.size ? `?${set}` : ""}`;
  return address.href;
}

/** What the address sets in this figure, or undefined when it's about another one. */
function asked(name) {
  if (document.querySelector("html.figure")) return new URLSearchParams(location.search);
  const [, figure, set] = location.hash.match(LINK) ?? [];
  return figure === name ? new URLSearchParams(set) : undefined;
}

/** Draw the picture that's visible as a PNG, on the page's own ground. */
async function paint(drawing) {
  const { width, height } = drawing.viewBox.baseVal;
  const copy = drawing.cloneNode(true);
  const { color, fontFamily } = getComputedStyle(drawing);
  const shapes = copy.querySelectorAll("[fill], [stroke]");
  drawing.querySelectorAll("[fill], [stroke]").forEach((shape, at) => {
    const { fill, stroke } = getComputedStyle(shape); // in the theme that's shown
    shapes[at].setAttribute("style", `${shapes[at].getAttribute("style") ?? ""};fill:${fill};stroke:${stroke}`);
  });
  copy.setAttribute("width", width * SCALE);
  copy.setAttribute("height", height * SCALE);
  copy.setAttribute("style", `color:${color};font-family:${fontFamily.replaceAll('"', "'")}`);
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  const canvas = create("canvas", { width: width * SCALE, height: height * SCALE });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(drawing.closest(".live-panel")).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** Say on the button for a moment how it went. */
function report(button, words) {
  const { textContent } = button;
  button.textContent = words;
  setTimeout(() => (button.textContent = textContent), 2500);
}

async function copyPicture(face, name, button) {
  const drawing = [...face.answer.querySelectorAll("svg.wt")].find((one) => one.clientWidth);
  const picture = paint(drawing);
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
    report(button, "Copied");
  } catch { // no clipboard for pictures, or not allowed: as a file
    const href = URL.createObjectURL(await picture);
    create("a", { href, download: `${name}.png` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
    report(button, "Saved");
  }
}

/** Give a handle with a caption its buttons, and set it as the address says, now and when that changes. */
export function addLinks(face, start) {
  const { section } = face;
  const name = section.dataset.word.replace("handle:", "");
  const [link, picture] = section.parentElement.querySelectorAll(".live-caption button");
  const own = section.parentElement.querySelector(".live-tools a");
  if (!link) return;
  link.onclick = () => {
    const address = linkTo(name, state(face, start));
    navigator.clipboard.writeText(address).then(
      () => report(link, "Copied"),
      () => {
        history.replaceState(null, "", address);
        report(link, "It's in the address bar");
      },
    );
  };
  own?.addEventListener("click", () => (own.search = state(face, start)));
  picture.onclick = () => copyPicture(face, name, picture);
  const follow = () => {
    const set = asked(name);
    if (!set) return;
    for (const { name, control } of face.fields)
      if (set.has(name))
        face.act("write", name, control.kind === "flag" ? set.get(name) === "true" : set.get(name));
    if (location.hash) section.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();
}
