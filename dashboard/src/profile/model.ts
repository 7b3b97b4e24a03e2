// Predicts the time of a step if something about it were different:
// leat/profile/step_model.cc, so that sliders are answered here.
// tests/python/test_profile_page.py holds the two against each other.

import type { Report } from "./report";

interface Measured {
  compute: number;
  interconnect: number;
  network: number;
  preparation: number;
  fetch: number;
  hasWarm: boolean;
  warmSupply: number;
  coldSupply: number;
  hasSupply: boolean;
  isPipelined: boolean;
  loadsAhead: boolean;
  workers: number | null;
  preparationCpu: number | null;
  cores: number;
  latencyShare: number | null;
  devices: number;
  nodes: number;
}

/** As `leat what-if --with` spells them; what is left out stays as it was measured. */
export interface Setting {
  load_ahead?: number;
  cached?: number;
  workers?: number;
  cores?: number;
  bandwidth?: number;
  latency?: number;
  accelerator?: number;
  devices?: number;
  nodes?: number;
}

export interface Step {
  compute: number;
  interconnect: number;
  network: number;
  preparation: number;
  fetch: number;
}

const BUSY_SHARE = 0.8;
const LEAT = "leat.Loader";

export function secondsOf(step: Step): number {
  return step.compute + step.interconnect + step.network + step.preparation + step.fetch;
}

function overlap(training: number, supply: number, stall: number): number {
  const most = Math.min(training, supply);
  return most > 0 ? Math.min(Math.max((supply - stall) / most, 0), 1) : 1;
}

function stall(training: number, supply: number, hidden: number): number {
  return supply - hidden * Math.min(training, supply);
}

function ring(seconds: number, measured: number, members: number): number {
  if (members === measured || measured < 2) return seconds;
  const traffic = (n: number): number => (n - 1) / n;
  return (seconds * traffic(members)) / traffic(measured);
}

function measuredOf(report: Report): Measured {
  const part = (name: keyof Report["parts"]): number => report.parts[name]?.seconds ?? 0;
  const preparation = part("preparation");
  const fetch = part("fetch") + part("input");
  const hasWarm = report.parts.input === undefined;
  const warm = Math.max(report.supply_seconds.warm ?? 0, preparation);
  return {
    compute: part("compute"),
    interconnect: part("interconnect"),
    network: part("network"),
    preparation,
    fetch,
    hasWarm,
    warmSupply: warm,
    coldSupply: Math.max(report.supply_seconds.cold ?? 0, preparation + fetch, hasWarm ? warm : 0),
    hasSupply: report.supply_seconds.cold !== null && (!hasWarm || report.supply_seconds.warm !== null),
    isPipelined: report.is_pipelined ?? report.loader === LEAT, // Older reports tell by the name alone.
    loadsAhead: report.loads_ahead ?? false,
    workers: report.workers ?? null,
    preparationCpu: report.supply_cpu_seconds ?? null,
    cores: report.cores,
    latencyShare: report.fetch_a_batch?.latency_share ?? null,
    devices: report.settings.nproc_per_node,
    nodes: report.settings.nodes,
  };
}

export class Model {
  private readonly measured: Measured;
  private readonly unhindered: number;
  private readonly warmOverlap: number;
  private readonly coldOverlap: number;

  constructor(report: Report) {
    const measured = measuredOf(report);
    this.measured = measured;
    this.unhindered = this.unhinderedSupply();
    const training = measured.compute + measured.interconnect + measured.network;
    this.warmOverlap = overlap(training, measured.warmSupply, measured.preparation);
    this.coldOverlap = overlap(training, measured.coldSupply, measured.preparation + measured.fetch);
  }

  /** Whether batches are made while training computes, as far as is known. */
  get loadsAhead(): boolean {
    return this.measured.loadsAhead || this.measured.isPipelined || (this.measured.workers ?? 0) > 0;
  }

  /** Whether the time of a batch is known: else nothing but the measured step is. */
  get hasSupply(): boolean {
    return this.measured.hasSupply;
  }

