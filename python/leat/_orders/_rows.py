"""Orders whose steps have rows of several samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from leat._orders._balance import Balance, Deal, Step, deal_steps, tell
from leat._orders._epochs import EpochOrder
from leat._orders._mixed_rows import MixedSamples
from leat.errors import InvalidArgument
from leat.ops._op import Op
from leat.ops._python import Filter


Plan = TypeVar("Plan")


class LatestPlans(Generic[Plan]):
    """The plans of the epochs that were asked for last.

    Args:
        make: plans an epoch.
    """

    def __init__(self, make: Callable[[int], Plan]) -> None:
        self._make = make
        self._plans: dict[int, Plan] = {}

    def of(self, epoch: int, most: int) -> Plan:
        """The plan of an epoch; at most this many stay."""
        if epoch in self._plans:
            plan = self._plans.pop(epoch)
        else:
            for oldest in list(self._plans)[: len(self._plans) + 1 - most]:
                del self._plans[oldest]
            plan = self._make(epoch)
        self._plans[epoch] = plan
        return plan

    def clear(self) -> None:
        self._plans.clear()


class RowOrder(EpochOrder):
    """The samples of each epoch by position, in rows; a step is a fixed number of rows.

    Args:
        rows_of_a_step: the number over all ranks.
        ranks: the number of ranks that divide a step.
        balance: how they divide it; None: each takes a run of rows.
        drops: whether the last step is left out if it is not whole.
        unit: a word for rows, in messages.
        mixed: the samples, if they are of a mix.
    """

    rows_of_a_step: int

    def __init__(
        self,
        rows_of_a_step: int,
        *,
        ranks: int,
        balance: Balance | None,
        drops: bool,
        unit: str,
        mixed: MixedSamples | None = None,
    ) -> None:
        if balance is not None:
            balance.check_step(rows_of_a_step, ranks, unit)
        self.rows_of_a_step = rows_of_a_step
        self.unit = unit
        self._ranks = ranks
        self._balance = balance
        self._drops = drops
        self._mixed = mixed
        self._deals: dict[int, Deal] = {}
        self._reports: dict[int, dict[str, Any]] = {}

    @abstractmethod
    def ends(self) -> np.ndarray:
        """The end position of each row: uint64."""

    @abstractmethod
    def _steps_to_deal(self, balance: Balance, first_row: int) -> tuple[int, Iterator[Step]]:
        """The number of the first item, and the steps from a row on."""

    @abstractmethod
    def _positions_of(self, deal: Deal) -> tuple[np.ndarray, np.ndarray]:
        """The positions of its items, and the end position of each rank of each step."""

    def begin(self, epoch: int, position: int) -> tuple[int, int, np.ndarray, np.ndarray] | None:
        # The epoch before may still run.
        self._deals = {number: deal for number, deal in self._deals.items() if number == epoch - 1}
        if self._balance is None:
            return None
        row_ends = self.ends()
        first_row = int(np.searchsorted(row_ends, position, side="right"))
        if position != (int(row_ends[first_row - 1]) if first_row else 0):
            return None  # The state is of another order, which the engine refuses: it compares them.
        first, steps = self._steps_to_deal(self._balance, first_row)
        deal = deal_steps(self._balance, self._ranks, first, steps)
        if not self._reports and self._ranks > 1:
            tell(self._balance, deal, self.unit)
        self._reports[epoch] = deal.report(self._balance)
        if self._balance.mode == "shadow":
            return None
        self._deals[epoch] = deal
        positions, ends = self._positions_of(deal)
        return self._ranks, position, positions.astype(np.uint64), ends.astype(np.uint64)

    def report(self, epoch: int) -> dict[str, Any] | None:
        return self._reports.get(epoch)

    def describe(self, state: dict[str, Any]) -> None:
        if self._mixed is not None:
            self._mixed.describe(state)

    def go_on(self, state: Any) -> bool:
        if self._mixed is None:
            return False
        is_another = self._mixed.go_on(state)
        self._forget()
        return is_another

    def _forget(self) -> None:
        """The samples of all epochs may be others now."""

    def steps(self, *, position: int = 0, left_out: int | None) -> int:
        ends = self.ends()
        first_row = int(np.searchsorted(ends, position, side="right"))
        whole, rest = divmod(len(ends) - first_row, self.rows_of_a_step)
        has_last = rest != 0 and not self._drops
        # A balance divides samples, of which each rank has some.
        is_left_out = left_out is not None and self._balance is None and rest <= left_out
        return whole + (has_last and not is_left_out)

    def _edges(self, first_row: int) -> np.ndarray:
        """The first row of each step from a row on, and the end of the last step."""
        rows, each = len(self.ends()), self.rows_of_a_step
        edges = np.arange(first_row, rows + 1, each)
        return edges if self._drops or edges[-1] == rows else np.append(edges, rows)

    def _run_of(self, first_row: int, rank: int) -> tuple[int, int]:
        """The rows of a rank in the step that begins with a row, dealt in runs."""
        rows = min(self.rows_of_a_step, len(self.ends()) - first_row)
        share, longer = divmod(rows, self._ranks)
        begin = first_row + rank * share + min(rank, longer)
        return begin, begin + share + (rank < longer)


def refuse_substitutes(sampler: str, planned: str, ops: Sequence[Op], on_error: str) -> None:
    """Raises `InvalidArgument` if an option would put another sample, of another length, in the
    place of one."""
    for op in ops:
        if isinstance(op, Filter):
            raise InvalidArgument(
                f"{op!r} beside sampler={sampler}(…): {planned} planned by the lengths of their samples, and what "
                "takes the place of one that is passed over has another length; choose samples before, with "
                "leat.Dataset.filter"
            )
    if on_error == "substitute":
        raise InvalidArgument(
            f'on_error="substitute" beside sampler={sampler}(…): {planned} planned by the lengths of their samples, '
            'and what takes the place of a bad one has another length; give on_error="raise", and leave bad samples out '
            "with leat.Dataset.filter"
        )
