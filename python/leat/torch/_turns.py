"""Decides whether threads gain anything if their code holds the interpreter's lock (GIL).

Items that compute in Python take turns, with any number of threads. They are quicker one
after another in one thread, which need not wake others. An interpreter without that lock
lets them compute in parallel, but not always quicker: if two threads use an object, both
count references to it.
"""

from __future__ import annotations

import math
import sys

_ONE_CORE = (0.8, 1.2)
_FIRST_PAUSE = 16
_LONGEST_PAUSE = 1024


def has_lock() -> bool:
    """Whether this interpreter runs one thread at a time."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()


class Turns:
    """Suspects from the cores that threads had together; decides by comparing.

    While threads had one core, or any number where nothing makes them take turns, half of a batch is fetched in turn and half by
    threads, now and then: after 16 batches, and after twice as many each time.
    """

    def __init__(self) -> None:
        self.are_taken = False  # In turn is at least as quick.
        self.are_suspected = False  # The next batch is to be compared.
        self._pause = _FIRST_PAUSE
        self._left = 0  # Batches until this is asked again.
        self._least, self._most = _ONE_CORE if has_lock() else (_ONE_CORE[0], math.inf)

    def saw_cores(self, cores: float) -> None:
        """The cores of a batch that threads fetched: CPU seconds over
        seconds."""
        self._left = max(0, self._left - 1)
        self.are_suspected = self._left == 0 and self._least < cores < self._most

    def compare(self, in_turn: float, at_once: float) -> None:
        """The times of an item of the same batch, in turn and by threads."""
        self.are_taken = in_turn <= at_once
        self.are_suspected = False
        self._left = self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def had_batch(self) -> None:
        """A batch was fetched in turn."""
        if self.are_taken:
            self._left -= 1
            if self._left <= 0:
                self.are_taken, self.are_suspected = False, True
