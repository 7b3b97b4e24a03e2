"""A `leat.Dataset` in the order of torch's samplers, served by the engine.

Indices are drawn as torch's iterators draw them (see `leat.torch._resume`), a window of
batches ahead, and told to the engine. Each window is an epoch of the engine's, whose
batches are those of the sampler. So the engine, its tuner and its cache live on over
epochs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import dataloader as torchs

from leat._orders._samplers import as_samples
from leat.torch._resume import Resumable

WINDOW = 8192
"""Batches that are drawn at a time; a part of the state: see `Place`."""

_NONE_LEFT = object()


class Place:
    """The engine's place in its epochs. It is a part of a state, so that random ops
    continue exactly.

    Args:
        epoch: the engine's, of the first window of this epoch of the loader's.
        samples: that the batches delivered of the running window have.
    """

    def __init__(self, epoch: int = 0, samples: int = 0) -> None:
        self.epoch = epoch
        self.samples = samples

    def to_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "samples": self.samples}


class Sampled(Resumable, torchs._BaseDataLoaderIter):
    """One epoch after another of a loader that has a sampler and an engine."""

    def _begin(self, loader: Any, start: Any) -> None:
        self._engine = loader._engine
        self._place = loader._take_place()
        super()._begin(loader, start)
        done = self._position.delivered
        if done % WINDOW == 0:
            self._place.samples = 0
        self._next_epoch = self._place.epoch + done // WINDOW
        self._left_to_draw = WINDOW - done % WINDOW
        # The sizes of batches that were told and not delivered.
        self._sizes: deque[int] = deque()
        self._batches: Iterator[Any] | None = None
        self._is_drawn = False
        if self._tell():  # Now, as torch does with workers: the engine begins at once.
            self._batches = iter(self._engine)

    def _next_data(self) -> Any:
        if self._batches is None:
            return self._end()
        batch = self._next_batch()
        if batch is _NONE_LEFT:  # The window is over.
            if not self._sizes and not self._tell():
                return self._end()
            self._batches = iter(self._engine)
            self._place.samples = 0
            batch = self._next_batch()
        if len(self._sizes) == WINDOW // 2:
            self._tell()
        return batch

    def _next_batch(self) -> Any:
        at = (self._place.epoch + self._position.delivered // WINDOW, self._place.samples)
        try:
            batch = next(self._batches, _NONE_LEFT)  # type: ignore[arg-type]
        except Exception:
            # A function of the user's failed on a batch that is delivered; or the batch
            # is not, and fails again.
            state = self._engine.state_dict()
            if (state["epoch"], state["position"]) != at:
                self._deliver()
            raise
        if batch is not _NONE_LEFT:
            self._deliver()
        return batch

    def _deliver(self) -> None:
        self._place.samples += self._sizes.popleft()
        self._position.deliver(self._position.delivered)

    def _end(self) -> Any:
        self._position.is_over = True
        raise StopIteration

    def _tell(self) -> bool:
        """Draws the next window and tells the engine. False if nothing is left."""
        batches: list[list[Any]] = []
        while len(batches) < self._left_to_draw and not self._is_drawn:
            try:
                batches.append(list(self._next_numbered_index()[1]))
            except StopIteration:
                self._is_drawn = True
        if not batches:
            return False
        samples = len(self._dataset)
        first = self._place.samples if self._batches is None else 0
        sizes = [len(batch) for batch in batches]
        order = as_samples([number for batch in batches for number in batch], samples)
        ends = first + np.cumsum(sizes, dtype=np.uint64)
        self._engine._native.give_order(
            self._next_epoch, first, order, ends.astype(np.uint64), self._batches is None
        )
        self._sizes += sizes
        self._next_epoch += 1
        self._left_to_draw = WINDOW
        return True
