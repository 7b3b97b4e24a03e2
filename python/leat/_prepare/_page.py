"""The page of progress: one file without a script, written anew every few seconds while a flow runs."""

from __future__ import annotations

import contextlib
import os
import pathlib
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from leat._prepare._claims import PATIENCE, Claims
from leat._prepare._flow import Flow
from leat._prepare._left import Left
from leat._prepare._state import State
from leat.errors import Error

_EVERY = 2.0
_REFRESH = 5
"""Seconds after which a browser reads it again."""
_WINDOW = 60.0
"""Seconds of which the rate is."""
_MOST_ROWS = 200
_RULES = """
table { border-collapse: collapse; margin-top: .75rem; font-size: .92rem; }
th { font-weight: 400; color: var(--soft); text-align: left; }
th, td { padding: .2rem 1.5rem .2rem 0; vertical-align: baseline; }
td.number { text-align: right; }
td.reason { color: var(--bad); overflow-wrap: anywhere; }
"""


@dataclass
class StepSeen:
    """A step on the page."""

    name: str
    done: int = 0
    count: int | None = None
    """None: it has not begun, so nobody has counted its units."""
    is_over: bool = False


@dataclass
class Seen:
    """All that the page says."""

    title: str
    steps: Sequence[StepSeen]
    workers: Sequence[dict[str, Any]]
    """The notes of those that live, or have failed units; see `Claims.workers`."""
    now: float
    rate: float | None = None
    """Units a second, of the step that runs."""
    seconds_left: float | None = None
    said: str = ""
    """How the call ended; empty: it runs."""
    is_last: bool = False
    """Nobody writes the page again."""
    log: str = ""
    done: frozenset[tuple[str, int]] = field(default_factory=frozenset)
    """Units that have failed somewhere, and are done now."""


class Page:
    """Writes the page in a thread of its own. A context manager.

    Threads: one, beside its own.
    """

    def __init__(self, path: str, flow: Flow, state: State, claims: Claims, steps: Sequence[str]) -> None:
        self._path, self._claims = path, claims
        self._goes_on = bool(flow.chosen)
        self._seen = Seen(flow.path, [StepSeen(name) for name in steps], [], 0.0, log=state.log_place)
        self._lock = threading.Lock()
        self._left: tuple[StepSeen, Left] | None = None
        self._history: deque[tuple[float, int]] = deque()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="leat-prepare", daemon=True)

    def __enter__(self) -> Page:
        self._write()  # A path that cannot be written is said now.
        self._thread.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        with self._lock:
            self._seen.is_last = kind is not None or not self._goes_on  # A watch has another round.
            self._seen.said = "done" if kind is None else f"ended: {error or kind.__name__}"
        self._over.set()
        self._thread.join(None if kind is None else PATIENCE)

    def begins(self, number: int, left: Left) -> None:
        """A step begins."""
        with self._lock:
            seen = self._seen.steps[number]
            seen.count = left.count
            self._left = seen, left
            self._history.clear()

    def ends(self, number: int, count: int) -> None:
        """All of its units are done."""
        with self._lock:
            seen = self._seen.steps[number]
            seen.count = seen.done = count
            seen.is_over = True
            self._left = None

    def _go_on(self) -> None:
        wait = _EVERY
        while not self._over.wait(wait):
            begun = time.monotonic()
            with contextlib.suppress(Error, OSError):  # The next one may succeed; the flow does not wait for its page.
                self._write()
            wait = max(_EVERY, 10 * (time.monotonic() - begun))
        with contextlib.suppress(Error, OSError):  # An error that ends the call says more.
            self._write()

    def _write(self) -> None:
        with self._lock:
            now = self._left
        done = now[1].look() if now else 0
        workers = [one for one in self._claims.workers() if one["lives"] or one.get("failed")]
        with self._lock:
            seen = self._seen
            seen.now, seen.workers = time.time(), workers
            if now and self._left is now:
                now[0].done = done
                self._history.append((time.monotonic(), done))
                seen.rate, seen.seconds_left = rate_of(self._history, now[1].count)
            else:
                seen.rate = seen.seconds_left = None
            if now:
                seen.done |= {(now[0].name, unit) for unit in now[1].done_of(_failed_units(workers, now[0].name))}
            made = page(seen)
        draft = pathlib.Path(f"{self._path}.{uuid.uuid4().hex[:8]}")
        try:
            draft.write_text(made, encoding="utf-8")
            os.replace(draft, self._path)
        finally:
            draft.unlink(missing_ok=True)


def rate_of(history: deque[tuple[float, int]], count: int) -> tuple[float | None, float | None]:
    """Units a second in the last while, and the seconds that the others need at that rate."""
    while len(history) > 2 and history[-1][0] - history[0][0] > _WINDOW:
        history.popleft()
    (begun, before), (now, done) = history[0], history[-1]
    if now <= begun or done <= before:
        return None, None
    rate = (done - before) / (now - begun)
    return rate, (count - done) / rate


