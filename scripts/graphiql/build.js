// Builds server/static/graphiql: one script, one style sheet, and the licences of what is in them.
import { build } from "esbuild";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "../../server/static/graphiql");

// The style sheet comes with fonts as data: URLs, three quarters of its size. The system's fonts do.
const withoutFonts = {
  name: "without-fonts",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(/@font-face\s*\{[^}]*\}/g, ""),
      loader: "css",
    }));
  },
};

const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: { graphiql: "page.jsx" },
  outdir: target,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  alias: { "react-style-singleton": join(here, "no-styles.js") },
  plugins: [withoutFonts],
  define: { "process.env.NODE_ENV": '"production"' },
  legalComments: "none",
  metafile: true,
});

function folderOf(input) {
  const found = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
  return found && join(here, found[1]);
}

const used = Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs));
const folders = [...new Set(used.map(folderOf).filter(Boolean))].sort();
const licences = folders.map((folder) => {
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  const text = file ? readFileSync(join(folder, file), "utf8").trim() : "The package has no licence file.";
  return `${about.name} ${about.version}: ${about.license}\n\n${text}\n`;
});
writeFileSync(join(target, "LICENSES"), licences.join(`\n${"-".repeat(80)}\n\n`));
for (const [path, output] of Object.entries(metafile.outputs)) {
  console.log(relative(target, join(here, path)), output.bytes);
}
