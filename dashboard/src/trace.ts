// The last steps of one job: a timeline, and the same as a table.

import { behind, byId, keyed, make, mark, say, Table } from "./dom";
import { clock, number } from "./format";
import { either, jobOf, nameOf, none, type Page } from "./parts";

/** Times are in microseconds since `begin_seconds`: docs/reference/agent-view.md. */
type Sample = [id: number, reserved: number, fetched: number, decoded: number, finished: number, cacheBegin: number, cacheEnd: number];
interface Step {
  epoch: number;
  step: number;
  size: number;
  ready: number;
  asked: number;
  given: number;
  samples: Sample[];
}
interface JobTrace {
  begin_seconds: number;
  steps: Step[];
}

interface Slice {
  begin: number;
  end: number;
  lane: number;
}
interface Row {
  name: string;
  /** Names its colour and pattern in the sheet. */
  style: string;
  slices: Slice[];
  lanes: number;
}

const NOBODY = "";
const LANE_REM = 0.55;

/** Each on the first lane that is free when it begins. */
function row(name: string, style: string, times: [number, number][]): Row {
  const busyUntil: number[] = [];
  const slices = times
    .filter(([begin, end]) => end > 0 && end >= begin)
    .sort((a, b) => a[0] - b[0])
    .map(([begin, end]) => {
      const free = busyUntil.findIndex((until) => until <= begin);
      const lane = free < 0 ? busyUntil.length : free;
      busyUntil[lane] = end;
      return { begin, end, lane };
    });
  return { name, style, slices, lanes: Math.max(1, busyUntil.length) };
}

const finished = (step: Step): number => step.samples[0]?.[4] ?? step.ready;

/** From a batch to the asking for the next; of the last one it is not over. */
function trainings(steps: Step[]): [number, number][] {
  return steps.slice(1).map((next, i) => [(steps[i] as Step).given, next.asked]);
}

function rowsOf(steps: Step[]): Row[] {
  const samples = steps.flatMap((step) => step.samples);
  return [
    row("fetch", "storage", samples.map((one) => [one[1], one[2]])),
    row("cache", "cache_io", samples.map((one) => [one[5], one[6]])),
    row("decode", "decode", samples.map((one) => [one[2], one[4]])),
    row("batch", "assemble", steps.map((step) => [finished(step), step.ready])),
    row("wait", "store", steps.map((step) => [step.asked, step.given])),
    row("step", "ram", trainings(steps)),
  ];
}

const ms = (microseconds: number): string => `${number(microseconds / 1000)} ms`;

function cells(steps: Step[], i: number): string[] {
  const step = steps[i] as Step;
  const last = step.samples[0];
  const next = steps[i + 1];
  return [
    number(step.size),
    ms(step.given - step.asked),
    ...(last ? [String(last[0]), ms(last[2] - last[1]), ms(last[6] - last[5]), ms(last[4] - last[2])] : ["–", "–", "–", "–"]),
    ms(Math.max(0, step.ready - finished(step))),
    next ? ms(next.asked - step.given) : "–",
  ];
}

export class Trace {
  private readonly choice = make("select", { id: "trace-job" });
  private readonly scale = make("p", { class: "soft" });
  private readonly timeline = make("div", { class: "timeline", role: "img", "aria-label": "No job is chosen" });
  private readonly table = new Table("The last steps, and of each the sample that it waited for");
  private readonly details = behind(this.table);
  private readonly empty = none("");
  private job = NOBODY;
  private trace: JobTrace | null = null;
  private isAsking = false;

  constructor(private readonly page: Page) {
    byId("trace-choice").append(make("label", { for: "trace-job" }, "Job"), this.choice);
    byId("trace").append(this.scale, this.timeline, this.details, this.empty);
    this.table.columns(["Step", "Samples", "Waited", "Last sample", "Its fetch", "Of that, cache", "Its decoding", "Batch", "Training"].map((text, i) => ({ text, isNumber: i > 0 })));
    this.choice.addEventListener("change", () => {
      this.job = this.choice.value;
      this.trace = null;
      this.update();
    });
  }

  update(): void {
    const ids = this.page.known.jobs.map((job) => job.id);
    if (!ids.includes(this.job)) {
      this.job = NOBODY;
      this.trace = null;
    }
    keyed(this.choice, [NOBODY, ...ids], (value) => make("option", { value })).forEach((option, i) => {
      say(option, i === 0 ? "none" : nameOf(this.page, ids[i - 1] as string));
    });
    this.choice.value = this.job;
    this.show();
    if (this.job !== NOBODY) void this.ask(this.job);
  }

  private async ask(job: string): Promise<void> {
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      const reply = await fetch(`./api/trace?job=${encodeURIComponent(job)}`, { signal: AbortSignal.timeout(5000) });
      const said = reply.ok ? ((await reply.json()) as { trace: JobTrace }) : null;
      if (job === this.job) this.trace = said?.trace ?? null;
    } catch {
      // The page says by itself that the agent does not answer; what was known stays.
    }
    this.isAsking = false;
    this.show();
  }

  private show(): void {
    const steps = this.trace?.steps ?? [];
    either([this.scale, this.timeline, this.details], this.empty, steps.length === 0);
    if (steps.length === 0) {
      say(this.empty, this.job === NOBODY ? "Choose a job to see how its last samples travelled." : "The job has not told of a step yet.");
      return;
    }
    const rows = rowsOf(steps);
    const all = rows.flatMap((one) => one.slices);
    const begin = Math.min(...all.map((slice) => slice.begin));
    const whole = Math.max(1, ...all.map((slice) => slice.end - begin));
    const first = steps[0] as Step;
    const last = steps[steps.length - 1] as Step;
    const name = jobOf(this.page, this.job)?.name || this.job;
    const at = (this.trace as JobTrace).begin_seconds + begin / 1e6;
    say(this.scale, `${ms(whole)} from ${clock(at)} on, left to right; of each batch up to 12 samples.`);
    const waited = steps.reduce((sum, step) => sum + step.given - step.asked, 0);
    mark(this.timeline, "aria-label", `How samples of ${name} travelled, steps ${first.step} to ${last.step} of epoch ${last.epoch}: ` +
      `${rows.map((one) => `${one.name} ${one.slices.length}`).join(", ")} slices in ${ms(whole)}; training waited ${ms(waited)}.`);
    this.draw(rows, begin, whole);
    this.table.rows(steps.map((step) => `${step.epoch} ${step.step}`), (key, cell) => cell.append(key.split(" ")[1] as string),
      (key) => cells(steps, steps.findIndex((step) => `${step.epoch} ${step.step}` === key)));
  }

  private draw(rows: Row[], begin: number, whole: number): void {
    keyed(this.timeline, rows.map((one) => one.name), (name) =>
      make("div", { class: "track" }, make("span", { class: "name" }, name), make("span", { class: "slices" }))).forEach((line, i) => {
      const one = rows[i] as Row;
      const place = line.children[1] as HTMLElement;
      place.style.height = `${LANE_REM * one.lanes}rem`;
      keyed(place, one.slices.map((_, at) => String(at)), () => make("span", { class: `part-${one.style}` })).forEach((piece, at) => {
        const slice = one.slices[at] as Slice;
        piece.style.left = `${(100 * (slice.begin - begin)) / whole}%`;
        piece.style.width = `${(100 * (slice.end - slice.begin)) / whole}%`;
        piece.style.top = `${LANE_REM * slice.lane}rem`;
      });
    });
  }
}
