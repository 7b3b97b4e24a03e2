// Sliders that move the step's bar: the model is small and runs here.

import { byId, make, say } from "../dom";
import { type Seconds, StepBars } from "./bars";
import { axis, color, Figure, none, type Plan } from "./figures";
import { Model, secondsOf, type Setting, type Step } from "./model";
import type { Change, PartName, Report } from "./report";
import { changeInWords, percent, round, time } from "./words";

type Knob = keyof Setting;

interface Slider {
  name: string;
  kind: "share" | "factor" | "count";
}

const SLIDERS: Partial<Record<Knob, Slider>> = {
  cached: { name: "Share of bytes cached", kind: "share" },
  workers: { name: "Workers of a rank", kind: "count" },
  cores: { name: "Cores", kind: "factor" },
  bandwidth: { name: "Bandwidth from the store", kind: "factor" },
  latency: { name: "Latency of the store", kind: "factor" },
  accelerator: { name: "Speed of the accelerator", kind: "factor" },
  devices: { name: "Devices of a node", kind: "count" },
  nodes: { name: "Nodes", kind: "count" },
};
const KNOBS = Object.keys(SLIDERS) as Knob[];
const LEAST_FACTOR = 0.25;
const MOST_FACTOR = 8;
const MOST_COUNT = 16;
const POINTS = 60;

const label = (kind: Slider["kind"], value: number): string =>
  kind === "share" ? percent(value) : kind === "factor" ? `×${round(value, 2)}` : round(value);

export class WhatIf {
  readonly element = make("div", { class: "what-if" });
  private readonly model: Model;
  private setting: Setting = {};
  private drawn: Knob = "accelerator";
  private readonly bars = new StepBars();
  private readonly said = make("p", { class: "big", id: "foretold", role: "status" });
  private readonly inputs = new Map<Knob, { input: HTMLInputElement; output: HTMLElement }>();
  private readonly ahead = make("input", { type: "checkbox", id: "load-ahead" });
  private curve: Figure | null = null;

  constructor(private readonly report: Report) {
    this.model = new Model(report);
    const reset = make("button", { type: "button", id: "as-measured" }, "As measured");
    reset.addEventListener("click", () => this.choose({}));
    this.element.append(this.said, this.bars.block, this.sliders(), make("p", {}, reset), this.removals());
    if (this.model.hasSupply) this.curve = new Figure("what-if-curve", 220, () => this.plan(), "Samples a second against now, as the slider that was moved last goes; the others stay.");
    if (this.curve) this.element.append(this.curve.element);
    this.update();
  }

  figures(): Figure[] {
    return this.curve ? [this.curve] : [];
  }

  private here(knob: Knob): number {
    const { settings, workers } = this.report;
    return { load_ahead: 0, cached: 0, workers: workers ?? 0, devices: settings.nproc_per_node, nodes: settings.nodes }[knob as string] ?? 1;
  }

  private range(knob: Knob): { low: number; high: number; step: number } {
    const kind = SLIDERS[knob]?.kind;
    if (kind === "share") return { low: 0, high: 1, step: 0.05 };
    if (kind === "factor") return { low: Math.log2(LEAST_FACTOR), high: Math.log2(MOST_FACTOR), step: 0.125 };
    return { low: knob === "workers" && this.here(knob) === 0 ? 0 : 1, high: Math.max(MOST_COUNT, 2 * this.here(knob)), step: 1 };
  }

  private toSlider(knob: Knob, value: number): number {
    return SLIDERS[knob]?.kind === "factor" ? Math.log2(value) : value;
  }

  private fromSlider(knob: Knob, at: number): number {
    return SLIDERS[knob]?.kind === "factor" ? 2 ** at : at;
  }

  private sliders(): HTMLElement {
    const block = make("div", { class: "knobs" });
    const unknown: HTMLElement[] = [];
    for (const knob of KNOBS) {
      const { name, kind } = SLIDERS[knob] as Slider;
      const curve = this.report.what_if?.curves[knob];
      if (!curve || !curve.points.length) {
        unknown.push(none(`what-if-${knob}`, `${name}: ${curve?.why_not || "not measured"}.`));
        continue;
      }
      const { low, high, step } = this.range(knob);
      const input = make("input", { type: "range", id: `knob-${knob}`, min: String(low), max: String(high), step: String(step) });
      const output = make("output", { for: `knob-${knob}`, class: "number" });
      input.addEventListener("input", () => {
        this.setting = { ...this.setting, [knob]: this.fromSlider(knob, Number(input.value)) };
        if (this.setting[knob] === this.here(knob)) delete this.setting[knob];
        this.drawn = knob;
        this.update();
      });
      this.inputs.set(knob, { input, output });
      block.append(make("div", { class: "knob", id: `what-if-${knob}` }, make("label", { for: `knob-${knob}` }, name), input, output));
      void kind;
    }
    if (!this.model.loadsAhead && this.model.hasSupply) {
      this.ahead.addEventListener("change", () => {
        this.setting = { ...this.setting, load_ahead: this.ahead.checked ? 1 : 0 };
        this.update();
      });
      block.append(make("div", { class: "knob" }, make("label", {}, this.ahead, " Batches are made while training computes")));
    }
    return make("div", {}, block, ...unknown);
  }

