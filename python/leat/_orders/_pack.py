"""Documents of unequal length in rows of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional

import numpy as np

from leat import _native
from leat._arguments import checks_names, count
from leat._batches._ragged import Ragged
from leat._orders._balance import Balance
from leat.errors import InvalidArgument

_METHODS = ("best_fit", "first_fit", "concat_then_split")
_LONG = ("split", "truncate", "raise")
_BINS = 64
_ADDS = ("segment_ids", "positions", "labels", "cu_seqlens", "max_seqlen")


@checks_names()
@dataclass(frozen=True)
class Pack:
    """A loader's ``sampler=`` that packs documents of tokens into rows of `capacity` tokens, so
    that little is padded. Use it with ``train=``, or with ``shuffle=`` True or False.

        documents = leat.Dataset.tokens("s3://bucket/corpus", dtype="uint16", seq_len=2**20, eos=0)
        loader = leat.Loader(documents, batch_size=8, train=True, sampler=leat.Pack(8192),
                             fields=("tokens",))
        for tokens, segment_ids, positions in loader: ...  # Each of shape (8, 8192).

    ``batch_size`` and ``global_batch_size`` count rows. An epoch packs all documents, in an
    order of (seed, epoch); its rows are the same at any world size, and a state resumes at
    exactly the next row. Documents are read whole, each by itself.

    After the other fields, a batch has what `adds` names; or if ``fields=`` names some of
    that, those alone and in its order:

    - ``segment_ids``: int32, of the tokens' shape ``(rows, capacity)``: 1, 2, … for the
      documents of each row, 0 in padding.
    - ``positions``: int32, of the same shape: the place in the document, or in its piece.
    - ``labels``: int64, of the same shape: the document's next token; -100 at its last token
      and in padding, as torch's cross_entropy ignores it.
    - ``cu_seqlens``: int32, of shape ``(pieces + 1,)``: a 0, and the end of each piece in all
      rows end to end, as FlashAttention takes them. Padding counts as a piece.
    - ``max_seqlen``: int: the tokens of the longest piece.

    Args:
        capacity: the tokens of a row.
        method: ``"best_fit"`` puts a document into the open row with the least room that is
            enough, ``"first_fit"`` into the first with enough room. ``"concat_then_split"``
            puts documents end to end and cuts them where a row is full.
        bins: the rows that are open at a time; None for 64. More waste less padding. Not
            for ``"concat_then_split"``.
        max_sequences: the most documents of a row, or pieces of them; None for as many as
            fit.
        long_documents: the fate of a document longer than a row: ``"split"`` makes whole
            rows of it, and the rest is packed as a document of its own; ``"truncate"``
            keeps its first row; ``"raise"`` refuses it.
        tokens: the field with the tokens of a document, as the ops made it.
        lengths: the tokens of each document, if an op makes them, such as a tokenizer: an
            array, see `leat.Dataset.measured`, or the name of a column. None for a field of
            tokens, whose lengths the catalogue has.
        pad_token: the token that fills the rest of a row.
        adds: the fields to add, in that order.
        balance: a `leat.Balance`, which deals the rows of each step so that ranks take
            equally long; None deals them in runs. With several micro-batches, the rows of a
            batch are those of its first micro-batch, then of the next.

    Raises:
        leat.InvalidArgument: an argument has another value.
    """

    capacity: int
    method: Literal["best_fit", "first_fit", "concat_then_split"] = "best_fit"
    bins: Optional[int] = None
    max_sequences: Optional[int] = None
    long_documents: Literal["split", "truncate", "raise"] = "split"
    tokens: str = "tokens"
    lengths: Any = None
    pad_token: int = 0
    adds: Sequence[str] = ("segment_ids", "positions")
    balance: Optional[Balance] = None

    def __post_init__(self) -> None:
        count("capacity", self.capacity, at_least=1, below=2**31)
        _one_of("method", self.method, _METHODS)
        _one_of("long_documents", self.long_documents, _LONG)
        for name, value in (("bins", self.bins), ("max_sequences", self.max_sequences)):
            if value is not None:
                count(name, value, at_least=1, below=2**32)
        if self.method == "concat_then_split":
            for name, unset in (("bins", None), ("long_documents", "split")):
                if getattr(self, name) != unset:
                    raise InvalidArgument(
                        f'{name}={getattr(self, name)!r} with method="concat_then_split", which cuts '
                        f'documents wherever a row is full; leave {name}= out, or choose "best_fit" '
                        'or "first_fit"'
                    )
        names = [self.adds] if isinstance(self.adds, str) else list(self.adds)
        if any(name not in _ADDS for name in names) or len(set(names)) < len(names):
            raise InvalidArgument(f"adds={self.adds!r}; it is some of {', '.join(_ADDS)}, each once")
        object.__setattr__(self, "adds", tuple(names))
        if self.balance is not None and not isinstance(self.balance, Balance):
            raise InvalidArgument(f"balance={self.balance!r}; it is a leat.Balance")

    def rows(self, lengths: Any) -> Rows:
        """The rows of a window of documents, given their lengths in tokens.

        They depend on nothing else. Rows come in the order in which they close. All rows
        close at the end of the window, so the longer a window is, the less it wastes.

        Raises:
            leat.InvalidArgument: a length is no whole number, or below 0; or a document is
                too long, for ``"raise"``.
        """
        found = _native.pack(
            _lengths_of(lengths),
            capacity=self.capacity,
            method=self.method,
            bins=_BINS if self.bins is None else self.bins,
            max_sequences=self.max_sequences or 0,
            long_documents=self.long_documents,
        )
        return Rows(self.capacity, *found)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of pieces of documents, as `Pack.rows` makes them.

    Attributes:
        capacity: the tokens of a row.
        samples: of each piece, the number of its document in the window: int64, as all of
            these arrays.
        begins: the first of its tokens within the document.
        lengths: the number of its tokens.
        offsets: row ``i`` has the pieces ``offsets[i]`` to ``offsets[i + 1]``.
    """

    capacity: int
    samples: np.ndarray
    begins: np.ndarray
    lengths: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def padding(self) -> float:
        """The part of all rows that no document fills."""
        room = len(self) * self.capacity
        return 1 - float(self.lengths.sum()) / room if room else 0.0

    def arrays(self, documents: Ragged, pad_token: int = 0) -> dict[str, Any]:
        """The rows of these documents, as attention kernels for packed sequences take them.

        Returns:
            ``tokens``, of the documents' type, ``segment_ids`` and ``positions``, int32, and
            ``labels``, int64, each of shape ``(rows, capacity)``. Segments count from 1 in
            each row, and positions from 0 in each piece; both are 0 in padding. A label is
            the document's next token, and -100 at its last one and in padding.
            ``cu_seqlens``, int32, has the ends of the pieces in all rows end to end, after
            a 0, and ``max_seqlen`` is the longest; padding at the end of a row counts as a
            piece.

        Raises:
            leat.InvalidArgument: the documents are no tokens, or have other lengths than
                the rows were made of.
        """
        values = np.asarray(documents.values)
        if values.ndim != 1 or documents.shapes is not None:
            raise InvalidArgument(
                f"documents with values of shape {values.shape}; a document is a list of tokens"
            )
        found = _native.fill_packed(
            np.require(values, requirements=("C", "A")),
            np.asarray(documents.offsets),
            self.samples,
            self.begins,
            self.lengths,
            self.offsets,
            capacity=self.capacity,
            pad_token=count("pad_token", pad_token, at_least=-(2**63)),
        )
        names = ("tokens", "segment_ids", "positions", "labels", "cu_seqlens", "max_seqlen")
        return dict(zip(names, found))


