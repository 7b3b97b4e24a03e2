"""The arguments of a loader that specify the order of its epochs, and the end of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

from leat._arguments import checks_names, count
from leat._orders._buckets import SizeBuckets
from leat._orders._budget import TokenBudget
from leat._orders._pack import Pack
from leat.errors import InvalidArgument

Kind = Literal["auto", "full", "block", "stream"]

KINDS = ("auto", "full", "block", "stream")


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
        if self.kind not in KINDS:
            raise InvalidArgument(f'kind={self.kind!r}; it is "auto", "full", "block" or "stream"')
        if self.window is not None:
            count("window", self.window, at_least=1, below=2**32)


@checks_names()
@dataclass(frozen=True, eq=False)
class WeightedSampler:
    """Draws samples in proportion to their weights, with replacement or without.

        sampler = leat.WeightedSampler(balance="label")  # Each class as often as the others.

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
        replacement: False draws each sample at most once in an epoch: each draw is in
            proportion to the weights of the samples that are left. Samples of weight 0 never
            come.
        balance: the name of a column, in place of `weights`: each of its values comes equally
            often.

    Raises:
        leat.InvalidArgument: not one of `weights` and `balance`, or what does not go together.
    """

    weights: Union[Sequence[float], str, Callable[[int], Any], Any] = None
    num_samples: Union[int, None] = None
    changes: bool = False
    replacement: bool = True
    balance: Optional[str] = None

    def __post_init__(self) -> None:
        if (self.weights is None) == (self.balance is None):
            raise InvalidArgument(
                "WeightedSampler: give weights=, or balance= with the name of a column whose values come equally "
                "often, and not both"
            )
        if self.balance is not None and not isinstance(self.balance, str):
            raise InvalidArgument(f"WeightedSampler: balance={self.balance!r}; it is the name of a column")
        if not isinstance(self.replacement, bool):
            raise InvalidArgument(f"WeightedSampler: replacement={self.replacement!r}; it is True or False")
        if self.changes and self.balance is not None:
            raise InvalidArgument("changes=True is for set_weights(), and balance= says the weights; leave one out")
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
