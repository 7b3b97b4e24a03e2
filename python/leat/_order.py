"""Orders of a loader other than a shuffle: by weights, or by a sampler."""

from __future__ import annotations

import hashlib
import itertools
import json
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from leat import _native
from leat._agreement import JobStore
from leat._buckets import BucketOrder
from leat._dataset import Dataset
from leat._row_order import RowOrder
from leat._shuffle import WeightedSampler
from leat.errors import InvalidArgument

_MOST_EPOCH = 1 << 24
"""Positions of an epoch whose length nobody tells, beside 64 a sample: more have no end."""
_AT_ONCE = 1 << 20


class Told:
    """The ``sampler=`` of a `leat.Loader` whose maker gives the native loader each epoch's
    order before iter()."""


def weights_of(weights: Any, dataset: Dataset) -> np.ndarray:
    """A weight for each sample, float64, of shape ``(samples,)``.

    Raises:
        leat.InvalidArgument: no such column, or not one number for each sample. The engine
            checks that the numbers are finite and not below 0.
    """
    told = "weights="
    if isinstance(weights, str):
        told = f"weights={weights!r}"
        kind = dataset.fields.get(weights)
        if kind not in ("int64", "float64"):
            numbers = [name for name, kind in dataset.fields.items() if kind in ("int64", "float64")]
            raise InvalidArgument(
                f"{told}: " + (f"the field is of {kind}" if kind else "no such field")
                + f"; columns of numbers are {', '.join(numbers) or 'not there'}: give one, or an "
                f"array of {len(dataset)} weights"
            )
        weights = dataset.column(weights)
    if hasattr(weights, "detach"):  # A torch tensor.
        weights = weights.detach().cpu().double().numpy()
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{told} is no array of numbers: {error}") from None
    if array.shape != (len(dataset),):
        raise InvalidArgument(
            f"{told} has shape {array.shape}, and the dataset has {len(dataset)} samples; "
            "give one weight for each"
        )
    return np.ascontiguousarray(array)


class ChangingWeights:
    """The draws of each epoch, by the weights that the sampler has when the epoch begins.

    With weights that stay the same, these are the draws that the engine makes of them.

    Args:
        sampler: the weights, of now or by epoch.
        dataset: the samples that they belong to.
        seed: of the loader.
        num_samples: the draws of an epoch.
    """

    def __init__(self, sampler: WeightedSampler, dataset: Dataset, seed: int, num_samples: int) -> None:
        self._sampler, self._dataset = sampler, dataset
        self._seed, self._num_samples = seed, num_samples
        self._epoch = -1
        self._weights = np.empty(0)
        if not sampler.is_function:
            self._weights_of(0)  # So that an error comes early.

    def __len__(self) -> int:
        return self._num_samples

    def set_epoch(self, epoch: int) -> None:
        """An epoch begins."""
        self._weights, self._epoch = self._weights_of(epoch), epoch

    def order(self) -> np.ndarray:
        """The sample at each position: uint64."""
        return _native.weighted_samples(self._weights, self._seed, self._epoch, self._num_samples)

    def digest_of(self, epoch: int) -> str | None:
        """A digest of the weights of an epoch; None of one that has not begun."""
        return _digest(self._weights) if epoch == self._epoch else None

    def check(self, state: Any) -> None:
        """Raises `InvalidArgument` if the epoch of a state had other weights than it would have now."""
        wanted = state.get("weights") if isinstance(state, dict) else None
        if wanted is None or not isinstance(state.get("epoch"), int) or state.get("position") == 0:
            return
        epoch = state["epoch"]
        found = _digest(self._weights_of(epoch))
        if found != wanted:
            raise InvalidArgument(
                f"the state was saved in epoch {epoch} with weights of the digest {wanted}, and weights= has {found} "
                "for it: the rest of the epoch would be drawn otherwise, and samples would be lost or come twice. "
                + (
                    "Let the function give that epoch the weights that it had"
                    if self._sampler.is_function
                    else "Call set_weights() with the weights of that epoch before load_state_dict(), and with "
                    "others after the next iter()"
                )
            )

    def _weights_of(self, epoch: int) -> np.ndarray:
        given: Any = self._sampler.weights
        return weights_of(given(epoch) if self._sampler.is_function else given, self._dataset)


def _digest(weights: np.ndarray) -> str:
    return hashlib.blake2b(weights.tobytes(), digest_size=16).hexdigest()


