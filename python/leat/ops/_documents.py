"""Documents in windows of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leat._batches._dtypes import is_torch
from leat.ops._mix import BatchOp, _like
from leat.ops._op import fail

_ADDS = ("document_ids", "position_ids", "cu_seqlens")


class Documents(BatchOp):
    """Tells which document each token of a window belongs to, so that attention can stay
    within a document.

        dataset = leat.Dataset.tokens("s3://bucket/corpus", dtype="uint16", seq_len=2048)
        loader = leat.Loader(dataset, batch_size=8, train=True, fields=("tokens",),
                             ops=[Documents(eos=50256)])
        for tokens, document_ids, position_ids in loader: ...

    A document ends with `eos`, which is its last token. The op adds, after the other
    fields, or if the loader's ``fields=`` names some of them, those alone and in its order:

    - ``document_ids``: int32, of the tokens' shape ``(samples, seq_len)``: 0 for the document
      that a window begins with or in, then 1, 2, … Tokens of one window may attend to each
      other where these agree: a block-diagonal mask.
    - ``position_ids``: int64, of the same shape: the place in the document, or in the part of
      it that the window has.
    - ``cu_seqlens``: int32, of shape ``(documents + 1,)``: where each document of the batch
      begins when its windows lie one after the other, and the end, as kernels for sequences of
      unequal length take it. A window begins a document of its own.

    Args:
        eos: the token that ends a document.
        adds: which of these to add, in that order.
        tokens: the field with the tokens.
    """

    def __init__(
        self,
        eos: int,
        *,
        adds: Sequence[str] = ("document_ids", "position_ids"),
        tokens: str = "tokens",
    ) -> None:
        if isinstance(eos, bool) or not hasattr(eos, "__index__") or eos < 0:
            fail(self, f"eos={eos!r} must be a token: a whole number from 0")
        names = [adds] if isinstance(adds, str) else list(adds)
        if not names or any(name not in _ADDS for name in names) or len(set(names)) < len(names):
            fail(self, f"adds={adds!r} must be some of {', '.join(_ADDS)}, each once")
        self.adds = tuple(names)
        super().__init__({"eos": int(eos), "adds": names, "tokens": tokens}, None, None)

    def apply(
        self, batch: dict[str, Any], rng: np.random.Generator, *, is_own: bool = False
    ) -> dict[str, Any]:
        field = self._params["tokens"]
        if field not in batch:
            fail(self, f"the batch has no field {field!r}; it has {', '.join(batch)}")
        for name in self.adds:
            if name in batch:
                fail(self, f"the batch has a field {name!r} already")
        tokens = batch[field]
        if not hasattr(tokens, "ndim") or tokens.ndim != 2:
            fail(
                self,
                f"{field!r} is no array of shape (samples, seq_len); of windows that were cut at "
                "documents, each is of one, and the offsets of leat.Ragged are the cu_seqlens",
            )
        if is_torch(tokens):
            made = _of_torch(tokens, self._params["eos"], self.adds)
        else:
            made = [_like(tokens, each) for each in _of_numpy(np.asarray(tokens), self._params["eos"], self.adds)]
        return {**batch, **dict(zip(self.adds, made))}


def _of_numpy(tokens: np.ndarray, eos: int, adds: Sequence[str]) -> list[np.ndarray]:
    begins = np.zeros(tokens.shape, bool)
    begins[:, 1:] = tokens[:, :-1] == eos
    made: list[np.ndarray] = []
    for name in adds:
        if name == "document_ids":
            made.append(np.cumsum(begins, axis=1, dtype=np.int32))
        elif name == "position_ids":
            places = np.arange(tokens.shape[1])
            made.append(places - np.maximum.accumulate(np.where(begins, places, 0), axis=1))
        else:
            firsts = begins.copy()
            firsts[:, :1] = True
            made.append(np.append(np.flatnonzero(firsts), tokens.size).astype(np.int32))
    return made


def _of_torch(tokens: Any, eos: int, adds: Sequence[str]) -> list[Any]:
    """The same on the tokens' device: nothing waits, except for ``cu_seqlens``."""
    import torch

    begins = torch.zeros(tokens.shape, dtype=torch.bool, device=tokens.device)
    # Not all of torch's unsigned types can be compared.
    begins[:, 1:] = tokens[:, :-1].to(torch.int64) == eos
    made = []
    for name in adds:
        if name == "document_ids":
            made.append(begins.cumsum(1, dtype=torch.int32))
        elif name == "position_ids":
            places = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)
            made.append(places - torch.where(begins, places, 0).cummax(1).values)
        else:
            firsts = begins.clone()
            firsts[:, :1] = True
            end = torch.tensor([tokens.numel()], device=tokens.device)
            made.append(torch.cat((firsts.flatten().nonzero()[:, 0], end)).to(torch.int32))
    return made
