// Numbers as people read them.

const NOT_KNOWN = "–";
type Maybe = number | null | undefined;

export function number(value: Maybe, digits = 3): string {
  if (value === null || value === undefined) return NOT_KNOWN;
  const most = Math.abs(value) >= 100 ? 0 : digits - (Math.abs(value) >= 10 ? 2 : 1);
  return value.toLocaleString("en", { maximumFractionDigits: most });
}

export function percent(ratio: Maybe): string {
  if (ratio === null || ratio === undefined) return NOT_KNOWN;
  const digits = Math.abs(ratio) > 0 && Math.abs(ratio) < 0.0995 ? 1 : 0;
  return `${(100 * ratio).toLocaleString("en", { maximumFractionDigits: digits })} %`;
}

export function gain(ratio: Maybe): string {
  if (ratio === null || ratio === undefined) return NOT_KNOWN;
  return (ratio > 0 ? "+" : "") + percent(ratio).replace("-", "−");
}

export function bytes(value: Maybe): string {
  if (value === null || value === undefined) return NOT_KNOWN;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let left = value;
  let unit = 0;
  for (; left >= 1024 && unit + 1 < units.length; ++unit) left /= 1024;
  return `${number(left, 2)} ${units[unit]}`;
}

export function dollars(value: Maybe): string {
  if (value === null || value === undefined) return NOT_KNOWN;
  return `$${value.toLocaleString("en", { maximumSignificantDigits: 3 })}`;
}

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

export function clock(unixSeconds: number): string {
  return new Date(1000 * unixSeconds).toLocaleTimeString("en-GB");
}

/** A value of a setting: docs/reference/agent-view.md says which are bytes. */
export function setting(name: string, value: Maybe): string {
  if (name === "bandwidth") return value === null || value === undefined ? NOT_KNOWN : `${bytes(value)}/s`;
  return ["ram", "disk", "part_bytes"].includes(name) ? bytes(value) : number(value);
}

/** "max_in_flight" as words. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}
