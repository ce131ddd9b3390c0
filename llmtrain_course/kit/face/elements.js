/* Small helpers that all scripts share. */

/** Create an element with its properties and attributes, and what's in it. */
export function create(tag, about = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
}

export const button = (text, act, plain = true) =>
  create("button", {
    type: "button",
    className: plain ? "live-button live-plain" : "live-button",
    textContent: text,
    onclick: act,
  });

/** Show an element, or hide it. */
export const show = (element, wanted) => element.toggleAttribute("hidden", !wanted);
