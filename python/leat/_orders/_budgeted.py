"""The order of a loader whose micro-batches have a budget of tokens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from leat import _native
from leat._orders._balance import Balance, Deal, Step
from leat._orders._buckets import divide
from leat._orders._budget import TokenBudget
from leat._orders._epochs import Arrangement, EpochOrder, Epochs, seeded
from leat._orders._mixed_rows import MixedSamples, mixed_of
from leat._orders._packed import WINDOW
from leat._orders._rows import LatestPlans, RowOrder, refuse_substitutes
from leat.errors import InvalidArgument
from leat.ops._mix import BatchFunction, BatchOp, _like
from leat.ops._op import Op, fail

_log = logging.getLogger("leat")
_MOST_WINDOWS = 1 << 32


class BudgetOrder(RowOrder):
    """The micro-batches of each epoch, as samples by position: see `leat.TokenBudget`.

    Args:
        budget: the rule.
        lengths: of all samples.
        micro_batches: of a step, over all ranks.
        samples_of: the samples of an epoch, in the order in which they are taken.
        window: this many of them are planned together.
        seed: with the epoch, draws the order of steps; None keeps it.
        ranks, drops, mixed: as for `RowOrder`.
    """

    knows_next = True

    def __init__(
        self,
        budget: TokenBudget,
        lengths: np.ndarray,
        micro_batches: int,
        *,
        samples_of: Callable[[int], np.ndarray],
        window: int,
        seed: int | None,
        ranks: int,
        drops: bool,
        mixed: MixedSamples | None = None,
    ) -> None:
        super().__init__(
            micro_batches, ranks=ranks, balance=budget.balance, drops=drops, unit="micro-batches", mixed=mixed
        )
        self._budget = budget
        self._lengths = lengths
        self._samples_of = samples_of
        self._window = window
        self._seed = seed
        too_long = lengths > budget.max_tokens
        self._too_long = too_long if too_long.any() else None
        if self._too_long is not None and budget.long_samples == "raise":
            at = int(np.argmax(too_long))
            raise InvalidArgument(
                f"TokenBudget: sample {at} has {lengths[at]} tokens, and a micro-batch at most {budget.max_tokens}; "
                f'{int(too_long.sum())} samples are too long: give a larger max_tokens, or long_samples="drop"'
            )
        self._buckets = self._bucket_of_each()
        self._has_told = False
        self._plans = LatestPlans(self._planned)
        self._order = self._ends = np.empty(0, np.int64)

    def _bucket_of_each(self) -> np.ndarray:
        budget, lengths = self._budget, self._lengths
        count = budget.bucket_count
        if count is None:
            bounds = np.asarray(budget.buckets, np.float64)
            longest = int(np.minimum(lengths, budget.max_tokens).max(initial=0))
            if longest > bounds[-1]:
                raise InvalidArgument(
                    f"TokenBudget: a sample has {longest} tokens, and the last bucket ends with {bounds[-1]:g}; "
                    "give a bucket for it"
                )
            return np.searchsorted(bounds, lengths).astype(np.uint16)
        found = np.zeros(len(lengths), np.uint16)
        if count == 1 or not len(lengths):
            return found
        sizes = np.clip(lengths, 1, budget.max_tokens).astype(np.float64)
        # Most of a bucket of fewer than two steps of a window would be mixed with another's.
        each = self.rows_of_a_step * max(1.0, budget.max_tokens / sizes.mean())
        if budget.max_samples is not None:
            each = min(each, self.rows_of_a_step * budget.max_samples)
        at_least = int(2 * each * max(1.0, len(lengths) / self._window))
        for number, samples in enumerate(divide(sizes[:, None], count, at_least)):
            found[samples] = number
        return found

    def set_epoch(self, epoch: int) -> None:
        self._order, self._ends = self._plans.of(epoch, self.epochs_kept)
        if not self._has_told:
            self._has_told = True
            self._tell()

    def _forget(self) -> None:
        self._plans.clear()

    def _planned(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The samples by position, and the end of each micro-batch."""
        samples = self._samples_of(epoch)
        if self._too_long is not None:
            samples = samples[~self._too_long[samples]]
        parts, sizes, left = [], [], np.empty(0, np.int64)
        for first in range(0, len(samples), self._window):
            window = np.concatenate([left, samples[first : first + self._window]])
            is_last = first + self._window >= len(samples)
            order, ends = self._filled(window, epoch * _MOST_WINDOWS + first // self._window, is_last=is_last)
            left = np.delete(window, order)
            parts.append(window[order])
            sizes.append(np.diff(ends, prepend=0))
        none = np.empty(0, np.int64)
        return np.concatenate([none, *parts]), np.cumsum(np.concatenate([none, *sizes]))

    def _filled(self, window: np.ndarray, stream: int, *, is_last: bool) -> tuple[np.ndarray, np.ndarray]:
        return _native.fill_steps(
            self._lengths[window].astype(np.uint64),
            self._buckets[window],
            max_tokens=self._budget.max_tokens,
            counts_padding=self._budget.padded,
            max_samples=self._budget.max_samples or 0,
            micro_batches=self.rows_of_a_step,
            is_last=is_last,
            shuffles=self._seed is not None,
            seed=self._seed or 0,
            stream=stream % 2**63,
        )

    def _tell(self) -> None:
        """Logs once what the first epoch holds, and what it leaves out."""
        lengths = self._lengths[self._order]
        longest = np.maximum.reduceat(lengths, self._starts()) if len(lengths) else lengths
        held = (longest * np.diff(self._ends, prepend=0)).sum() if self._budget.padded else lengths.sum()
        room = max(1, len(self._ends) * self._budget.max_tokens)
        _log.info(
            "puts %d samples into %d micro-batches of at most %d tokens, which are %.1f %% full%s; %d do not fill the "
            "last step",
            len(lengths), len(self._ends), self._budget.max_tokens, 100 * held / room,
            f", {100 * (1 - lengths.sum() / max(held, 1)):.1f} % of that padding" if self._budget.padded else "",
            len(self._ends) % self.rows_of_a_step,
        )  # fmt: skip
        if self._too_long is not None:
            _log.warning(
                'long_samples="drop" leaves out %d samples of more than %d tokens, %d tokens in all',
                int(self._too_long.sum()), self._budget.max_tokens, int(self._lengths[self._too_long].sum()),
            )  # fmt: skip

    def _starts(self) -> np.ndarray:
        return np.concatenate(([0], self._ends[:-1])).astype(np.int64)

    def order(self) -> np.ndarray:
        return self._order.astype(np.uint64)

    def ends(self) -> np.ndarray:
        return self._ends.astype(np.uint64)

    def micro_batches_at(self, epoch: int, position: int, rank: int) -> np.ndarray:
        """The ends of the micro-batches of a rank in the step at a position, after a 0."""
        self.set_epoch(epoch)
        if (deal := self._deals.get(epoch)) is not None:
            _, counts = deal.of_rank(position, rank)
            return np.concatenate(([0], np.cumsum(counts)))
        first = int(np.searchsorted(self._ends, position, side="right"))
        begin, end = self._run_of(first, rank)
        edges = np.concatenate(([0], self._ends))[begin : end + 1]
        return edges - edges[0]

    def _steps_to_deal(self, balance: Balance, first_row: int) -> tuple[int, Iterator[Step]]:
        costs = balance.costs_of(self._lengths)[self._order]
        bounds = np.concatenate(([0], self._ends))

        def steps() -> Iterator[Step]:
            edges = self._edges(first_row)
            for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist()):
                yield self._step(balance, costs, begin, bounds[begin : end + 1])

        return int(bounds[first_row]), steps()

    def _step(self, balance: Balance, costs: np.ndarray, first_row: int, bounds: np.ndarray) -> Step:
        """One step, whose micro-batches end at `bounds`, after its begin."""
        ranks, rows = self._ranks, len(bounds) - 1
        is_whole = rows == self.rows_of_a_step
        most = balance.micro_batches if is_whole else 1
        row_groups = np.empty(rows, np.int64)
        for rank in range(ranks):
            begin, end = self._run_of(first_row, rank)
            of_rank = np.arange(end - begin) * most // max(1, end - begin)
            row_groups[begin - first_row : end - first_row] = of_rank * ranks + rank
        groups = np.repeat(row_groups, np.diff(bounds))
        part = slice(int(bounds[0]), int(bounds[-1]))
        mine = costs[part]
        each = -(-rows // (ranks * most))

        def deal() -> tuple[np.ndarray, np.ndarray]:
            if self._budget.padded:  # As many samples fit, whichever they are.
                return _native.balance(mine, ranks=ranks, micro_batches=most, equal_counts=True)
            return _native.balance_within(
                mine,
                sizes=np.maximum(self._lengths[self._order[part]], 1).astype(np.uint64),
                groups=groups.astype(np.uint32),
                capacity=each * self._budget.max_tokens,
                most_items=each * (self._budget.max_samples or 0),
                ranks=ranks,
                micro_batches=most,
            )

        return Step(part.start, mine, groups, is_whole, deal)

    def _positions_of(self, deal: Deal) -> tuple[np.ndarray, np.ndarray]:
        return deal.items, deal.ends()


class AddMicroBatches(BatchOp):
    """Says where the micro-batches of a batch end, as a `BudgetOrder` says."""

    def __init__(self, budget: TokenBudget) -> None:
        self.adds = budget.adds
        self._order: BudgetOrder | None = None
        super().__init__({"adds": list(budget.adds)}, None, None)

    def expect(self, order: BudgetOrder) -> None:
        """From now on batches are of that order."""
        self._order = order

    def for_batch(self, place: int, *, is_own: bool = False) -> BatchFunction:
        def call(batch: Any, kind: str, numbers: tuple[int, ...]) -> Any:
            _, epoch, position, rank = numbers
            assert self._order is not None
            ends = self._order.micro_batches_at(epoch, position, rank).astype(np.int32)
            is_tuple = type(batch) is tuple  # A function before made one.
            if not is_tuple and not isinstance(batch, dict):
                fail(self, f"a function of batches gave a {type(batch).__name__}, to which TokenBudget(adds=) "
                           "adds nothing; give a dict or a tuple there, or leave adds= out")  # fmt: skip
            values = batch if is_tuple else batch.values()
            arrays = (getattr(value, "values", value) for value in values)
            like = next((each for each in arrays if hasattr(each, "dtype")), ends)
            if is_tuple:
                return (*batch, *(_like(like, ends) for _ in self.adds))
            for name in self.adds:
                if name in batch:
                    fail(self, f"the batch has a field {name!r} already")
            return {**batch, **{name: _like(like, ends) for name in self.adds}}

        return call


class WithinBudget(Arrangement):
    """Micro-batches within a budget of tokens: see `TokenBudget`."""

    unit = "micro-batches"
    batch_size = 1

    def __init__(self, budget: TokenBudget) -> None:
        self._budget = budget
        self._op = AddMicroBatches(budget) if budget.adds else None

    @property
    def columns(self) -> list[str]:
        return [self._budget.lengths] if isinstance(self._budget.lengths, str) else []

    def ops_beside(self, ops: Sequence[Op], fields: Any, *, ids: bool, on_error: str) -> Sequence[Op]:
        refuse_substitutes("leat.TokenBudget", "micro-batches are", ops, on_error)
        return ops if self._op is None else [*ops, self._op]

    def words(self, seed: int, *, mixes: bool) -> str:
        return seeded(f"micro-batches of at most {self._budget.max_tokens:,} tokens", seed, mixes=mixes)

    def order(self, epochs: Epochs) -> EpochOrder:
        mixed = mixed_of(epochs, "leat.TokenBudget")
        # A mix has its weights in each window.
        window = max(1, len(epochs.dataset)) if mixed is None else WINDOW
        made = BudgetOrder(
            self._budget, self._budget.lengths_of(epochs.dataset), epochs.rows_of_a_step,
            samples_of=mixed or epochs.samples_of, window=window, seed=epochs.seed_of_rows,
            ranks=epochs.ranks, drops=bool(epochs.drops), mixed=mixed,
        )  # fmt: skip
        if self._op is not None:
            self._op.expect(made)
        return made
