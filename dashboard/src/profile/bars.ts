// A step as a bar of its parts.

import { keyed, make, mark, say } from "../dom";
import { PARTS, type PartName } from "./report";
import { percent, time } from "./words";

export type Seconds = Partial<Record<PartName, number>>;

export const total = (parts: Seconds): number => PARTS.reduce((sum, name) => sum + (parts[name] ?? 0), 0);

/** Bars of one scale, each under its name. */
export class StepBars {
  readonly element = make("ul", { class: "rows steps" });
  private readonly legend = make("ul", { class: "legend", "aria-hidden": "true" });
  readonly block = make("div", {}, this.element, this.legend);

  update(rows: [string, Seconds][]): void {
    const most = Math.max(...rows.map(([, parts]) => total(parts)));
    const seen = PARTS.filter((name) => rows.some(([, parts]) => (parts[name] ?? 0) > 0));
    keyed(this.legend, [...seen], (name) => make("li", {}, make("span", { class: `key part-${name}` }), name));
    keyed(this.element, rows.map(([name]) => name), (name) =>
      make("li", {}, make("span", { class: "name" }, name), make("span", { class: "bar", role: "img" }), make("span", { class: "number" })),
    ).forEach((line, i) => {
      const [name, parts] = rows[i] as [string, Seconds];
      const all = total(parts);
      const bar = line.children[1] as HTMLElement;
      const shown = seen.filter((part) => (parts[part] ?? 0) > 0);
      mark(bar, "aria-label", `${name}: ${time(all)}; ${shown.map((part) => `${part} ${time(parts[part] ?? 0)}, ${percent((parts[part] ?? 0) / all)}`).join("; ")}`);
      keyed(bar, [...shown], (part) => make("span", { class: `part-${part}`, title: part })).forEach((piece, j) => {
        piece.style.width = `${(100 * (parts[shown[j] as PartName] ?? 0)) / most}%`;
      });
      say(line.children[2] as Element, time(all));
    });
  }
}
