"""The number of this process among the ranks, and the values it shares with
the others."""

from __future__ import annotations

import sys
from typing import Any

from leat import _native
from leat._job._pace import Pace
from leat.errors import InvalidArgument


def place_of(
    rank: int | None, world_size: int | None
) -> tuple[int | None, int | None]:
    """The rank and world size that a loader was given, else torch's, else Ray Train's; None if
    only the launcher knows.

    Raises:
        leat.InvalidArgument: one is given without the other.
    """
    if (rank is None) != (world_size is None):
        raise InvalidArgument("rank= and world_size= are given together or not at all")
    if rank is not None:
        return rank, world_size
    place = place_in_torch_distributed()
    return place if place[0] is not None else place_in_ray()


def place_in_torch_distributed() -> tuple[int, int] | tuple[None, None]:
    """Rank and world size, if the program asked torch to join its processes."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return None, None
    if not distributed.is_initialized():
        return None, None
    return distributed.get_rank(), distributed.get_world_size()


def place_in_ray() -> tuple[int, int] | tuple[None, None]:
    """Rank and world size, if Ray Train started this process: its workers may inherit the variables
    of the launcher that started Ray's own processes, which number others."""
    train = sys.modules.get("ray.train")  # A worker has imported it.
    if train is None:
        return None, None
    try:
        context = train.get_context()
        if context.get_experiment_name() is None:  # Older Ray has a context everywhere, of no run.
            return None, None
        return context.get_world_rank(), context.get_world_size()
    except (RuntimeError, DeprecationWarning, AttributeError):  # A driver; Ray Tune; another version.
        return None, None


def check_place(rank: int, world_size: int) -> None:
    """Raises `InvalidArgument` if torch.distributed says by now that this is another rank.

    A loader made earlier keeps the place that it took then, such as the whole job, for
    ever.
    """
    now, size_now = place_in_torch_distributed()
    if now is None or (now, size_now) == (rank, world_size):
        return
    raise InvalidArgument(
        f"this loader was made as rank {rank} of {world_size}, and torch.distributed, which was "
        f"initialised later, says rank {now} of {size_now}: samples would be missed or read "
        "twice. Make the loader after init_process_group(), or give it rank= and world_size="
    )


def pace_of(native: Any, process: int | None = None, processes: int | None = None) -> Pace | None:
    """None if all processes are on this node, or the launcher does not say who is.

    Without their numbers, processes are the ranks of ``native``.
    """
    if process is None or processes is None:
        process, processes = native.rank, native.world_size
    try:
        launched_size, local_rank, local_size = _native.launched()
    except InvalidArgument:  # Lightning says part of it.
        return None
    if launched_size != processes or launched_size <= local_size:
        return None
    return Pace(native, process - local_rank)
