"""Shows the progress of a command on standard error: as a bar by rich or tqdm, else as a line."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from types import TracebackType
from typing import Any, Protocol, TextIO

_AFTER = 2.0
"""Seconds of silence, in which a command also starts: what ends before them tells nothing."""
_LEAST_AFTER = 0.5
_LOG_EVERY = 10.0


class _Screen(Protocol):
    def update(self, done: int, count: int) -> None: ...

    def end(self) -> None: ...


class _Rich:
    def __init__(self, what: str, unit: str, err: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

        self._shown = Progress(
            SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
            TextColumn(unit, markup=False), TimeRemainingColumn(), console=Console(file=err), transient=True,
        )  # fmt: skip
        self._task = self._shown.add_task(what, total=None)
        self._shown.start()

    def update(self, done: int, count: int) -> None:
        self._shown.update(self._task, completed=done, total=count or None)

    def end(self) -> None:
        self._shown.stop()


class _Tqdm:
    def __init__(self, what: str, unit: str, err: TextIO) -> None:
        tqdm = importlib.import_module("tqdm").tqdm
        self._shown = tqdm(desc=what, unit=f" {unit}" if unit else " steps", file=err, leave=False)

    def update(self, done: int, count: int) -> None:
        self._shown.total = count or None
        self._shown.update(done - self._shown.n)

    def end(self) -> None:
        self._shown.close()


class _Line:
    """Written over and over on a terminal; in a log, a line every 10 s."""

    def __init__(self, what: str, unit: str, err: TextIO) -> None:
        self._words, self._err, self._is_terminal = (what, unit), err, err.isatty()
        self._begun = self._told = time.monotonic()
        self._state, self._ends = (0, 0), threading.Event()
        self._writer = threading.Thread(target=self._write, name="leat-progress", daemon=True)
        self._writer.start()

    def _write(self) -> None:
        while not self._ends.wait(0.5 if self._is_terminal else _LOG_EVERY):
            (done, count), (what, unit) = self._state, self._words
            told = f": {done:,} of {count:,} {unit}" if count else ""
            line = f"leat: {what}{told}, {time.monotonic() - self._begun:.0f} s"
            print(f"\r\x1b[K{line}" if self._is_terminal else line, end="" if self._is_terminal else "\n",
                  file=self._err, flush=True)  # fmt: skip

    def update(self, done: int, count: int) -> None:
        self._state = (done, count)

    def end(self) -> None:
        self._ends.set()
        self._writer.join()
        if self._is_terminal:
            print("\r\x1b[K", end="", file=self._err, flush=True)


def _screen(what: str, unit: str, err: TextIO) -> _Screen:
    if err.isatty():
        for kind in (_Rich, _Tqdm):
            try:
                return kind(what, unit, err)
            except ImportError:
                continue
    return _Line(what, unit, err)


class Progress:
    """Shows how far something is that takes over two seconds.

        with Progress("packing", "shards") as progress:
            progress.tell(3, 40)

    On a terminal it is a bar of rich, or else of tqdm, where one is installed; or else a line that is written over. In a
    log it is a line every 10 s. Nothing of it is left on a terminal.

    Threads: tell() any, one at a time.
    """

    def __init__(self, what: str, unit: str = "", *, err: TextIO | None = None, after: float | None = None) -> None:
        if after is None:
            after = max(_LEAST_AFTER, _AFTER - time.process_time())
        self._what, self._unit, self._err = what, unit, err if err is not None else sys.stderr
        self._lock, self._screen, self._state = threading.Lock(), None, (0, 0)
        self._begins = threading.Timer(after, self._begin)
        self._begins.daemon = True
        self._has_ended = False

    _screen: _Screen | None

    def _begin(self) -> None:
        with self._lock:
            if not self._has_ended:
                self._screen = _screen(self._what, self._unit, self._err)
                self._screen.update(*self._state)

    def tell(self, done: int, count: int) -> None:
        """This many are done of `count`; 0: nobody knows of how many."""
        with self._lock:
            self._state = (done, count)
            if self._screen is not None:
                self._screen.update(done, count)

    def __enter__(self) -> Progress:
        self._begins.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> Any:
        self._begins.cancel()
        with self._lock:
            self._has_ended = True
            if self._screen is not None:
                self._screen.end()
                self._screen = None
