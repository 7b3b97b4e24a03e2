"""The order of a loader that packs documents into rows, and its batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from leat._batches._ragged import Ragged
from leat._dataset import Dataset
from leat._orders._balance import Balance, Deal, Step
from leat._orders._budget import lengths_of as told_lengths
from leat._orders._epochs import Arrangement, EpochOrder, Epochs, seeded, shuffled
from leat._orders._mixed_rows import MixedSamples, mixed_of
from leat._orders._pack import Pack, Rows, balance as balanced
from leat._orders._rows import LatestPlans, RowOrder, refuse_substitutes
from leat.errors import InvalidArgument
from leat.ops._mix import BatchFunction, BatchOp, _like
from leat.ops._op import Op, fail

_log = logging.getLogger("leat")
WINDOW = 1 << 16
"""Documents that are packed together."""
_MOST_WINDOWS = 1 << 32
_ROWS_STREAM = 1 << 63
"""Keeps the order of rows apart from the order of documents."""


class PackedOrder(RowOrder):
    """The rows of each epoch, as documents by position: see `leat.Pack`.

    Args:
        pack: the rule.
        lengths: the tokens of each document.
        rows_of_a_step: over all ranks.
        documents_of: the documents of an epoch, in the order in which they are packed.
        seed: with the epoch, draws the order of rows within a window; None keeps it.
        ranks, drops, mixed: as for `RowOrder`.
    """

    knows_next = True

    def __init__(
        self,
        pack: Pack,
        lengths: np.ndarray,
        rows_of_a_step: int,
        *,
        documents_of: Callable[[int], np.ndarray],
        seed: int | None,
        ranks: int = 1,
        drops: bool = True,
        mixed: MixedSamples | None = None,
    ) -> None:
        super().__init__(rows_of_a_step, ranks=ranks, balance=pack.balance, drops=drops, unit="rows", mixed=mixed)
        self._pack = pack
        self._lengths = lengths
        self._documents_of = documents_of
        self._seed = seed
        self._has_told = False
        self._plans = LatestPlans(self._planned)
        self._rows = _joined(pack, [])

    def set_epoch(self, epoch: int) -> None:
        self._rows = self._plans.of(epoch, self.epochs_kept)

    def _forget(self) -> None:
        self._plans.clear()

    def _planned(self, epoch: int) -> Rows:
        documents = self._documents_of(epoch)
        windows = []
        for first in range(0, len(documents), WINDOW):
            window = documents[first : first + WINDOW]
            rows = self._pack.rows(self._lengths[window])
            order = np.arange(len(rows))
            if self._seed is not None:
                # Rows close early if they have long documents: mixed, they come alike.
                order = shuffled(len(rows), self._seed, _ROWS_STREAM + epoch * _MOST_WINDOWS + first // WINDOW)
            windows.append(_reordered(rows, window, order))
        made = _joined(self._pack, windows)
        if not self._has_told:
            self._has_told = True
            self._tell(documents, made)
        return made

    def _tell(self, documents: np.ndarray, rows: Rows) -> None:
        """Logs once what the first epoch packs, and what it loses."""
        lost = int(self._lengths[documents].sum() - rows.lengths.sum())
        rest = len(rows) % self.rows_of_a_step
        _log.info(
            "packs %d documents into %d rows of %d tokens, %.1f %% of them padding; %d rows do not fill the last step",
            len(documents), len(rows), self._pack.capacity, 100 * rows.padding, rest,
        )  # fmt: skip
        if lost:
            _log.warning(
                'long_documents="truncate" loses %d tokens of documents longer than a row in this epoch; "split" keeps them',
                lost,
            )

    def order(self) -> np.ndarray:
        """The document at each position; one that was cut comes once for each piece."""
        return self._rows.samples.astype(np.uint64)

    def ends(self) -> np.ndarray:
        """The end position of each row."""
        return self._rows.offsets[1:].astype(np.uint64)

    def _steps_to_deal(self, balance: Balance, first_row: int) -> tuple[int, Iterator[Step]]:
        ranks = self._ranks
        costs = balance.costs_of(self._rows.lengths)
        of_rows = np.add.reduceat(costs, self._rows.offsets[:-1]) if len(self._rows) else costs

        def steps() -> Iterator[Step]:
            edges = self._edges(first_row)
            for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist()):
                is_whole = end - begin == self.rows_of_a_step
                micro_batches = balance.micro_batches if is_whole else 1
                mine = of_rows[begin:end]
                in_runs = [
                    [m * ranks + rank] * len(part)
                    for rank in range(ranks)
                    for m, part in enumerate(
                        np.array_split(np.arange(*self._run_of(begin, rank)), micro_batches)
                    )
                ]
                yield Step(
                    begin, mine, np.array(sum(in_runs, []), np.int64), is_whole,
                    lambda mine=mine, most=micro_batches: balanced(mine, ranks, most),  # type: ignore[misc]
                )  # fmt: skip

        return first_row, steps()

    def _positions_of(self, deal: Deal) -> tuple[np.ndarray, np.ndarray]:
        pieces, ends = _pieces_of(self._rows, deal.items)
        before = int(self._rows.offsets[deal.first])
        rows = deal.ends() - deal.first
        return pieces, before + np.concatenate(([0], ends))[rows]

    def rows_at(self, epoch: int, position: int, rank: int) -> tuple[Rows, np.ndarray]:
        """The rows of a rank in the step at a position; their documents are numbered by piece.
        And how long the document of each piece is."""
        self.set_epoch(epoch)
        first = int(np.searchsorted(self._rows.offsets, position))
        if (deal := self._deals.get(epoch)) is None:
            rows = np.arange(*self._run_of(first, rank))
        else:
            rows, _ = deal.of_rank(first, rank)
        pieces, ends = _pieces_of(self._rows, rows)
        laid = Rows(
            self._pack.capacity,
            np.arange(len(pieces)),
            self._rows.begins[pieces],
            self._rows.lengths[pieces],
            np.concatenate(([0], ends)),
        )
        return laid, self._lengths[self._rows.samples[pieces]]


def _joined(pack: Pack, windows: list[Rows]) -> Rows:
    """The rows of all windows, one after the other."""
    none = np.empty(0, np.int64)
    ends = np.cumsum([0, *(int(rows.offsets[-1]) for rows in windows)])
    offsets = [rows.offsets[1:] + first for rows, first in zip(windows, ends)]
    return Rows(
        pack.capacity,
        np.concatenate([none, *(rows.samples for rows in windows)]),
        np.concatenate([none, *(rows.begins for rows in windows)]),
        np.concatenate([none, *(rows.lengths for rows in windows)]),
        np.concatenate([np.zeros(1, np.int64), *offsets]),
    )


def _reordered(rows: Rows, documents: np.ndarray, order: np.ndarray) -> Rows:
    """The rows in another order, with documents in place of their numbers in the window."""
    pieces, ends = _pieces_of(rows, order)
    offsets = np.concatenate(([0], ends))
    return Rows(rows.capacity, documents[rows.samples[pieces]], rows.begins[pieces], rows.lengths[pieces], offsets)


def _pieces_of(rows: Rows, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pieces of these rows, in their order, and the end of each row among them."""
    sizes = np.diff(rows.offsets)[order]
    ends = np.cumsum(sizes)
    pieces = np.arange(ends[-1] if len(ends) else 0) + np.repeat(rows.offsets[:-1][order] - (ends - sizes), sizes)
    return pieces, ends


