/** What the build left in the page for the scripts, as data of this name. */
export const pageData = (name) =>
  JSON.parse(document.getElementById(`live-${name}`)?.textContent ?? "[]");
