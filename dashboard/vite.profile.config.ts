// The page of a profile is one file that is opened from a disk: a plain script, no
// module, and a sheet, which the program puts into it with the report.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const license = readFileSync("node_modules/uplot/LICENSE", "utf8").trim();

export default defineConfig({
  publicDir: false,
  build: {
    outDir: "../leat/cli/page",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    reportCompressedSize: false,
    lib: { entry: "src/profile/main.ts", formats: ["iife"], name: "leatProfile", fileName: () => "profile.js", cssFileName: "profile" },
    rollupOptions: { output: { banner: `/*! Holds uPlot.\n${license}\n*/` } },
  },
});
