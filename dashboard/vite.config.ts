// One script, one sheet, one page, under names that stay: the binary embeds them.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const license = readFileSync("node_modules/uplot/LICENSE", "utf8").trim();

export default defineConfig({
  base: "./",
  build: {
    outDir: "../leat/agent/page",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: "assets/app.js",
        assetFileNames: "assets/app[extname]",
        banner: `/*! Holds uPlot.\n${license}\n*/`,
      },
    },
  },
});
