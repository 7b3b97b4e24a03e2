// Figures of a profile as people read them.

export function round(value: number, digits = 3): string {
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 12 });
}

export function time(seconds: number): string {
  if (seconds === 0) return "0";
  if (seconds < 0.9995e-3) return `${round(seconds * 1e6)} µs`;
  if (seconds < 0.9995) return `${round(seconds * 1e3)} ms`;
  if (seconds < 120) return `${round(seconds)} s`;
  return seconds < 7200 ? `${round(seconds / 60)} min` : `${round(seconds / 3600)} h`;
}

export function percent(share: number): string {
  return `${round(100 * share, 2)} %`;
}

export function dollars(value: number): string {
  return `$${value < 10 ? value.toFixed(2) : round(value, 4)}`;
}

export function underscored(name: string): string {
  return name.replaceAll("_", " ");
}

/** Below it, a change is told as a share: a factor of 1.0 would read as none. */
const LEAST_FACTOR = 1.1;

/** No less than what is needed: rounded up. */
function needed(share: number): string {
  const value = 100 * share;
  return `${value < 10 ? Math.ceil(value * 10 - 1e-9) / 10 : Math.ceil(value - 1e-9)} %`;
}

export function changeInWords(change: string, value: number): string {
  if (change === "load_ahead") return "batches made while training computes";
  if (change === "workers") return `${round(value)} workers a rank`;
  if (change === "cached") return `${needed(value)} of the bytes cached`;
  if (change === "latency") {
    return 1 / value < LEAST_FACTOR ? `${needed(1 - value)} less latency` : `1/${round(1 / value, 2)} of the latency`;
  }
  return value < LEAST_FACTOR ? `${needed(value - 1)} more ${change}` : `${round(value, 2)} times the ${change}`;
}
