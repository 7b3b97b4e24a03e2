// The agent's answers (docs/reference/agent-view.md), and the kept parts of earlier
// ones.

export interface Share {
  threads: number | null;
  in_flight: number | null;
  bytes_per_second: number | null;
  ram_bytes: number | null;
  disk_bytes: number | null;
}

/** The counters of a job, as many as the agent has; the page draws `Drawn`. */
type Totals<Drawn> = Readonly<Record<string, number | null>> & Drawn;

export interface Job {
  id: string;
  name: string;
  dataset: string;
  user_name: string; // Empty: its machine knows none.
  pids: number[];
  local_ranks: number;
  world_size: number;
  since_seconds: number;
  share: Share;
  found_rate: number | null;
  predicted_rate: number | null;
  confidence: number | null;
  compute_ceiling: number | null;
  wait_fraction: number | null;
  stalls: Record<string, number | null>;
  stalled_dollars: number | null;
  ledger: Totals<{ gets: number; request_dollars: number | null; transfer_dollars: number | null }>;
  bottleneck: string;
  cache: Totals<Record<"ram_hits" | "disk_hits" | "peer_hits" | "misses" | "ram_bytes" | "disk_bytes", number>>;
}

export interface Decision {
  number: number;
  time_seconds: number;
  job: string;
  job_name: string; // Kept for a job that is gone, too.
  setting: string;
  before: number | null;
  after: number | null;
  reason: string;
  expected_gain: number | null;
  found_gain: number | null;
}

export interface Link {
  bucket: string | null; // null: all that is read.
  bytes_per_second: number | null;
  read_bytes_per_second: number | null;
}

export interface Node {
  name: string;
  time_seconds: number;
  objective: string;
  cores: number | null;
  cores_busy: number | null;
  cores_busy_outside: number | null;
  memory_bytes: number;
  in_flight: number;
  links: Link[];
}

export const SHARES = ["threads", "in_flight", "bytes_per_second", "ram_bytes", "disk_bytes"] as const;
export type ShareName = (typeof SHARES)[number];
export const QUANTITIES = [...SHARES, "found_rate", "predicted_rate", "wait_fraction"] as const;
export type Quantity = (typeof QUANTITIES)[number];
type Column = (number | null)[];
export type Columns = { time_seconds: number[] } & Record<Quantity, Column>;

export interface View {
  format: number;
  node: Node;
  jobs: Job[];
  last_decision: number;
  decisions: Decision[];
  history: ({ job: string } & Columns)[];
}

const KEPT_SECONDS = 600;
const KEPT_DECISIONS = 100;
/** The page still asks for the gains of this many decisions. */
const OPEN_DECISIONS = 20;

/** Everything that is known of the node: the last answer, and points and decisions of the ones before. */
export class Known {
  node: Node | null = null;
  jobs: Job[] = [];
  decisions: Decision[] = []; // The latest first.
  readonly history = new Map<string, Columns>();

  /** The query that leaves out what is here already. */
  query(): string {
    if (!this.node) return "";
    const last = Math.max(-1, ...[...this.history.values()].map((one) => one.time_seconds.at(-1) ?? -1));
    const open = this.decisions.slice(0, OPEN_DECISIONS).findLast((one) => this.isOpen(one));
    const known = open ? open.number - 1 : (this.decisions[0]?.number ?? 0);
    return `?points_after=${last}&decisions_after=${known}`;
  }

  /** Whether it may still be found what a decision gained: the job is there, and nothing of it was changed since. */
  isOpen(one: Decision): boolean {
    if (one.expected_gain === null || one.found_gain !== null) return false;
    const latest = this.decisions.find((other) => other.job === one.job);
    return latest?.time_seconds === one.time_seconds && this.jobs.some((job) => job.id === one.job);
  }

  /** False if the agent has begun anew: what is here is of another; ask again, for everything. */
  add(view: View): boolean {
    if (view.last_decision < (this.decisions[0]?.number ?? 0)) {
      this.node = null;
      this.decisions = [];
      this.history.clear();
      return false;
    }
    this.node = view.node;
    this.jobs = view.jobs;
    // Some come again, with what they gained.
    const known = new Map(this.decisions.map((one) => [one.number, one]));
    for (const one of view.decisions) known.set(one.number, one);
    this.decisions = [...known.values()].sort((a, b) => b.number - a.number).slice(0, KEPT_DECISIONS);
    for (const points of view.history) this.addPoints(points);
    this.forget(view.node.time_seconds - KEPT_SECONDS);
    return true;
  }

  private addPoints(points: { job: string } & Columns): void {
    let columns = this.history.get(points.job);
    if (!columns) {
      columns = { time_seconds: [], ...(Object.fromEntries(QUANTITIES.map((name) => [name, []])) as unknown as Record<Quantity, Column>) };
      this.history.set(points.job, columns);
    }
    const last = columns.time_seconds.at(-1) ?? -Infinity;
    points.time_seconds.forEach((time, i) => {
      if (time <= last) return;
      columns.time_seconds.push(time);
      for (const name of QUANTITIES) columns[name].push(points[name][i] ?? null);
    });
  }

  private forget(before: number): void {
    for (const [job, columns] of this.history) {
      const keep = columns.time_seconds.findIndex((time) => time >= before);
      if (keep < 0) {
        this.history.delete(job);
      } else if (keep > 0) {
        columns.time_seconds.splice(0, keep);
        for (const name of QUANTITIES) columns[name].splice(0, keep);
      }
    }
  }
}