  /** The changes that remove each wait, each with a button that shows it. */
  private removals(): HTMLElement {
    const all = this.report.what_if?.removals ?? [];
    if (!all.length) return make("p", {}, "Only a faster accelerator would help: nothing else takes 2 % of a step.");
    const list = make("ol", { id: "removals" });
    let before: Setting = {};
    for (const { part, seconds, changes } of all) {
      const line = make("li", {}, `${part} (${time(seconds)}) goes with `);
      if (!changes.length) line.append("nothing that was measured.");
      const base = before;
      changes.forEach((change, i) => {
        const button = make("button", { type: "button" }, changeInWords(change.change, change.value));
        button.addEventListener("click", () => this.choose({ ...base, [change.change]: change.value }, change));
        line.append(i ? ", or " : "", button, ` (${time(change.step_seconds)} a step)`);
      });
      const first = changes[0];
      if (first) before = { ...before, [first.change]: first.value };
      list.append(line);
    }
    return list;
  }

  private choose(setting: Setting, change?: Change): void {
    this.setting = setting;
    if (change && this.inputs.has(change.change as Knob)) this.drawn = change.change as Knob;
    this.update();
    if (change) byId("foretold").scrollIntoView({ block: "nearest" });
  }

  private update(): void {
    const measured = this.seconds(this.model.predict({}));
    const step = this.model.predict(this.setting);
    const isOther = Object.keys(this.setting).length > 0;
    const speedup = this.model.speedup(this.setting);
    this.bars.update([["As measured", measured], ["Then", this.seconds(step)]]);
    say(this.said, isOther
      ? `A step would take ${time(secondsOf(step))}: ${round(speedup)} times the samples a second.`
      : `Move a slider: the bar shows what a step would take.`);
    for (const [knob, { input, output }] of this.inputs) {
      const value = this.setting[knob] ?? this.here(knob);
      input.value = String(this.toSlider(knob, value));
      const text = label(SLIDERS[knob]?.kind ?? "factor", value);
      say(output, text);
      input.setAttribute("aria-valuetext", text);
    }
    this.ahead.checked = (this.setting.load_ahead ?? 0) > 0;
    if (this.element.isConnected) this.curve?.draw();
  }

  private seconds(step: Step): Seconds {
    const { fetch, ...others } = step;
    const name: PartName = this.report.parts.input ? "input" : "fetch";
    return { ...others, [name]: fetch };
  }

  private plan(): Plan {
    const knob = this.drawn;
    const { name, kind } = SLIDERS[knob] as Slider;
    const { low, high } = this.range(knob);
    const at = kind === "count"
      ? Array.from({ length: high - low + 1 }, (_, i) => low + i)
      : Array.from({ length: POINTS + 1 }, (_, i) => low + (i / POINTS) * (high - low));
    const speeds = at.map((one) => this.model.speedup({ ...this.setting, [knob]: this.fromSlider(knob, one) }));
    const now = this.toSlider(knob, this.setting[knob] ?? this.here(knob));
    const ticks = kind === "factor" ? [0.25, 0.5, 1, 2, 4, 8].map(Math.log2) : null;
    this.curve?.name(`Samples a second against now, by ${name.toLowerCase()}: ${round(speeds[0] ?? 1)} times at ${label(kind, this.fromSlider(knob, low))}, ${round(speeds.at(-1) ?? 1)} times at ${label(kind, this.fromSlider(knob, high))}.`);
    return {
      data: [at, speeds],
      series: [{ stroke: color("--work"), width: 2, points: { show: kind === "count" } }],
      scales: { x: { time: false, range: () => [low, high] }, y: { range: (_, __, most) => [0, Math.max(most || 1, 1) * 1.08] } },
      axes: [
        { ...axis(), size: 46, label: name, labelSize: 18, labelFont: axis().font as string, ...(ticks ? { splits: () => ticks } : {}), values: (_, splits) => splits.map((one) => label(kind, this.fromSlider(knob, one))) },
        { ...axis(), size: 62, values: (_, splits) => splits.map((one) => `${round(one, 2)}×`) },
      ],
      over: (plot) => {
        const { ctx } = plot;
        const x = plot.valToPos(now, "x", true);
        ctx.save();
        ctx.strokeStyle = color("--soft");
        ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
        ctx.beginPath();
        ctx.moveTo(x, plot.bbox.top);
        ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
        ctx.stroke();
        ctx.restore();
      },
      read: (i) => `${name} ${label(kind, this.fromSlider(knob, at[i] as number))}: ${round(speeds[i] as number)} times the samples a second`,
    };
  }
}