def balance(
    costs: Any, ranks: int, micro_batches: int = 1, *, equal_counts: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Deals the sequences or rows of a step to micro-batches of ranks that take equally long.

    Args:
        costs: of each, in proportion to its time, such as the sum of squared lengths.
        ranks: the ranks that meet after each micro-batch.
        micro_batches: those of a rank. For ranks that meet once a step, 1: cut it as you like.
        equal_counts: whether all micro-batches have equally many, or one more.

    Returns:
        The group of each, int64, and the cost of each group, float64, of shape
        ``(micro_batches, ranks)``. Micro-batch ``m`` of rank ``r`` is group
        ``m * ranks + r``.

    Raises:
        leat.InvalidArgument: a cost is negative or no finite number, or a count is not
            above 0.
    """
    costs = np.asarray(costs, np.float64)
    if costs.ndim != 1:
        raise InvalidArgument(f"costs of shape {costs.shape}; give one number for each sequence")
    return _native.balance(
        costs,
        ranks=count("ranks", ranks, at_least=1, below=2**31),
        micro_batches=count("micro_batches", micro_batches, at_least=1, below=2**31),
        equal_counts=equal_counts,
    )


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        *most, last = (f'"{each}"' for each in known)
        raise InvalidArgument(f"{name}={value!r}; it is {', '.join(most)} or {last}")


def _lengths_of(lengths: Any) -> np.ndarray:
    found = np.asarray(lengths)
    if found.size == 0:
        found = found.astype(np.uint64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InvalidArgument(
            f"lengths of {found.dtype} and shape {found.shape}; they are whole numbers, one for each document"
        )
    if found.dtype.kind == "i" and (found < 0).any():
        at = int(np.argmax(found < 0))
        raise InvalidArgument(
            f"document {at} of the window has the length {found[at]}; lengths are 0 or more"
        )
    return found.astype(np.uint64, copy=False)
