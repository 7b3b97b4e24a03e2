// Hours and dollars of the whole training on machines that can be rented.

import type uPlot from "uplot";
import { make, Table } from "../dom";
import { axis, color, Figure, none, type Plan } from "./figures";
import type { Machine, Report } from "./report";
import { dollars, percent, time } from "./words";

type Judged = Machine & { hours: number };

/** 1, 2, 5, 10, …: those within, at least two. */
function ticksWithin(low: number, high: number): number[] {
  const all: number[] = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); ++decade) {
    for (const digit of [1, 2, 5]) all.push(digit * 10 ** decade);
  }
  const within = all.filter((one) => one >= low && one <= high);
  return within.length >= 2 ? within : [low, high];
}

/** A little more than all of them, by logarithm. */
function around(values: number[]): [number, number] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const more = Math.max(high / low, 1.2) ** 0.08;
  return [low / more, high * more];
}

export function rent(report: Report): { figure: Figure | HTMLElement; rest: HTMLElement[] } {
  const told = report.recommendation;
  if (!told) return { figure: none("recommendation", "Not asked for: leat recommend REPORT --catalog FILE --html FILE."), rest: [] };
  const verdict = make("p", { class: "big" }, told.verdict);
  const rows = told.machines.filter((row): row is Judged => row.hours !== null).sort((a, b) => a.hours - b.hours);
  if (!rows.length) return { figure: none("recommendation", "No machine of the catalogue could be judged."), rest: [verdict] };
  const hours = around(rows.map((row) => row.hours));
  const money = around(rows.map((row) => row.dollars));
  const points = (is: (row: Judged) => boolean): (number | null)[] => rows.map((row) => (is(row) ? Math.log10(row.dollars) : null));
  const dots = (name: string, size: number): uPlot.Series["points"] => ({ show: true, size, width: 0, fill: color(name) });
  const plan = (): Plan => ({
    data: [rows.map((row) => Math.log10(row.hours)), points(() => true), points((row) => row.is_front), points((row) => row.is_choice)],
    series: [
      { stroke: "transparent", paths: () => null, points: dots("--soft", 7) as object },
      { stroke: color("--work"), width: 2, spanGaps: true, points: dots("--work", 8) as object },
      { stroke: "transparent", paths: () => null, points: dots("--part-fetch", 14) as object },
    ],
    scales: { x: { time: false, range: () => hours.map(Math.log10) as [number, number] }, y: { range: () => money.map(Math.log10) as [number, number] } },
    axes: [
      { ...axis(), size: 30, splits: () => ticksWithin(...hours).map(Math.log10), values: (_, splits) => splits.map((at) => time(3600 * 10 ** at)) },
      { ...axis(), size: 70, splits: () => ticksWithin(...money).map(Math.log10), values: (_, splits) => splits.map((at) => dollars(10 ** at)) },
    ],
    read: (i) => {
      const row = rows[i] as Judged;
      return `${row.count} × ${row.name}: ${time(3600 * row.hours)}, ${dollars(row.dollars)}`;
    },
  });
  const table = new Table("Choices that none other beats in both", { hidesCaption: true });
  table.columns(["Machine", "Step", "Waiting", "Time", "Dollars", "Choice"].map((text, i) => ({ text, isNumber: i > 0 && i < 5 })));
  const shown = new Map(rows.filter((row) => row.is_front || row.is_choice).map((row) => [`${row.count} × ${row.name}`, row]));
  table.rows([...shown.keys()], (key, cell) => cell.append(key), (key) => {
    const row = shown.get(key) as Judged;
    return [time(row.step_seconds), percent(row.wait_fraction), time(3600 * row.hours), dollars(row.dollars), row.is_choice ? "this one" : ""];
  });
  return {
    figure: new Figure("recommendation", 280, plan,
      `Hours and dollars of the whole training: ${rows.length} choices; joined, those that none other beats in both. Prices as of ${told.as_of}. The model is ours: an estimate.`),
    rest: [verdict, table.element],
  };
}
