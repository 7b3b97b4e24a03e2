// The data of a page of `leat profile`: docs/reference/profile-report.schema.json.

export type PartName = "compute" | "interconnect" | "network" | "preparation" | "fetch" | "input";
export const PARTS: readonly PartName[] = ["compute", "interconnect", "network", "preparation", "fetch", "input"];

export interface Part {
  seconds: number;
  low: number;
  high: number;
  fraction: number;
  is_tie: boolean;
}

export interface Change {
  change: string;
  value: number;
  step_seconds: number;
}

export interface Machine {
  name: string;
  count: number;
  hours: number | null;
  why_not?: string;
  step_seconds: number;
  wait_fraction: number;
  dollars: number;
  is_front: boolean;
  is_choice: boolean;
}

export interface Report {
  command?: string[];
  failed?: string;
  step_seconds: number;
  step_low: number;
  step_high: number;
  parts: Partial<Record<PartName, Part>>;
  supply_seconds: { warm: number | null; cold: number | null };
  supply_cpu_seconds: number | null;
  fetch_a_batch: { latency_share: number | null } | null;
  naive_wait_fraction?: number;
  timeline?: { steps: number; steps_a_bin: number; bins: [number, number, number, number][] };
  ranks?: { rank: number; steps_a_bin: number; bins: [number, number][] }[];
  waits?: { half: number; most_of_ten: number; most_of_hundred: number; longest: number; lower: number[]; counts: number[] };
  what_if?: {
    curves: Record<string, { points: { value: number }[]; why_not: string }>;
    removals: { part: string; seconds: number; changes: Change[] }[];
  };
  recommendation?: { verdict: string; as_of: string; machines: Machine[] };
  ledger?: Record<string, number | string | null>;
  proof?: { why_no_warm?: string; connects_to?: string[] };
  settings: { nodes: number; nproc_per_node: number; repeats: number; [name: string]: unknown };
  cores: number;
  batch_rows?: number;
  loader?: string;
  workers: number | null;
  loads_ahead?: boolean;
  is_pipelined?: boolean;
  accelerator?: string;
  versions?: Record<string, string>;
}
