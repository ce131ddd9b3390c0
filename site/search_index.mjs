/* Write Pagefind's index of the sections in stdin, each with its address. */
import { readFileSync } from "node:fs";
import { close, createIndex } from "pagefind";

const { index } = await createIndex({ includeCharacters: "_", maxFragments: 16 });
for (const section of JSON.parse(readFileSync(0, "utf8"))) {
  const { errors } = await index.addHTMLFile(section);
  if (errors.length) throw new Error(errors.join("\n"));
}
await index.writeFiles({ outputPath: process.argv[2] });
await close();