  predict(setting: Setting): Step {
    const { measured } = this;
    const step: Step = {
      compute: measured.compute / (setting.accelerator ?? 1),
      interconnect: ring(measured.interconnect, measured.devices, setting.devices ?? measured.devices),
      network: ring(measured.network, measured.nodes, setting.nodes ?? measured.nodes),
      preparation: 0,
      fetch: 0,
    };
    const training = secondsOf(step);
    const most = this.stallAt({ ...setting, cached: 0 }, training);
    if (!measured.hasWarm) return { ...step, fetch: most };
    const least = Math.min(this.stallAt({ ...setting, cached: 1 }, training), most);
    const all = Math.min(Math.max(this.stallAt(setting, training), least), most);
    return { ...step, preparation: least, fetch: all - least };
  }

  /** Steps of all ranks a second, against what was measured. */
  speedup(setting: Setting): number {
    const { devices, nodes } = this.measured;
    const ranks = ((setting.devices ?? devices) * (setting.nodes ?? nodes)) / devices / nodes;
    return (ranks * secondsOf(this.predict({}))) / secondsOf(this.predict(setting));
  }

  private unhinderedSupply(): number {
    const { preparationCpu: cpu, hasWarm, warmSupply, devices, cores, isPipelined, workers } = this.measured;
    if (cpu === null || !hasWarm) return warmSupply;
    if ((cpu * devices) / cores < BUSY_SHARE * warmSupply) return warmSupply;
    if (isPipelined || workers === null) return 0;
    return Math.min(cpu / Math.max(workers, 1), warmSupply);
  }

  private coresSupply(setting: Setting): number {
    const { preparationCpu: cpu, hasWarm, warmSupply, devices, cores } = this.measured;
    if (!cpu || !hasWarm) return 0;
    const before = (cpu * devices) / cores;
    const after = (cpu * (setting.devices ?? devices)) / (cores * (setting.cores ?? 1));
    return before < BUSY_SHARE * warmSupply ? after : (warmSupply * after) / before;
  }

  private workersSupply(setting: Setting, seconds: number): number {
    const { workers } = this.measured;
    if (setting.workers === undefined || workers === null) return seconds;
    return (seconds * Math.max(workers, 1)) / Math.max(setting.workers, 1);
  }

  private overlapAt(cached: number): number {
    const warm = cached * this.measured.warmSupply;
    const cold = (1 - cached) * this.measured.coldSupply;
    if (warm + cold === 0) return this.coldOverlap;
    return (warm * this.warmOverlap + cold * this.coldOverlap) / (warm + cold);
  }

  private coldSupply(setting: Setting): number {
    const { measured } = this;
    const warm = Math.max(this.workersSupply(setting, this.unhindered), this.coresSupply(setting));
    const latency = setting.latency ?? 1;
    const bandwidth = setting.bandwidth ?? 1;
    const share = measured.latencyShare;
    const slower = share === null ? Math.max(latency, 1 / bandwidth) : share * latency + (1 - share) / bandwidth;
    const missed = 1 - (setting.cached ?? 0);
    if (!measured.hasWarm) return measured.coldSupply * slower;
    if (measured.isPipelined) return Math.max(warm, missed * slower * measured.coldSupply);
    if (measured.workers !== null && measured.workers !== undefined) {
      const fetch = measured.coldSupply - this.unhindered;
      return Math.max(warm, this.workersSupply(setting, this.unhindered + missed * slower * fetch));
    }
    return warm + missed * slower * (measured.coldSupply - measured.warmSupply);
  }

  private stallAt(setting: Setting, training: number): number {
    const isAhead = (setting.load_ahead ?? 0) > 0 || ((setting.workers ?? 0) > 0 && this.measured.workers === 0);
    return stall(training, this.coldSupply(setting), isAhead ? 1 : this.overlapAt(setting.cached ?? 0));
  }
}

/** For the console, and for those who hold it against `leat what-if`. */
export function predict(report: Report, setting: Setting): { step_seconds: number; parts: Step; speedup: number } {
  const model = new Model(report);
  const parts = model.predict(setting);
  return { step_seconds: secondsOf(parts), parts, speedup: model.speedup(setting) };
}
