"""One batch on its way: fetched by many threads, put together by the last.

The result is the same as if the items were fetched one after another: the same
values in the same order, or the error of the first place that fails.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from torch.utils.data import StackDataset, Subset

from leat.torch._workers import kept_worker

# So that the items after a sudden change are not many.
_MOST_AT_ONCE = 16


class Source:
    """The source of items, and their processing.

    Args:
        dataset: anything with ``__getitem__``, perhaps ``__getitems__``.
        is_batched: whether the sampler gives lists of indices.
        collate: makes a batch of a list of items, or of one if not batched.
        finish: what is done to a batch last, such as pinning it.
        enter: called with the numbers of a batch and a place before each item.
        collates_ahead: whether the thread that completes a batch puts it together;
            else whoever takes it does.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        is_batched: bool,
        collate: Callable[[Any], Any],
        finish: Callable[[Any], Any],
        enter: Callable[[int, int], None],
        collates_ahead: bool,
    ) -> None:
        self.dataset = dataset
        self.is_batched = is_batched
        self.is_whole = is_batched and fetches_whole_batches(dataset)
        self.collate = collate
        self.finish = finish
        self.enter = enter
        self.collates_ahead = collates_ahead


def fetches_whole_batches(dataset: Any) -> bool:
    """Whether ``__getitems__`` does more than call ``__getitem__`` in turn.

    torch's own wrappers have one that only calls the wrapped dataset's.
    """
    of_type = getattr(type(dataset), "__getitems__", None)
    if of_type is not None and of_type is getattr(Subset, "__getitems__", None):
        return fetches_whole_batches(dataset.dataset)
    if of_type is not None and of_type is getattr(StackDataset, "__getitems__", None):
        parts = dataset.datasets
        parts = parts.values() if isinstance(parts, dict) else parts
        return any(fetches_whole_batches(part) for part in parts)
    return bool(getattr(dataset, "__getitems__", None))


