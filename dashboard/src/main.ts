import "uplot/dist/uPlot.min.css";
import "./style.css";
import { CacheTiers, Waits } from "./bars";
import { forgetColors, Slots } from "./colors";
import { Decisions } from "./decisions";
import { byId, mark, say } from "./dom";
import { clock } from "./format";
import { Jobs } from "./jobs";
import type { Page } from "./parts";
import { Poll, type State } from "./poll";
import { watchTheme } from "./theme";
import { Trace } from "./trace";
import { Shares, Speed } from "./trends";
import { Known } from "./view";

const WORDS: Record<State, string> = { live: "Live", paused: "Paused", lost: "The agent does not answer" };
const OBJECTIVES: Record<string, string> = {
  throughput: "Shares are chosen for the most total speed.",
  fairness: "Shares are chosen to be fair to the slowest job.",
};

const page: Page = { known: new Known(), slots: new Slots(), chosen: new Set() };
const jobs = new Jobs(page, show);
const decisions = new Decisions(page);
const trends = [new Shares(page), new Speed(page)];
const bars = [new Waits(page), new CacheTiers(page)];
const trace = new Trace(page);

function show(): void {
  const { known } = page;
  if (!known.node) return;
  const here = known.jobs.map((job) => job.id);
  for (const id of page.chosen) if (!here.includes(id)) page.chosen.delete(id);
  page.slots.keep([...new Set([...known.history.keys(), ...here])]);
  document.title = `${known.node.name} · Leat`;
  say(byId("node-name"), known.node.name);
  say(byId("objective"), OBJECTIVES[known.node.objective] ?? known.node.objective);
  say(byId("clock"), clock(known.node.time_seconds));
  jobs.update(known.node);
  for (const part of [...trends, ...bars, trace, decisions]) part.update();
}

function drawAnew(): void {
  forgetColors();
  for (const trend of trends) trend.renew();
  show();
}

watchTheme(byId("theme"), drawAnew);
const poll = new Poll(page.known, (state) => {
  mark(byId("status"), "data-state", state);
  say(byId("status-word"), WORDS[state]);
  if (state === "live") show();
});
const pause = byId("pause");
pause.addEventListener("click", () => {
  const isPaused = pause.getAttribute("aria-pressed") !== "true";
  mark(pause, "aria-pressed", String(isPaused));
  poll.pause(isPaused);
});
