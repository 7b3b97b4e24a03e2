"""The iterators whose items come from threads of this process."""

from __future__ import annotations

import functools
import math
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import _utils
from torch.utils.data import dataloader as torchs

from leat.torch._batch import Batch, Source
from leat.torch._cores import SHORT_SECONDS
from leat.torch._crew import Crew
from leat.torch._randomness import fingerprint
from leat.torch._resume import Resumable
from leat.torch._where import Epoch
from leat.torch._workers import Workers

# Quicker items are not worth a thread: they are fetched in turn.
_QUICK_SECONDS = 200e-6
_LONG_SECONDS = 0.5
_WATCHED_WAITS = 4


class _InThreads(Resumable, torchs._BaseDataLoaderIter):
    """The common part of both: a crew, and waiting for it."""

    _is_ahead: bool

    def __init__(self, loader: Any) -> None:
        self._habits = loader._habits
        self._infos = Workers(loader.num_workers, loader.dataset, loader.worker_init_fn)
        self._hire(loader)
        self._finished: queue.SimpleQueue[Batch] = queue.SimpleQueue()
        super().__init__(loader)

    def _hire(self, loader: Any) -> None:
        self._crew = Crew(loader._thread_limit, preparation())
        self._prepared = 0

    def close(self) -> None:
        """Ends the threads, each after the item it is at; returns at once."""
        self._crew.close()

    # By these names others end torch's own iterators, and look whether they ended.
    _shutdown_workers = close

    @property
    def _workers(self) -> list[threading.Thread]:
        return self._crew.threads()

    def __del__(self) -> None:
        if crew := getattr(self, "_crew", None):
            crew.close()

    def _catch_up(self) -> None:
        super()._catch_up()
        self._infos.begin(self._base_seed, self._iterated)  # Those of the saved epoch.

    def _make_source(self) -> Source:
        # Nothing in it may refer to the iterator, which would then never be freed.
        self._infos.begin(self._base_seed, self._iterated)
        pin = functools.partial(_utils.pin_memory.pin_memory, device=self._pin_memory_device)
        return Source(
            self._dataset,
            is_batched=self._auto_collation,
            collate=self._collate_fn,
            finish=pin if self._pin_memory else lambda batch: batch,
            enter=self._infos.enter,
            collates_ahead=self._is_ahead,
        )

    def _check_crew(self) -> None:
        """Raises RuntimeError if nobody is there to fetch."""
        if not self._crew.is_of_this_process:
            raise RuntimeError(
                "this iterator's threads are in the process that forked this one: "
                "call iter() on the DataLoader again here"
            )
        if self._crew.is_closed:
            raise RuntimeError(
                "this iterator was closed before its epoch was over: call iter() on "
                "the DataLoader again"
            )

    def _await(self) -> Batch:
        """The next batch to be finished, in any order.

        Raises:
            RuntimeError: none was within ``timeout``, or the iterator was closed.
        """
        give_up = time.monotonic() + self._timeout if self._timeout > 0 else None
        tick = 0.0
        is_watched = False
        while True:
            left = tick if give_up is None else min(tick, give_up - time.monotonic())
            try:
                batch = self._finished.get(timeout=max(0.0, left))
                break
            except queue.Empty:
                pass
            if give_up is not None and time.monotonic() >= give_up:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            self._check_crew()
            if is_watched:
                tick = self._crew.grow() or _LONG_SECONDS
            else:
                self._crew.watch()
                tick, is_watched = SHORT_SECONDS, True
        self._restore_torchs_threads()
        return batch

    def _restore_torchs_threads(self) -> None:
        if self._prepared != self._crew.prepared:
            self._prepared = self._crew.prepared
            restore_threads()


class AtOnce(_InThreads):
    """Without workers: between two calls of next() nothing happens, as in torch.

    The items of one batch are fetched at once, if they take long enough and do not
    draw from global random generators; they are collated in the calling thread.
    """

    _is_ahead = False

    def __init__(self, loader: Any) -> None:
        if loader.timeout != 0:  # As torch says it.
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._is_watched = False
        self._has_submitted = False
        self._at_once = 1
        super().__init__(loader)
        self._source = self._make_source()

    def __next__(self) -> Any:
        # Does the same as torch's, but tells a profiler nothing if there is none:
        # telling takes longer than all else between two batches.
        if torch.autograd._profiler_enabled():
            return super().__next__()
        if self._sampler_iter is None:
            self._reset()  # type: ignore[call-arg]  # As torch calls it; never here.
        data = self._next_data()
        self._num_yielded += 1
        return data

    def _next_data(self) -> Any:
        try:
            number, index = self._next_numbered_index()
        except StopIteration:
            self._position.is_over = True
            self.close()
            raise
        if self._has_submitted:  # The batch before may have been left by Ctrl-C, half done.
            self._has_submitted = False
            self._finished = queue.SimpleQueue()
            self._crew.clear()
        batch = Batch(number, index, self._source, self._finished)
        try:
            self._fetch(batch)
            return batch.take()
        finally:
            self._position.deliver(number)

    def _fetch(self, batch: Batch) -> None:
        turns = self._habits.turns
        if self._habits.is_in_turn or self._habits.is_quick or turns.are_taken or batch.places == 1:
            self._fetch_in_turn(batch)
            turns.had_batch()
        if batch.is_fetched:
            return
        in_turn = self._seconds_in_turn(batch) if turns.are_suspected else None
        if not batch.is_fetched:
            at_once = self._fetch_at_once(batch)
            if in_turn is not None:
                turns.compare(in_turn, at_once)

    def _fetch_at_once(self, batch: Batch) -> float:
        """Fetches what is left by threads. Returns the seconds an item that passed."""
        self._check_crew()
        places = batch.places - batch.next_place
        before, spent = fingerprint(), batch.seconds
        begin, cpu = time.perf_counter(), time.process_time()
        self._has_submitted = True
        self._crew.submit(batch, threads=1)
        self._await()
        passed = time.perf_counter() - begin
        if fingerprint() != before:
            self._habits.saw_draws(self._is_ahead)
        self._habits.is_quick = (batch.seconds - spent) / places < _QUICK_SECONDS
        self._habits.turns.saw_cores(_cores_since(begin, cpu))
        return passed / places

    def _seconds_in_turn(self, batch: Batch) -> float | None:
        """Fetches half of the remaining items in this thread. Returns its seconds
        an item."""
        half = (batch.places - batch.next_place) // 2
        if half == 0:
            return None
        spent = batch.seconds
        batch.run_in_turn(math.inf, most_places=half)
        return (batch.seconds - spent) / half

    def _fetch_in_turn(self, batch: Batch) -> None:
        """One item after another, until two in a row are slow enough for threads."""
        was_slow = False
        if not self._is_watched:
            self._is_watched = True
            before = fingerprint()
            batch.run_in_turn(math.inf, most_places=1)
            was_slow = batch.seconds > _QUICK_SECONDS
            if fingerprint() != before:
                self._habits.saw_draws(self._is_ahead)
        is_settled = self._habits.is_in_turn or self._habits.turns.are_taken
        limit = math.inf if is_settled else _QUICK_SECONDS
        if batch.run_in_turn(limit, was_slow=was_slow, at_once=self._at_once):
            self._habits.is_quick = False
        self._at_once = batch.at_once


