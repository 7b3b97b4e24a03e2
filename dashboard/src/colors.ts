// One number and one colour for a job, for as long as the page is open. The number tells
// jobs apart where colours do not: there are eight colours.

const COLORS = 8;

export class Slots {
  private readonly slots = new Map<string, number>();

  /** Gives the jobs of `ids` their slots, and those of others back. */
  keep(ids: string[]): void {
    const named = new Set(ids);
    for (const id of this.slots.keys()) if (!named.has(id)) this.slots.delete(id);
    const taken = new Set(this.slots.values());
    for (const id of ids) {
      if (this.slots.has(id)) continue;
      let free = 0;
      while (taken.has(free)) ++free;
      taken.add(free);
      this.slots.set(id, free);
    }
  }

  of(id: string): number {
    return this.slots.get(id) ?? 0;
  }
}

const probe = document.createElement("i");
const seen = new Map<string, number[]>();

/** A color of the sheet, as the scheme has it now: red, green, blue. */
export function rgb(name: string): number[] {
  const known = seen.get(name);
  if (known) return known;
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const parts = (getComputedStyle(probe).color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  probe.remove();
  seen.set(name, parts);
  return parts;
}

/** The scheme has changed. */
export function forgetColors(): void {
  seen.clear();
}

export function css(parts: number[]): string {
  return `rgb(${parts.join(" ")})`;
}

export function colorName(slot: number): string {
  return `--job-${slot % COLORS}`;
}
