"""What a loader keeps of what it has fetched."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

from leat.errors import InvalidArgument


@dataclass(frozen=True)
class Cache:
    """Where a loader keeps what it has fetched, for later epochs and later runs.

    It changes when bytes come, never which: whatever is lost, damaged or full is
    fetched again.

    Args:
        ram: bytes of memory, of this node and beside ``memory=``, such as
            ``"8GiB"``; its local ranks share them. None for no RAM tier.
        disk: a folder that jobs of this node may share; what lies there serves
            later runs too. None for no disk tier.
        disk_limit: bytes in that folder, of all jobs together; None for half of
            what is free there.
        policy: what is kept when not all fits. ``"belady"``, what is wanted
            soonest, by the known order; ``"never_evict"``, what came first;
            ``"lru"`` and ``"fifo"``, to compare with.

    Raises:
        leat.InvalidArgument: neither ``ram`` nor ``disk``, or a limit without a
            folder.
    """

    ram: str | int | None = None
    disk: str | os.PathLike[str] | None = None
    disk_limit: str | int | None = None
    policy: Literal["belady", "never_evict", "lru", "fifo"] = "belady"

    def __post_init__(self) -> None:
        if self.ram is None and self.disk is None:
            raise InvalidArgument(
                'leat.Cache of nothing; give ram=, such as "8GiB", or disk=, a folder'
            )
        if self.disk is None and self.disk_limit is not None:
            raise InvalidArgument("disk_limit= without disk=; name its folder")

    def _options(self) -> dict[str, Any]:
        return {
            "auto": False,
            "ram": _text(self.ram),
            "disk": None if self.disk is None else os.fspath(self.disk),
            "disk_limit": _text(self.disk_limit),
            "policy": str(self.policy),
        }


def _text(size: str | int | None) -> str | None:
    return None if size is None else str(size)


def options_of(cache: Cache | Literal["auto"] | None) -> dict[str, Any] | None:
    """What the engine is told."""
    if cache is None:
        return None
    if isinstance(cache, Cache):
        return cache._options()
    if isinstance(cache, str) and cache == "auto":
        nothing = dict.fromkeys(("ram", "disk", "disk_limit"))
        return {**nothing, "auto": True, "policy": "belady"}
    raise InvalidArgument(
        f'cache={cache!r}; it is "auto" or a leat.Cache, such as '
        'leat.Cache(ram="8GiB")'
    )
