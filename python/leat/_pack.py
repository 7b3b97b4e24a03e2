"""Documents packed into rows of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Optional

import numpy as np

from leat import _native
from leat._arguments import checks_names, count
from leat.errors import InvalidArgument

Method = Literal["best_fit", "first_fit", "concat_then_split"]
LongDocument = Literal["split", "truncate", "raise"]

_METHODS = ("best_fit", "first_fit", "concat_then_split")
_LONG = ("split", "truncate", "raise")
_ADDS = ("document_ids", "position_ids", "labels", "cu_seqlens", "max_seqlen")


@checks_names()
@dataclass(frozen=True)
class Pack:
    """A loader's ``sampler=`` that packs documents of tokens into rows of one length, so that
    little is padded. Use it with ``train=``, or with ``shuffle=`` True or False.

        documents = leat.Dataset.tokens("s3://bucket/corpus", dtype="uint16", seq_len=2**20, eos=0)
        loader = leat.Loader(documents, batch_size=8, train=True, sampler=leat.Pack(8192),
                             fields=("tokens",))
        for tokens, document_ids, position_ids in loader:  # Each [8, 8192].

    ``batch_size`` and ``global_batch_size`` count rows. The rows of an epoch are a function of
    (seed, epoch), at any world size. Behind the other fields, batches get what `adds` names:

    - ``document_ids``: int32 ``(rows, length)``: 0, 1, 2, … in each row, and -1 in padding.
    - ``position_ids``: int64 ``(rows, length)``: the place in the document, or in its part.
    - ``labels``: int64 ``(rows, length)``: the next token of the document; -100 at its last
      token and in padding, as torch's cross_entropy ignores it.
    - ``cu_seqlens``: int32 ``(documents + 1,)``: where each document of the flattened batch
      begins, and the end. The padding of a row counts as a document of its own.
    - ``max_seqlen``: int: the longest of these.

    Args:
        length: tokens of a row.
        method: ``"best_fit"`` puts a document into the open row with the least room that is
            enough, ``"first_fit"`` into the first with room. ``"concat_then_split"`` lays
            documents end to end and cuts them where a row is full: no padding, but most rows
            begin within a document.
        bins: the number of open rows. More waste less padding.
        max_sequences: the most documents in a row; None for as many as fit.
        long_document: ``"split"`` cuts a document that is longer than a row, ``"truncate"``
            loses what is beyond a row, ``"raise"`` raises an error.
        tokens: the field with the documents' tokens.
        adds: the fields that are added, in that order.

    Raises:
        leat.InvalidArgument: a value that cannot be.
    """

    length: int
    method: Method = "best_fit"
    bins: int = 64
    max_sequences: Optional[int] = None
    long_document: LongDocument = "split"
    tokens: str = "tokens"
    adds: Sequence[str] = ("document_ids", "position_ids")

    def __post_init__(self) -> None:
        count("length", self.length, at_least=1, below=2**31)
        count("bins", self.bins, at_least=1, below=2**20)
        if self.max_sequences is not None:
            count("max_sequences", self.max_sequences, at_least=1, below=2**31)
        for name, value, known in (("method", self.method, _METHODS), ("long_document", self.long_document, _LONG)):
            if value not in known:
                raise InvalidArgument(f"{name}={value!r}; it is one of {', '.join(known)}")
        if self.method == "concat_then_split" and self.long_document != "split":
            raise InvalidArgument(
                f"long_document={self.long_document!r}: concat_then_split cuts all documents; leave it out"
            )
        names = [self.adds] if isinstance(self.adds, str) else list(self.adds)
        if any(name not in _ADDS for name in names) or len(set(names)) < len(names):
            raise InvalidArgument(f"adds={self.adds!r}; it is some of {', '.join(_ADDS)}, each once")
        object.__setattr__(self, "adds", tuple(names))

    def rows(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The rows of documents with these lengths, in tokens.

        Returns:
            For each part of a document, row by row: the number of the document, where in it
            the part begins, and its length; and where each row begins among the parts, and
            the end.
        """
        return _native.pack(
            np.asarray(lengths, np.uint64), self.length, self.method, self.bins, self.max_sequences or 0, self.long_document
        )
