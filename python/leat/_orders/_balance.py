"""Sequences dealt to ranks so that none waits long for another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Union

import numpy as np

from leat._arguments import checks_names, count
from leat.errors import InvalidArgument

_log = logging.getLogger("leat")
_MODES = ("on", "shadow")

Cost = Union[Literal["attention", "tokens"], Callable[[np.ndarray], Any]]


@checks_names()
@dataclass(frozen=True)
class Balance:
    """The ``balance=`` of a `leat.Pack` or a `leat.TokenBudget`: deals the rows or samples of
    each step to ranks, so that all ranks take about equally long.

        sampler = leat.Pack(8192, balance=leat.Balance())

    A step keeps its samples; only the rank that gets a sample changes. So the order of
    steps, states and random ops are the same as without it, at any number of ranks.

    Args:
        cost: the time of a sequence: ``"attention"`` for the square of its length,
            ``"tokens"`` for its length; or a function that gets lengths as an array and
            returns as many numbers from 0 on. It has to be the same on all ranks.
        micro_batches: the micro-batches of a rank in each step, for ranks that meet after
            each of them, as in pipelines. 1 for ranks that meet once a step.
        mode: ``"shadow"`` deals as if there were no balance, and only reports what it would
            bring.

    ``loader.stats()`` has ``balance`` for each epoch: the mean time of its steps, relative to
    ranks that are equally fast, ``balanced`` and ``unbalanced``.

    Raises:
        leat.InvalidArgument: an argument has another value.
    """

    cost: Cost = "attention"
    micro_batches: int = 1
    mode: Literal["on", "shadow"] = "on"

    def __post_init__(self) -> None:
        if not callable(self.cost) and self.cost not in ("attention", "tokens"):
            raise InvalidArgument(
                f'Balance: cost={self.cost!r}; it is "attention", "tokens" or a function of lengths'
            )
        count("micro_batches", self.micro_batches, at_least=1, below=2**31)
        if self.mode not in _MODES:
            raise InvalidArgument(f'Balance: mode={self.mode!r}; it is "on" or "shadow"')

    def costs_of(self, lengths: np.ndarray) -> np.ndarray:
        """The cost of each sequence: float64."""
        if self.cost == "tokens":
            return lengths.astype(np.float64)
        if self.cost == "attention":
            return lengths.astype(np.float64) ** 2
        found = np.asarray(self.cost(lengths.copy()), np.float64)
        if found.shape != lengths.shape:
            raise InvalidArgument(
                f"Balance: cost= returned shape {found.shape} for {len(lengths)} lengths; it returns a number for each"
            )
        wrong = ~np.isfinite(found) | (found < 0)
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InvalidArgument(
                f"Balance: cost= returned {found[at]} for a length of {lengths[at]}; a cost is a finite number from 0 on"
            )
        return found

    def check_step(self, items: int, ranks: int, unit: str) -> None:
        """Raises `InvalidArgument` if the micro-batches of a step cannot have equally many."""
        if items % (ranks * self.micro_batches):
            raise InvalidArgument(
                f"Balance: micro_batches={self.micro_batches}, and a step has {items // ranks} {unit} for each of "
                f"{ranks} ranks, which they do not divide; give another batch size or number of micro-batches"
            )

    @property
    def name(self) -> str:
        return self.cost if isinstance(self.cost, str) else getattr(self.cost, "__name__", "a function")


class Step(NamedTuple):
    """Items to deal. Micro-batch m of rank r is group ``m * ranks + r``."""

    first: int
    """The number of its first item in the epoch."""
    costs: np.ndarray
    groups: np.ndarray
    """The group of each item without balance."""
    is_whole: bool
    """Else it is dealt as if each rank had one micro-batch."""
    deal: Callable[[], tuple[np.ndarray, np.ndarray]]
    """The group of each item, and the cost of each group."""


@dataclass(frozen=True, eq=False)
class Deal:
    """The items of an epoch's steps by rank.

    Attributes:
        first: the number of the first item that is dealt.
        items: numbers of items: step by step, in it rank by rank, in it by micro-batch.
        counts: how many each micro-batch has: of shape ``(steps, ranks, micro_batches)``.
        balanced, unbalanced: the mean time of whole steps.
    """

    first: int
    items: np.ndarray
    counts: np.ndarray
    balanced: float
    unbalanced: float

    def ends(self) -> np.ndarray:
        """The end of each rank of each step among the items of the epoch."""
        return self.first + np.cumsum(self.counts.sum(axis=2).ravel())

    def of_rank(self, first: int, rank: int) -> tuple[np.ndarray, np.ndarray]:
        """The items of a rank in the step that begins with an item, and of how many each
        micro-batch is."""
        before = np.concatenate(([0], np.cumsum(self.counts.sum(axis=(1, 2)))))
        step = int(np.searchsorted(before, first - self.first))
        assert before[step] == first - self.first, "steps are dealt from where an epoch was begun"
        counts = self.counts[step]
        begin = int(before[step] + counts[:rank].sum())
        return self.items[begin : begin + int(counts[rank].sum())], counts[rank]

    def report(self, balance: Balance) -> dict[str, Any]:
        """For `Loader.stats()`."""
        steps, ranks, _ = self.counts.shape
        return {
            "mode": balance.mode,
            "cost": balance.name,
            "ranks": ranks,
            "micro_batches": balance.micro_batches,
            "steps": steps,
            "balanced": self.balanced,
            "unbalanced": self.unbalanced,
        }


def deal_steps(balance: Balance, ranks: int, first: int, steps: Iterable[Step]) -> Deal:
    """Deals steps, beginning with item `first`, as the balance says."""
    most = balance.micro_batches
    items, counts, even, uneven = [], [], [], []
    for step in steps:
        groups, sums = step.deal()
        if step.is_whole:
            even.append(step_time(sums))
            uneven.append(step_time(np.bincount(step.groups, step.costs, minlength=sums.size).reshape(sums.shape)))
        places = groups % ranks * most + groups // ranks
        items.append(step.first + np.argsort(places, kind="stable"))
        counts.append(np.bincount(places, minlength=ranks * most))
    return Deal(
        first,
        np.concatenate(items) if items else np.empty(0, np.int64),
        np.array(counts, np.int64).reshape(-1, ranks, most),
        float(np.mean(even)) if even else 1.0,
        float(np.mean(uneven)) if uneven else 1.0,
    )


def step_time(costs: np.ndarray) -> float:
    """The time of a step whose ranks meet after each micro-batch, relative to ranks that are
    equally fast: 1 at best. Costs are of shape ``(micro_batches, ranks)``."""
    even = costs.mean(axis=1).sum()
    return float(costs.max(axis=1).sum() / even) if even else 1.0


def tell(balance: Balance, deal: Deal, unit: str) -> None:
    """Logs what a balance brings."""
    before = deal.unbalanced - deal.balanced
    share = f"{100 * before / deal.unbalanced:.0f} %"
    verb = "dealing" if balance.mode == "on" else 'mode="shadow" deals nothing; dealing'
    _log.info(
        "balance: %s %s by cost (%s) to %d ranks makes the slowest rank of a step take %.3f of the mean, and %.3f "
        "without: %s less time",
        verb, unit, balance.name, deal.counts.shape[1], deal.balanced, deal.unbalanced, share,
    )  # fmt: skip
