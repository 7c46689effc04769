// Bundles the console into ../assets, which the Go program embeds; with --tests, the unit
// tests into dist/test. The same sources and pinned versions give the same bytes.
import { readFile, readdir, rm, mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const shared = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};

if (process.argv.includes("--tests")) {
  const tests = (await readdir(join(here, "test"))).filter((f) => f.endsWith(".test.ts"));
  await rm(join(here, "dist/test"), { recursive: true, force: true });
  await build({ ...shared, entryPoints: tests.map((f) => `test/${f}`), outdir: "dist/test", platform: "node" });
} else {
  const out = process.argv[2] ?? join(here, "../assets");
  await rm(out, { recursive: true, force: true });
  await mkdir(join(out, "assets"), { recursive: true });
  const made = await build({
    ...shared,
    entryPoints: { app: "src/main.tsx" },
    outdir: join(out, "assets"),
    entryNames: "[name]-[hash]",
    minify: true,
    legalComments: "none",
    banner: { js: "/* Contains preact and uPlot: see licenses.txt. */", css: "/* Contains uPlot: see licenses.txt. */" },
    metafile: true,
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const names = Object.keys(made.metafile.outputs).map((f) => basename(f));
  const one = (ending) => names.find((f) => f.endsWith(ending));
  const page = await readFile(join(here, "src/index.html"), "utf8");
  await writeFile(join(out, "index.html"), page.replace("APP.js", one(".js")).replace("APP.css", one(".css")));
  const licenses = [];
  for (const name of ["preact", "uplot"]) {
    licenses.push(`${name}\n\n${await readFile(join(here, "node_modules", name, "LICENSE"), "utf8")}`);
  }
  await writeFile(join(out, "assets/licenses.txt"), licenses.join("\n\n"));
  await writeFile(join(out, "assets/icon.svg"), await readFile(join(here, "src/icon.svg")));
}
