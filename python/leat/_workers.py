"""Functions of samples run in the engine's threads, or in worker processes.

With ``workers="auto"`` a loader measures which is faster. At first only one call runs at a
time, so that its cost is known; then threads call as they like. If the calls of several threads get no
more done than one after another, or compute on one core together, something makes them take
turns, such as the interpreter's lock (GIL). The loader then tries processes and threads in
turn, and keeps what gets more done. `Meter`, `turns_are_taken` and `gain_of` decide, and know
neither threads nor clocks.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from leat import _draws, _functions, _native
from leat._processes import Processes, Shipped, obstacle
from leat.errors import InvalidArgument
from leat.ops import Op, Python

_log = logging.getLogger("leat")

COSTLY_SECONDS = 1e-3
"""A cheaper call is not worth a message to another process."""
GAIN = 1.3
"""Threads that get so much more done than one do not take turns."""
ONE_CORE = (0.7, 1.3)
"""Threads that take turns have about one core together, also on a machine so busy that their
gain cannot be told."""
KEPT_GAIN = 1.15
"""Processes that get so much more done than threads are kept."""
CROWDED = 1.5
"""Calls at a time, on average, from which on they can get in each other's way."""
FEW_GAPS = 0.8
APART = 0.85
"""Calls that take less than the interpreter's switch interval (5 ms) do not overlap: each begins
where another ends. Threads take turns if calls fill so much of the time, and so few run at a
time beside what threads that know nothing of each other would make."""
_CALLS_ALONE = 8
_SECONDS_ALONE = 0.25
_CALLS = 32
_SECONDS = 0.2
_TRIAL = ("processes", "processes", "threads", "processes", "threads")
"""They are measured in turn, so that another program disturbs both; the first is practice."""


class Meter:
    """Measures what overlapping calls achieve. The caller's lock guards it."""

    def __init__(self) -> None:
        self.calls = 0
        self.busy = 0.0
        """Seconds in which at least one call ran."""
        self._together = 0.0
        self._done = 0.0
        self._cpu = 0.0
        self._active = 0
        self._callers: set[int] = set()
        self._began: float | None = None
        self._seen = 0.0

    def begin(self, now: float, caller: int) -> None:
        """The thread ``caller`` calls."""
        if self._began is None:
            self._began = now
        self._pass(now)
        self._active += 1
        self._callers.add(caller)

    def end(self, now: float, began: float, alone: float, cpu: float) -> None:
        """A call has ended that had ``cpu`` seconds of a core, and takes ``alone`` where no other runs."""
        self._pass(now)
        self._active -= 1
        self.calls += 1
        self._together += now - began
        self._done += alone
        self._cpu += cpu

    def is_enough(self) -> bool:
        return self.calls >= _CALLS and self.busy >= _SECONDS

    @property
    def callers(self) -> int:
        """How many threads have called."""
        return len(self._callers)

    @property
    def occupied(self) -> float:
        """The part of the time, from the first call to the last, in which at least one ran."""
        return self.busy / (self._seen - self._began) if self._began is not None and self._seen > self._began else 0.0

    @property
    def at_a_time(self) -> float:
        """How many calls ran at a time while any did."""
        return self._together / self.busy if self.busy else 0.0

    @property
    def by_chance(self) -> float:
        """How many calls would run at a time, in as much of the time, by threads that know nothing of each other."""
        if not self.busy:
            return 0.0
        alone = 1 - (1 - self.occupied) ** (1 / self.callers)  # The part of the time that a thread is in a call.
        return self.callers * alone / self.occupied

    @property
    def gain(self) -> float:
        """Seconds of calls alone that were done in a second: what one after another does is 1."""
        return self._done / self.busy if self.busy else 0.0

    @property
    def cores(self) -> float:
        return self._cpu / self.busy if self.busy else 0.0

    def _pass(self, now: float) -> None:
        if self._active:
            self.busy += now - self._seen
        self._seen = now


def turns_are_taken(meter: Meter) -> bool | None:
    """Whether the calls of several threads get hardly more done than one after another; None while
    too few meet to say."""
    keep_apart = meter.occupied >= FEW_GAPS and meter.at_a_time < APART * meter.by_chance
    if meter.at_a_time < CROWDED and not keep_apart:
        return None
    return meter.gain < GAIN or ONE_CORE[0] <= meter.cores < ONE_CORE[1]


def gain_of(meters: Sequence[Meter]) -> float:
    """The gain over the time of all these."""
    busy = sum(meter.busy for meter in meters)
    return sum(meter.gain * meter.busy for meter in meters) / busy if busy else 0.0


