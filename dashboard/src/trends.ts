// The two figures over time: shares, and found against predicted speed.

import { Chart, type ChartOptions, type Series } from "./chart";
import { behind, byId, make, say, Table } from "./dom";
import { bytes, gain, number, percent } from "./format";
import { either, isFaint, nameCell, nameOf, none, type Page } from "./parts";
import { type Columns, SHARES, type ShareName } from "./view";

/** The last value of a column at or before a time. */
function valueAt(columns: Columns, name: ShareName, time: number): number | null {
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

const whole = (value: number | null): string => number(value);
const perSecond = (value: number | null): string => (value === null ? bytes(value) : `${bytes(value)}/s`);
const FORMATS: Record<ShareName, (value: number | null) => string> = {
  threads: whole, in_flight: whole, bytes_per_second: perSecond, ram_bytes: bytes, disk_bytes: bytes,
};
const TITLES: Record<ShareName, string> = {
  threads: "Threads", in_flight: "Requests in flight", bytes_per_second: "Bandwidth", ram_bytes: "RAM of the cache", disk_bytes: "Disk of the cache",
};
const AGO: [string, number][] = [["", 0], ["1 min ago", 60], ["5 min ago", 300]];

export class Shares {
  private quantity: ShareName = "threads";
  private readonly chart = new Chart({ format: whole, isStacked: true });
  private readonly table = new Table("What each job was given");
  private readonly details = behind(this.table);
  private readonly empty = none("");

  constructor(private readonly page: Page) {
    byId("shares").append(this.chart.element, this.details, this.empty);
    const choice = byId("quantity");
    choice.append(...SHARES.map((name) => make("option", { value: name }, TITLES[name])));
    choice.addEventListener("change", () => {
      this.quantity = (choice as HTMLSelectElement).value as ShareName;
      this.chart.renew({ format: FORMATS[this.quantity], isStacked: this.isStacked() });
      this.update();
    });
  }

  renew(): void {
    this.chart.renew();
  }

  /** Limits of bandwidth are lent: together they may be more than there is. */
  private isStacked(): boolean {
    return this.quantity !== "bytes_per_second";
  }

  update(): void {
    const { history } = this.page.known;
    const what = TITLES[this.quantity];
    const series = seriesOf(this.page, (columns) => columns[this.quantity]);
    const isBounded = series.some((one) => one.values.some((value) => value !== null));
    say(this.empty, history.size === 0 ? "Nothing to draw yet: no job has a history." : `${what}: no job is bounded.`);
    either([this.chart.element], this.empty, !isBounded);
    this.details.hidden = history.size === 0;
    if (history.size === 0) return;
    if (isBounded) this.chart.update(series, `${what} of each job over time${this.isStacked() ? ", one upon the other" : ""}. Now: ${said(series, FORMATS[this.quantity])}.`);
    this.table.columns([{ text: "Job" }, ...AGO.map(([ago]) => ({ text: ago || what, isNumber: true }))]);
    this.table.rows(series.map((one) => one.id), nameCell(this.page), (id) => {
      const columns = history.get(id) as Columns;
      const now = columns.time_seconds.at(-1) ?? 0;
      return AGO.map(([, ago]) => FORMATS[this.quantity](valueAt(columns, this.quantity, now - ago)));
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
