"""The order of a loader's epochs and the end of each, from its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

from leat._arguments import checks_names, count
from leat._buckets import SizeBuckets
from leat._budget import TokenBudget
from leat._pack import Pack
from leat.errors import InvalidArgument

Kind = Literal["auto", "full", "block", "stream"]

_KINDS = ("auto", "full", "block", "stream")


@checks_names()
@dataclass(frozen=True)
class Shuffle:
    """How samples are mixed: the long form of a loader's ``shuffle=``.

    Args:
        kind: ``"full"`` mixes all samples. ``"block"`` mixes the pieces of shards, about 8
            MiB each, and the samples of `window` pieces at a time, so that each piece is
            read once. ``"auto"`` is ``"full"`` over objects and ``"block"`` over shards.
            ``"stream"`` mixes the samples of `window` pieces at a time, in the order of the
            pieces; if shards have no index yet, the loader indexes them during the first
            epoch.
        window: pieces that a block shuffle or a stream mixes at a time, from 1 on. The ranks
            of a job hold them together: about 8 MiB each. None for 64 in a block shuffle (or
            what takes 512 MiB, if pieces are longer) and 16 in a stream.

    Raises:
        leat.InvalidArgument: `kind` or `window` has another value.
    """

    kind: Kind = "auto"
    window: Optional[int] = None

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InvalidArgument(f'kind={self.kind!r}; it is "auto", "full", "block" or "stream"')
        if self.window is not None:
            count("window", self.window, at_least=1, below=2**32)


@checks_names()
@dataclass(frozen=True, eq=False)
class WeightedSampler:
    """Draws samples with replacement, each in proportion to its weight.

    It is a loader's ``sampler=``, like torch's WeightedRandomSampler. A draw is a function
    of (seed, epoch, position), so world size and resume do not change it.

    Weights may change between epochs: give a function of the epoch, or ``changes=True`` and
    call `set_weights`. An epoch keeps the weights that it began with. All ranks need the same
    weights; if torch.distributed joins them, a rank with other weights raises an error.

    Args:
        weights: numbers from 0 on, of shape ``(len(dataset),)``, or the name of a column of
            such numbers. They need not add up to 1. Or a function from the number of an epoch,
            from 0 on, to such weights, called when an epoch begins.
        num_samples: the number of draws in an epoch; None for the number of samples of the
            dataset.
        changes: True allows `set_weights`.
    """

    weights: Union[Sequence[float], str, Callable[[int], Any], Any]
    num_samples: Union[int, None] = None
    changes: bool = False

    def __post_init__(self) -> None:
        if self.changes and self.is_function:
            raise InvalidArgument(
                "changes=True is for set_weights(), and weights= is a function, which says them; leave one out"
            )

    def set_weights(self, weights: Any) -> None:
        """Gives the weights for the epochs that begin from now on.

        Raises:
            leat.InvalidArgument: the sampler has weights that stay, or a function of them.
        """
        if not self.changes:
            raise InvalidArgument(
                "set_weights(): the weights of this sampler "
                + ("come from a function" if self.is_function else "stay; make it with changes=True")
            )
        object.__setattr__(self, "weights", weights)

    @property
    def is_function(self) -> bool:
        """Whether a function gives the weights."""
        return callable(self.weights) and not hasattr(self.weights, "__array__")

    @property
    def may_change(self) -> bool:
        """Whether an epoch may have other weights than the one before."""
        return self.changes or self.is_function


Shuffled = Union[bool, Literal["full", "block", "stream"], Shuffle, None]

Sampler = Union[Iterable[int], WeightedSampler, SizeBuckets, Pack, TokenBudget, None]

DropLast = Union[bool, Literal["pad", "join"], None]


@dataclass(frozen=True)
class Order:
    """The order that a loader's arguments specify."""

    shuffle: str
    """``none``, ``auto``, ``full``, ``block`` or ``stream``."""
    window: int | None
    weighted: WeightedSampler | None
    sampler: Iterable[int] | None
    buckets: SizeBuckets | None
    pack: Pack | None
    budget: TokenBudget | None
    mixes: bool
    """Buckets, documents that are packed, or samples within a budget."""
    drop_last: bool | None
    """None: as usual for that shuffle."""
    pad: bool
    join: bool

    @property
    def has_rows(self) -> bool:
        """Whether a step has rows of several samples."""
        return self.pack is not None or self.budget is not None

    @property
    def columns(self) -> list[str]:
        """The columns of the dataset that the order is made of, by name."""
        named = [] if self.weighted is None else [self.weighted.weights]
        if self.buckets is not None:
            named += self.buckets.by
        if self.budget is not None:
            named.append(self.budget.lengths)
        return [each for each in named if isinstance(each, str)]


def order_of(
    train: bool | None, shuffle: Any, sampler: Any, drop_last: Any
) -> Order:
    """The order that these arguments specify.

    Raises:
        leat.InvalidArgument: no argument says whether to shuffle; two arguments specify the
            order; or a value is invalid.
    """
    if train is not None and not isinstance(train, bool):
        raise InvalidArgument(f"train={train!r}; it is True or False")
    drops = _drops(drop_last)
    weighted = sampler if isinstance(sampler, WeightedSampler) else None
    buckets = sampler if isinstance(sampler, SizeBuckets) else None
    pack = sampler if isinstance(sampler, Pack) else None
    budget = sampler if isinstance(sampler, TokenBudget) else None
    arranges = buckets is not None or pack is not None or budget is not None
    if arranges and not isinstance(shuffle, (bool, type(None))):
        raise InvalidArgument(
            f"shuffle={shuffle!r} and sampler= both say the order; beside a leat.{type(sampler).__name__} "
            "it is True or False"
        )
    if drop_last == "pad" and (pack is not None or budget is not None):
        raise InvalidArgument(
            f'drop_last="pad" fills a step with samples, and a step of leat.{type(sampler).__name__} has '
            f"{'rows' if budget is None else 'micro-batches'}; leave it out"
        )
    if sampler is not None and not arranges:
        if shuffle is not None:
            raise InvalidArgument("shuffle= and sampler= both say the order; leave shuffle= out")
        shuffle = weighted is not None
        drops = train if drop_last is None else drops
    elif shuffle is None:
        if train is None:
            raise InvalidArgument(
                "nothing says whether this loader trains or reads: give train=True (shuffled, "
                "without the last incomplete step) or train=False (in order, every sample), "
                "or say shuffle= itself"
            )
        shuffle = train
    if train is False and drop_last is None:
        drops = False
    kind, window = _shuffled(shuffle)
    mixes = arranges and kind != "none"
    if arranges:
        kind, drops = "none", mixes if drops is None else drops
    elif weighted is not None and weighted.may_change:
        kind, drops = "none", True if drops is None else drops
    return Order(
        shuffle=kind,
        window=window,
        weighted=weighted,
        sampler=None if weighted is not None or arranges else sampler,
        buckets=buckets,
        pack=pack,
        budget=budget,
        mixes=mixes,
        drop_last=drops,
        pad=drop_last == "pad",
        join=drop_last == "join",
    )


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
    if isinstance(shuffle, str) and shuffle in _KINDS[1:]:
        return shuffle, Shuffle.window
    raise InvalidArgument(
        f'shuffle={shuffle!r}; it is True, False, "full", "block", "stream" or a leat.Shuffle'
    )
