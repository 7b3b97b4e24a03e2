// Steps one after another: of the slowest rank, and of all ranks beside each other.

import type uPlot from "uplot";
import { axis, color, Figure, none, pale, type Plan } from "./figures";
import type { Report } from "./report";
import { percent, time } from "./words";

const whole = (value: number): string => value.toLocaleString("en");

export function timeline(report: Report): Figure | HTMLElement {
  const { bins = [], steps = 0, steps_a_bin: each = 1 } = report.timeline ?? {};
  if (!bins.length) return none("timeline", "No steps were kept.");
  const plan = (): Plan => ({
    data: [bins.map((_, i) => i * each + 1), bins.map((bin) => bin[1]), bins.map((bin) => bin[0]), bins.map((bin) => bin[2])],
    series: [
      { show: each > 1, stroke: pale("--work"), width: 1, points: { show: false } },
      { stroke: color("--work"), width: 2, points: { show: bins.length < 2 } },
      { stroke: color("--part-fetch"), width: 1, fill: pale("--part-fetch"), points: { show: bins.length < 2 } },
    ],
    scales: { x: { time: false }, y: { range: (_, __, high) => [0, (high || 1) * 1.05] } },
    axes: [{ ...axis(), space: 72, size: 30 }, { ...axis(), size: 62, values: (_, splits) => splits.map(time) }],
    read: (i) => {
      const [mean, most, wait] = bins[i] as [number, number, number, number];
      const last = Math.min((i + 1) * each, steps);
      const name = each > 1 ? `Steps ${whole(i * each + 1)} to ${whole(last)}` : `Step ${whole(i + 1)}`;
      return `${name}: ${time(mean)}${each > 1 ? `, the longest ${time(most)}` : ""}; waits ${time(wait)}`;
    },
  });
  const caption = `${whole(steps)} steps of the slowest rank, cold${each > 1 ? `, ${whole(each)} to a point: line, their mean; thin, the longest` : ""}; filled, the wait for data.`;
  return new Figure("timeline", 220, plan, caption);
}

interface Row {
  rank: number;
  share: number;
}

function rowsOf(ranks: NonNullable<Report["ranks"]>): Row[] {
  return ranks.map(({ rank, bins }) => {
    const all = bins.reduce((sum, [step]) => sum + step, 0);
    return { rank, share: all > 0 ? bins.reduce((sum, [, wait]) => sum + wait, 0) / all : 0 };
  });
}

export function rankSummary(report: Report): string {
  const rows = rowsOf(report.ranks ?? []);
  if (rows.length < 2) return "";
  const sorted = [...rows].sort((a, b) => a.share - b.share);
  const least = sorted[0] as Row;
  const most = sorted.at(-1) as Row;
  if (most.share - least.share < 0.02) return `All ranks wait alike: ${percent(least.share)} to ${percent(most.share)} of their time.`;
  return `Rank ${most.rank} waits most, ${percent(most.share)} of its time; rank ${least.rank} least, ${percent(least.share)}.`;
}

export function ranks(report: Report): Figure | HTMLElement {
  const all = report.ranks ?? [];
  if (all.length === 0) return none("ranks", "The report has no steps of ranks: it was made by an earlier version.");
  if (all.length === 1) return none("ranks", "One rank was run: there is none to wait for.");
  const bins = Math.max(...all.map((one) => one.bins.length));
  const each = all[0]?.steps_a_bin ?? 1;
  const cells = (plot: uPlot): void => {
    const { ctx } = plot;
    ctx.save();
    for (const [row, { bins: own }] of all.entries()) {
      const [top, bottom] = [plot.valToPos(row + 0.12, "y", true), plot.valToPos(row + 0.88, "y", true)];
      own.forEach(([step, wait], i) => {
        const left = plot.valToPos(i * each + 0.5, "x", true);
        const wide = Math.max(plot.valToPos((i + 1) * each + 0.5, "x", true) - left - (bins < 80 ? 1 : 0), 1);
        const high = (bottom - top) * (step > 0 ? Math.min(wait / step, 1) : 0);
        ctx.fillStyle = pale("--work");
        ctx.fillRect(left, top, wide, bottom - top);
        ctx.fillStyle = color("--part-fetch");
        ctx.fillRect(left, bottom - high, wide, high);
      });
    }
    ctx.restore();
  };
  const plan = (): Plan => ({
    data: [Array.from({ length: bins }, (_, i) => i * each + 1 + (each - 1) / 2), new Array<null>(bins).fill(null)],
    series: [{ points: { show: false } }],
    scales: { x: { time: false, range: () => [0.5, bins * each + 0.5] }, y: { range: () => [0, all.length], dir: -1 } },
    axes: [
      { ...axis(), space: 72, size: 30, grid: { show: false } },
      { ...axis(), size: 62, grid: { show: false }, splits: () => all.map((_, row) => row + 0.5), values: (_, splits) => splits.map((at) => `rank ${all[Math.floor(at)]?.rank}`) },
    ],
    over: cells,
    read: (i) => {
      const name = each > 1 ? `Steps ${whole(i * each + 1)} to ${whole((i + 1) * each)}` : `Step ${whole(i + 1)}`;
      const said = all.slice(0, 8).map(({ rank, bins: own }) => `rank ${rank} waits ${time(own[i]?.[1] ?? 0)} of ${time(own[i]?.[0] ?? 0)}`);
      return `${name}: ${said.join("; ")}${all.length > 8 ? "; …" : ""}`;
    },
  });
  const figure = new Figure("ranks", Math.min(46 + 34 * all.length, 600), plan,
    "A row for each rank, its steps from left to right, cold; filled, the part of a step that it waits for data. Ranks that exchange gradients all wait for the one that waits most.");
  figure.name(`Waits of ${all.length} ranks. ${rankSummary(report)}`);
  return figure;
}
