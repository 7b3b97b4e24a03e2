// The table of jobs, and the node's figures above it.

import { byId, keyed, make, mark, say, Table } from "./dom";
import { bytes, dollars, duration, number, percent } from "./format";
import { chip, either, jobOf, none, type Page } from "./parts";
import type { Job, Node } from "./view";

function total(values: (number | null)[]): number {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
}

function factsOf(node: Node, jobs: Job[]): [string, string, string][] {
  const ours = Math.max(0, (node.cores_busy ?? 0) - (node.cores_busy_outside ?? 0));
  const waiting = jobs.filter((job) => (job.wait_fraction ?? 0) >= 0.05).length;
  const predicted = jobs.filter((job) => job.predicted_rate !== null && job.found_rate !== null);
  const errors = predicted
    .map((job) => Math.abs((job.found_rate as number) / (job.predicted_rate as number) - 1))
    .sort((a, b) => a - b);
  return [
    ["Jobs", number(jobs.length), waiting === 0 ? "none waits 5 % of its time" : `${waiting} wait 5 % or more of their time`],
    ["Cores in use", `${number(node.cores_busy)} of ${number(node.cores)}`, `${number(ours)} by jobs, ${number(node.cores_busy_outside)} outside of Leat`],
    ["Requests given out", node.in_flight ? `${number(total(jobs.map((job) => job.share.in_flight)))} of ${number(node.in_flight)}` : "any", "that may be in flight at once"],
    ...node.links.map((link): [string, string, string] => [
      link.bucket === null ? "Read in all" : `Read of ${link.bucket}`, `${bytes(link.read_bytes_per_second ?? 0)}/s`, `of ${bytes(link.bytes_per_second ?? 0)}/s that it may be`,
    ]),
    ["Cache held", bytes(total(jobs.map((job) => job.cache.ram_bytes))), `in RAM, and ${bytes(total(jobs.map((job) => job.cache.disk_bytes)))} on disk`],
    ["Prediction off by", errors.length ? percent(errors[Math.floor((errors.length - 1) / 2)]) : "–", errors.length ? "median of all jobs" : "nothing predicted yet"],
  ];
}

function showFacts(node: Node, jobs: Job[]): void {
  const facts = factsOf(node, jobs);
  keyed(byId("facts"), facts.map(([name]) => name), (name) => make("div", {}, make("dt", {}, name), make("dd", { class: "value" }), make("dd", { class: "soft" })))
    .forEach((place, i) => {
      const [, value, note] = facts[i] as [string, string, string];
      say(place.children[1] as Element, value);
      say(place.children[2] as Element, note);
    });
}

const HEADS = [
  { text: "Job" }, { text: "Bound by" }, { text: "Samples/s", isNumber: true }, { text: "Predicted", isNumber: true },
  { text: "Confidence", isNumber: true }, { text: "Waiting", isNumber: true }, { text: "Waiting cost", isNumber: true }, { text: "Store cost", isNumber: true }, { text: "Threads", isNumber: true },
  { text: "Requests", isNumber: true }, { text: "Bandwidth", isNumber: true }, { text: "RAM", isNumber: true },
  { text: "Disk", isNumber: true }, { text: "Ranks", isNumber: true }, { text: "User" }, { text: "Since", isNumber: true },
];

const BOUND = "any";

function cellsOf(job: Job, now: number): string[] {
  const { share } = job;
  return [
    job.bottleneck || "–",
    number(job.found_rate),
    number(job.predicted_rate),
    percent(job.confidence),
    percent(job.wait_fraction),
    dollars(job.stalled_dollars),
    dollars(job.ledger.request_dollars === null ? null : job.ledger.request_dollars + (job.ledger.transfer_dollars ?? 0)),
    share.threads === null ? BOUND : number(share.threads),
    share.in_flight === null ? BOUND : number(share.in_flight),
    share.bytes_per_second === null ? BOUND : `${bytes(share.bytes_per_second)}/s`,
    share.ram_bytes === null ? BOUND : bytes(share.ram_bytes),
    share.disk_bytes === null ? BOUND : bytes(share.disk_bytes),
    job.local_ranks === job.world_size ? number(job.world_size) : `${job.local_ranks} of ${job.world_size}`,
    job.user_name || "–",
    duration(now - job.since_seconds),
  ];
}

export class Jobs {
  private readonly table = new Table("Jobs: speed, waiting and share of each", { hidesCaption: true });
  private readonly empty = none("No job is registered. Loaders that start on this node find the agent by themselves.");

  constructor(
    private readonly page: Page,
    private readonly chosen: () => void,
  ) {
    this.table.columns(HEADS);
    byId("jobs").append(this.table.element, this.empty);
  }

  update(node: Node): void {
    const { jobs } = this.page.known;
    showFacts(node, jobs);
    either([this.table.element], this.empty, jobs.length === 0);
    this.table.rows(jobs.map((job) => job.id), (id, cell) => this.nameJob(id, cell), (id) => cellsOf(jobOf(this.page, id) as Job, node.time_seconds));
    for (const button of this.table.body.querySelectorAll("button")) {
      mark(button, "aria-pressed", String(this.page.chosen.has(button.value)));
    }
  }

  private nameJob(id: string, cell: HTMLElement): void {
    const job = jobOf(this.page, id) as Job;
    const button = make("button", { type: "button", value: id, class: "job", "aria-pressed": "false" }, chip(this.page.slots.of(id)), job.name || id);
    button.addEventListener("click", () => {
      if (!this.page.chosen.delete(id)) this.page.chosen.add(id);
      this.chosen();
    });
    cell.append(button, make("span", { class: "dataset soft", title: job.dataset }, job.dataset));
  }
}
