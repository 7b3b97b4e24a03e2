"""The order that a sampler of the user's gives: its numbers, and whether they can be."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from leat._orders._epochs import Arrangement, EpochOrder, Epochs
from leat.errors import InvalidArgument

_MOST_EPOCH = 1 << 24
"""Positions of an epoch whose length nobody tells, beside 64 a sample: more have no end."""
_AT_ONCE = 1 << 20


class BySampler(Arrangement):
    """Numbers of samples, anew with each iter(): a list, or a Sampler of torch's.

    Raises:
        leat.InvalidArgument: the sampler cannot give the order of all epochs and ranks.
    """

    def __init__(self, sampler: Iterable[int]) -> None:
        check_sampler(sampler)
        self._sampler = sampler

    def words(self, seed: int, *, mixes: bool) -> str:
        return "in a sampler's order"

    def order(self, epochs: Epochs) -> EpochOrder:
        return SamplerOrder(self._sampler, epochs)


class SamplerOrder(EpochOrder):
    """The order of a sampler. If it has ``set_epoch``, that is called first."""

    def __init__(self, sampler: Iterable[int], epochs: Epochs) -> None:
        self._sampler, self._epochs = sampler, epochs

    def set_epoch(self, epoch: int) -> None:
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(epoch)

    def order(self) -> np.ndarray:
        return numbers_of(self._sampler, self._epochs.count())

    def length(self) -> int | None:
        try:
            return len(self._sampler)  # type: ignore[arg-type]
        except TypeError:
            return None


class Told(Arrangement):
    """The ``sampler=`` of a `leat.Loader` whose maker gives the native loader each epoch's
    order before iter()."""

    def words(self, seed: int, *, mixes: bool) -> str:
        return "in a sampler's order"

    def order(self, epochs: Epochs) -> None:
        return None


def check_sampler(sampler: Any) -> None:
    """Raises `InvalidArgument` if it cannot give the order of all epochs and ranks."""
    if not isinstance(sampler, Iterable) or isinstance(sampler, (str, bytes)):
        raise InvalidArgument(
            f"sampler={sampler!r}; it gives numbers of samples, such as a list or a Sampler "
            "of torch's"
        )
    if iter(sampler) is sampler:
        raise InvalidArgument(
            "sampler= is an iterator, which has one epoch and then nothing; give a list, or "
            "an object whose __iter__ begins anew"
        )
    replicas = getattr(sampler, "num_replicas", 1)
    if isinstance(replicas, int) and replicas > 1:
        raise InvalidArgument(
            f"sampler= gives one of {replicas} ranks its share, and the loader would deal that "
            "share out once more; give the order of all ranks, or leave sampler= out: the "
            "loader shards by itself"
        )


def numbers_of(sampler: Iterable[Any], samples: int) -> np.ndarray:
    """A sampler's numbers in an epoch, as uint64 of shape ``(positions,)``.

    -1 is the last sample, as for a list.

    Raises:
        leat.InvalidArgument: a value is not the number of a sample; the error names its
            position.
    """
    most = None if hasattr(sampler, "__len__") else _MOST_EPOCH + 64 * samples
    parts: list[np.ndarray] = []
    done = 0
    numbers = iter(sampler)
    while part := list(itertools.islice(numbers, _AT_ONCE)):
        if most is not None and done + len(part) > most:
            raise InvalidArgument(
                f"the sampler gave {done + len(part)} numbers and goes on: an epoch of a leat.Loader "
                "has an end; give the sampler a len(), cut it with itertools.islice, or give it to "
                "leat.torch.DataLoader, which draws it in windows"
            )
        parts.append(as_samples(part, samples, done))
        done += len(part)
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def as_samples(numbers: list[Any], samples: int, first: int = 0) -> np.ndarray:
    """Numbers of samples as uint64. ``first`` is the position of the first, for errors."""
    try:
        found = np.fromiter(map(operator.index, numbers), np.int64, len(numbers))
    except (TypeError, OverflowError):
        at = next(i for i, number in enumerate(numbers) if not _is_number(number))
        raise InvalidArgument(
            f"the sampler gave {numbers[at]!r} at position {first + at}; it gives numbers of "
            "samples, one by one (lists of them are for batch_sampler= of leat.torch.DataLoader)"
        ) from None
    wrong = (found < -samples) | (found >= samples)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidArgument(
            f"the sampler gave sample {found[at]} at position {first + at}, and the dataset "
            f"has {samples}"
        )
    return np.where(found < 0, found + samples, found).astype(np.uint64)


def _is_number(value: Any) -> bool:
    try:
        return abs(operator.index(value)) < 2**63
    except TypeError:
        return False