class Sampled:
    """Tells a loader's engine the order of each epoch, as a sampler gives it.

    Args:
        sampler: numbers of samples, anew with each iter(): a list, or a Sampler of torch's.
            If it has ``set_epoch``, that is called first.
    """

    def __init__(self, sampler: Iterable[int] | RowOrder | ChangingWeights) -> None:
        if not isinstance(sampler, (RowOrder, ChangingWeights)):
            check_sampler(sampler)
        self._sampler = sampler
        self._times = 0  # That an epoch was begun.
        self.length = 0
        """The samples, or the rows, of the epoch that was begun."""
        self.rows_of_a_step = sampler.rows_of_a_step if isinstance(sampler, RowOrder) else None
        """None: steps have samples."""
        self.unit = sampler.unit if isinstance(sampler, RowOrder) else "samples"

    def expect(self, native: Any) -> None:
        """Tells the engine the length of epochs, if the sampler knows it."""
        try:
            native.expect_order_of(len(self._sampler))  # type: ignore[arg-type]
        except TypeError:
            pass

    def begin(self, native: Any, samples: int, met: tuple[Any, str] | None) -> None:
        """Before each iter(). ``met`` is what `compare_ranks` gave, ``samples`` the dataset's.

        Raises:
            leat.InvalidArgument: what it gives is no order; or not that of other ranks, or
                of the state that was loaded.
        """
        epoch = native.next_epoch()
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(epoch)
        ends, rows, dealt = np.empty(0, np.uint64), 1, None
        if isinstance(self._sampler, BucketOrder):
            order = self._sampler.order().astype(np.uint64)
        elif isinstance(self._sampler, ChangingWeights):
            order = self._sampler.order()
        elif isinstance(self._sampler, RowOrder):
            order, ends, rows = self._sampler.order(), self._sampler.ends(), self._sampler.rows_of_a_step
            state = json.loads(native.state())
            dealt = self._sampler.begin(epoch, state["position"] if state["epoch"] == epoch else 0)
        else:
            order = numbers_of(self._sampler, samples)
        self.length = len(order) if self.rows_of_a_step is None else len(ends)
        self._times += 1
        if met is not None:
            told = [order, ends] if dealt is None else [order, ends, *dealt[2:]]
            if isinstance(self._sampler, ChangingWeights):  # Other weights may give the same order, by chance.
                told.append(np.frombuffer((self._sampler.digest_of(epoch) or "").encode(), np.uint8))
            self._compare(told, *met)
        native.give_order(epoch, 0, order, ends, False, rows, dealt)

    def describe(self, state: dict[str, Any]) -> None:
        """Adds what a state has to say beside the order of its epoch."""
        if isinstance(self._sampler, ChangingWeights) and (digest := self._sampler.digest_of(state["epoch"])):
            state["weights"] = digest

    def check(self, state: Any) -> None:
        """Raises `InvalidArgument` if the sampler would give the epoch of a state another order."""
        if isinstance(self._sampler, ChangingWeights):
            self._sampler.check(state)

    def steps(self, epoch: int) -> int | None:
        """The steps of an epoch, if the engine cannot count them."""
        if not isinstance(self._sampler, RowOrder):
            return None
        self._sampler.set_epoch(epoch)
        return self._sampler.steps()

    def balance(self, epoch: int) -> dict[str, Any] | None:
        """The gain of a `leat.Balance` in an epoch that was begun; None: there is none."""
        return self._sampler.report(epoch) if isinstance(self._sampler, RowOrder) else None

    def _compare(self, parts: list[np.ndarray], store: Any, name: str) -> None:
        mine = hashlib.blake2b(b"".join(part.tobytes() for part in parts), digest_size=16).hexdigest()
        key = f"leat/sampler/{name}/{self._times}"
        first = JobStore(store).ask(lambda store: store.compare_set(key, "", mine).decode())
        if first not in (None, mine) and isinstance(self._sampler, ChangingWeights):
            raise InvalidArgument(
                "the weights of this rank's leat.WeightedSampler are others than those of another rank: steps would "
                "miss some samples and have others twice. Compute them once, broadcast them, and give the same "
                "numbers to all ranks before iter()"
            )
        if first not in (None, mine):
            raise InvalidArgument(
                "sampler= gives this rank another order than another rank: steps would miss "
                "some samples and have others twice. It gives the order of all ranks, which "
                "the loader deals out: seed it alike on all, by the epoch that set_epoch() says"
            )


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
