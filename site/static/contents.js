/* The list of a page's scenes shows which one is being read. */
const READ = 0.35; // a scene is read once its head has come so far up, of the window's height

export function contents() {
  const links = [...document.querySelectorAll(".bd-sidebar-secondary nav a[href^='#']")];
  const heads = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  let asked = false;

  const mark = () => {
    asked = false;
    const line = innerHeight * READ;
    const at = heads.findLastIndex((head) => head?.getBoundingClientRect().top < line);
    links.forEach((link, place) => link.classList.toggle("live-here", place === at));
  };
  const ask = () => {
    if (!asked) requestAnimationFrame(mark);
    asked = true;
  };
  addEventListener("scroll", ask, { passive: true });
  addEventListener("resize", ask);
  mark();
}
