"""Orders that Python gives the engine, epoch by epoch, and how a loader gets one.

An `Arrangement` is the seam: a loader asks it for its op, its checks, its words and, once
the engine is open, its `EpochOrder`. To add an order, write one of each, and add a row to
`ARRANGED` in _chosen.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leat import _native
from leat._dataset import Dataset
from leat._orders._mix import Begin, Mix
from leat.ops import Op

SAMPLES = "samples"


class EpochOrder(ABC):
    """The samples of each epoch by position."""

    rows_of_a_step: int | None = None
    """Over all ranks, if a step has rows of several samples."""
    unit = SAMPLES
    """The word for the rows, or for the samples, that steps are counted in."""
    knows_next = False
    """Whether each epoch is a function of its number, so that the next can be told while one runs.
    Then it has to answer for either of the two."""
    epochs_kept = 1
    """How many epochs' plans stay: 2 if the next is told while one runs."""

    @abstractmethod
    def set_epoch(self, epoch: int) -> None:
        """An epoch begins, or its steps are asked for. `order` and `ends` are those of this epoch."""

    @abstractmethod
    def order(self) -> np.ndarray:
        """The sample at each position: uint64."""

    def ends(self) -> np.ndarray:
        """The end position of each row, uint64; empty if steps have samples."""
        return np.empty(0, np.uint64)

    def length(self) -> int | None:
        """The samples of any epoch; None if each epoch tells its own."""
        return None

    def begin(self, epoch: int, position: int) -> tuple[int, int, np.ndarray, np.ndarray] | None:
        """The steps of the epoch from a position on, as dealt to ranks; None: in runs."""
        return None

    def steps(self, *, position: int = 0, left_out: int | None) -> int | None:
        """The steps of an epoch from a position on, but a last one of at most `left_out` rows; None: the
        engine counts them."""
        return None

    def report(self, epoch: int) -> dict[str, Any] | None:
        """The gain of a `leat.Balance` in an epoch that was begun; None: there is none."""
        return None

    def compared(self, epoch: int) -> list[np.ndarray]:
        """Arrays that ranks compare beside the order, which may be alike by chance."""
        return []

    def why_refused(self) -> str:
        """The message if another rank has another order."""
        return (
            "sampler= gives this rank another order than another rank: steps would miss "
            "some samples and have others twice. It gives the order of all ranks, which "
            "the loader deals out: seed it alike on all, by the epoch that set_epoch() says"
        )

    def describe(self, state: dict[str, Any]) -> None:
        """Adds what a state has to say beside the order of its epoch."""

    def check(self, state: Any) -> None:
        """Raises `InvalidArgument` if the epoch of a state would have another order now."""

    def go_on(self, state: Any) -> bool:
        """Takes over where the sources of another mix stopped; False if the state is of this order.

        Raises `InvalidArgument` if nobody knows where that is."""
        return False


@dataclass(frozen=True)
class Epochs:
    """The samples that an `EpochOrder` orders, and how a loader takes them.

    Args:
        dataset: of now; a state may bring an earlier catalogue.
        count: the number of samples, whichever catalogue is in use.
        seed: of the loader.
        mixes: whether the order is shuffled.
        rows_of_a_step: or the samples, over all ranks.
        ranks: that divide a step.
        drops: whether the last step is left out if it is not whole; None: as usual.
    """

    dataset: Dataset
    count: Callable[[], int]
    seed: int
    mixes: bool
    rows_of_a_step: int
    ranks: int
    drops: bool | None

    @property
    def seed_of_rows(self) -> int | None:
        """The seed; None if nothing is shuffled."""
        return self.seed if self.mixes else None

    def samples_of(self, epoch: int) -> np.ndarray:
        """The samples of an epoch, in the order in which rows take them."""
        if isinstance(self.dataset, Mix):
            mixed = _native.mixed_documents(self.dataset.order_of(Begin()), self.seed, self.mixes, epoch)
            return mixed.astype(np.int64)
        count = len(self.dataset)
        return shuffled(count, self.seed, epoch) if self.mixes else np.arange(count)


class Arrangement(ABC):
    """An order that a loader gets from Python, before there is a loader: see `EpochOrder`."""

    unit = SAMPLES
    """As of the order."""
    batch_size: int | None = None
    """For a loader that is given none."""
    follows_steps = False
    """Whether the order depends on the size of steps, though steps have samples."""

    @property
    def has_rows(self) -> bool:
        """Whether a step has rows of several samples."""
        return self.unit != SAMPLES

    @property
    def columns(self) -> list[str]:
        """The columns of the dataset that the order is made of, by name."""
        return []

    def ops_beside(self, ops: Sequence[Op], fields: Any, *, ids: bool, on_error: str) -> Sequence[Op]:
        """The loader's ops, and the order's own where it belongs among them.

        Raises:
            leat.InvalidArgument: an option of the loader does not go with this order.
        """
        return ops

    @abstractmethod
    def words(self, seed: int, *, mixes: bool) -> str:
        """The order, for the line that introduces a loader."""

    @abstractmethod
    def order(self, epochs: Epochs) -> EpochOrder | None:
        """The order; None if another part of Leat gives it to the engine."""


def seeded(words: str, seed: int, *, mixes: bool) -> str:
    """The words for an order, with the seed if it is shuffled."""
    return words + (f", seed {seed}" if mixes else "")


def shuffled(count: int, seed: int, stream: int) -> np.ndarray:
    """The numbers below `count`, in an order of (seed, stream)."""
    # Philox and a sort of its numbers: the same in all versions of NumPy.
    bits = np.random.Philox(key=np.array([seed, stream % 2**64], np.uint64))
    return np.argsort(bits.random_raw(count), kind="stable")
