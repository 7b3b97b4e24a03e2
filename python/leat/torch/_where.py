"""Chooses who fetches a loader's items: threads, or torch's worker processes.

With ``workers="auto"`` an epoch decides about the next. Threads that compute, that training
waits for, and that have one core together take turns: something, such as the interpreter's
lock (GIL), lets one of them run at a time. The next epoch then runs in processes, and the
quicker of the two ways is kept.
"""

from __future__ import annotations

import logging
import pickle
from dataclasses import dataclass
from typing import Any

from leat import _native
from leat._processes import obstacle
from leat.torch._turns import has_lock

_log = logging.getLogger("leat")

_COSTLY_SECONDS = 1e-3
_MUCH_WAITING = 0.2
_ONE_CORE = (0.8, 1.2)
_KEPT_GAIN = 1.15


@dataclass(frozen=True)
class Epoch:
    """An epoch as its iterator found it. Pure."""

    batches: int
    seconds: float
    items: int = 0
    waited: float = 0.0
    cpu: float = 0.0
    """CPU seconds of the threads that fetch."""
    threads: int = 0

    @property
    def rate(self) -> float:
        return self.batches / self.seconds if self.seconds > 0 else 0.0

    def takes_turns(self) -> bool:
        """Whether threads fetched no more than one would, and training waited for it."""
        if self.threads < 2 or not self.items or self.waited < _MUCH_WAITING * self.seconds:
            return False
        least, most = _ONE_CORE
        return least < self.cpu / self.seconds < most and self.cpu / self.items >= _COSTLY_SECONDS


class Where:
    """The choice of one loader, from epoch to epoch."""

    def __init__(self, loader: Any, workers: str) -> None:
        self._loader = loader
        self._is_settled = workers != "auto" or not has_lock() or _native.usable_cores() < 2
        self._in_threads: Epoch | None = None

    def saw(self, epoch: Epoch) -> None:
        """An epoch has ended."""
        if self._is_settled:
            return
        if self._in_threads is None:
            if epoch.takes_turns():
                self._move(epoch)
            return
        self._is_settled = True
        says = f"batches a second: {self._in_threads.rate:.1f} by threads, {epoch.rate:.1f} by processes"
        if epoch.rate >= _KEPT_GAIN * self._in_threads.rate:
            _log.info("leat.torch.DataLoader: threads took turns (the GIL); it stays with processes. %s", says)
        else:
            self._loader.multiprocessing_context = None
            _log.info("leat.torch.DataLoader: it goes back to threads. %s", says)

    def _move(self, epoch: Epoch) -> None:
        if reason := _obstacle(self._loader):
            self._is_settled = True
            _log.info("leat.torch.DataLoader: threads take turns (the GIL), and items stay in threads: %s", reason)
            return
        self._in_threads = epoch
        self._loader.multiprocessing_context = "forkserver"


def _obstacle(loader: Any) -> str:
    if reason := obstacle():
        return reason
    if not loader.in_order or loader.persistent_workers:
        return "with in_order=False or persistent_workers=True that is never changed"
    try:
        pickle.dumps((loader.dataset, loader.collate_fn, loader.worker_init_fn))
    except Exception as error:
        return f"the dataset or a function cannot be pickled for a process ({type(error).__name__}: {error})"
    return ""
