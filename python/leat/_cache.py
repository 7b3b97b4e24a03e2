"""The cache of a loader: which of the fetched samples it keeps, and where."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, Union

from leat import _native
from leat._arguments import checks_names, flag
from leat._job._peers import find_peers, find_secret
from leat._say import once
from leat.errors import InvalidArgument


_RESEARCH = "to compare with others' papers; give leat.research.Cache({}=…)"
_MOVED = {name: _RESEARCH.format(name) for name in ("window", "placement", "peer_placement")}


@checks_names(_MOVED)
@dataclass(frozen=True)
class Cache:
    """A cache in which a loader keeps fetched samples, for later epochs and
    later runs.

    A cache changes when bytes arrive, but never which bytes arrive: if a record is lost or
    damaged, or has no room, the loader fetches it again.

    Args:
        ram: bytes of this node's memory, in addition to ``memory=``, such as ``"8GiB"``;
            the local ranks share them. None for no RAM tier.
        disk: a folder that jobs of this node may share; its records also serve later runs.
            None for no disk tier.
        disk_limit: bytes in that folder, for all jobs together; None for half of the free
            space there.
        policy: which samples to keep if not all fit. ``"belady"``: those that the job reads
            soonest, by the known order; ``"never_evict"``: those that came first;
            ``"lru"``: those that it read last.
        form: the form in which pictures are kept. ``"encoded"``: their bytes.
            ``"decoded"``: the output of ``DecodeImage`` and the ops after it, up to the
            first op that draws, calls a function or makes floats; a hit then also saves
            that work, and a record takes five to ten times the room. ``"auto"``: the form
            with the lower expected time a sample, for all or for a share of them, measured
            on the first samples. The batches are the same.
        shared: share these tiers with other jobs of this user on this node that read the
            same data and also give this option. ``ram`` is then the limit for all of them
            together. Each job reads the records of all. If several jobs miss a record at
            once, one of them fetches and makes it. Records that another job has yet to read
            go last.
        first_within: a number of positions; among this many next positions of a rank's order, the
            loader first delivers those whose samples are cached. 0 keeps the order. Each
            epoch is still a permutation, but the order differs from run to run, and a state
            belongs to its rank alone. It is meant for jobs with ``shared=True``, which so
            meet each other's records.
        locality: deals the samples of each step to the ranks that met them in earlier
            epochs, as far as all ranks get equally many, so that the caches of several
            nodes hit more. Steps keep their samples. Do not use it with a BatchNorm whose
            statistics are a rank's own. Give the same value on all ranks. ``"sticky"``:
            every sample has a home rank. ``"remap"``: each sample goes to the rank whose
            cache holds it, in a simulation of all caches, which must have the same size on
            every node. ``"balance"``: the same, and all ranks fetch evenly. With a stream,
            the last two begin with epoch 1.
        peers: memcached servers, ``["host:port", ...]``, that all ranks share, the same for
            each; or ``"auto"``, which starts one on each node, on loopback or the job's own
            network, and ends it with the job. One rank fetches a sample, and the others
            find it there.
        peer_memory: bytes of this node that its server of ``peers="auto"`` may use, at
            least 16 MiB; None for a quarter of the node's memory.
        peer_patience: how long a peer may be silent. After that, the rank leaves it alone
            for a while and reads its samples from the bucket.

    Raises:
        leat.InvalidArgument: neither ``ram`` nor ``disk`` nor ``peers`` is given, or a
            limit without the tier that it limits.
    """

    ram: str | int | None = None
    disk: str | os.PathLike[str] | None = None
    disk_limit: str | int | None = None
    policy: Literal["belady", "never_evict", "lru"] | str = "belady"
    form: Literal["encoded", "decoded", "auto"] = "encoded"
    shared: bool = False
    first_within: int = 0
    locality: Literal["none", "sticky", "remap", "balance"] = "none"
    peers: Sequence[str] | Literal["auto"] | None = ()
    peer_memory: str | int | None = None
    peer_patience: str = "100ms"

    def __post_init__(self) -> None:
        if self.ram is None and self.disk is None and not self.peers:
            raise InvalidArgument(
                'leat.Cache of nothing; give ram=, such as "8GiB", disk=, a folder, or '
                "peers="
            )
        if self.disk is not None and not isinstance(self.disk, (str, os.PathLike)):
            raise InvalidArgument(f"disk={self.disk!r}; it is a folder, as a text or a path")
        flag("shared", self.shared)
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
        if self.policy not in (known := self._policies()):
            raise InvalidArgument(_no_policy(self.policy, known))
        if self.disk is None and self.disk_limit is not None:
            raise InvalidArgument("disk_limit= without disk=; name its folder")

    @classmethod
    def _policies(cls) -> list[str]:
        """The policies that `policy` may name."""
        return policies_of("training")

    def _options(self, world_size: int | None) -> dict[str, Any]:
        peers = self.peers or ()
        are_ours = peers == "auto"
        if are_ours:
            peers = find_peers(world_size, _text(self.peer_memory))
        return {
            **_NOTHING,
            "peers": [str(peer) for peer in peers],
            "peer_secret": find_secret(world_size, are_ours) if peers else "",
            "peer_patience": str(self.peer_patience),
            "ram": _text(self.ram),
            "disk": None if self.disk is None else os.fspath(self.disk),
            "disk_limit": _text(self.disk_limit),
            "policy": str(self.policy),
            "form": str(self.form),
            "shared": bool(self.shared),
            "first_within": self.first_within,
        }


# The engine's options for a cache that says nothing.
_NOTHING: Mapping[str, Any] = MappingProxyType({
    "auto": False, "ram": None, "disk": None, "disk_limit": None, "policy": "belady", "form": None,
    "shared": False, "first_within": 0, "peers": (), "peer_secret": "", "peer_patience": None,
    # For leat.research:
    "window": 0, "placement": "any", "peer_placement": None,
})  # fmt: skip


def _text(size: str | int | None) -> str | None:
    return None if size is None else str(size)


def policies_of(use: Literal["training", "research"]) -> list[str]:
    """The engine's policies for training, and those that are there to compare with
    others' papers."""
    return [
        name
        for name, is_for_research in _native.cache_policies()
        if is_for_research == (use == "research")
    ]


