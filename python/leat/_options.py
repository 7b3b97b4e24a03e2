"""The options of a loader, checked, as the engine takes them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Union

from leat._arguments import count
from leat._cache import CacheChoice, locality_of, options_of, shared_among
from leat._dataset import Dataset
from leat._job._place import Place
from leat._orders._chosen import Order
from leat._orders._mix import Mix
from leat.errors import InvalidArgument

# A name in the place of a long type, so that help() stays short.
Size = Union[str, int, None]

USUAL: Mapping[str, Any] = MappingProxyType({
    "hashes": True, "fetch_ahead": None, "tune": True, "start_threads": 0, "start_in_flight": 0,
    "tune_trace": "",
})  # fmt: skip
"""The engine's settings unless leat.research says otherwise."""


def of_epochs(
    order: Order, *, batch_size: int | None, global_batch_size: int | None, seed: int, epochs: int | None
) -> dict[str, Any]:
    """The size of steps, and the epochs."""
    if order.arrangement is not None and batch_size is None and global_batch_size is None:
        batch_size = order.arrangement.batch_size
    return {
        "global_batch_size": count("global_batch_size", global_batch_size),
        "batch_size": count("batch_size", batch_size),
        "seed": _seed(seed),
        "epochs": None if epochs is None else count("epochs", epochs),
    }


def of_limits(memory: Size, threads: int, max_in_flight: int | None) -> dict[str, Any]:
    """The upper bounds for this node."""
    return {
        "memory": None if memory is None else str(memory),
        "threads": threads,
        "max_in_flight": count("max_in_flight", max_in_flight, at_least=1),
    }


def of_cache(cache: CacheChoice, order: Order, dataset: Dataset | None, place: Place, memory: Size) -> dict[str, Any]:
    """The cache. Processes that read the same samples for one rank share one."""
    if place.shares:
        cache = shared_among(cache, memory=memory, reads_alone=_reads_alone(order, dataset, place.world_size))
    return {
        "cache": options_of(cache, place.processes, is_shared=place.shares),
        "locality": locality_of(cache),
    }


def _reads_alone(order: Order, dataset: Dataset | None, world_size: int | None) -> str:
    """Why the processes of one rank share no cache unless the user gives one; "" if they do.

    With a cache, these orders fetch samples one by one, and no pieces of shards.
    """
    if dataset is None:
        return "a stream indexes its shards as it reads them"
    if not dataset._native.has_shards or order.is_drawn:
        return ""
    if isinstance(dataset, Mix) and order.shuffle in ("auto", "block"):
        return "a cache would keep a mix from reading its shards in pieces"
    if order.shuffle == "none" and not isinstance(dataset, Mix) and world_size != 1:
        return "a cache would keep ranks from reading shards in pieces, without a shuffle"
    return ""


def _seed(seed: int) -> int:
    if seed is None:
        raise InvalidArgument(
            "seed=None; elsewhere it means another order in each run, and here the order is a function of "
            "the seed: give a number, the same on all ranks; for another order in each run, one process "
            "may draw it, with random.randrange(2**63). Without seed= it is 0"
        )
    return count("seed", seed)
