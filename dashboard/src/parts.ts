// The data that all parts of the page are given, and how they show a job.

import { colorName, type Slots } from "./colors";
import { make } from "./dom";
import type { Job, Known } from "./view";

export interface Page {
  known: Known;
  slots: Slots;
  /** Ids of the jobs that were chosen; empty: none stands back. */
  chosen: Set<string>;
}

export function isFaint(page: Page, id: string): boolean {
  return page.chosen.size > 0 && !page.chosen.has(id);
}

/** The number of a job on its colour. */
export function chip(slot: number): HTMLElement {
  const made = make("span", { class: "chip" }, String(slot + 1));
  made.style.backgroundColor = `var(${colorName(slot)})`;
  return made;
}

export function jobOf(page: Page, id: string): Job | undefined {
  return page.known.jobs.find((job) => job.id === id);
}

/** `told`: its name, of a job that may be gone. */
export function nameOf(page: Page, id: string, told = ""): string {
  return jobOf(page, id)?.name || told || id || "all jobs";
}

/** Fills a cell with a job's number and name. */
export function nameCell(page: Page): (id: string, cell: HTMLElement) => void {
  return (id, cell) => cell.append(chip(page.slots.of(id)), nameOf(page, id));
}

export function none(text: string): HTMLElement {
  return make("p", { class: "empty" }, text);
}

/** Shows `full` or, where there is nothing, `empty`. */
export function either(full: HTMLElement[], empty: HTMLElement, isEmpty: boolean): void {
  for (const one of full) one.hidden = isEmpty;
  empty.hidden = !isEmpty;
}
