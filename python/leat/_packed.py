"""The order of a loader that packs documents into rows, and its batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leat import _native
from leat._dataset import Dataset
from leat._pack import Pack
from leat.errors import InvalidArgument
from leat.ops._mix import BatchFunction, BatchOp, _like
from leat.ops._op import fail


class PackedOrder:
    """The rows of each epoch, as documents by position: see `leat.Pack`.

    Args:
        documents_of: the documents of an epoch, in the order in which they are packed.
        lengths: tokens of each document of the dataset.
        rows_of_a_step: over all ranks.
    """

    def __init__(
        self, pack: Pack, documents_of: Callable[[int], np.ndarray], lengths: np.ndarray, rows_of_a_step: int
    ) -> None:
        self._pack = pack
        self._documents_of = documents_of
        self._lengths = lengths
        self.rows_of_a_step = rows_of_a_step
        self._epoch = -1
        self._documents = np.empty(0, np.uint64)
        self._begins = np.empty(0, np.uint64)
        self._sizes = np.empty(0, np.uint32)
        self._ends = np.empty(0, np.uint64)

    def set_epoch(self, epoch: int) -> None:
        """Packs the documents of an epoch, unless that is done."""
        if epoch == self._epoch:
            return
        documents = self._documents_of(epoch)
        places, begins, sizes, offsets = self._pack.rows(self._lengths[documents])
        self._documents = documents[places].astype(np.uint64)
        self._begins, self._sizes, self._ends = begins, sizes, offsets[1:].astype(np.uint64)
        self._epoch = epoch

    def order(self) -> np.ndarray:
        """The documents by position; one that was cut comes once for each part."""
        return self._documents

    def ends(self) -> np.ndarray:
        """The end position of each row."""
        return self._ends

    def pieces_at(
        self, epoch: int, position: int, rank: int, world_size: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows that a rank has in the step at a position.

        Returns:
            For each document of the rank's batch where its part begins, and how long it is;
            and where rows begin among them, and end.
        """
        self.set_epoch(epoch)
        first = int(np.searchsorted(self._ends, position, side="right"))
        rows = min(self.rows_of_a_step, len(self._ends) - first)
        share, longer = divmod(rows, world_size)
        mine = first + rank * share + min(rank, longer)
        end = mine + share + (rank < longer)
        edges = np.concatenate(([0], self._ends))[mine : end + 1].astype(np.int64)
        part = slice(edges[0], edges[-1])
        return self._begins[part], self._sizes[part], edges - edges[0]


class PackRows(BatchOp):
    """Lays the documents of a batch in rows, as a `PackedOrder` says."""

    def __init__(self, pack: Pack) -> None:
        self._tokens = pack.tokens
        self._capacity = pack.length
        self.adds = pack.adds
        self._order: PackedOrder | None = None
        self._world_size = 1
        super().__init__({"length": pack.length, "tokens": pack.tokens, "adds": list(pack.adds)}, None, None)

    def expect(self, order: PackedOrder, world_size: int) -> None:
        """From now on batches are of that order."""
        self._order, self._world_size = order, world_size

    def for_batch(self, place: int) -> BatchFunction:
        def call(batch: Any, kind: str, numbers: tuple[int, ...]) -> Any:
            _, epoch, position, rank = numbers
            assert self._order is not None
            return self.laid_out(batch, self._order.pieces_at(epoch, position, rank, self._world_size))

        return call

    def laid_out(self, batch: dict[str, Any], pieces: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[str, Any]:
        ragged = batch.get(self._tokens)
        if ragged is None or not hasattr(ragged, "offsets"):
            fail(self, f"the batch has no documents {self._tokens!r}; it has {', '.join(batch)}")
        for name in self.adds:
            if name in batch:
                fail(self, f"the batch has a field {name!r} already")
        values = ragged.values.cpu() if hasattr(ragged.values, "cpu") else ragged.values
        begins, sizes, rows = pieces
        made = _native.lay_out_rows(
            np.asarray(values), np.asarray(ragged.offsets), begins, sizes, rows, self._capacity, list(self.adds)
        )
        tokens, *added = made
        laid = {**batch, self._tokens: _like(ragged.values, tokens)}
        for name, value in zip(self.adds, added):
            laid[name] = value if name == "max_seqlen" else _like(ragged.values, value)
        return laid


def lengths_of(pack: Pack, dataset: Dataset) -> np.ndarray:
    """The tokens of each document: int64, of shape ``(documents,)``.

    Raises:
        leat.InvalidArgument: the dataset has no documents of tokens.
    """
    rows = dataset._dtypes.get(pack.tokens)
    if rows is None or not rows.is_ragged:
        raise InvalidArgument(
            f"leat.Pack packs documents of tokens, and {pack.tokens!r} of this dataset has none; give "
            "leat.Dataset.tokens(…, eos=…), whose samples are documents"
        )
    return dataset.lengths(pack.tokens) // rows.dtype.itemsize


def shuffled_by(documents: int, seed: int) -> Callable[[int], np.ndarray]:
    """All documents in an order of (seed, epoch)."""

    def order(epoch: int) -> np.ndarray:
        # Philox and a sort of its numbers: the same in all versions of NumPy.
        bits = np.random.Philox(key=np.array([seed, epoch], np.uint64))
        return np.argsort(bits.random_raw(documents), kind="stable")

    return order


def in_order(documents: int) -> Callable[[int], np.ndarray]:
    """All documents as they are numbered, in each epoch."""
    return lambda epoch: np.arange(documents)
