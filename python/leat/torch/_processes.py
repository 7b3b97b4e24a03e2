"""torch's worker processes, and threads within each of them."""

from __future__ import annotations

import copy
import queue
import time
from typing import Any

from torch.utils.data import dataloader as torchs

from leat.torch._batch import Batch, Source, fetches_whole_batches
from leat.torch._crew import Crew
from leat.torch._resume import InTurn
from leat.torch._threads import preparation
from leat.torch._where import Epoch
from leat.torch._workers import Numbered, enter_in_process


class InProcesses(InTurn, torchs._MultiProcessingDataLoaderIter):
    """torch's own iterator over worker processes."""

    def __init__(self, loader: Any) -> None:
        self._where = loader._where
        self._has_places = loader._auto_collation and not fetches_whole_batches(loader.dataset)
        super().__init__(loader)
        self._first = 0.0
        self._batches = 0

    def _next_index(self) -> Any:
        number, index = self._next_numbered_index()
        if self._dataset_kind != torchs._DatasetKind.Map:
            return index
        return Numbered(index, (self._base_seed, self._iterated, number), has_places=self._has_places)

    def _next_data(self) -> Any:
        try:
            data = super()._next_data()
        except StopIteration:
            seconds = time.perf_counter() - self._first
            self._where.saw(Epoch(self._batches, seconds))
            raise
        # Processes start until the first batch, which does not count.
        if self._first:
            self._batches += 1
        else:
            self._first = time.perf_counter()
        return data


class ItemsAtOnce:
    """A dataset whose batches are fetched by threads of the process that asks.

    torch's workers call ``__getitems__`` with the indices of a batch. All other attributes
    are the dataset's own; ``worker_init_fn`` sets attributes of the dataset, too.
    """

    _OWN = ("_dataset", "_threads", "_crew")

    def __init__(self, dataset: Any, threads: int) -> None:
        self._dataset = dataset
        self._threads = threads
        self._crew: Crew | None = None

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index]

    def __getitems__(self, indices: Any) -> list[Any]:
        """The items of a batch; raises the exception of the first that fails."""
        crew = self._crew
        if crew is None or not crew.is_of_this_process:
            crew = self._crew = Crew(self._threads, preparation())
        finished: queue.SimpleQueue[Batch] = queue.SimpleQueue()
        batch = Batch(0, indices, _items_of(self._dataset), finished)
        crew.submit(batch, threads=self._threads)
        return finished.get().take()

    def __len__(self) -> int:
        return len(self._dataset)

    def __getattr__(self, name: str) -> Any:
        if name in self._OWN:  # Not there yet: it is being unpickled.
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self._dataset, name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_crew": None}


def _items_of(dataset: Any) -> Source:
    return Source(
        dataset,
        is_batched=True,
        collate=lambda items: items,
        finish=lambda items: items,
        enter=enter_in_process,
        collates_ahead=False,
    )


class _WithDataset:
    """A loader in all but its dataset."""

    def __init__(self, loader: Any, dataset: Any) -> None:
        object.__setattr__(self, "_loader", loader)
        object.__setattr__(self, "dataset", dataset)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._loader, name, value)


def with_threads(loader: Any, threads: int | None) -> Any:
    """The loader as its worker processes see it: with threads, if they were asked for.

    Torch's own wrappers that only call the wrapped dataset's ``__getitem__`` in turn do not hide the places of items.
    """
    is_map = loader._dataset_kind == torchs._DatasetKind.Map
    if not is_map or not loader._auto_collation or fetches_whole_batches(loader.dataset):
        return loader
    if threads is not None and threads > 1:
        return _WithDataset(loader, ItemsAtOnce(loader.dataset, threads))
    if not getattr(loader.dataset, "__getitems__", None):
        return loader
    dataset = copy.copy(loader.dataset)
    dataset.__getitems__ = None
    return _WithDataset(loader, dataset)
