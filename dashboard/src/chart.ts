// Lines or steps over time, one for each job, drawn by uPlot.

import uPlot from "uplot";
import { colorName, css, rgb } from "./colors";
import { make, mark, say } from "./dom";
import { clock } from "./format";

export interface Series {
  id: string;
  slot: number;
  name: string;
  times: number[];
  values: (number | null)[];
  isFaint: boolean;
}

export interface ChartOptions {
  format: (value: number) => string;
  /** One upon the other, so that the top is their sum; else a line each. */
  isStacked: boolean;
  /** A line across, such as "as predicted". */
  level?: number;
}

const HEIGHT = 260;
const MOST_SAID = 8;

/** The values of all series at the times of any. */
function aligned(series: Series[]): { times: number[]; values: (number | null)[][] } {
  const times = [...new Set(series.flatMap((one) => one.times))].sort((a, b) => a - b);
  const at = new Map(times.map((time, i) => [time, i]));
  const values = series.map((one) => {
    const row = new Array<number | null>(times.length).fill(null);
    one.times.forEach((time, i) => (row[at.get(time) as number] = one.values[i] ?? null));
    return row;
  });
  return { times, values };
}

function summed(rows: (number | null)[][]): (number | null)[][] {
  const below = new Array<number>(rows[0]?.length ?? 0).fill(0);
  return rows.map((row) => row.map((value, i) => (below[i] = (below[i] as number) + (value ?? 0))));
}

const color = (name: string): string => css(rgb(name));
const font = (): string => getComputedStyle(document.body).fontFamily;

/** Two thirds of a color on the ground of the page. */
function pale(name: string): string {
  const ground = rgb("--paper");
  return css(rgb(name).map((part, i) => Math.round((2 * part + (ground[i] as number)) / 3)));
}

export class Chart {
  readonly element: HTMLElement;
  private readonly plotPlace = make("div", { class: "plot", role: "img" });
  private readonly readout = make("p", { class: "readout soft", "aria-hidden": "true" });
  private plot: uPlot | null = null;
  private shape = "";
  private series: Series[] = [];
  private values: (number | null)[][] = [];

  constructor(private options: ChartOptions) {
    this.element = make("div", { class: "chart" }, this.plotPlace, this.readout);
    new ResizeObserver(() => this.plot?.setSize({ width: this.width(), height: HEIGHT })).observe(this.plotPlace);
  }

  /** Colours, series or options have changed: drawn anew at the next update. */
  renew(options?: ChartOptions): void {
    if (options) this.options = options;
    this.shape = "";
  }

  update(series: Series[], summary: string): void {
    mark(this.plotPlace, "aria-label", summary);
    this.series = series;
    const { times, values } = aligned(series);
    this.values = values;
    // The last is drawn first: of a stack the sum of all, and the others upon it.
    const drawn = this.options.isStacked ? summed(values) : values;
    const data = [times, ...drawn.reverse()] as uPlot.AlignedData;
    const shape = series.map((one) => `${one.id} ${one.slot} ${one.isFaint}`).join("\n");
    if (this.plot && shape === this.shape) {
      this.plot.setData(data);
    } else {
      this.plot?.destroy();
      this.shape = shape;
      this.plot = new uPlot(this.uplotOptions(), data, this.plotPlace);
    }
    this.read(null);
  }

  /** From zero, or about the level. */
  private range(low: number | null, high: number | null): [number, number] {
    const { level } = this.options;
    if (level === undefined) return [0, (high || 1) * 1.05];
    const most = Math.max(level * 0.1, level - (low ?? level), (high ?? level) - level) * 1.15;
    return [Math.max(0, level - most), level + most];
  }

  private width(): number {
    return Math.max(240, this.plotPlace.clientWidth);
  }

  private uplotOptions(): uPlot.Options {
    const axis = { stroke: color("--soft"), font: `12px ${font()}`, grid: { stroke: color("--rule"), width: 1 }, ticks: { show: false } };
    return {
      width: this.width(),
      height: HEIGHT,
      padding: [8, 34, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { y: { range: (_, low, high) => this.range(low, high) } },
      axes: [
        { ...axis, space: 72, size: 30, values: [[60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] },
        { ...axis, size: 58, space: 44, values: (_, splits) => splits.map(this.options.format) },
      ],
      series: [{}, ...this.series.map((one) => this.styled(one)).reverse()],
      hooks: { draw: [(plot) => this.drawOver(plot)], setCursor: [(plot) => this.read(plot.cursor.idx ?? null)] },
    };
  }

  private styled(one: Series): uPlot.Series {
    const name = one.isFaint ? "--rule" : colorName(one.slot);
    const stepped = uPlot.paths.stepped?.({ align: 1 });
    if (this.options.isStacked) {
      return { stroke: color("--paper"), width: 1, fill: pale(name), points: { show: false }, ...(stepped ? { paths: stepped } : {}) };
    }
    return { stroke: color(name), width: one.isFaint ? 1 : 2, points: { show: false }, dash: one.slot >= 8 ? [6, 3] : [] };
  }

  /** The level, and each job's number where its line ends. */
  private drawOver(plot: uPlot): void {
    const { ctx } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `600 ${11 * ratio}px ${font()}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    if (this.options.level !== undefined) {
      const y = plot.valToPos(this.options.level, "y", true);
      ctx.strokeStyle = color("--soft");
      ctx.setLineDash([4 * ratio, 4 * ratio]);
      ctx.beginPath();
      ctx.moveTo(plot.bbox.left, y);
      ctx.lineTo(plot.bbox.left + plot.bbox.width, y);
      ctx.stroke();
    }
    let lowest = Infinity;
    for (const { y, slot } of this.ends(plot).sort((a, b) => b.y - a.y)) {
      const at = Math.min(y, lowest - 14 * ratio);
      lowest = at;
      if (at < plot.bbox.top + 6 * ratio) break;
      ctx.fillStyle = color(colorName(slot));
      ctx.fillText(String(slot + 1), plot.bbox.left + plot.bbox.width + 6 * ratio, at);
    }
    ctx.restore();
  }

  private ends(plot: uPlot): { y: number; slot: number }[] {
    let below = 0;
    return this.series.flatMap((one, i) => {
      const last = (this.values[i] ?? []).at(-1) ?? null;
      if (last === null) return [];
      const value = this.options.isStacked ? below + last / 2 : last;
      below += last;
      return one.isFaint ? [] : [{ y: plot.valToPos(value, "y", true), slot: one.slot }];
    });
  }

  /** Says the values under the pointer. */
  private read(index: number | null): void {
    const time = index === null ? undefined : this.plot?.data[0][index];
    if (index === null || time === undefined) {
      say(this.readout, "Point at the figure to read it.");
      return;
    }
    const shown = this.series.filter((one) => !one.isFaint);
    const said = shown.slice(0, MOST_SAID).map((one) => {
      const value = this.values[this.series.indexOf(one)]?.[index];
      return `${one.slot + 1} ${one.name} ${value === null || value === undefined ? "–" : this.options.format(value)}`;
    });
    const more = shown.length > MOST_SAID ? `   and ${shown.length - MOST_SAID} more` : "";
    say(this.readout, `${clock(time)}   ${said.join("   ")}${more}`);
  }
}