class FunctionWorkers:
    """The functions of a loader's ops, as the engine calls them.

    Threads:  any.
    Lifetime: stop() it before the engine is closed, whose threads may be in a call, and
              close() it afterwards. In a forked child both do nothing.

    Args:
        threads: the loader's, of all ranks of this node; 0 for as many as there are cores.
    """

    def __init__(self, ops: Sequence[Op], threads: int) -> None:
        self._pid = os.getpid()
        self._processes = Processes(_most_workers(threads))
        # Workers of its own: if they get no more done they end, and those of ops that asked for processes stay.
        self._auto = Auto(Processes(_most_workers(threads)))
        self.names = ", ".join(repr(op) for op in ops if isinstance(op, Python) and op.per == "sample")
        self.functions = [
            self._function(op, place)
            for place, op in enumerate(ops)
            if isinstance(op, Python) and op.per == "sample"
        ]
        """One for each op that calls a function for each sample, in their order."""

    def stop(self) -> None:
        """Ends calls in processes that do not return, and lets none begin there."""
        if os.getpid() != self._pid:  # A fork may hold locks that nobody releases.
            return
        self._auto.stop()
        self._processes.stop()

    def close(self) -> None:
        if os.getpid() != self._pid:
            return
        self._auto.close()
        self._processes.close()

    def _function(self, op: Python, place: int) -> Callable[..., Any]:
        here = _functions.call_per_sample(op.function, place, op.global_rng, op.fields)
        if not op.draws:
            here = _draws.noticed(op, here)
        if op.workers == "threads":
            return here
        if op.workers == "auto":
            return self._auto.watch(op, place, here)
        shipped = ship(op, place)
        if isinstance(shipped, str):
            _log.warning("%s", f"{op!r} stays in threads: {shipped}")
            return here
        return lambda value, *numbers: self._processes.call(shipped, value, numbers)


