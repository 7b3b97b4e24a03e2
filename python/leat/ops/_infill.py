"""Documents of tokens whose middle comes last."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import numpy as np

from leat._batches._dtypes import is_torch
from leat._batches._ragged import Ragged
from leat.ops._mix import BatchFunction, BatchOp, _like
from leat.ops._op import fail


class FillInTheMiddle(BatchOp):
    """Moves the middle of documents of tokens to their end, so that a model learns to fill in
    text between a prefix and a suffix (Bavarian et al., "Efficient Training of Language Models
    to Fill in the Middle", 2022).

        loader = leat.Loader(dataset, batch_size=8, train=True, fields=("tokens",),
                             ops=[FillInTheMiddle(prefix=50253, middle=50254, suffix=50255, eos=50256)])

    The op cuts a document at two places, each drawn evenly from all places between its
    tokens, its begin and its end. With PREFIX, SUFFIX and MIDDLE for the three tokens, it
    becomes

    - PREFIX prefix SUFFIX suffix MIDDLE middle, or
    - PREFIX SUFFIX suffix MIDDLE prefix middle, with the probability `spm_rate`.

    `eos` stays in its place after the document. These are three tokens more, and a sample
    keeps its length, so `cut` says which tokens are lost.

    It takes windows of tokens, an array of shape ``(samples, seq_len)``, in which it treats
    each document or part of one by itself; or documents, a `leat.Ragged`, also those that
    `leat.Pack` packs afterwards. Megatron-LM and StarCoder cut between characters, and
    encode the three parts anew; this op has no tokenizer, and cuts between tokens.

    Draws depend only on the seed, the epoch and the tokens of the sample: not on the world
    size, on the position or on a resume. Two samples with the same tokens get the same
    draws within an epoch.

    Args:
        prefix, middle, suffix: the three tokens.
        rate: the probability that a document is changed.
        spm_rate: the probability of the second form for a document that is changed.
        eos: the token that ends a document; None if a sample is one document.
        cut: ``"suffix"``: a document loses the last three tokens of its suffix, and keeps its
            length and place. If the suffix is not longer than three, the document stays as it
            is. ``"end"``: documents grow, and the sample loses as many tokens at its end; so
            does Megatron-LM. A document that `leat.Pack` packs would lose the end of its
            middle, and its `eos`.
        tokens: the field with the tokens.

    Raises:
        leat.InvalidArgument: an argument has another value; later, in a loader: tokens of
            another kind, or whose type is too small for one of the three.
    """

    def __init__(
        self,
        *,
        prefix: int,
        middle: int,
        suffix: int,
        rate: float = 0.5,
        spm_rate: float = 0.5,
        eos: int | None = None,
        cut: Literal["suffix", "end"] = "suffix",
        tokens: str = "tokens",
    ) -> None:
        marks = {"prefix": prefix, "middle": middle, "suffix": suffix, **({} if eos is None else {"eos": eos})}
        for name, mark in marks.items():
            if isinstance(mark, bool) or not hasattr(mark, "__index__") or mark < 0:
                fail(self, f"{name}={mark!r} must be a token: a whole number from 0")
        if len(set(marks.values())) < len(marks):
            fail(self, f"{', '.join(marks)} must be different tokens: {', '.join(map(str, marks.values()))}")
        for name, chance in (("rate", rate), ("spm_rate", spm_rate)):
            if isinstance(chance, bool) or not isinstance(chance, (int, float)) or not 0 <= chance <= 1:
                fail(self, f"{name}={chance!r} must be a probability: 0 to 1")
        params = {
            **{name: int(mark) for name, mark in marks.items()},
            "rate": float(rate),
            "spm_rate": float(spm_rate),
            "cut": self._choice("cut", cut, ("suffix", "end")),
            "tokens": tokens,
        }
        super().__init__(params, None, None)

    def for_batch(self, place: int, *, is_own: bool = False) -> BatchFunction:
        def call(batch: Any, kind: str, numbers: tuple[int, ...]) -> Any:
            if not isinstance(batch, dict):
                fail(self, "it needs the fields by name: put it before other ops of batches")
            seed, epoch, *_ = numbers
            return self._changed(batch, (seed, epoch, place))

        return call

    def apply(
        self, batch: dict[str, Any], rng: np.random.Generator, *, is_own: bool = False
    ) -> dict[str, Any]:
        return self._changed(batch, (int(rng.integers(2**62)),))

    def _changed(self, batch: dict[str, Any], numbers: tuple[int, ...]) -> dict[str, Any]:
        field = self._params["tokens"]
        if field not in batch:
            fail(self, f"the batch has no field {field!r}; it has {', '.join(batch)}")
        given = batch[field]
        is_ragged = isinstance(given, Ragged)
        values = given.values if is_ragged else given
        if not hasattr(values, "ndim") or values.ndim != (1 if is_ragged else 2):
            fail(self, f"{field!r} is neither windows of tokens, of shape (samples, seq_len), nor documents of them")
        made = values.cpu().numpy().copy() if is_torch(values) else np.array(values)
        self._check_type(made.dtype)
        offsets = np.arange(made.shape[0] + 1) * made.shape[1] if not is_ragged else _on_host(given.offsets)
        flat = made.reshape(-1)
        for first, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
            flat[first:end] = self._sample(flat[first:end], numbers)
        told = _like(values, made)
        return {**batch, field: Ragged(told, given.offsets) if is_ragged else told}

    def _check_type(self, dtype: np.dtype) -> None:
        if dtype.kind not in "iu":
            fail(self, f"{self._params['tokens']!r} has the type {dtype}; tokens are whole numbers")
        for name in ("prefix", "middle", "suffix"):
            if self._params[name] > np.iinfo(dtype).max:
                fail(self, f"{name}={self._params[name]} is no number of the tokens' type, {dtype}")

    def _sample(self, tokens: np.ndarray, numbers: tuple[int, ...]) -> np.ndarray:
        """A sample of the same length."""
        told = hashlib.blake2b(repr(numbers).encode(), digest_size=16)
        told.update(tokens.tobytes())
        rng = np.random.Generator(np.random.PCG64(int.from_bytes(told.digest(), "little")))
        eos = self._params.get("eos")
        ends = [len(tokens)] if eos is None else [*np.flatnonzero(tokens == eos).tolist(), len(tokens)]
        parts, first = [], 0
        for end in ends:
            parts += [self._document(tokens[first:end], rng), tokens[end : end + 1]]
            first = end + 1
        return np.concatenate(parts)[: len(tokens)]

    def _document(self, tokens: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        marks = [np.array([self._params[name]], tokens.dtype) for name in ("prefix", "suffix", "middle")]
        is_changed, is_spm = rng.random(2) < (self._params["rate"], self._params["spm_rate"])
        one, other = sorted(rng.integers(0, len(tokens) + 1, 2).tolist())
        if not is_changed or not len(tokens):
            return tokens
        before, middle, after = tokens[:one], tokens[one:other], tokens[other:]
        if self._params["cut"] == "suffix":
            if len(after) <= len(marks):
                return tokens
            after = after[: -len(marks)]
        begin, then, last = marks
        order = [begin, then, after, last, before, middle] if is_spm else [begin, before, then, after, last, middle]
        return np.concatenate(order)


def _on_host(offsets: Any) -> np.ndarray:
    return np.asarray(offsets.cpu() if is_torch(offsets) else offsets)
