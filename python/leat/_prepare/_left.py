"""The rest of a step: the units that this call takes, and those that other calls are doing."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from leat._prepare._claims import Claims
from leat._prepare._steps import Step

_FIRST_WAIT, _MOST_WAIT = 0.05, 2.0
_LOOKS_EVERY = 1.0
"""Seconds between listings, while there is something to do."""

Tell = Callable[[int, int], None]
"""Gets the units that are done, and the number of all."""


class Left:
    """The units of a step that are not done.

    Threads: any.
    """

    def __init__(self, step: Step, claims: Claims, tell: Tell) -> None:
        self._step, self._claims, self._tell = step, claims, tell
        self.count = step.count()
        missing = step.missing()
        self._lock = threading.Lock()
        self._done = set(range(self.count)) - set(missing)
        self._bad = step.noted() & set(missing)
        """Those whose note was there and did not hold."""
        self._looked = 0.0
        # Each begins elsewhere, so that calls seldom want the same unit.
        begin = claims.place_in(len(missing))
        self._fresh = deque([*missing[begin:], *missing[:begin]])
        self._others: set[int] = set()
        """Those that somebody else has claimed."""
        self._over = threading.Event()
        self._watch = threading.Lock()
        """Held by the one thread that watches the others' units."""

    def next(self) -> int | None:
        """A unit that this call does now; None once nothing is left for it to do."""
        wait = _FIRST_WAIT
        while not self._over.is_set():
            with self._lock:
                unit = self._fresh.popleft() if self._fresh else None
                is_end = unit is None and not self._others
            if is_end:
                return None
            if unit is not None:
                if self._is_ours(unit):
                    return unit
            elif not self._over.wait(wait) and self._watch.acquire(blocking=False):
                try:
                    begun = time.monotonic()
                    self.look()
                    self._try_again()
                finally:
                    self._watch.release()
                wait = min(max(2 * wait, 10 * (time.monotonic() - begun)), _MOST_WAIT)
        return None

    def did(self, unit: int) -> None:
        """A unit is done."""
        with self._lock:
            self._done.add(unit)
            self._others.discard(unit)
            done = len(self._done)
        self._tell(done, self.count)

    def stop(self) -> None:
        """No thread gets another unit."""
        self._over.set()

    def look(self) -> int:
        """Looks what the others have done; how many units are done."""
        noted = self._step.noted() - self._bad
        with self._lock:
            self._looked = time.monotonic()
            self._done |= noted
            self._others -= noted
            self._fresh = deque(unit for unit in self._fresh if unit not in noted)
            done = len(self._done)
        self._tell(done, self.count)
        return done

    def done_of(self, units: set[int]) -> set[int]:
        """Those of these units that are done."""
        with self._lock:
            return units & self._done

    def _is_ours(self, unit: int) -> bool:
        if not self._claims.take(self._step.note_of(unit)):
            with self._lock:
                self._others.add(unit)
                is_old = time.monotonic() - self._looked > _LOOKS_EVERY
            if is_old:  # One listing tells of all that the others have done.
                self.look()
            return False
        if self._step.is_done(unit):  # Since this call began.
            self.did(unit)
            return False
        return True

    def _try_again(self) -> None:
        """Takes units whose workers have died."""
        with self._lock:
            others = sorted(self._others)
        for unit in others:
            if unit in self._bad and self._step.is_done(unit):
                self.did(unit)
            elif self._claims.is_free(self._step.note_of(unit)):
                with self._lock:
                    if unit in self._others:
                        self._others.discard(unit)
                        self._fresh.append(unit)
