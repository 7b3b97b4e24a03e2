// A figure drawn by uPlot, with a name, a caption and a line that reads what is pointed at.

import uPlot from "uplot";
import { css, rgb } from "../colors";
import { make, mark, say } from "../dom";

export interface Plan {
  data: uPlot.AlignedData;
  series: uPlot.Series[];
  axes: [uPlot.Axis, uPlot.Axis];
  scales: uPlot.Scales;
  /** Upon what uPlot has drawn. */
  over?: (plot: uPlot) => void;
  /** The text for the point at that index. */
  read: (index: number) => string;
}

export const color = (name: string): string => css(rgb(name));

/** The colour of a filled area: the figure's lines are seen through it. */
export function pale(name: string): string {
  return `rgb(${rgb(name).join(" ")} / 35%)`;
}

export function axis(): uPlot.Axis {
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return { stroke: color("--soft"), font, grid: { stroke: color("--rule"), width: 1 }, ticks: { show: false } };
}

const LEAST_WIDTH = 220;
const POINT = "Point at the figure to read it.";

export class Figure {
  readonly element: HTMLElement;
  private readonly place = make("div", { class: "plot", role: "img" });
  private readonly readout = make("p", { class: "readout soft", "aria-hidden": "true" }, POINT);
  private plot: uPlot | null = null;
  private plan: Plan | null = null;

  constructor(id: string, private readonly height: number, private readonly make_plan: () => Plan, caption: string) {
    this.element = make("figure", { id }, this.place, this.readout, make("figcaption", { class: "soft" }, caption));
    this.name(caption);
    this.place.style.minHeight = `${height}px`;
    new ResizeObserver(() => this.plot?.setSize({ width: this.width(), height: this.height })).observe(this.place);
  }

  /** The text for readers who do not see the figure. */
  name(summary: string): void {
    mark(this.place, "aria-label", summary);
  }

  private width(): number {
    return Math.max(LEAST_WIDTH, this.place.clientWidth);
  }

  /** Once it is on the page, and again when its colours or figures are others. */
  draw(): void {
    this.plot?.destroy();
    const plan = this.make_plan();
    this.plan = plan;
    this.plot = new uPlot({
      width: this.width(),
      height: this.height,
      padding: [8, 14, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: plan.scales,
      axes: plan.axes,
      series: [{}, ...plan.series],
      hooks: { draw: [(plot) => plan.over?.(plot)], setCursor: [(plot) => this.read(plot.cursor.idx ?? null)] },
    }, plan.data, this.place);
  }

  private read(index: number | null): void {
    say(this.readout, index === null || !this.plan ? POINT : this.plan.read(index));
  }
}

/** A figure that has nothing to draw, and why. */
export function none(id: string, why: string): HTMLElement {
  return make("figure", { id }, make("p", { class: "none soft" }, why));
}