def page(seen: Seen) -> str:
    """All of it."""
    from leat._show._html import POLICY, SHEET, text

    running = [(one, unit) for one in seen.workers if one["lives"] for unit in one.get("running") or ()]
    failed = [
        (one, unit) for one in seen.workers for unit in one.get("failed") or ()
        if (unit.get("step"), unit.get("unit")) not in seen.done and not _is_over(seen, unit.get("step"))
    ]  # fmt: skip
    refresh = "" if seen.is_last else f'<meta http-equiv="refresh" content="{_REFRESH}">'
    return "\n".join([
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">', refresh,
        '<meta name="color-scheme" content="light dark">', '<meta name="referrer" content="no-referrer">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">', '<link rel="icon" href="data:,">',
        f"<title>{text(seen.title)}</title>", f"<style>\n{SHEET.read_text(encoding='utf-8')}{_RULES}</style>",
        "</head>", "<body>",
        f'<header><div class="top"><h1><span class="brand">Leat</span> {text(seen.title)}</h1>'
        f'<span class="soft">{text(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seen.now)))}</span></div>',
        _facts(seen, len(failed), text), "</header>", "<main>", _steps(seen, text),
        _table("Running", ("machine", "process", "step", "unit", "seconds"), [
            (one.get("host"), one.get("pid"), unit.get("step"), unit.get("unit"),
             f"{max(0.0, seen.now - float(unit.get('since') or seen.now)):.0f}")
            for one, unit in running
        ], text),
        _table("Failed", ("machine", "process", "step", "unit", "reason"), [
            (one.get("host"), one.get("pid"), unit.get("step"), unit.get("unit"), unit.get("error"))
            for one, unit in failed
        ], text),
        f'<p class="soft">The log is {text(seen.log)}</p>' if seen.log else "", "</main>", "</body>", "</html>", "",
    ])  # fmt: skip


def _facts(seen: Seen, failed: int, text: Callable[[object], str]) -> str:
    living = [one for one in seen.workers if one["lives"]]
    done, count = (sum(getattr(step, name) or 0 for step in seen.steps) for name in ("done", "count"))
    hosts = len({one.get("host") for one in living})
    facts = [
        ("State", seen.said or "running"), ("Units done", f"{done:,} of {count:,}"), ("Failed", f"{failed:,}"),
        ("Rate", "–" if seen.rate is None else f"{seen.rate:.3g} units/s"),
        ("Expected end of the step", "–" if seen.seconds_left is None else _when(seen.now, seen.seconds_left)),
        ("Calls at work", f"{0 if seen.said else len(living)} on {0 if seen.said else hosts} machines"),
    ]  # fmt: skip
    return '<dl class="facts">' + "".join(
        f'<div><dt>{text(name)}</dt><dd class="wide">{text(value)}</dd></div>' for name, value in facts
    ) + "</dl>"  # fmt: skip


def _when(now: float, seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    left = f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{time.strftime('%H:%M:%S UTC', time.gmtime(now + seconds))}, in {left}"


def _steps(seen: Seen, text: Callable[[object], str]) -> str:
    rows = []
    for step in seen.steps:
        share = 100.0 if step.is_over else 100 * step.done / step.count if step.count else 0.0
        told = "waits" if step.count is None else f"{step.done:,} of {step.count:,}"
        rows.append(
            f'<li><span class="name">{text(step.name)}</span><span class="bar"><span style="width:{share:.2f}%"></span>'
            f'</span><span class="number">{told}</span></li>'
        )
    return f'<section><h2>Steps</h2><ul class="rows">{"".join(rows)}</ul></section>'


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], text: Callable[[object], str]) -> str:
    """Nothing, if there are no rows."""
    if not rows:
        return ""
    head = "".join(f"<th>{text(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f'<td class="{"reason" if name == "reason" else "value"}">{text(value)}</td>'
                         for name, value in zip(heads, row)) + "</tr>"
        for row in rows[:_MOST_ROWS]
    )  # fmt: skip
    more = f'<p class="soft">and {len(rows) - _MOST_ROWS:,} more</p>' if len(rows) > _MOST_ROWS else ""
    return f"<section><h2>{text(title)}</h2><table><tr>{head}</tr>{body}</table>{more}</section>"


def _failed_units(workers: Sequence[dict[str, Any]], step: str) -> set[int]:
    return {
        unit["unit"] for one in workers for unit in one.get("failed") or ()
        if unit.get("step") == step and isinstance(unit.get("unit"), int)
    }  # fmt: skip


def _is_over(seen: Seen, step: Any) -> bool:
    return any(one.is_over for one in seen.steps if one.name == step)