class Batch:
    """The items of one index of the sampler.

    Threads: `run` by any number of them, each place once; `take` by one, once
        `is_fetched`. A batch that `run` completes comes out of `finished`, once.
    """

    def __init__(
        self, number: int, index: Any, source: Source, finished: queue.SimpleQueue[Batch]
    ) -> None:
        self.number = number
        self.index = index
        self.next_place = 0
        self.seconds = 0.0  # That its items took, together.
        self.at_once = 1  # As `run_in_turn` left it.
        self._source = source
        self._finished = finished
        self._value: Any = None
        self._is_assembled = False
        self._indices: list[Any] = []
        self._lock = threading.Lock()
        # Guarded by _lock, but read without it where a late answer does no harm.
        self._error: BaseException | None = None
        self._failed_at: int | None = None
        self._is_finished = False
        try:
            self._indices = list(index) if source.is_batched else [index]
        except Exception as error:
            self._failed_at, self._error = 0, error
        self.places = 1 if source.is_whole else max(1, len(self._indices))
        self._items: list[Any] = [None] * len(self._indices)
        self._is_done = bytearray(self.places)
        self._missing = self.places

    def is_over(self) -> bool:
        """True once a place has failed: the places after it are not needed."""
        return self._failed_at is not None and self._failed_at < self.places - 1

    @property
    def is_fetched(self) -> bool:
        """Whether all places are there, or all before one that failed."""
        return self._is_finished

    def run_in_turn(
        self, quick_seconds: float, *, most_places: int | None = None, was_slow: bool = False,
        at_once: int = 1,
    ) -> bool:  # fmt: skip
        """Fetches places that nobody has begun, one after another, in this thread.

        As `run` of each, with nothing between two items: for those that come in
        microseconds, without workers.

        Args:
            quick_seconds: an item that takes longer is slow; two slow items in a row end
                this.
            most_places: the largest number of places to fetch.
            was_slow: whether the item before these was.
            at_once: items that are timed as one, at first; then as many as are
                expected within `quick_seconds`, one after a slow one.

        Returns: whether the last two were slow, so that threads are worth it.
        """
        clock = time.perf_counter
        dataset, indices, items = self._source.dataset, self._indices, self._items
        place = begin = self.next_place
        end = self.places if most_places is None else min(self.places, begin + most_places)
        if self._error is not None:
            end = begin
        started = last = clock()
        are_slow = False
        try:
            if self._source.is_whole and begin < end:
                self._items = dataset.__getitems__(self.index)
                place = end
            while place < end and indices and not are_slow:
                stop = min(end, place + at_once)
                for place in range(place, stop):
                    items[place] = dataset[indices[place]]
                place = stop
                now = clock()
                took = now - last
                is_slow = took > quick_seconds
                are_slow = is_slow and was_slow
                was_slow, last = is_slow, now
                if is_slow:
                    at_once = 1
                elif 2 * took <= quick_seconds:
                    at_once = min(2 * at_once, _MOST_AT_ONCE)
        except BaseException as error:  # noqa: BLE001: raised where it is awaited
            self._fail(place, error)
            place += 1
        self.at_once = at_once
        self.next_place = place if indices else self.places
        self._complete(begin, self.next_place, clock() - started)
        return are_slow

    def run(self, place: int) -> None:
        """Fetches one item; the thread that completes the batch sends it
        on."""
        with kept_worker():
            self._run(place)

    def _run(self, place: int) -> None:
        begin = time.perf_counter()
        try:
            self._source.enter(self.number, place)
            if self._source.is_whole:
                self._items = self._source.dataset.__getitems__(self.index)
            elif self._indices:
                self._items[place] = self._source.dataset[self._indices[place]]
        except BaseException as error:  # noqa: BLE001: raised where it is awaited
            self._fail(place, error)
        seconds = time.perf_counter() - begin
        if self._complete(place, place + 1, seconds):
            if self._source.collates_ahead:
                self._assemble()
            self._finished.put(self)

    def _assemble(self) -> None:
        """Makes the batch of its items, unless one failed."""
        if self._error is not None:
            return
        try:
            items = self._items if self._source.is_batched else self._items[0]
            self._value = self._source.finish(self._source.collate(items))
        except BaseException as error:  # noqa: BLE001: raised where it is awaited
            add_note(error, f"while collating batch {self.number}")
            self._error = error
        self._items = []
        self._is_assembled = True

    def take(self) -> Any:
        """The batch. Raises the exception of its first failing item or of its collation."""
        if not self._is_assembled:
            self._assemble()
        if self._error is None:
            value, self._value = self._value, None
            return value
        error, self._error = self._error, None
        try:
            raise error
        finally:
            del error  # The traceback holds this frame: no cycle.

    def _fail(self, place: int, error: BaseException) -> None:
        what = "its items" if self._source.is_whole else f"item {self._indices[place]!r}"
        if not self._indices:
            what = "its indices"
        with self._lock:
            if self._failed_at is None or place < self._failed_at:
                add_note(error, f"while fetching {what} of batch {self.number}")
                self._failed_at, self._error = place, error

    def _complete(self, begin: int, end: int, seconds: float) -> bool:
        """Whether these places were the last that the batch waited for.

        After a failure those before it still count: the first one is raised.
        """
        with self._lock:
            self._is_done[begin:end] = b"\1" * (end - begin)
            self.seconds += seconds
            self._missing -= end - begin
            is_complete = self._missing == 0
            if self._failed_at is not None:
                is_complete = all(self._is_done[: self._failed_at + 1])
            is_first = is_complete and not self._is_finished
            self._is_finished |= is_first
            return is_first


def add_note(error: BaseException, note: str) -> None:
    """Adds a line below a traceback; Python 3.11 and later print it."""
    notes = getattr(error, "__notes__", [])
    if note not in notes:
        error.__notes__ = [*notes, note]  # type: ignore[attr-defined]
