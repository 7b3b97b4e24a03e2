// Asks the agent once a second; less often while it does not answer, not at all while nobody looks.

import { Known, type View } from "./view";

export type State = "live" | "paused" | "lost";

const EVERY_MS = 1000;
const MOST_MS = 8000;
const PATIENCE_MS = 10000;

export class Poll {
  private timer = 0;
  private wait = EVERY_MS;
  private isPaused = false;
  private isAsking = false;

  constructor(
    private readonly known: Known,
    private readonly changed: (state: State) => void,
  ) {
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.soon();
    });
    this.soon();
  }

  pause(isPaused: boolean): void {
    this.isPaused = isPaused;
    if (isPaused) this.changed("paused");
    else this.soon();
  }

  private soon(delay = 0): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.ask(), delay);
  }

  private async ask(): Promise<void> {
    if (this.isPaused || document.hidden || this.isAsking) return;
    this.isAsking = true;
    const began = performance.now();
    let state: State = "live";
    try {
      if (!this.known.add(await this.answer()) && !this.known.add(await this.answer())) state = "lost";
      this.wait = EVERY_MS;
    } catch {
      state = "lost";
      this.wait = Math.min(2 * this.wait, MOST_MS);
    }
    this.isAsking = false;
    if (this.isPaused) return;
    this.changed(state);
    this.soon(Math.max(0, this.wait - (performance.now() - began)));
  }

  private async answer(): Promise<View> {
    const reply = await fetch(`./api/node${this.known.query()}`, { signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!reply.ok) throw new Error(`HTTP ${reply.status}`);
    const view = (await reply.json()) as View;
    if (view.format !== 1) throw new Error(`format ${view.format}`);
    return view;
  }
}
