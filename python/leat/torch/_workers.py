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
    """The result of `get_worker_info` in a thread; torch's names, and its
    meaning.

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
    """The worker in whose name this thread fetches; in a process, torch's own.

    None where torch's function says None: in the training loop itself, and with
    ``num_workers=0``. torch's own function knows of processes only.
    """
    at = getattr(_here, "at", None)
    if at is None:
        return info_of_process()
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
        """An epoch begins: the iterator has this seed, and began this many epochs before."""
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
            rng=None if item is None else self._random_of(*item),
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

    def _random_of(self, batch: int, place: int) -> ItemRandom:
        entropy = (self._base_seed, self._iterated, batch, place)
        seeds = np.random.SeedSequence(entropy).spawn(3)
        first, second = (int(seed.generate_state(1, np.uint64)[0]) for seed in seeds[:2])
        generator = torch.Generator()
        generator.manual_seed(second)
        return ItemRandom(random.Random(first), generator, np.random.default_rng(seeds[2]))
