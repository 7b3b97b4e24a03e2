"""A `leat.Dataset` in a DataLoader: served by the engine, through `leat.Loader`.

torch's arguments mean what they mean, or are refused with what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch.utils.data.distributed import DistributedSampler

import leat
from leat._outputs import has_accelerator
from leat.errors import InvalidArgument

_REFUSED = {
    "sampler": "the engine has its own order, sharded by rank: use shuffle=, or "
    'engine={"rank": …, "world_size": …}',
    "batch_sampler": "the engine has its own order, sharded by rank: use batch_size= and shuffle=",
    "collate_fn": "the engine has put the batch together: give engine={\"ops\": […]}, or change "
    "the batch in the training loop",
    "worker_init_fn": "the engine's threads run no Python: there is nothing to initialise",
    "multiprocessing_context": "the engine's threads do not hold the GIL: leave processes out",
    "prefetch_factor": 'the engine looks ahead as far as memory allows: engine={"memory": "2GiB"}',
    "timeout": "the engine's requests have timeouts of their own, and are sent again",
    "threads": 'the engine has its own: engine={"threads": …, "max_in_flight": …}',
}


def make(loader: Any, given: Mapping[str, Any], options: Mapping[str, Any]) -> leat.Loader:
    """The engine that serves a loader of torch's.

    Args:
        loader: the DataLoader, initialised as torch does.
        given: the arguments that torch's initialisation replaced by defaults.
        options: what the user gave as ``engine=``.

    Raises:
        leat.InvalidArgument: an argument that the engine cannot honour.
    """
    asked = {
        **given,
        "worker_init_fn": loader.worker_init_fn,
        "multiprocessing_context": loader.multiprocessing_context,
        "timeout": loader.timeout or None,
        "threads": loader.threads,
    }
    for name, remedy in _REFUSED.items():
        if asked[name] is not None:
            raise InvalidArgument(f"{name}= cannot be honoured for a leat.Dataset: {remedy}")
    if loader.batch_size is None:
        raise InvalidArgument(
            "batch_size=None cannot be honoured for a leat.Dataset: the engine makes "
            "batches, so give batch_size=1 or more"
        )
    settings: dict[str, Any] = {
        "shuffle": bool(given["shuffle"]),
        "drop_last": loader.drop_last,
        "output": "torch",
    }
    if "global_batch_size" not in options:
        settings["batch_size"] = loader.batch_size
    settings["pin_memory"] = loader.pin_memory and has_accelerator()
    if loader.generator is not None:
        settings["seed"] = loader.generator.initial_seed() % 2**63
    return leat.Loader(loader.dataset, **{**settings, **options})


class Order(DistributedSampler[int]):
    """The engine's order, as loops and frameworks see it: sharded by rank already.

    Nobody draws from it, so iter() is refused.
    """

    def __init__(self, dataset: leat.Dataset) -> None:
        super().__init__(dataset, num_replicas=1, rank=0)
        self._next_epoch: int | None = None

    def set_epoch(self, epoch: int) -> None:
        """Makes ``epoch`` the one that the loader's next iter() starts.

        As in torch, an iterator that is there already goes on.
        """
        super().set_epoch(epoch)
        self._next_epoch = epoch

    def take_epoch(self) -> int | None:
        """The epoch that was set since this was last called, if one was."""
        epoch, self._next_epoch = self._next_epoch, None
        return epoch

    def __iter__(self) -> Iterator[int]:
        raise InvalidArgument(
            "a leat.Dataset is read in the engine's order, which has no sampler to draw "
            "from: iterate over the DataLoader itself"
        )
