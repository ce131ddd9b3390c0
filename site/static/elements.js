/* Small helpers that the page's scripts share. */

/** What the build left in the page for the scripts, as data of this name. */
export const pageData = (name) =>
  JSON.parse(document.getElementById(`live-${name}`)?.textContent ?? "[]");

/** An element with its properties and attributes, and what stands in it. */
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

/** An element is there, or hidden. */
export const show = (element, wanted) => element.toggleAttribute("hidden", !wanted);
