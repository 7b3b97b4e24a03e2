"""Loaders and caches that reproduce papers and measure Leat: for benchmarks.

    import leat.research

    loader = leat.research.Loader(
        "s3://bucket/train", batch_size=32, shuffle="full",
        fetch_ahead=leat.research.FetchAhead(fetch_size=1024, queue_threshold=1024),
        cache=leat.research.Cache(ram="8GiB", policy="fifo"),
    )

Each class extends the class of that name in `leat`, and also takes its arguments.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import leat
from leat._arguments import checks_names, count
from leat._cache import policies_of
from leat._dataset import Source
from leat.errors import InvalidArgument

__all__ = ["Cache", "FetchAhead", "Loader"]


@checks_names()
@dataclass(frozen=True)
class FetchAhead:
    """How DELI (IC2E 2021) reads ahead: in fetches of many samples at once.

    The loader draws samples a batch at a time. Before each draw, if ``queue_threshold`` or
    fewer of the requested samples are left, the loader requests ``fetch_size`` more; it
    requests no sample of an epoch before the epoch begins. Fetched samples wait in
    ``memory=`` for their batch, and a ``Cache(policy="fifo")`` keeps them. Without this
    option a loader looks as far ahead as latency and the rate of training require.

    Args:
        fetch_size: F, samples of a fetch.
        queue_threshold: T, samples that are requested and not yet drawn.

    Raises:
        leat.InvalidArgument: the values are not whole numbers, or ``fetch_size`` is 0.
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
        policy: also ``"fifo"`` and ``"windowed_belady"``, which knows only the reads within
            ``window`` (Bagpipe).
        window: for ``policy="windowed_belady"``: how many reads of the job, all ranks
            together, it looks ahead.
        placement: for ``policy="never_evict"``: which samples the tiers of a node may hold
            at all. ``"any"``; ``"first_epoch"``: the samples that its ranks read in the
            first epoch (CoorDL); ``"frequency"``: those that they read most often in all
            epochs, the fastest tier first (NoPFS); this needs ``epochs=``.
        peer_placement: which node's server holds a record. ``"key"``: a hash of its name
            chooses; ``"frequency"``: the server of the node whose ranks read it most often
            in all epochs, so that ranks read more from their own node. This needs
            ``epochs=``, and as many servers as nodes, in the order of the nodes.

    Raises:
        leat.InvalidArgument: as a `leat.Cache` does.
    """

    policy: Literal["belady", "windowed_belady", "never_evict", "lru", "fifo"] | str = "belady"
    window: int = 0
    placement: Literal["any", "first_epoch", "frequency"] = "any"
    peer_placement: Literal["key", "frequency"] = "key"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.window, bool) or not (
            isinstance(self.window, int) and 0 <= self.window < 2**63
        ):
            raise InvalidArgument(f"window={self.window!r}; it is a number of reads")

    @classmethod
    def _policies(cls) -> list[str]:
        return [*super()._policies(), *policies_of("research")]

    def _options(self, world_size: int | None) -> dict[str, Any]:
        return {
            **super()._options(world_size),
            "window": self.window,
            "placement": str(self.placement),
            "peer_placement": str(self.peer_placement),
        }


class Loader(leat.Loader):
    """A `leat.Loader` that can imitate other systems.

    Args:
        fetch_ahead: reads ahead as DELI does; None reads as far ahead as latency and the
            rate of training require.
        tune: whether the tuner changes threads and requests in flight while training runs.
            A dict gives the initial values for this rank, such as ``{"threads": 1,
            "max_in_flight": 1}``.
        tune_trace: a file for the tuner's observations, for ``leat explain --replay``.
        hashes: whether `stats` holds order and content hashes.
        options: the arguments of `leat.Loader`.

    Raises:
        leat.InvalidArgument: an option is invalid.
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
