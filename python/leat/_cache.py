"""The cache of a loader: settings for what it keeps of what it has fetched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from leat._peers import find_peers
from leat.errors import InvalidArgument


@dataclass(frozen=True)
class Cache:
    """A cache in which a loader keeps fetched samples, for later epochs and
    later runs.

    It changes when bytes come, never which: a record that is lost or damaged, or
    has no room, is fetched again.

    Args:
        ram: bytes of memory, of this node and beside ``memory=``, such as
            ``"8GiB"``; its local ranks share them. None for no RAM tier.
        disk: a folder that jobs of this node may share; what lies there serves
            later runs too. None for no disk tier.
        disk_limit: bytes in that folder, of all jobs together; None for half of
            what is free there.
        policy: what is kept when not all fits. ``"belady"``, what is wanted
            soonest, by the known order; ``"never_evict"``, what came first;
            ``"lru"``, ``"fifo"`` and ``"windowed_belady"``, which sees what is wanted within
            ``window`` and nothing beyond, to compare with.
        window: of ``policy="windowed_belady"``: how many reads of the job, all ranks
            together, it looks ahead.
        placement: of ``policy="never_evict"``: which samples the tiers of a node may hold at
            all. ``"any"``; ``"first_epoch"``, what its ranks read in the first epoch
            (CoorDL); ``"frequency"``, what they read most often in all epochs, the fastest
            tier first (NoPFS): needs ``epochs=``. To compare with.
        form: what is kept of a picture. ``"encoded"``, its bytes; ``"decoded"``, what
            ``DecodeImage`` and the ops behind it make of them, up to the first that
            draws, calls a function or makes floats: a hit then saves that work too,
            and takes five to ten times the room; ``"auto"``, whichever is expected to
            take less time a sample, for all or for a share of them, by what the first
            samples cost. What is delivered is the same.
        shared: other jobs of this user on this node that read the same data and say so
            too use these tiers with it: ``ram`` is then what all of them hold together,
            each reads what any has brought, what several miss at once one fetches and
            makes, and what another has yet to read goes last.
        first_within: of the next so many positions of a rank's order, those whose samples
            are cached are delivered first; 0 keeps the order. Each epoch is still a
            permutation, but of another order in every run, and a state is then of its
            rank alone. For jobs with ``shared=True``: each meets what another has made.
        peers: memcached servers, ``["host:port", ...]``, that all ranks share, the
            same for each; or ``"auto"``, which starts one on each node, on loopback
            or the job's own network, and ends it with the job. What one rank has
            fetched, the others find there.
        peer_memory: bytes of this node that its server of ``peers="auto"`` may use,
            at least 16 MiB; None for a quarter of what there is.
        peer_placement: on which node's server a record lies. ``"key"``, the one that its
            name draws; ``"frequency"``, that of the node whose ranks read it most often in
            all epochs, so that more is read from a node's own server: needs ``epochs=``,
            and as many servers as nodes, in the order of the nodes.
        peer_patience: how long a peer may keep silent before it is left alone for a
            while, and what it holds read from the bucket.

    Raises:
        leat.InvalidArgument: neither ``ram`` nor ``disk`` nor ``peers``, or a limit
            without what it limits.
    """

    ram: str | int | None = None
    disk: str | os.PathLike[str] | None = None
    disk_limit: str | int | None = None
    policy: Literal["belady", "windowed_belady", "never_evict", "lru", "fifo"] = "belady"
    window: int = 0
    placement: Literal["any", "first_epoch", "frequency"] = "any"
    form: Literal["encoded", "decoded", "auto"] = "encoded"
    shared: bool = False
    first_within: int = 0
    peers: Sequence[str] | Literal["auto"] | None = ()
    peer_memory: str | int | None = None
    peer_placement: Literal["key", "frequency"] = "key"
    peer_patience: str = "100ms"

    def __post_init__(self) -> None:
        if self.ram is None and self.disk is None and not self.peers:
            raise InvalidArgument(
                'leat.Cache of nothing; give ram=, such as "8GiB", disk=, a folder, or '
                "peers="
            )
        peers = () if self.peers is None else self.peers
        if peers != "auto" and (
            isinstance(peers, (str, bytes)) or not isinstance(peers, Iterable)
        ):
            raise InvalidArgument(
                f'peers={self.peers!r}; it is "auto" or a list of servers, '
                '["host:port", ...]'
            )
        if self.peer_memory is not None and self.peers != "auto":
            raise InvalidArgument(
                'peer_memory= is for peers="auto"; servers that run have their own (-m)'
            )
        if isinstance(self.first_within, bool) or not (
            isinstance(self.first_within, int) and 0 <= self.first_within < 2**63
        ):
            raise InvalidArgument(
                f"first_within={self.first_within!r}; it is a number of positions, 0 for none"
            )
        if isinstance(self.window, bool) or not (
            isinstance(self.window, int) and 0 <= self.window < 2**63
        ):
            raise InvalidArgument(f"window={self.window!r}; it is a number of reads")
        if self.disk is None and self.disk_limit is not None:
            raise InvalidArgument("disk_limit= without disk=; name its folder")

    def _options(self, world_size: int | None) -> dict[str, Any]:
        peers = self.peers or ()
        if peers == "auto":
            peers = find_peers(world_size, _text(self.peer_memory))
        return {
            "peers": [str(peer) for peer in peers],
            "peer_placement": str(self.peer_placement),
            "peer_patience": str(self.peer_patience),
            "auto": False,
            "ram": _text(self.ram),
            "disk": None if self.disk is None else os.fspath(self.disk),
            "disk_limit": _text(self.disk_limit),
            "policy": str(self.policy),
            "window": self.window,
            "placement": str(self.placement),
            "form": str(self.form),
            "shared": bool(self.shared),
            "first_within": self.first_within,
        }


def _text(size: str | int | None) -> str | None:
    return None if size is None else str(size)


def options_of(
    cache: Cache | Literal["auto"] | None, world_size: int | None
) -> dict[str, Any] | None:
    """The options for the engine. With ``peers="auto"`` it starts the servers
    and finds them."""
    if cache is None:
        return None
    if isinstance(cache, Cache):
        return cache._options(world_size)
    if isinstance(cache, str) and cache == "auto":
        nothing = dict.fromkeys(("ram", "disk", "disk_limit", "form", "peer_placement", "peer_patience"))
        return {
            **nothing, "peers": [], "auto": True, "policy": "belady", "window": 0, "placement": "any",
            "shared": False, "first_within": 0,
        }  # fmt: skip
    raise InvalidArgument(
        f'cache={cache!r}; it is "auto" or a leat.Cache, such as '
        'leat.Cache(ram="8GiB")'
    )
