"""Map-style datasets for the tests of leat.torch.DataLoader; importable by workers."""

from __future__ import annotations

import gc
import os
import random
import threading
import time

import numpy as np
import torch

import leat
from worker_functions import busy


def delay_of(index: int, most: float) -> float:
    """Seconds, of its own for each index: items finish in another order than begun."""
    return most * ((int(index) * 2654435761) % 97) / 97


class Slow(torch.utils.data.Dataset):
    """Item i is (tensor of its own content, i); takes up to `most` seconds.

    Records which threads fetched, and the most items under way at a time.
    """

    def __init__(self, size: int, most: float = 0.002, fails=(), stalls=None) -> None:
        self.size = size
        self.most = most
        self.fails = frozenset(fails)
        self.stalls = dict(stalls or {})  # Index to the event that lets it go on.
        self.lock = threading.Lock()
        self.threads: set[int] = set()
        self.now = 0
        self.peak = 0
        self.fetched: list[int] = []

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index):
        with self.lock:
            self.now += 1
            self.peak = max(self.peak, self.now)
            self.threads.add(threading.get_ident())
            self.fetched.append(int(index))
        try:
            if index in self.stalls:
                assert self.stalls[index].wait(60), "nobody let it go on"
            time.sleep(delay_of(index, self.most))
            if index in self.fails:
                raise Broken(index, "as asked")
            return content_of(index), int(index)
        finally:
            with self.lock:
                self.now -= 1


class Broken(Exception):
    """Takes two arguments, so that nobody can rebuild it from a message."""

    def __init__(self, index, why) -> None:
        super().__init__(index, why)
        self.index = int(index)


def content_of(index) -> torch.Tensor:
    """(3,), float64: different for each index."""
    return torch.from_numpy(np.random.default_rng(int(index)).random(3))


class Whole(Slow):
    """Fetches a batch in one call, and counts the calls."""

    calls = 0

    def __getitems__(self, indices):
        self.calls += 1
        return [self[index] for index in indices]


class Drawing(torch.utils.data.Dataset):
    """Items that draw from all three global generators."""

    def __init__(self, size: int, seconds: float = 0.0) -> None:
        self.size = size
        self.seconds = seconds

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return int(index), torch.rand(()).item(), random.random(), np.random.random()


class OwnDraws(torch.utils.data.Dataset):
    """Item i is i, and a number that it draws from its own generators."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index):
        rng = leat.torch.get_worker_info().rng
        number = rng.random_generator.random() + rng.numpy_generator.random()
        return int(index), number + torch.rand((), generator=rng.torch_generator).item()


class WholeDraws(OwnDraws):
    """Fetches a batch in one call."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Counting(torch.utils.data.IterableDataset):
    """0, 1, …, each worker its share."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, self.size, step))


class StatefulShuffle(torch.utils.data.Sampler):
    """An order of its own, drawn from numpy, that can save where it is."""

    def __init__(self, size: int, seed: int = 3) -> None:
        self.size = size
        self.seed = seed
        self.at = 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self):
        order = np.random.default_rng(self.seed).permutation(self.size).tolist()
        while self.at < self.size:
            self.at += 1
            yield order[self.at - 1]
        self.at = 0
        self.seed += 1

    def state_dict(self):
        return {"seed": self.seed, "at": self.at}

    def load_state_dict(self, state) -> None:
        self.seed, self.at = state["seed"], state["at"]


SECOND = 20.0  # A second, on a machine that others use too; a stalled test takes 60.


def fetchers() -> list[threading.Thread]:
    """The threads of all iterators of this process."""
    return [t for t in threading.enumerate() if t.name.startswith("leat-fetch")]


def none_left() -> bool:
    """Waits a second for the fetchers to end, and to be released by their work."""
    deadline = time.monotonic() + SECOND
    while fetchers() and time.monotonic() < deadline:
        gc.collect()  # An error's traceback may hold the iterator in a cycle.
        time.sleep(0.005)
    return not fetchers()


class Heavy(torch.utils.data.Dataset):
    """Item i is (the process that fetched it, i), after 2 ms of Python."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[int, int]:
        busy(2e-3)
        return os.getpid(), int(index)
