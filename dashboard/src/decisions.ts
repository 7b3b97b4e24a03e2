// The list of changes and their reasons, the latest first; new ones are announced to
// screen readers.

import { byId, make, say, Table } from "./dom";
import { clock, gain, setting, words } from "./format";
import { either, nameOf, none, type Page } from "./parts";
import type { Decision } from "./view";

const MOST_TOLD = 3;

function change(one: Decision): string {
  const [before, after] = [setting(one.setting, one.before), setting(one.setting, one.after)];
  return before === after ? `stays at ${after}` : `${before} → ${after}`;
}

function changeSaid(one: Decision): string {
  const [before, after] = [setting(one.setting, one.before), setting(one.setting, one.after)];
  return before === after ? `stays at ${after}` : `from ${before} to ${after}`;
}

export class Decisions {
  private readonly table = new Table("Decisions, the latest first", { hidesCaption: true });
  private readonly empty = none("Nothing was decided yet.");
  private told: number | null = null;

  constructor(private readonly page: Page) {
    this.table.columns([
      { text: "Time" }, { text: "Job" }, { text: "Setting" }, { text: "Change" }, { text: "Why" },
      { text: "Expected", isNumber: true }, { text: "Found", isNumber: true },
    ]);
    this.table.element.classList.add("tall");
    byId("decisions").append(this.table.element, this.empty);
  }

  update(): void {
    const { decisions } = this.page.known;
    either([this.table.element], this.empty, decisions.length === 0);
    const byNumber = new Map(decisions.map((one) => [String(one.number), one]));
    this.table.rows([...byNumber.keys()], (key, cell) => cell.append(make("time", {}, clock((byNumber.get(key) as Decision).time_seconds))), (key) => {
      const one = byNumber.get(key) as Decision;
      const isMissing = one.found_gain === null && one.expected_gain !== null;
      const found = !isMissing ? gain(one.found_gain) : this.page.known.isOpen(one) ? "not yet" : "overtaken";
      return [nameOf(this.page, one.job, one.job_name), words(one.setting), change(one), one.reason, gain(one.expected_gain), found];
    });
    this.tell(decisions);
  }

  /** Not those that were there when the page was opened. */
  private tell(decisions: Decision[]): void {
    const last = decisions[0]?.number ?? 0;
    const fresh = this.told === null ? [] : decisions.filter((one) => one.number > (this.told as number));
    this.told = last;
    if (fresh.length === 0) return;
    const said = fresh.slice(0, MOST_TOLD).map((one) =>
      `${nameOf(this.page, one.job, one.job_name)}: ${words(one.setting)} ${changeSaid(one)}, ${one.reason}.`);
    if (fresh.length > MOST_TOLD) said.push(`And ${fresh.length - MOST_TOLD} more decisions.`);
    say(byId("news"), said.join(" "));
  }
}
