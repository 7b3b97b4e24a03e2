"""How the engine gets an order that Python gives."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from leat._agreement import JobStore
from leat._epoch_order import EpochOrder
from leat.errors import InvalidArgument


class Sampled:
    """Tells a loader's engine the order of each epoch."""

    def __init__(self, order: EpochOrder) -> None:
        self._order = order
        self._times = 0  # That an epoch was begun.
        self.length = 0
        """The samples, or the rows, of the epoch that was begun."""
        self.rows_of_a_step = order.rows_of_a_step
        """None: steps have samples."""
        self.unit = order.unit

    def expect(self, native: Any) -> None:
        """Tells the engine the length of epochs, if the order knows it."""
        if (length := self._order.length()) is not None:
            native.expect_order_of(length)

    def begin(self, native: Any, met: tuple[Any, str] | None) -> None:
        """Before each iter(). ``met`` is what `compare_ranks` gave.

        Raises:
            leat.InvalidArgument: there is no such order; or it is not that of other ranks,
                or of the state that was loaded.
        """
        epoch = native.next_epoch()
        self._order.set_epoch(epoch)
        samples, ends = self._order.order(), self._order.ends()
        state = json.loads(native.state())
        dealt = self._order.begin(epoch, state["position"] if state["epoch"] == epoch else 0)
        self.length = len(samples) if self.rows_of_a_step is None else len(ends)
        self._times += 1
        if met is not None:
            told = [samples, ends, *(() if dealt is None else dealt[2:]), *self._order.compared(epoch)]
            self._compare(told, *met)
        native.give_order(epoch, 0, samples, ends, False, self.rows_of_a_step or 1, dealt)

    def describe(self, state: dict[str, Any]) -> None:
        """Adds what a state has to say beside the order of its epoch."""
        self._order.describe(state)

    def check(self, state: Any) -> None:
        """Raises `InvalidArgument` if the epoch of a state would have another order now."""
        self._order.check(state)

    def steps(self, epoch: int) -> int | None:
        """The steps of an epoch, if the engine cannot count them."""
        if self.rows_of_a_step is None:
            return None
        self._order.set_epoch(epoch)
        return self._order.steps()

    def balance(self, epoch: int) -> dict[str, Any] | None:
        """The gain of a `leat.Balance` in an epoch that was begun; None: there is none."""
        return self._order.report(epoch)

    def _compare(self, parts: list[np.ndarray], store: Any, name: str) -> None:
        mine = hashlib.blake2b(b"".join(part.tobytes() for part in parts), digest_size=16).hexdigest()
        key = f"leat/sampler/{name}/{self._times}"
        first = JobStore(store).ask(lambda store: store.compare_set(key, "", mine).decode())
        if first not in (None, mine):
            raise InvalidArgument(self._order.why_refused())
