// How long the waits for a batch are.

import uPlot from "uplot";
import { axis, color, Figure, none, type Plan } from "./figures";
import type { Report } from "./report";
import { percent, time } from "./words";

/** A bar alone must not fill its frame: it would say nothing of where it stands. */
const LEAST_BINS = 8;

export function waits(report: Report): Figure | HTMLElement {
  const { lower = [], counts = [], half = 0, most_of_ten = 0, most_of_hundred = 0, longest = 0 } = report.waits ?? {};
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (!all) return none("waits", "No waits were kept.");
  let from = counts.findIndex((count) => count > 0);
  let to = counts.findLastIndex((count) => count > 0) + 1;
  while (to - from < LEAST_BINS) {
    if (from > 0) --from;
    if (to - from < LEAST_BINS) ++to;
  }
  const last = lower.length - 1;
  const edge = (i: number): number => (i <= last ? (lower[i] ?? 0) : (lower[last] || 1e-6) * 2 ** (i - last));
  const shown = Array.from({ length: to - from }, (_, i) => from + i);
  const plan = (): Plan => ({
    data: [shown, shown.map((i) => (counts[i] ? (counts[i] as number) / all : null))],
    series: [{ stroke: color("--work"), fill: color("--work"), points: { show: false }, paths: uPlot.paths.bars?.({ size: [0.92, 90] }) ?? null } as uPlot.Series],
    scales: { x: { time: false, range: () => [from - 0.5, to - 0.5] }, y: { range: () => [0, 1.05 * Math.max(...counts) / all] } },
    axes: [
      { ...axis(), size: 30, grid: { show: false }, splits: (plot) => {
        const every = Math.ceil((62 * shown.length) / Math.max(plot.width - 80, 100));
        return shown.filter((i) => (i - from) % every === 0).map((i) => i - 0.5);
      }, values: (_, splits) => splits.map((at) => time(edge(at + 0.5))) },
      { ...axis(), size: 62, values: (_, splits) => splits.map(percent) },
    ],
    read: (i) => {
      const bin = shown[i] as number;
      return `From ${time(edge(bin))} to ${time(edge(bin + 1))}: ${(counts[bin] ?? 0).toLocaleString("en")} of ${all.toLocaleString("en")} waits`;
    },
  });
  return new Figure("waits", 200, plan,
    `Half of the waits are within ${time(half)}, nine of ten within ${time(most_of_ten)}, 99 of 100 within ${time(most_of_hundred)}; the longest is ${time(longest)}.`);
}
