"""A dataset's view of the worker that fetches it: torch's worker info, for
threads.

torch numbers worker processes 0 to num_workers - 1 and gives batch b to worker
b % num_workers. Threads keep that numbering: any thread may fetch any item, and
it does so in the name of the worker that torch would have given the batch to.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info as info_of_process

_here = threading.local()


@dataclass(frozen=True)
class ItemRandom:
    """Generators of one item: their draws depend on no thread and no timing."""

    random_generator: random.Random
    torch_generator: torch.Generator
    numpy_generator: np.random.Generator


@dataclass(frozen=True)
class WorkerInfo:
    """The result of `get_worker_info` in a thread, or in a process that fetches an
    item; torch's names, and its meaning.

    `seed` is the worker's, as in torch. `rng` is of this item alone: it is a
    function of the iterator's seed, the epoch, the batch's number and the place in it.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: ItemRandom | None = field(default=None, compare=False)
    worker_method: str = "thread"


def get_worker_info() -> Any:
    """The worker in whose name this thread fetches; in a process, that process.

    None where torch's function says None: in the training loop itself, and with
    ``num_workers=0``. torch's own function knows of processes only. While an item is
    fetched, the generators in ``rng`` are the same in a thread and in a process.
    """
    at = getattr(_here, "at", None)
    if at is None:
        return _process.info(0, (0, _process.place))
    workers, worker, item = at
    return workers.info(worker, item)


@contextlib.contextmanager
def kept_worker() -> Iterator[None]:
    """Afterwards this thread fetches in its former name again.

    A thread that waits must not know of any `Workers`: those know what an
    initialisation raised, and its traceback the iterator that ends the thread.
    """
    before = getattr(_here, "at", None)
    try:
        yield
    finally:
        _here.at = before


class Workers:
    """The workers of one iterator, by number; runs ``worker_init_fn`` for each.

    Threads: `enter` from any thread.
    """

    def __init__(
        self, count: int, dataset: Any, init: Callable[[int], None] | None
    ) -> None:
        self._count = count
        self._dataset = dataset
        self._init = init
        self._locks = [threading.Lock() for _ in range(count)]
        self._is_ready = [init is None] * count
        self._errors: list[BaseException | None] = [None] * count
        self._base_seed = 0
        self._iterated = 0

    def begin(self, base_seed: int, iterated: int) -> None:
        """An epoch begins: the iterator has this seed, and has begun this many epochs before."""
        self._base_seed = base_seed
        self._iterated = iterated

    def enter(self, batch: int, place: int) -> None:
        """Makes this thread act for a worker, until it acts for another.

        Raises the exception of ``worker_init_fn``, for every batch of that worker.
        """
        if not self._count:
            return
        worker = batch % self._count
        _here.at = (self, worker, None)
        if not self._is_ready[worker]:
            self._initialise(worker)
        if (error := self._errors[worker]) is not None:
            raise error
        _here.at = (self, worker, (batch, place))

    def info(self, worker: int, item: tuple[int, int] | None) -> WorkerInfo:
        """The info of one worker; with generators of its own if an item is being
        fetched."""
        return WorkerInfo(
            id=worker,
            num_workers=self._count,
            seed=self._base_seed + worker,
            dataset=self._dataset,
            rng=None if item is None else _random_of(self._base_seed, self._iterated, *item),
        )

    def _initialise(self, worker: int) -> None:
        assert self._init is not None
        with self._locks[worker]:
            if self._is_ready[worker]:
                return
            try:
                self._init(worker)
            except BaseException as error:  # noqa: BLE001: raised at its batches
                self._errors[worker] = error
            self._is_ready[worker] = True


class _Process:
    """This worker process of torch's, and the batch that it fetches."""

    def __init__(self) -> None:
        self.numbers: tuple[int, int, int] | None = None  # Seed, epoch, batch; once it has one.
        self.place = 0

    def info(self, worker: int, item: tuple[int, int]) -> Any:
        """torch's info; with an item's own generators if Leat's iterator sent the batch."""
        told = info_of_process()
        if told is None or self.numbers is None:
            return told
        return WorkerInfo(
            told.id, told.num_workers, told.seed, told.dataset,
            rng=_random_of(*self.numbers, item[1]), worker_method="multiprocessing",
        )  # fmt: skip


_process = _Process()


def enter_in_process(batch: int, place: int) -> None:
    """As `Workers.enter`, for a thread of a worker process, which fetches one batch at a time."""
    _here.at = (_process, 0, (batch, place))


class Numbered:
    """An index of the sampler on its way to a worker process, with the numbers of its batch.

    The process receives the index itself, and then knows the numbers.

    Args:
        numbers: the iterator's seed, the epochs that it has begun before, and the batch.
        has_places: the process fetches the items of the index in turn.
    """

    def __init__(self, index: Any, numbers: tuple[int, int, int], *, has_places: bool) -> None:
        self._parts = index, numbers, has_places

    def __reduce__(self) -> tuple[Any, ...]:
        return _receive, self._parts


def _receive(index: Any, numbers: tuple[int, int, int], has_places: bool) -> Any:
    _process.numbers, _process.place = numbers, 0
    return _Places(index) if has_places else index


class _Places:
    """The indices of a batch, each of which is at its place while it is fetched."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def __iter__(self) -> Iterator[Any]:
        for _process.place, each in enumerate(self._index):
            yield each


def _random_of(base_seed: int, iterated: int, batch: int, place: int) -> ItemRandom:
    entropy = (base_seed, iterated, batch, place)
    seeds = np.random.SeedSequence(entropy).spawn(3)
    first, second = (int(seed.generate_state(1, np.uint64)[0]) for seed in seeds[:2])
    generator = torch.Generator()
    generator.manual_seed(second)
    return ItemRandom(random.Random(first), generator, np.random.default_rng(seeds[2]))
