"""How the engine gets an order that Python gives."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import Any, NamedTuple

from leat._job._agreement import JobStore
from leat._orders._epochs import EpochOrder
from leat.errors import InvalidArgument


class _Told(NamedTuple):
    """An epoch, as an engine was told it."""

    native: Any
    epoch: int
    position: int
    length: int
    digest: str
    """For the other ranks; empty if there are none to compare with."""


class Sampled:
    """Tells a loader's engine the order of each epoch.

    Args:
        order: of the samples.
        tells_next: tells the next epoch's order too, if it can be known, so that a cache
            keeps what is read again, and its first samples are fetched before it begins.
        epochs: the number of epochs; None for no end.
    """

    def __init__(self, order: EpochOrder, *, tells_next: bool = False, epochs: int | None = None) -> None:
        self._order = order
        self._tells_next = tells_next and order.knows_next
        self._epochs = epochs
        if self._tells_next:
            order.epochs_kept = 2
        self._next: _Told | None = None
        """An epoch that was told before it began."""
        self._running: _Told | None = None
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
        state = json.loads(native.state())
        position = state["position"] if state["epoch"] == epoch else 0
        told, self._next = self._next, None
        if told is None or (told.native, told.epoch, told.position) != (native, epoch, position):
            told = self._tell(native, epoch, position, hashes=met is not None)
        self._running = told
        self.length = told.length
        self._times += 1
        if met is not None:
            self._compare(told.digest, *met)
        if self._tells_next and (self._epochs is None or epoch + 1 < self._epochs):
            with contextlib.suppress(InvalidArgument):  # Raised when that epoch begins.
                self._next = self._tell(native, epoch + 1, 0, hashes=met is not None)

    def look(self, native: Any, met: tuple[Any, str] | None) -> None:
        """Before a look at the next batch, which may come before any iter()."""
        state = json.loads(native.state())
        epoch, known = state["epoch"], [told for told in (self._running, self._next) if told is not None]
        if not any((told.native, told.epoch) == (native, epoch) for told in known):
            self._next = self._tell(native, epoch, state["position"], hashes=met is not None)

    def _tell(self, native: Any, epoch: int, position: int, *, hashes: bool) -> _Told:
        """Gives the engine an epoch, from a position on."""
        self._order.set_epoch(epoch)
        samples, ends = self._order.order(), self._order.ends()
        dealt = self._order.begin(epoch, position)
        native.give_order(epoch, 0, samples, ends, False, self.rows_of_a_step or 1, dealt)
        digest = ""
        if hashes:
            told = [samples, ends, *(() if dealt is None else dealt[2:]), *self._order.compared(epoch)]
            digest = hashlib.blake2b(b"".join(part.tobytes() for part in told), digest_size=16).hexdigest()
        return _Told(native, epoch, position, len(samples) if self.rows_of_a_step is None else len(ends), digest)

    def describe(self, state: dict[str, Any]) -> None:
        """Adds what a state has to say beside the order of its epoch."""
        self._order.describe(state)

    def check(self, state: Any) -> None:
        """Raises `InvalidArgument` if the epoch of a state would have another order now."""
        self._next = self._running = None
        self._order.check(state)

    def go_on(self, state: Any) -> bool:
        """As `EpochOrder.go_on`."""
        self._next = self._running = None
        return self._order.go_on(state)

    def steps(self, epoch: int, position: int = 0, *, left_out: int | None) -> int | None:
        """The steps of an epoch from a position on, if the engine cannot count them. A rank is left
        out of a last step that has no more than `left_out` rows."""
        if self.rows_of_a_step is None:
            return None
        self._order.set_epoch(epoch)
        return self._order.steps(position=position, left_out=left_out)

    def balance(self, epoch: int) -> dict[str, Any] | None:
        """The gain of a `leat.Balance` in an epoch that was begun; None: there is none."""
        return self._order.report(epoch)

    def _compare(self, mine: str, store: Any, name: str) -> None:
        key = f"leat/sampler/{name}/{self._times}"
        first = JobStore(store).ask(lambda store: store.compare_set(key, "", mine).decode())
        if first not in (None, mine):
            raise InvalidArgument(self._order.why_refused())
