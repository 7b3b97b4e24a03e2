"""Loaders and caches that reproduce papers and measure Leat: for benchmarks.

    import leat.research

    loader = leat.research.Loader(
        "s3://bucket/train", batch_size=32, shuffle="full",
        fetch_ahead=leat.research.FetchAhead(fetch_size=1024, queue_threshold=1024),
        cache=leat.research.Cache(ram="8GiB", policy="fifo"),
    )

Each class is the one of `leat` and takes its arguments too.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import leat
from leat._arguments import checks_names, count
from leat._dataset import Source
from leat.errors import InvalidArgument

__all__ = ["Cache", "FetchAhead", "Loader"]


@checks_names()
@dataclass(frozen=True)
class FetchAhead:
    """How DELI (IC2E 2021) reads ahead: in fetches of many samples at once.

    Samples are drawn a batch at a time. Before each draw, if ``queue_threshold`` or
    fewer of those asked for are left, the loader asks for ``fetch_size`` more; it asks
    for nothing of an epoch before it begins. Fetched samples wait in ``memory=`` for
    their batch, and a ``Cache(policy="fifo")`` keeps them. Without it a loader looks as
    far ahead as latency and the rate of training ask for.

    Args:
        fetch_size: F, samples of a fetch.
        queue_threshold: T, of those asked for and not yet drawn.

    Raises:
        leat.InvalidArgument: not whole numbers, or a fetch of none.
    """

    fetch_size: int = 1024
    queue_threshold: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (
            ("fetch_size", self.fetch_size, 1),
            ("queue_threshold", self.queue_threshold, 0),
        ):
            if isinstance(value, bool) or not (
                isinstance(value, int) and least <= value < 2**63
            ):
                raise InvalidArgument(
                    f"{name}={value!r}; it is a number of samples, at least {least}"
                )


@checks_names()
@dataclass(frozen=True)
class Cache(leat.Cache):
    """A `leat.Cache` with the policies and placements of papers, too.

    Args:
        policy: also ``"fifo"`` and ``"windowed_belady"``, which sees what is wanted within
            ``window`` and nothing beyond (Bagpipe).
        window: of ``policy="windowed_belady"``: how many reads of the job, all ranks
            together, it looks ahead.
        placement: of ``policy="never_evict"``: which samples the tiers of a node may hold at
            all. ``"any"``; ``"first_epoch"``, what its ranks read in the first epoch
            (CoorDL); ``"frequency"``, what they read most often in all epochs, the fastest
            tier first (NoPFS): needs ``epochs=``.
        peer_placement: on which node's server a record lies. ``"key"``, the one that its
            name draws; ``"frequency"``, that of the node whose ranks read it most often in
            all epochs, so that more is read from a node's own server: needs ``epochs=``,
            and as many servers as nodes, in the order of the nodes.

    Raises:
        leat.InvalidArgument: as a `leat.Cache` does.
    """

    policy: Literal["belady", "windowed_belady", "never_evict", "lru", "fifo"] = "belady"  # type: ignore[assignment]
    window: int = 0
    placement: Literal["any", "first_epoch", "frequency"] = "any"
    peer_placement: Literal["key", "frequency"] = "key"

    _POLICIES: ClassVar[tuple[str, ...]] = (*leat.Cache._POLICIES, "windowed_belady", "fifo")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.window, bool) or not (
            isinstance(self.window, int) and 0 <= self.window < 2**63
        ):
            raise InvalidArgument(f"window={self.window!r}; it is a number of reads")

    def _options(self, world_size: int | None) -> dict[str, Any]:
        return {
            **super()._options(world_size),
            "window": self.window,
            "placement": str(self.placement),
            "peer_placement": str(self.peer_placement),
        }


class Loader(leat.Loader):
    """A `leat.Loader` that can be made to do as others do.

    Args:
        fetch_ahead: reads ahead as DELI does; None for as far ahead as latency and the
            rate of training ask for.
        tune: whether threads and requests in flight are tuned while training runs. A dict
            says where to begin, of this rank, such as
            ``{"threads": 1, "max_in_flight": 1}``.
        tune_trace: a file for what the tuner sees, for ``leat explain --replay``.
        hashes: whether `stats` holds order and content hashes.
        options: the arguments of `leat.Loader`.

    Raises:
        leat.InvalidArgument: an option that cannot be.
    """

    def __init__(
        self,
        source: Source | Sequence[Source] | leat.Dataset,
        *,
        fetch_ahead: FetchAhead | None = None,
        tune: bool | dict[str, int] = True,
        tune_trace: str | os.PathLike[str] | None = None,
        hashes: bool = True,
        **options: Any,
    ) -> None:
        self._settings = {
            "fetch_ahead": _pair_of(fetch_ahead),
            **_tuning(tune),
            "tune_trace": "" if tune_trace is None else os.fspath(tune_trace),
            "hashes": hashes,
        }
        super().__init__(source, **options)


def _pair_of(fetch_ahead: FetchAhead | None) -> tuple[int, int] | None:
    """The two numbers for the engine."""
    if fetch_ahead is None:
        return None
    if isinstance(fetch_ahead, FetchAhead):
        return fetch_ahead.fetch_size, fetch_ahead.queue_threshold
    raise InvalidArgument(
        f"fetch_ahead={fetch_ahead!r}; it is a leat.research.FetchAhead, such as "
        "leat.research.FetchAhead(fetch_size=1024, queue_threshold=1024)"
    )


def _tuning(tune: object) -> dict[str, Any]:
    """The tuner's arguments for the engine: whether it runs, and from where
    it begins."""
    start = tune if isinstance(tune, dict) else {}
    if not isinstance(tune, (bool, dict)) or set(start) - {"threads", "max_in_flight"}:
        raise InvalidArgument(
            f"tune={tune!r}; it is True, False or where to begin, such as "
            '{"threads": 1, "max_in_flight": 1}'
        )
    return {
        "tune": tune is not False,
        "start_threads": count("threads", start.get("threads"), at_least=1),
        "start_in_flight": count("max_in_flight", start.get("max_in_flight"), at_least=1),
    }