class Ahead(_InThreads):
    """With workers: ``prefetch_factor * num_workers`` batches are on their way.

    They are drawn from the sampler at the moments when torch draws them.
    """

    _is_ahead = True

    def __init__(self, loader: Any) -> None:
        self._window = loader.num_workers * loader.prefetch_factor
        if self._window <= 0:  # As torch says it.
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        self._in_order = loader.in_order
        self._where = loader._where
        self._watched_waits = 0
        self._awaited: dict[int, Batch | None] = {}  # By number; None until finished.
        super().__init__(loader)

    def _start(self, loader: Any) -> None:
        super()._start(loader)
        self._reset(loader, first_iter=True)  # Asks the sampler again, as torch does.

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        if self._crew.is_closed or not self._crew.is_of_this_process:
            self._hire(loader)
        self._crew.clear()
        self._finished = queue.SimpleQueue()  # Late results go to the old queue.
        self._awaited = {}
        super()._reset(loader, first_iter)
        self._source = self._make_source()
        self._begun, self._cpu = time.perf_counter(), self._crew.cpu_seconds()
        self._waited, self._fetched, self._items = 0.0, 0, 0
        for _ in range(self._window):
            self._draw()

    def _draw(self) -> None:
        try:
            number, index = self._next_numbered_index()
        except StopIteration:
            return
        self._awaited[number] = None
        batch = Batch(number, index, self._source, self._finished)
        self._crew.submit(batch, threads=self._num_workers)

    def _next_data(self) -> Any:
        if not self._awaited:
            self._position.is_over = True
            self._where.saw(self._epoch())
            if not self._persistent_workers:
                self.close()
            raise StopIteration
        self._check_crew()
        number = next(iter(self._awaited))
        if self._in_order:
            while self._awaited[number] is None:
                arrived = self._watched_await()
                self._awaited[arrived.number] = arrived
        else:
            arrived = self._watched_await()
            number = arrived.number
            self._awaited[number] = arrived
        batch = self._awaited.pop(number)
        assert batch is not None
        self._fetched += 1
        self._items += batch.places
        self._draw()
        self._position.deliver(number)
        return batch.take()

    def _epoch(self) -> Epoch:
        return Epoch(
            self._fetched, time.perf_counter() - self._begun, self._items, self._waited,
            self._crew.cpu_seconds() - self._cpu, len(self._crew.threads()),
        )  # fmt: skip

    def _await(self) -> Batch:
        begin = time.perf_counter()
        batch = super()._await()
        self._waited += time.perf_counter() - begin
        return batch

    def _watched_await(self) -> Batch:
        """Waits; the first few times it also looks whether the threads draw."""
        if self._watched_waits >= _WATCHED_WAITS:
            return self._await()
        self._watched_waits += 1
        before = fingerprint()
        batch = self._await()
        if fingerprint() != before:
            self._habits.saw_draws(self._is_ahead)
        return batch


def _cores_since(begin: float, cpu: float) -> float:
    """CPU seconds of this process over seconds, since the clocks said these."""
    return (time.process_time() - cpu) / max(1e-9, time.perf_counter() - begin)


def preparation() -> Callable[[], None]:
    """The first work of each thread: the same as in torch's own threads and workers.

    It also sets what new threads of the program get, until that calls `restore_threads`.
    """
    torch.get_num_threads()  # The calling thread keeps its own.
    device = torch.cuda.current_device() if torch.cuda.is_initialized() else None

    def prepare() -> None:
        torch.set_num_threads(1)
        torch.get_num_threads()  # Makes it this thread's own, for good.
        if device is not None:
            torch.cuda.set_device(device)

    return prepare


def restore_threads() -> None:
    """New threads of the program get as many of torch's threads as the calling one again."""
    torch.set_num_threads(torch.get_num_threads())
