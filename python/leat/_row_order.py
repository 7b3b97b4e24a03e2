"""Orders whose steps have rows of several samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leat._balance import Balance, Deal, Step, deal_steps, tell
from leat._epoch_order import EpochOrder
from leat.errors import InvalidArgument
from leat.ops._op import Op
from leat.ops._python import Filter


class RowOrder(EpochOrder):
    """The samples of each epoch by position, in rows; a step is so many rows.

    Args:
        rows_of_a_step: over all ranks.
        ranks: that divide a step.
        balance: how they do; None: in runs.
        drops: whether the last step is left out if it is not whole.
        unit: a word for rows.
    """

    rows_of_a_step: int

    def __init__(
        self, rows_of_a_step: int, *, ranks: int, balance: Balance | None, drops: bool, unit: str
    ) -> None:
        if balance is not None:
            balance.check_step(rows_of_a_step, ranks, unit)
        self.rows_of_a_step = rows_of_a_step
        self.unit = unit
        self._ranks = ranks
        self._balance = balance
        self._drops = drops
        self._deal: Deal | None = None
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
        self._deal = None
        if self._balance is None:
            return None
        first_row = int(np.searchsorted(self.ends(), position, side="right"))
        first, steps = self._steps_to_deal(self._balance, first_row)
        deal = deal_steps(self._balance, self._ranks, first, steps)
        if not self._reports and self._ranks > 1:
            tell(self._balance, deal, self.unit)
        self._reports[epoch] = deal.report(self._balance)
        if self._balance.mode == "shadow":
            return None
        self._deal = deal
        positions, ends = self._positions_of(deal)
        return self._ranks, position, positions.astype(np.uint64), ends.astype(np.uint64)

    def report(self, epoch: int) -> dict[str, Any] | None:
        return self._reports.get(epoch)

    def steps(self) -> int:
        rows, each = len(self.ends()), self.rows_of_a_step
        return rows // each if self._drops else -(-rows // each)

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
