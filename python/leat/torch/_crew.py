"""The threads that fetch items: at most so many, and only while work is waiting.

A crew holds batches in the order of the plan, and hands out their places (one item each) in
that order, so that threads fetch the places that are needed first. This module does not
know datasets: a batch gives its number of places and the way to run one.

Threads are daemons. One that is stuck in a user's item cannot be ended from
outside, and must not keep the interpreter from leaving.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

from leat.torch._cores import SHORT_SECONDS, SURE_SECONDS, Cores, own_clock, seconds_of

# At exit, for threads to end the item that they are at: as long as they compute, …
_MOST_EXIT_SECONDS = 60.0
_EXIT_SECONDS = 0.5  # … and so long if they only wait.
_COMPUTING = 0.05  # Cores.


class Work(Protocol):
    """A batch as a crew sees it: places 0, 1, … `places` - 1, each run once."""

    places: int
    next_place: int  # The crew's: the first that nobody has begun.

    def is_over(self) -> bool:
        """Whether places that nobody has begun are no longer wanted."""

    def run(self, place: int) -> None:
        """Does one place. Never raises."""


class Crew:
    """Runs the places of batches, first come first served.

    Threads:  any method, from any thread; `close` also from a destructor.
    Lifetime: ends with `close`; the threads keep it alive until then.
    """

    def __init__(self, limit: int, prepare: Callable[[], None]) -> None:
        self._limit = limit
        self._prepare = prepare
        self._pid = os.getpid()
        # Reentrant: a destructor may run, and close, inside a guarded block.
        self._changed = threading.Condition(threading.RLock())
        # Guarded by _changed.
        self._waiting: deque[Work] = deque()
        self._idle = 0
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._cores = Cores()
        self._clocks: list[int] = []  # The CPU clocks of all threads.
        self.prepared = 0  # Threads that have called `prepare`.
        _alive.add(self)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    @property
    def is_of_this_process(self) -> bool:
        """False in a forked child, which has none of the threads."""
        return self._pid == os.getpid()

    def threads(self) -> list[threading.Thread]:
        """All threads that were started, ended or not."""
        return list(self._threads)

    def submit(self, work: Work, threads: int) -> None:
        """Adds a batch after all others; starts up to this many threads in all."""
        with self._changed:
            self._waiting.append(work)
            self._changed.notify(work.places - work.next_place)
            missing = min(threads, self._limit) - len(self._threads)
        self._start(missing)

    def watch(self) -> None:
        """Somebody begins to wait for a batch: see `grow`."""
        with self._changed:
            self._cores.watch()

    def grow(self) -> float | None:
        """Doubles the threads if work waits, none is idle and more would do more.

        The thread that waits for a batch calls it now and then, so that quick
        datasets never have more threads than they can use, nor those that
        compute.

        Returns: after how many seconds it is worth being called again; None if
        there is nothing to be done.
        """
        with self._changed:
            wanted = sum(work.places - work.next_place for work in self._waiting)
            now = len(self._threads)
            if wanted <= 0 or now >= self._limit or self._is_closed:
                return None
            if self._idle:
                return SHORT_SECONDS
            is_worthwhile = self._cores.are_more_worthwhile()
            more = min(max(now, 1), wanted, self._limit - now)
        if is_worthwhile:
            self._start(more)
        return SHORT_SECONDS if is_worthwhile else SURE_SECONDS

    def clear(self) -> None:
        """Drops the places that no thread has begun."""
        with self._changed:
            self._waiting.clear()

    def close(self) -> None:
        """Tells every thread to end after its current item; returns at once."""
        self._is_closed = True
        if self.is_of_this_process:
            with self._changed:
                self._waiting.clear()
                self._changed.notify_all()

    def join(self) -> None:
        """Waits for the threads, as long as they have something to compute.

        A thread that the interpreter leaves behind while it runs C++, such as
        torch's, ends the whole process by std::terminate as soon as it wants
        the interpreter again. One that waits for something may stay so.
        """
        begun = time.monotonic()
        while time.monotonic() - begun < _MOST_EXIT_SECONDS:
            before, last = self.cpu_seconds(), time.monotonic()
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join(max(0.0, last + _EXIT_SECONDS - time.monotonic()))
            had = abs(self.cpu_seconds() - before)  # Less where one has ended.
            alive = [thread for thread in self._threads if thread.is_alive()]
            is_computing = had >= _COMPUTING * _EXIT_SECONDS or any(map(_wants_a_core, alive))
            if not alive or not is_computing:
                return

    def cpu_seconds(self) -> float:
        """The CPU time of its threads that have not ended."""
        return sum(map(seconds_of, list(self._clocks)))

    def _start(self, count: int) -> None:
        for _ in range(count):
            name = f"leat-fetch-{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # The machine gives no more; those there do it.
                if not self._threads:
                    raise
                return
            self._threads.append(thread)

    def _work(self) -> None:
        if self._is_closed:
            return
        clock = own_clock()
        if clock is not None:
            self._clocks.append(clock)
        self._prepare()
        with self._changed:
            self.prepared += 1
            if clock is not None:
                self._cores.join(clock)
        while (claim := self._claim()) is not None:
            work, place = claim
            work.run(place)
            del work, claim  # Else this thread keeps the batch while it waits.

    def _claim(self) -> tuple[Work, int] | None:
        """The next place that is wanted; waits for one. None once closed."""
        with self._changed:
            while not self._is_closed:
                if (claim := self._first_wanted()) is not None:
                    return claim
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            return None

    def _first_wanted(self) -> tuple[Work, int] | None:
        """The first place that nobody has begun; forgets those no longer wanted.

        A function of its own: a thread that waits must not hold a batch, whose
        error may hold, by its traceback, the iterator that would end the thread.
        """
        while self._waiting:
            work = self._waiting[0]
            place = work.next_place
            work.next_place += 1
            is_over = work.is_over()
            if is_over or work.next_place >= work.places:
                self._waiting.popleft()
            if not is_over:
                return work, place
        return None


def _wants_a_core(thread: threading.Thread) -> bool:
    """Whether it would run if the machine let it; False where that is not told."""
    try:
        with open(f"/proc/self/task/{thread.native_id}/stat") as told:
            return told.read().rsplit(")", 1)[1].split()[0] == "R"
    except (OSError, IndexError):
        return False


_alive: weakref.WeakSet[Crew] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    crews = [crew for crew in list(_alive) if crew.is_of_this_process]
    for crew in crews:
        crew.close()
    for crew in crews:
        crew.join()
