/* Formulas as SVG: node formulas.mjs MATHJAX < {page: [[tex, displayed]]}.
   Each page gets its formulas, each with its MathML, and the glyphs that they share. */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(import.meta.url);
const mathjax = await require(`${process.argv[2]}/es5/node-main.js`).init({
  loader: { load: ["input/tex", "output/svg"] },
  svg: { fontCache: "global" },
});
const { adaptor, output } = mathjax.startup;

function page(formulas) {
  output.fontCache.clearCache();
  const set = formulas.map(([tex, display]) => {
    const svg = adaptor.innerHTML(mathjax.tex2svg(tex, { display }));
    if (svg.includes("data-mjx-error")) throw new Error(`not a formula: ${tex}`);
    return [svg, mathjax.tex2mml(tex, { display })];
  });
  return { set, glyphs: adaptor.innerHTML(output.fontCache.getCache()) };
}

const pages = Object.entries(JSON.parse(readFileSync(0, "utf8")));
const done = pages.map(([name, formulas]) => [name, page(formulas)]);
process.stdout.write(JSON.stringify(Object.fromEntries(done)));