class InPackedRows(Arrangement):
    """Rows of documents: see `Pack`."""

    unit = "rows"

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._op = PackRows(pack)

    @property
    def columns(self) -> list[str]:
        return [self._pack.lengths] if isinstance(self._pack.lengths, str) else []

    def ops_beside(self, ops: Sequence[Op], fields: Any, *, ids: bool, on_error: str) -> Sequence[Op]:
        refuse_substitutes("leat.Pack", "rows are", ops, on_error)
        return [*ops, self._op]

    def words(self, seed: int, *, mixes: bool) -> str:
        return seeded(f"rows of {self._pack.capacity:,} tokens", seed, mixes=mixes)

    def order(self, epochs: Epochs) -> EpochOrder:
        mixed = mixed_of(epochs, "leat.Pack")
        made = PackedOrder(
            self._pack, lengths_of(self._pack, epochs.dataset), epochs.rows_of_a_step,
            documents_of=mixed or epochs.samples_of, seed=epochs.seed_of_rows, ranks=epochs.ranks,
            drops=bool(epochs.drops), mixed=mixed,
        )  # fmt: skip
        self._op.expect(made)
        return made


class PackRows(BatchOp):
    """Lays the documents of a batch in rows, as a `PackedOrder` says."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self.adds = pack.adds
        self._order: PackedOrder | None = None
        super().__init__({"capacity": pack.capacity, "tokens": pack.tokens, "adds": list(pack.adds)}, None, None)

    def expect(self, order: PackedOrder) -> None:
        """From now on batches are of that order."""
        self._order = order

    def for_batch(self, place: int, *, is_own: bool = False) -> BatchFunction:
        def call(batch: Any, kind: str, numbers: tuple[int, ...]) -> Any:
            _, epoch, position, rank = numbers
            assert self._order is not None
            return self._laid_out(batch, *self._order.rows_at(epoch, position, rank))

        return call

    def _laid_out(self, batch: dict[str, Any], rows: Rows, lengths: np.ndarray) -> dict[str, Any]:
        tokens = self._pack.tokens
        documents = batch.get(tokens)
        if not isinstance(documents, Ragged):
            fail(self, f"the batch has no documents {tokens!r}; it has {', '.join(batch)}")
        for name in self.adds:
            if name in batch:
                fail(self, f"the batch has a field {name!r} already")
        values = documents.values
        offsets = np.asarray(documents.offsets.cpu() if hasattr(documents.offsets, "cpu") else documents.offsets)
        if (found := np.diff(offsets)).tolist() != lengths.tolist():
            at = int(np.argmax(found != lengths)) if len(found) == len(lengths) else 0
            fail(
                self,
                f"document {at} of the batch has {found[at]} tokens, and its row was planned for {lengths[at]}: an op made "
                "it another length than lengths= or the catalogue say",
            )
        on_host = Ragged(values.cpu() if hasattr(values, "cpu") else np.asarray(values), offsets)
        made = rows.arrays(on_host, self._pack.pad_token)
        laid = {**batch, tokens: _like(values, made["tokens"])}
        for name in self.adds:
            laid[name] = made[name] if name == "max_seqlen" else _like(values, made[name])
        return laid


def lengths_of(pack: Pack, dataset: Dataset) -> np.ndarray:
    """The tokens of each document: int64, of shape ``(documents,)``.

    Raises:
        leat.InvalidArgument: the dataset has no documents of tokens.
    """
    if pack.lengths is not None:
        return told_lengths("leat.Pack", pack.lengths, dataset)
    rows = dataset._dtypes.get(pack.tokens)
    if rows is None or not rows.is_ragged:
        raise InvalidArgument(
            f"leat.Pack packs documents of tokens, and the field {pack.tokens!r} of this dataset has none; give "
            "leat.Dataset.tokens(…, eos=…), whose samples are documents; or lengths=, if an op makes the tokens"
        )
    return dataset.lengths(pack.tokens) // rows.dtype.itemsize
