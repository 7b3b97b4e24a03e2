"""The order that a loader's arguments specify."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from leat._dataset import Dataset
from leat._orders._buckets import InBuckets, SizeBuckets
from leat._orders._budget import TokenBudget
from leat._orders._budgeted import WithinBudget
from leat._orders._epochs import Arrangement
from leat._orders._mix import Begin, Mix
from leat._orders._pack import Pack
from leat._orders._packed import InPackedRows
from leat._orders._samplers import BySampler
from leat._orders._shuffle import KINDS, Shuffle, WeightedSampler
from leat._orders._weights import ByChangingWeights, columns_of, draws_of, fixed_weights_of
from leat.errors import InvalidArgument
from leat.ops import Op

ARRANGED: Mapping[type, Callable[[Any], Arrangement]] = MappingProxyType({
    SizeBuckets: InBuckets,
    Pack: InPackedRows,
    TokenBudget: WithinBudget,
})  # fmt: skip
"""The classes of ``sampler=`` that arrange the samples, shuffled or not, in steps of their own."""


@dataclass(frozen=True)
class Order:
    """The order that a loader's arguments specify."""

    shuffle: str
    """``none``, ``auto``, ``full``, ``block`` or ``stream``."""
    window: int | None
    weighted: WeightedSampler | None
    """Its weights stay."""
    arrangement: Arrangement | None
    """None: the order is the engine's own."""
    mixes: bool
    """Whether the arrangement is shuffled."""
    drop_last: bool | None
    """None: as usual for that shuffle."""
    pad: bool
    join: bool

    @property
    def has_rows(self) -> bool:
        """Whether a step has rows of several samples."""
        return self.arrangement is not None and self.arrangement.has_rows

    @property
    def is_drawn(self) -> bool:
        """Whether the samples come in no order of the engine's own."""
        return self.weighted is not None or self.arrangement is not None

    @property
    def columns(self) -> list[str]:
        """The columns of the dataset that the order is made of, by name."""
        if self.arrangement is not None:
            return self.arrangement.columns
        return [] if self.weighted is None else columns_of(self.weighted)

    def ops_beside(self, ops: Sequence[Op], fields: Any, *, ids: bool, on_error: str) -> Sequence[Op]:
        """As `Arrangement.ops_beside`."""
        if self.arrangement is None:
            return ops
        return self.arrangement.ops_beside(ops, fields, ids=ids, on_error=on_error)

    def words(self, seed: int) -> str:
        """For an order whose length nobody knows yet; empty for others."""
        return "" if self.arrangement is None else self.arrangement.words(seed, mixes=self.mixes)

    def options(self, dataset: Dataset | None) -> dict[str, Any]:
        """The order, for the engine."""
        weights, drawn = None, 0
        if self.weighted is not None:
            assert dataset is not None, "only a stream has none, and a sampler is no stream"
            weights, drawn = fixed_weights_of(self.weighted, dataset), draws_of(self.weighted, dataset)
        return {
            "shuffle": self.shuffle,
            "shuffle_window": self.window,
            "weights": weights,
            "mix": dataset.order_of(Begin()) if isinstance(dataset, Mix) and not self.has_rows else None,
            "samples_per_epoch": drawn,
            "sampler": self.arrangement is not None,
            "keeps_samples": self.has_rows,
            "drop_last": self.drop_last,
            "pad": self.pad,
            "join": self.join,
        }


def order_of(train: bool | None, shuffle: Any, sampler: Any, drop_last: Any) -> Order:
    """The order that these arguments specify.

    Raises:
        leat.InvalidArgument: no argument says whether to shuffle; two arguments specify the
            order; or a value is invalid.
    """
    if train is not None and not isinstance(train, bool):
        raise InvalidArgument(f"train={train!r}; it is True or False")
    drops = _drops(drop_last)
    arrange = next((made for kind, made in ARRANGED.items() if isinstance(sampler, kind)), None)
    arrangement = None if arrange is None else arrange(sampler)
    if arrangement is not None:
        _check_beside_arranged(arrangement, sampler, shuffle, drop_last)
    is_weighted = isinstance(sampler, WeightedSampler)
    if sampler is not None and arrangement is None:
        if shuffle is not None:
            raise InvalidArgument("shuffle= and sampler= both say the order; leave shuffle= out")
        shuffle = is_weighted
        drops = train if drop_last is None else drops
    elif shuffle is None:
        shuffle = _trains(train)
    if train is False and drop_last is None:
        drops = False
    kind, window = _shuffled(shuffle)
    mixes = arrangement is not None and kind != "none"
    if arrangement is not None:
        kind, drops = "none", mixes if drops is None else drops
    elif is_weighted and (sampler.may_change or not sampler.replacement):
        arrangement, kind, drops = ByChangingWeights(sampler), "none", True if drops is None else drops
    elif sampler is not None and not is_weighted:
        arrangement = sampler if isinstance(sampler, Arrangement) else BySampler(sampler)
    weighted = sampler if is_weighted and arrangement is None else None
    return Order(kind, window, weighted, arrangement, mixes, drops, pad=drop_last == "pad", join=drop_last == "join")


def _check_beside_arranged(arrangement: Arrangement, sampler: Any, shuffle: Any, drop_last: Any) -> None:
    name = type(sampler).__name__
    if not isinstance(shuffle, (bool, type(None))):
        raise InvalidArgument(
            f"shuffle={shuffle!r} and sampler= both say the order; beside a leat.{name} "
            "it is True or False"
        )
    if drop_last == "pad" and arrangement.has_rows:
        raise InvalidArgument(
            f'drop_last="pad" fills a step with samples, and a step of leat.{name} has {arrangement.unit}; leave it out'
        )


def _trains(train: bool | None) -> bool:
    if train is None:
        raise InvalidArgument(
            "nothing says whether this loader trains or reads: give train=True (shuffled, "
            "without the last incomplete step) or train=False (in order, every sample), "
            "or say shuffle= itself"
        )
    return train


def _drops(drop_last: Any) -> bool | None:
    if drop_last is None or isinstance(drop_last, bool):
        return drop_last
    if drop_last in ("pad", "join"):
        return False
    raise InvalidArgument(f'drop_last={drop_last!r}; it is True, False, "pad" or "join"')


def _shuffled(shuffle: Any) -> tuple[str, int | None]:
    if isinstance(shuffle, Shuffle):
        return shuffle.kind, shuffle.window
    if isinstance(shuffle, bool):
        return ("auto" if shuffle else "none"), Shuffle.window
    if isinstance(shuffle, str) and shuffle in KINDS[1:]:
        return shuffle, Shuffle.window
    raise InvalidArgument(
        f'shuffle={shuffle!r}; it is True, False, "full", "block", "stream" or a leat.Shuffle'
    )
