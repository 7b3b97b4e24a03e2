// A bar for each job, in parts: where it waits, and what answered its reads.

import { behind, byId, keyed, make, mark, say, Table } from "./dom";
import { bytes, percent, words } from "./format";
import { either, isFaint, nameCell, nameOf, none, type Page } from "./parts";
import type { Job } from "./view";

interface Part {
  name: string;
  /** Names its colour and pattern in the sheet. */
  style: string;
  ratio: number;
}

/** Bars under a legend. A bar is as long as its parts together, of 1. */
class Bars {
  readonly element = make("div", { class: "bars" });
  private readonly legend = make("ul", { class: "legend", "aria-label": "Legend, in the order of the parts" });
  private readonly list = make("ul", { class: "rows" });

  constructor(private readonly page: Page) {
    this.element.append(this.legend, this.list);
  }

  /** `whole` is what a full bar stands for. */
  update(ids: string[], parts: (id: string) => Part[], value: (id: string) => string, whole: number): void {
    const seen = new Map<string, string>();
    const rows = ids.map((id) => parts(id));
    for (const row of rows) for (const part of row) if (part.ratio > 0) seen.set(part.name, part.style);
    keyed(this.legend, [...seen.keys()], (name) => make("li", {}, make("span", { class: `key part-${seen.get(name)}`, "aria-hidden": "true" }), words(name)));
    keyed(this.list, ids, (id) => {
      const name = make("span", { class: "name" });
      nameCell(this.page)(id, name);
      return make("li", {}, name, make("span", { class: "bar", role: "img" }), make("span", { class: "number" }));
    }).forEach((line, i) => {
      const id = ids[i] as string;
      const row = (rows[i] ?? []).filter((part) => part.ratio > 0);
      const bar = line.children[1] as HTMLElement;
      line.classList.toggle("faint", isFaint(this.page, id));
      mark(bar, "aria-label", `${nameOf(this.page, id)}: ${row.map((part) => `${words(part.name)} ${percent(part.ratio)}`).join(", ") || "nothing"}`);
      keyed(bar, row.map((part) => part.name), () => make("span")).forEach((piece, j) => {
        const part = row[j] as Part;
        mark(piece, "class", `part-${part.style}`);
        piece.style.width = `${(100 * part.ratio) / whole}%`;
      });
      say(line.children[2] as Element, value(id));
    });
  }
}

// As the clocks of the loader name them: bytes that come, then work, then hand-over.
const CAUSES = ["storage", "throttled", "peer", "other_job", "cache_io", "memory", "decode", "transform", "assemble", "handover"];

function causesOf(job: Job | undefined): Part[] {
  const stalls = job?.stalls ?? {};
  const others = Object.keys(stalls).filter((name) => !CAUSES.includes(name)).sort();
  return [...CAUSES, ...others].map((name) => ({ name, style: CAUSES.includes(name) ? name : "other", ratio: stalls[name] ?? 0 }));
}

export class Waits {
  private readonly bars: Bars;
  private readonly table = new Table("Part of its time that each job waits, by cause");
  private readonly details = behind(this.table);
  private readonly empty = none("No job waits for data.");
  private readonly scale = make("p", { class: "soft" });

  constructor(private readonly page: Page) {
    this.bars = new Bars(page);
    byId("waits").append(this.scale, this.bars.element, this.details, this.empty);
  }

  update(): void {
    const jobs = new Map(this.page.known.jobs.map((job) => [job.id, job]));
    const ids = [...jobs.keys()];
    const waits = (id: string): Part[] => causesOf(jobs.get(id));
    const names = [...new Set(ids.flatMap((id) => waits(id).filter((part) => part.ratio > 0).map((part) => part.name)))];
    either([this.scale, this.bars.element, this.details], this.empty, names.length === 0);
    const most = Math.max(0, ...ids.map((id) => jobs.get(id)?.wait_fraction ?? 0));
    const whole = most <= 0.25 ? 0.25 : most <= 0.5 ? 0.5 : 1;
    say(this.scale, `A full bar is ${percent(whole)} of a job's time.`);
    this.bars.update(ids, waits, (id) => percent(jobs.get(id)?.wait_fraction), whole);
    this.table.columns([{ text: "Job" }, { text: "Waiting", isNumber: true }, ...names.map((name) => ({ text: words(name), isNumber: true }))]);
    this.table.rows(ids, nameCell(this.page), (id) => {
      const job = jobs.get(id);
      return [percent(job?.wait_fraction), ...names.map((name) => percent(job?.stalls[name] ?? 0))];
    });
  }
}

/** Tiers count what they are asked for: without any, all that is read comes from the store. */
function hasTiers({ cache }: Job): boolean {
  return cache.ram_hits + cache.disk_hits + cache.peer_hits + cache.misses > 0;
}

function readsOf(job: Job): number {
  const { ram_hits, disk_hits, peer_hits, misses } = job.cache;
  return hasTiers(job) ? ram_hits + disk_hits + peer_hits + misses : job.ledger.gets;
}

function answersOf(job: Job | undefined): Part[] {
  if (!job) return [];
  const { ram_hits, disk_hits, peer_hits } = job.cache;
  const all = readsOf(job) || 1;
  const misses = hasTiers(job) ? job.cache.misses : readsOf(job);
  return [
    { name: "RAM", style: "ram", ratio: ram_hits / all },
    { name: "disk", style: "disk", ratio: disk_hits / all },
    { name: "peers", style: "peers", ratio: peer_hits / all },
    { name: "store", style: "store", ratio: misses / all },
  ];
}

export class CacheTiers {
  private readonly bars: Bars;
  private readonly table = new Table("What answered the reads of each job, and what the tiers hold of it");
  private readonly details = behind(this.table);
  private readonly empty = none("No job has read anything yet.");

  constructor(private readonly page: Page) {
    this.bars = new Bars(page);
    byId("cache").append(this.bars.element, this.details, this.empty);
    this.table.columns(["Job", "Reads", "RAM", "Disk", "Peers", "Store", "Held in RAM", "Held on disk"].map((text, i) => ({ text, isNumber: i > 0 })));
  }

  update(): void {
    const jobs = new Map(this.page.known.jobs.map((job) => [job.id, job]));
    const reads = (id: string): number => {
      const job = jobs.get(id);
      return job ? readsOf(job) : 0;
    };
    const ids = [...jobs.keys()].filter((id) => reads(id) > 0);
    either([this.bars.element, this.details], this.empty, ids.length === 0);
    const said = (id: string): string =>
      hasTiers(jobs.get(id) as Job) ? `${percent(1 - (answersOf(jobs.get(id))[3]?.ratio ?? 0))} hit` : "no cache";
    this.bars.update(ids, (id) => answersOf(jobs.get(id)), said, 1);
    this.table.rows(ids, nameCell(this.page), (id) => {
      const cache = (jobs.get(id) as Job).cache;
      return [reads(id).toLocaleString("en"), ...answersOf(jobs.get(id)).map((part) => percent(part.ratio)), bytes(cache.ram_bytes), bytes(cache.disk_bytes)];
    });
  }
}
