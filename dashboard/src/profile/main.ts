// The page of a profile: a headline, then a figure for each question.

import "uplot/dist/uPlot.min.css";
import "../style.css";
import "./profile.css";
import { forgetColors } from "../colors";
import { byId, make, Table } from "../dom";
import { StepBars } from "./bars";
import { Figure } from "./figures";
import { rent } from "./rent";
import { type Part, type PartName, PARTS, type Report } from "./report";
import { ranks, rankSummary, timeline } from "./timelines";
import { waits } from "./waits";
import { WhatIf } from "./what_if";
import { dollars, percent, round, time, underscored } from "./words";

export { predict } from "./model";

const figures: Figure[] = [];

function section(question: string, ...children: (Node | string)[]): HTMLElement {
  const made = make("section", {}, make("h2", {}, question), ...children);
  byId("page").append(made);
  return made;
}

function placed(figure: Figure | HTMLElement): HTMLElement {
  if (!(figure instanceof Figure)) return figure;
  figures.push(figure);
  return figure.element;
}

const soft = (text: string): HTMLElement => make("p", { class: "soft" }, text);

function partsOf(report: Report): [PartName, Part][] {
  return PARTS.flatMap((name): [PartName, Part][] => (report.parts?.[name] ? [[name, report.parts[name] as Part]] : []));
}

function headline(report: Report): boolean {
  const page = byId("page");
  page.append(make("h1", {}, make("span", { class: "brand" }, "Leat"), " Where a step goes"), make("pre", {}, (report.command ?? []).join(" ")));
  if (report.failed !== undefined) {
    page.append(make("p", { class: "big" }, "The profile failed:"), make("pre", {}, report.failed));
    return false;
  }
  const parts = partsOf(report);
  if (!parts.length || !(report.step_seconds > 0)) {
    page.append(make("p", { class: "big" }, "No step was measured."));
    return false;
  }
  const stalls = parts.filter(([name, part]) => name !== "compute" && !part.is_tie).sort((a, b) => b[1].seconds - a[1].seconds);
  const [largest] = stalls;
  const computes = report.parts.compute?.fraction ?? 0;
  page.append(make("p", { class: "headline" }, largest
    ? `A step takes ${time(report.step_seconds)}, and ${percent(largest[1].fraction)} of it is ${largest[0]}.`
    : `A step takes ${time(report.step_seconds)}, and waits for nothing that was found.`));
  const { nproc_per_node: devices, nodes } = report.settings;
  const facts: [string, string, string][] = [
    ["A step", time(report.step_seconds), `95 % lie between ${time(report.step_low)} and ${time(report.step_high)}`],
    ["Computing", percent(computes), `${time(report.parts.compute?.seconds ?? 0)} of a step`],
    ["Not computing", percent(1 - computes), stalls.map(([name]) => name).join(", ") || "nothing that was found"],
  ];
  if (report.batch_rows) {
    facts.push(["Samples a second", round((report.batch_rows * devices * nodes) / report.step_seconds), `${report.batch_rows} a batch, ${devices * nodes} rank${devices * nodes > 1 ? "s" : ""}`]);
  }
  page.append(make("dl", { class: "facts" }, ...facts.map(([name, value, note]) =>
    make("div", {}, make("dt", {}, name), make("dd", { class: "value" }, value), make("dd", { class: "soft" }, note)))));
  return true;
}

function step(report: Report): void {
  const bars = new StepBars();
  const parts = partsOf(report);
  bars.update([["A step", Object.fromEntries(parts.map(([name, part]) => [name, part.seconds]))]]);
  const table = new Table("The parts of a step; they sum to it", { hidesCaption: true });
  table.columns(["Part", "Time", "Share", "95 % lie between", "Note"].map((text, i) => ({ text, isNumber: i > 0 && i < 4 })));
  table.rows(parts.map(([name]) => name), (name, cell) => cell.append(make("span", { class: `key part-${name}`, "aria-hidden": "true" }), name), (name) => {
    const part = report.parts[name as PartName] as Part;
    return [time(part.seconds), percent(part.fraction), `${time(Math.max(part.low, 0))} and ${time(part.high)}`, part.is_tie ? "nothing, or hidden" : ""];
  });
  const notes: HTMLElement[] = [];
  if (report.settings.repeats < 2) notes.push(soft("One run under each condition: the intervals are of its steps, and another run may lie outside; --repeats 3 tells."));
  if (report.naive_wait_fraction !== undefined) notes.push(soft(`A timer in the script would say that it waits ${percent(report.naive_wait_fraction)} for data.`));
  const { why_no_warm: why, connects_to: places = [] } = report.proof ?? {};
  if (why) notes.push(soft(`Preparation and fetch are one part: ${why}.`));
  else if (places.length) notes.push(soft(`While batches are made the script connects to ${places.join(", ")} by itself: what it reads there comes from the network in the warm runs too, and is counted as preparation, not fetch.`));
  section("Where does a step go?", make("figure", { id: "parts" }, bars.block), table.element, ...notes);
}

function ledger(report: Report): void {
  const told = report.ledger;
  if (!told) return;
  const rows = Object.entries(told)
    .filter((row): row is [string, number] => row[0] !== "steps" && typeof row[1] === "number")
    .map(([name, value]): [string, string] => [underscored(name), name.includes("dollars") ? dollars(value) : round(value, 4)]);
  if (told.provider) rows.unshift(["prices of requests and transfer", String(told.provider)]);
  section(`What do ${round(Number(told.steps))} steps ask for?`, pairs("What steps ask for, cold", ["Asked for, cold", "Amount"], rows));
}

function pairs(caption: string, heads: [string, string], rows: [string, string][]): HTMLElement {
  const table = new Table(caption, { hidesCaption: true });
  table.columns([{ text: heads[0] }, { text: heads[1], isNumber: true }]);
  const known = new Map(rows);
  table.rows([...known.keys()], (name, cell) => cell.append(name), (name) => [known.get(name) ?? ""]);
  table.element.classList.add("narrow");
  return table.element;
}

function settings(report: Report): void {
  const flat: Record<string, unknown> = {
    ...report.settings, cores: report.cores, "rows of a batch": report.batch_rows, loader: report.loader,
    accelerator: report.accelerator || "none", ...report.versions,
  };
  const rows = Object.entries(flat)
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]): [string, string] => [underscored(name), String(value)]);
  section("How was it measured?", pairs("Settings and versions", ["Setting", "Value"], rows));
}

function drawAll(): void {
  forgetColors();
  for (const figure of figures) figure.draw();
}

const report = JSON.parse(byId("report").textContent ?? "null") as Report;
byId("page").replaceChildren();
if (headline(report)) {
  step(report);
  if (report.what_if) {
    const block = new WhatIf(report);
    figures.push(...block.figures());
    section("What would change it?", block.element);
  }
  section("Do all steps take as long?", placed(timeline(report)));
  const summary = rankSummary(report);
  section("Which rank keeps the others waiting?", ...(summary ? [make("p", { class: "big" }, summary)] : []), placed(ranks(report)));
  section("How long are the waits?", placed(waits(report)));
  const { figure, rest } = rent(report);
  section("What should be rented?", ...rest, placed(figure));
  ledger(report);
}
settings(report);
drawAll();
// Colours of the other scheme, on a screen or on paper.
for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", drawAll);