def _no_policy(policy: object, known: list[str]) -> str:
    said = f"the cache's policy={policy!r}; it is one of {', '.join(known)}"
    if policy not in known and policy in policies_of("research"):
        said += f"; that one is to compare with others' papers: leat.research.Cache(policy={policy!r})"
    return said


CacheChoice = Union[Cache, Literal["auto"], None]


def options_of(cache: CacheChoice, world_size: int | None, *, is_shared: bool = False) -> dict[str, Any] | None:
    """The options for the engine. With ``peers="auto"`` it starts the servers
    and finds them.

    Args:
        world_size: the processes of the job.
        is_shared: ``"auto"`` is a cache that jobs share.
    """
    if cache is None:
        return None
    if isinstance(cache, Cache):
        return cache._options(world_size)
    if isinstance(cache, str) and cache == "auto":
        return {**_NOTHING, "auto": True, "shared": is_shared}
    raise InvalidArgument(
        f'cache={cache!r}; it is "auto" or a leat.Cache, such as leat.Cache(ram="8GiB")'
    )


def shared_among(cache: CacheChoice, *, memory: str | int | None, reads_alone: str) -> CacheChoice:
    """The cache for processes that read the same at the same time: one that those of a node share.

    Without a cache of the user's it is a RAM tier of about twice the memory of batches: it holds
    what one process has read and another has yet to read.

    Args:
        memory: of the loader.
        reads_alone: why no cache is added unasked, which is logged once; "" if one is.

    Raises:
        leat.InvalidArgument: it would give these processes different batches.
    """
    if isinstance(cache, Cache):
        if cache.first_within:
            raise InvalidArgument(
                f"first_within={cache.first_within} with a mesh in which several processes have one rank: each would "
                "take the samples that are cached for it, and they would get different batches; leave it out"
            )
        if cache.locality in ("remap", "balance"):
            raise InvalidArgument(
                f"locality={cache.locality!r} with a mesh in which several processes have one rank: it simulates the "
                'caches of ranks that read apart; give locality="sticky"'
            )
        if cache.shared or (cache.ram is None and cache.disk is None):
            return cache
        return replace(cache, shared=True)
    if cache is not None:
        return cache
    if reads_alone:
        once(
            logging.INFO,
            f"processes of one rank each read its samples: {reads_alone}. With cache=leat.Cache(ram=…) those of a node "
            "read them once",
        )
        return None
    return Cache(ram=_native.ram_for_one_rank(_text(memory)), shared=True)


def locality_of(cache: CacheChoice) -> str:
    """How samples are dealt to ranks for the sake of their caches."""
    return str(cache.locality) if isinstance(cache, Cache) else "none"
