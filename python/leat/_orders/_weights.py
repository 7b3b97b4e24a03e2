"""Orders that are drawn by weights."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from leat import _native
from leat._arguments import count
from leat._dataset import Dataset
from leat._orders._epochs import Arrangement, EpochOrder, Epochs
from leat._orders._shuffle import WeightedSampler
from leat.errors import InvalidArgument


class ByChangingWeights(Arrangement):
    """Draws by weights that may change between epochs; the engine itself draws by those that stay."""

    def __init__(self, sampler: WeightedSampler) -> None:
        self._sampler = sampler

    @property
    def columns(self) -> list[str]:
        return columns_of(self._sampler)

    def words(self, seed: int, *, mixes: bool) -> str:
        how = "" if self._sampler.replacement else " without replacement"
        return f"drawn{how} by weights{' that may change' if self._sampler.may_change else ''}, seed {seed}"

    def order(self, epochs: Epochs) -> EpochOrder:
        return ChangingWeights(self._sampler, epochs.dataset, epochs.seed, draws_of(self._sampler, epochs.dataset))


def columns_of(sampler: WeightedSampler) -> list[str]:
    """The column that the weights are, or are made of."""
    return [each for each in (sampler.weights, sampler.balance) if isinstance(each, str)]


def fixed_weights_of(sampler: WeightedSampler, dataset: Dataset) -> np.ndarray:
    """The weights of a sampler that is no function, as `weights_of` has them."""
    if sampler.balance is None:
        return weights_of(sampler.weights, dataset)
    if dataset.fields.get(sampler.balance) not in ("int64", "string"):
        names = [name for name, kind in dataset.fields.items() if kind in ("int64", "string")]
        raise InvalidArgument(
            f"balance={sampler.balance!r}: no such column of whole numbers or texts; there are "
            f"{', '.join(names) or 'none'}"
        )
    _, values, counts = np.unique(np.asarray(dataset.column(sampler.balance)), return_inverse=True, return_counts=True)
    return np.ascontiguousarray(1.0 / counts[values])


def draws_of(sampler: WeightedSampler, dataset: Dataset) -> int:
    """The draws of an epoch."""
    if sampler.num_samples is None:
        return len(dataset)
    return count("num_samples", sampler.num_samples, at_least=1, below=2**40)


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


class ChangingWeights(EpochOrder):
    """The draws of each epoch, by the weights that the sampler has when the epoch begins.

    With weights that stay the same, these are the draws that the engine makes of them. Without
    replacement, each sample comes at most once.

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
            weights = self._weights_of(0)  # So that an error comes early.
            if not sampler.replacement:
                _check_enough(weights, num_samples)

    def length(self) -> int:
        return self._num_samples

    def set_epoch(self, epoch: int) -> None:
        self._weights, self._epoch = self._weights_of(epoch), epoch

    def order(self) -> np.ndarray:
        draw = _native.weighted_samples if self._sampler.replacement else without_replacement
        return draw(self._weights, self._seed, self._epoch, self._num_samples)

    def compared(self, epoch: int) -> list[np.ndarray]:
        return [np.frombuffer((self._digest_of(epoch) or "").encode(), np.uint8)]

    def why_refused(self) -> str:
        return (
            "the weights of this rank's leat.WeightedSampler are others than those of another rank: steps would "
            "miss some samples and have others twice. Compute them once, broadcast them, and give the same "
            "numbers to all ranks before iter()"
        )

    def describe(self, state: dict[str, Any]) -> None:
        if digest := self._digest_of(state["epoch"]):
            state["weights"] = digest

    def check(self, state: Any) -> None:
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

    def _digest_of(self, epoch: int) -> str | None:
        """A digest of the weights of an epoch; None of one that has not begun."""
        return _digest(self._weights) if epoch == self._epoch else None

    def _weights_of(self, epoch: int) -> np.ndarray:
        if not self._sampler.is_function:
            return fixed_weights_of(self._sampler, self._dataset)
        given: Any = self._sampler.weights
        return weights_of(given(epoch), self._dataset)


def without_replacement(weights: np.ndarray, seed: int, epoch: int, size: int) -> np.ndarray:
    """This many draws, each in proportion to the weights of what is left: uint64.

    Draws with replacement whose repeats are left out are such draws. Samples that were drawn leave
    the table after each round, or light ones would wait for long behind heavy ones.

    Raises:
        leat.InvalidArgument: fewer samples have a weight above 0.
    """
    _check_enough(weights, size)
    left = np.flatnonzero(weights)
    parts, found, turn = [], 0, 0
    while found < size:
        # Streams of their own: rounds of an epoch have numbers above those of epochs.
        drawn = _native.weighted_samples(weights[left], seed, epoch + (turn + 1 << 40), len(left))
        places, first = np.unique(drawn, return_index=True)
        new = places[np.argsort(first, kind="stable")][: size - found].astype(np.int64)
        parts.append(left[new])
        left = np.delete(left, new)
        found, turn = found + len(new), turn + 1
    return np.concatenate(parts).astype(np.uint64) if parts else np.empty(0, np.uint64)


def _check_enough(weights: np.ndarray, size: int) -> None:
    if (some := np.count_nonzero(weights)) < size:
        raise InvalidArgument(
            f"replacement=False draws each sample once: {size} are asked for, and {some} have a weight above 0; "
            f"give num_samples={some} or less"
        )


def _digest(weights: np.ndarray) -> str:
    return hashlib.blake2b(weights.tobytes(), digest_size=16).hexdigest()
