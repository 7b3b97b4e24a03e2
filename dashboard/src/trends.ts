// The two figures over time: shares, and found against predicted speed.

import { Chart, type ChartOptions, type Series } from "./chart";
import { behind, byId, Table } from "./dom";
import { gain, number, percent } from "./format";
import { either, isFaint, nameCell, nameOf, none, type Page } from "./parts";
import type { Columns } from "./view";

/** The last value of a column at or before a time. */
function valueAt(columns: Columns, name: "threads" | "in_flight", time: number): number | null {
  const i = columns.time_seconds.findLastIndex((one) => one <= time);
  return i < 0 ? null : (columns[name][i] ?? null);
}

function seriesOf(page: Page, values: (columns: Columns) => (number | null)[]): Series[] {
  return [...page.known.history]
    .map(([id, columns]) => ({
      id, slot: page.slots.of(id), name: nameOf(page, id), times: columns.time_seconds, values: values(columns), isFaint: isFaint(page, id),
    }))
    .sort((a, b) => a.slot - b.slot);
}

function said(series: Series[], format: (value: number) => string): string {
  return series.map((one) => {
    const value = one.values.at(-1);
    return `${one.name} ${value === null || value === undefined ? "not known" : format(value)}`;
  }).join(", ");
}

const whole = (value: number): string => number(value);

export class Shares {
  private quantity: "threads" | "in_flight" = "threads";
  private readonly chart = new Chart({ format: whole, isStacked: true });
  private readonly table = new Table("What each job was given");
  private readonly details = behind(this.table);
  private readonly empty = none("Nothing to draw yet: no job has a history.");

  constructor(private readonly page: Page) {
    this.table.columns([
      { text: "Job" }, { text: "Threads", isNumber: true }, { text: "1 min ago", isNumber: true }, { text: "5 min ago", isNumber: true },
      { text: "Requests", isNumber: true }, { text: "1 min ago", isNumber: true }, { text: "5 min ago", isNumber: true },
    ]);
    byId("shares").append(this.chart.element, this.details, this.empty);
    byId("quantity").addEventListener("change", (event) => {
      this.quantity = (event.target as HTMLInputElement).value as "threads" | "in_flight";
      this.renew();
      this.update();
    });
  }

  renew(): void {
    this.chart.renew();
  }

  update(): void {
    const { history } = this.page.known;
    either([this.chart.element, this.details], this.empty, history.size === 0);
    if (history.size === 0) return;
    const series = seriesOf(this.page, (columns) => columns[this.quantity]);
    const what = this.quantity === "threads" ? "Threads" : "Requests in flight";
    this.chart.update(series, `${what} of each job over time, one upon the other. Now: ${said(series, whole)}.`);
    this.table.rows(series.map((one) => one.id), nameCell(this.page), (id) => {
      const columns = history.get(id) as Columns;
      const now = columns.time_seconds.at(-1) ?? 0;
      return (["threads", "in_flight"] as const).flatMap((name) => [0, 60, 300].map((ago) => number(valueAt(columns, name, now - ago))));
    });
  }
}

const SPEED: ChartOptions = { format: (value) => percent(value), isStacked: false, level: 1 };

export class Speed {
  private readonly chart = new Chart(SPEED);
  private readonly table = new Table("Speed of each job, in samples a second");
  private readonly details = behind(this.table);
  private readonly empty = none("Nothing to draw yet: no speed has been predicted.");

  constructor(private readonly page: Page) {
    this.table.columns([
      { text: "Job" }, { text: "Found", isNumber: true }, { text: "Predicted", isNumber: true }, { text: "Difference", isNumber: true },
      { text: "Confidence", isNumber: true }, { text: "Training alone", isNumber: true },
    ]);
    byId("speed").append(this.chart.element, this.details, this.empty);
  }

  renew(): void {
    this.chart.renew();
  }

  update(): void {
    const { jobs } = this.page.known;
    const series = seriesOf(this.page, (columns) => columns.found_rate.map((found, i) => {
      const predicted = columns.predicted_rate[i];
      return found === null || !predicted ? null : found / predicted;
    })).filter((one) => one.values.some((value) => value !== null));
    either([this.chart.element, this.details], this.empty, series.length === 0);
    if (series.length === 0) return;
    this.chart.update(series, `Found speed of each job over time, as a part of what was predicted. Now: ${said(series, SPEED.format)}.`);
    this.table.rows(jobs.map((job) => job.id), nameCell(this.page), (id) => {
      const job = jobs.find((one) => one.id === id);
      const { found_rate: found = null, predicted_rate: predicted = null } = job ?? {};
      return [number(found), number(predicted), gain(found !== null && predicted ? found / predicted - 1 : null),
        percent(job?.confidence), number(job?.compute_ceiling)];
    });
  }
}
