"""A `leat.Dataset` in a DataLoader: served by the engine, through `leat.Loader`.

torch's arguments mean what they mean, or are refused with what to do instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from torch.utils.data import default_collate
from torch.utils.data.distributed import DistributedSampler

import leat
from leat._batches._outputs import has_accelerator
from leat._orders._samplers import Told
from leat.errors import InvalidArgument
from leat.torch._position import samplers_of

_REFUSED = {
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
    is_sampled = given["sampler"] is not None or given["batch_sampler"] is not None
    if loader.batch_size is None and given["batch_sampler"] is None:
        raise InvalidArgument(
            "batch_size=None cannot be honoured for a leat.Dataset: the engine makes "
            "batches, so give batch_size=1 or more"
        )
    settings: dict[str, Any] = {
        "drop_last": loader.drop_last,
        "output": "torch",
        "seed": seed_of(loader, options),
    }
    if "global_batch_size" not in options:
        settings["batch_size"] = loader.batch_size
    if given["collate_fn"] not in (None, default_collate):
        settings["collate"] = given["collate_fn"]
    if "sampler" not in options:
        settings["shuffle"] = bool(given["shuffle"])
    if is_sampled:
        _check_sampled(options)
        # The sampler is this rank's own, and its batches come as it gives them.
        settings.update(sampler=Told(), batch_size=_usual_batch(loader), drop_last=False,
                        rank=0, world_size=1)  # fmt: skip
        settings.pop("shuffle")
        options = {**options, "seed": _drawn_by_rank(settings["seed"], _rank_of(loader))}
    settings["pin_memory"] = bool(loader.pin_memory) and has_accelerator()
    try:
        made = leat.Loader(loader.dataset, **{**settings, **options})
        made._batches.loses_failed = True
        return made
    except InvalidArgument as error:
        if "drop_last" in options or 'drop_last="pad"' not in str(error):
            raise
        said = 'A leat.torch.DataLoader takes "pad" and "join" in engine={"drop_last": …}'
        raise InvalidArgument(f"{error}. {said}") from None


def seed_of(loader: Any, options: Mapping[str, Any]) -> Any:
    """The seed that the user gave, on all ranks the same."""
    if "seed" in options:
        seed = options["seed"]
        return int(seed) if isinstance(seed, np.integer) else seed
    return 0 if loader.generator is None else loader.generator.initial_seed() % 2**63


def _rank_of(loader: Any) -> int:
    """The rank whose share the samplers give; 0 if they do not say.

    torch.distributed is not asked: ranks that share a model read the same samples, and must draw the same.
    """
    for _, sampler in samplers_of(loader):
        for rank, ranks in (("rank", "num_replicas"), ("process_index", "num_processes")):  # torch's, Accelerate's.
            told, count = getattr(sampler, rank, None), getattr(sampler, ranks, None)
            if isinstance(told, int) and isinstance(count, int) and count > 1:
                return told
    return 0


def _drawn_by_rank(seed: Any, rank: int) -> Any:
    """The seed by which a rank's engine draws: it numbers the samples of this rank alone."""
    if rank == 0 or not isinstance(seed, int) or seed < 0:
        return seed  # The engine refuses other things than seeds.
    return int(np.random.SeedSequence((seed, rank)).generate_state(1, np.uint64)[0]) % 2**63


def refuse_places(dataset: Any) -> None:
    """Raises `leat.InvalidArgument` if the dataset is a URL or a path."""
    if not isinstance(dataset, (str, bytes, os.PathLike)):
        return
    place = os.fsdecode(dataset)
    parts = urlsplit(place)
    # The rest of the URL may be credentials.
    if parts.scheme and parts.netloc:
        place = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
    raise leat.InvalidArgument(
        f"dataset={place!r} is a place, and a DataLoader takes a dataset: its items would be "
        f"letters. Give leat.Dataset({place!r}), or make a leat.Loader({place!r}, …)"
    )


def with_sampler(
    sampler: leat.WeightedSampler | leat.SizeBuckets, dataset: Any, shuffle: bool | None, engine: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The engine's options with an order of the engine's own.

    Raises:
        leat.InvalidArgument: the dataset is not the engine's, or the order is said twice.
    """
    name = type(sampler).__name__
    if not isinstance(dataset, leat.Dataset):
        raise InvalidArgument(
            f"sampler=leat.{name}(…) is for a leat.Dataset and this is a {type(dataset).__name__}: "
            "give one of torch's samplers, or leat.Dataset(url)"
        )
    if shuffle or "sampler" in (engine or {}):
        raise InvalidArgument(f"sampler=leat.{name}(…) says the order: leave the other one out")
    return {**(engine or {}), "sampler": sampler}


def _usual_batch(loader: Any) -> int:
    """The size to begin with: the engine takes larger batches as they come."""
    if loader.batch_size is not None:
        return loader.batch_size
    told = getattr(loader.batch_sampler, "batch_size", None)
    # 1 would say that no two samples ever have to be joined.
    return told if isinstance(told, int) and told > 0 else 2


def _check_sampled(options: Mapping[str, Any]) -> None:
    for name in ("rank", "world_size", "global_batch_size", "sampler", "shuffle"):
        if name in options:
            raise InvalidArgument(
                f"engine={{{name!r}: …}} cannot be honoured beside a sampler, which says which "
                "samples this rank reads and when; leave one out"
            )


class Order(DistributedSampler[int]):
    """The engine's order, as loops and frameworks see it: sharded by rank already.

    Nobody draws from it, so iter() is refused.
    """

    def __init__(self, dataset: leat.Dataset) -> None:
        super().__init__(dataset, num_replicas=1, rank=0)  # type: ignore[arg-type]
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