def _most_workers(threads: int) -> int:
    """This many can compute at a time. The engine may have more threads, for functions that wait."""
    try:
        _, _, local_ranks = _native.launched()
    except InvalidArgument:  # Lightning says part of it.
        local_ranks = 1
    return max(1, (threads or _native.usable_cores()) // local_ranks)


def ship(op: Python, place: int) -> Shipped | str:
    """The op's function for processes, or why it cannot go there."""
    if reason := obstacle():
        return reason
    try:
        return Shipped(repr(op), place, op.function, op.global_rng, op.fields)
    except Exception as error:
        return (
            f"it cannot be pickled for a process ({type(error).__name__}: {error}); a function that stands at "
            "the top level of a module can"
        )


class _Watched:
    """One function of `Auto`."""

    def __init__(self, op: Python, place: int, here: Callable[..., Any]) -> None:
        self.op = op
        self.place = place
        self.here = here
        self.shipped: Shipped | None = None
        self.calls_alone = 0
        self._seconds_alone = 0.0
        self._cpu_alone = 0.0

    @property
    def alone(self) -> float:
        """Seconds of a call alone, without the first, which may load what it needs."""
        return self._seconds_alone / max(1, self.calls_alone - 1)

    @property
    def cost(self) -> float:
        """Seconds of a core of such a call."""
        return self._cpu_alone / max(1, self.calls_alone - 1)

    def add_alone(self, seconds: float, cpu: float) -> None:
        if self.calls_alone:
            self._seconds_alone += seconds
            self._cpu_alone += cpu
        self.calls_alone += 1


class Auto:
    """Moves functions to processes where threads get nothing more done.

    Threads: any.

    Args:
        processes: nobody else's; `close` ends them.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._functions: list[_Watched] = []
        self._one_at_a_time = threading.Lock()
        self._lock = threading.Lock()
        # Guarded by _lock.
        self._is_closed = False
        self._meter = Meter()
        self._trial: list[Meter] = []
        """The parts of the trial that are over."""
        # Changed under _lock, and read without it: a late change does no harm.
        self._stage = "alone"
        self._where = "processes"
        """The place of functions that can go to processes."""
        self._begun = 0.0

    def watch(self, op: Python, place: int, here: Callable[..., Any]) -> Callable[..., Any]:
        """The function as the engine calls it."""
        has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
        if not has_lock or _native.usable_cores() == 1:
            return here
        watched = _Watched(op, place, here)
        self._functions.append(watched)
        return lambda value, *numbers: self._call(watched, value, numbers)

    def stop(self) -> None:
        """Ends calls in processes that do not return, and lets none begin there."""
        with self._lock:
            self._is_closed = True
            self._stage = "settled"
        self._processes.stop()

    def close(self) -> None:
        """Ends the processes."""
        self._processes.close()

    def _call(self, watched: _Watched, value: Any, numbers: tuple[int, ...]) -> Any:
        stage = self._stage
        if stage in ("together", "trial"):
            return self._measured(watched, value, numbers)
        if stage == "alone":
            with self._one_at_a_time:
                if self._stage == "alone":
                    return self._alone(watched, value, numbers)
        return self._run(watched, value, numbers)

    def _run(self, watched: _Watched, value: Any, numbers: tuple[int, ...]) -> Any:
        shipped = watched.shipped
        if shipped is not None and self._where == "processes":
            return self._processes.call(shipped, value, numbers)
        return watched.here(value, *numbers)

    def _alone(self, watched: _Watched, value: Any, numbers: tuple[int, ...]) -> Any:
        begin, cpu = time.perf_counter(), time.thread_time()
        self._begun = self._begun or begin
        try:
            return watched.here(value, *numbers)
        finally:
            now = time.perf_counter()
            watched.add_alone(now - begin, time.thread_time() - cpu)
            calls = sum(each.calls_alone for each in self._functions) / len(self._functions)
            if calls >= _CALLS_ALONE or (calls >= 3 and now - self._begun > _SECONDS_ALONE):
                is_costly = any(each.cost >= COSTLY_SECONDS for each in self._functions)
                self._enter("together" if is_costly else "settled")

    def _measured(self, watched: _Watched, value: Any, numbers: tuple[int, ...]) -> Any:
        begin, cpu = time.perf_counter(), time.thread_time()
        with self._lock:
            meter = self._meter
            meter.begin(begin, threading.get_ident())
        try:
            return self._run(watched, value, numbers)
        finally:
            now = time.perf_counter()
            with self._lock:
                meter.end(now, begin, watched.alone, time.thread_time() - cpu)
                is_enough = meter is self._meter and meter.is_enough()
            if is_enough:
                self._judge(meter)

    def _judge(self, meter: Meter) -> None:
        with self._lock:
            if meter is not self._meter:  # Another thread was quicker.
                return
            self._meter = Meter()
        if self._stage == "together":
            self._judge_threads(meter)
        elif self._stage == "trial":
            self._go_on_trying(meter)

    def _judge_threads(self, meter: Meter) -> None:
        takes_turns = turns_are_taken(meter)
        if takes_turns is None:
            return
        self._enter("starting" if takes_turns else "settled")
        if takes_turns:
            # A thread of its own: training goes on while processes start.
            threading.Thread(target=self._start, args=(meter.callers,), name="leat-workers", daemon=True).start()

    def _start(self, count: int) -> None:
        """Starts the processes, and tries them."""
        moved = []
        for watched in self._functions:
            if watched.cost < COSTLY_SECONDS:
                continue
            shipped = ship(watched.op, watched.place)
            if isinstance(shipped, str):
                _log.info("%s", f"{_cost(watched)}, and threads take turns (the GIL); it stays in threads: {shipped}")
            else:
                moved.append((watched, shipped))
        try:
            if moved:
                self._processes.start(count, [shipped for _, shipped in moved])
        except Exception as error:
            _log.info("%s", f"functions stay in threads, since processes do not start: {error}")
            moved = []
        for watched, shipped in moved:
            watched.shipped = shipped
        self._enter("trial" if moved else "settled")

    def _go_on_trying(self, meter: Meter) -> None:
        """The next part of the trial, after the one that ``meter`` measured."""
        with self._lock:
            self._trial.append(meter)
            is_over = len(self._trial) == len(_TRIAL)
            self._where = "threads" if is_over else _TRIAL[len(self._trial)]
        if is_over:
            self._judge_processes()

    def _judge_processes(self) -> None:
        moved = [watched for watched in self._functions if watched.shipped is not None]
        measured = list(zip(_TRIAL, self._trial))[1:]
        processes = [meter for where, meter in measured if where == "processes"]
        threads = [meter for where, meter in measured if where == "threads"]
        # Calls that no longer pile up wait for something else now.
        is_calm = max(meter.at_a_time for meter in processes) < CROWDED
        is_kept = is_calm or gain_of(processes) >= KEPT_GAIN * gain_of(threads)
        with self._lock:
            self._where = "processes" if is_kept else "threads"
        self._enter("settled")
        for watched in moved:
            if is_kept:
                says = (
                    f"{_cost(watched)}, and threads take turns (the GIL): worker processes call it from now on, "
                    'each with a copy; workers="threads" keeps it in threads'
                )
            else:
                says = f"{_cost(watched)}, and it stays in threads: worker processes were no faster"
            _log.info("%s", says)
        if not is_kept:
            self._processes.dismiss()

    def _enter(self, stage: str) -> None:
        with self._lock:
            self._meter = Meter()
            if not self._is_closed:
                self._stage = stage


def _cost(watched: _Watched) -> str:
    return f"{watched.op!r} takes {1e3 * watched.cost:.1f} ms a call"
