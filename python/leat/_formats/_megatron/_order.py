"""The order in which Megatron-LM's GPTDataset and BlendedDataset give samples.

A GPTDataset lays its sequences end to end, in an order that NumPy's RandomState draws, as
often as its samples need; cuts that stream each `seq_len` tokens; and draws an order of the
cuts. A BlendedDataset takes turns among several of these: at each turn, the one that is
furthest behind its weight. All of this is written anew here from that rule, and given in
closed form: the piece of the stream that a sample has needs no table of samples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from leat.errors import InvalidArgument

Part = Literal["train", "valid", "test"]
PARTS = ("train", "valid", "test")

_FINAL_EPOCH_APART_BELOW = 0.80
"""A last epoch that gives fewer than this part of its samples is shuffled by itself."""
_SURPLUS = 0.005
"""The part of its samples that each corpus of a blend has in reserve."""


class Pieces(NamedTuple):
    """Runs of tokens of one sequence each. Those of a sample come one after the other."""

    sequences: np.ndarray
    """The sequence of each: int64, of shape ``(pieces,)``, as all of these."""
    begins: np.ndarray
    """The first token within the sequence."""
    lengths: np.ndarray
    """Tokens, at least one."""
    samples: np.ndarray
    """The place of the sample among those that were asked for."""


class Stream:
    """The samples of a GPTDataset.

    Args:
        sizes: the tokens of each sequence of the corpus.
        chosen: the numbers of the sequences that belong to the part of the data.
        seq_len: tokens from the begin of a sample to that of the next in the stream.
        extra: 1 if a sample has one token more than that, which the next begins with; else 0.
        wanted: the samples that are asked of it; None for those of one epoch. There may be
            more than these.
        seed: of NumPy's RandomState.
        name: for errors.

    Raises:
        leat.InvalidArgument: the tokens are too few for a sample.
    """

    def __init__(
        self, sizes: np.ndarray, chosen: range, seq_len: int, extra: int, wanted: int | None, seed: int, name: str
    ) -> None:
        tokens = int(sizes[chosen.start : chosen.stop].sum(dtype=np.int64))
        epochs = 1 if wanted is None else max(1, -(-(wanted * seq_len + extra) // max(tokens, 1)))
        samples = (epochs * tokens - extra) // seq_len
        if tokens == 0 or samples < 1:
            raise InvalidArgument(
                f"{name}: this part of the corpus has {len(chosen)} sequences with {tokens} tokens, too few for a "
                f"sample of {seq_len + extra}; give a shorter seq_len=, or another split="
            )
        apart = self._samples_before_final(tokens, epochs, seq_len, extra, wanted, samples)
        random = np.random.RandomState(seed)
        numbers = np.arange(chosen.start, chosen.stop, dtype=np.int32)
        rounds = [epochs] if apart == samples else [epochs - 1, 1]
        self._sequences = np.concatenate([_shuffled(np.tile(numbers, count), random) for count in rounds])
        self._ends = np.cumsum(sizes[self._sequences], dtype=np.int64)
        self._order = np.concatenate([
            _shuffled(np.arange(first, last, dtype=np.int64), random)
            for first, last in ((0, apart), (apart, samples)) if last > first or first == 0
        ])  # fmt: skip
        self._seq_len, self._extra = seq_len, extra

    @staticmethod
    def _samples_before_final(
        tokens: int, epochs: int, seq_len: int, extra: int, wanted: int | None, samples: int
    ) -> int:
        """The samples that are shuffled together; those after them are by themselves."""
        if epochs == 1 or wanted is None:
            return samples
        before = ((epochs - 1) * tokens - extra) // seq_len
        of_one = (tokens - extra) // seq_len
        is_apart = wanted - before < int(_FINAL_EPOCH_APART_BELOW * of_one)
        return before if is_apart else samples

    def __len__(self) -> int:
        return len(self._order)

    def pieces(self, count: int) -> Pieces:
        """The pieces of the first `count` samples, in their order."""
        first_token = self._order[:count] * self._seq_len
        last_token = first_token + (self._seq_len + self._extra - 1)
        first = np.searchsorted(self._ends, first_token, side="right")
        pieces_of = np.searchsorted(self._ends, last_token, side="right") - first + 1
        samples = np.repeat(np.arange(count), pieces_of)
        at = np.arange(len(samples)) + np.repeat(first - np.cumsum(pieces_of) + pieces_of, pieces_of)
        starts = np.where(at > 0, self._ends[at - 1], 0)
        begins = np.maximum(starts, first_token[samples])
        lengths = np.minimum(self._ends[at], last_token[samples] + 1) - begins
        has_some = lengths > 0  # A sequence may be empty.
        found = Pieces(self._sequences[at].astype(np.int64), begins - starts, lengths, samples)
        return Pieces(*(each[has_some] for each in found))


def _shuffled(numbers: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    random.shuffle(numbers)
    return numbers


def part_of(split: str | None, part: Part, sequences: int) -> range:
    """The sequences of the train, valid or test part of a corpus, as Megatron's ``--split`` says.

    Raises:
        leat.InvalidArgument: `split` is no such text, or gives that part nothing.
    """
    if part not in PARTS:
        raise InvalidArgument(f'part={part!r}; it is "train", "valid" or "test"')
    if split is None:
        return range(sequences)
    try:
        shares = [float(share) for share in re.findall(r"[.0-9]+", split)]
    except (TypeError, ValueError):
        shares = []
    if not 1 <= len(shares) <= len(PARTS) or not 0 < sum(shares) < math.inf:
        raise InvalidArgument(f'split={split!r}; it has the shares of train, valid and test, such as "969,30,1"')
    normal = normalized([*shares, *[0.0] * (len(PARTS) - len(shares))])
    ends = [0.0]
    for share in normal:
        ends.append(ends[-1] + share)
    begin, end = ends[PARTS.index(part)], ends[PARTS.index(part) + 1]
    if end <= begin:
        raise InvalidArgument(f"split={split!r} gives nothing to part={part!r}")
    return range(round(begin * float(sequences)), round(end * float(sequences)))


def normalized(weights: Sequence[float]) -> list[float]:
    """Weights that add up to 1, with the rounding that NumPy's sum has."""
    found = np.asarray(weights, np.float64)
    return (found / found.sum()).tolist()


def blend_of(url: Sequence[object]) -> tuple[list[str], list[float] | None]:
    """The paths and weights of a ``--data-path``: ``w1 path1 w2 path2``, or paths alone.

    Raises:
        leat.InvalidArgument: some have weights and others none, or a weight is not above 0.
    """
    words = [str(word).strip() for word in url]
    if not words:
        raise InvalidArgument("a blend of no corpora; give [weight, path, weight, path, …]")
    if len(words) % 2:
        return words, None
    weights = [_number(word) for word in words[::2]]
    if all(weight is None for weight in weights):
        return words, None
    for word, weight in zip(words[::2], weights):
        if weight is None or not 0 < weight < math.inf:
            raise InvalidArgument(
                f"a blend has {word!r} where a weight belongs, a number above 0; give [weight, path, weight, path, …]"
            )
    return words[1::2], [weight for weight in weights if weight is not None]


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


class Wanted(NamedTuple):
    """The samples that a blend asks of its corpora."""

    of_each: list[int | None]
    """None: those of one epoch."""
    of_all: int | None
    """None: as many as there are."""


def wanted_of(weights: Sequence[float] | None, samples: int | None, corpora: int) -> Wanted:
    """The samples that a blend asks of its corpora.

    Raises:
        leat.InvalidArgument: weights without a number of samples.
    """
    if weights is None:
        return Wanted([None] * corpora, samples)
    if samples is None:
        raise InvalidArgument("a blend by weights has no end of its own; give samples=, of all steps together")
    targets = [math.ceil(samples * weight) for weight in weights]
    return Wanted([math.ceil(target * (1 + _SURPLUS)) for target in targets], sum(targets))


def turns_by_weight(weights: Sequence[float], turns: int) -> np.ndarray:
    """The corpus of each turn: the one that is furthest behind its weight; int64."""
    had = [0] * len(weights)
    chosen = np.empty(turns, np.int64)
    for turn in range(turns):
        so_far = float(max(turn, 1))
        behind = [weight * so_far - count for weight, count in zip(weights, had)]
        corpus = behind.index(max(behind))
        chosen[turn] = corpus
        had[corpus] += 1
    return chosen


def turns_of_all(sizes: Sequence[int]) -> np.ndarray:
    """The same by their sizes, until each sample of each corpus has come once."""
    total = sum(sizes)
    weights, left = [size / float(total) for size in sizes], list(sizes)
    had, open_ones = [0] * len(sizes), [corpus for corpus, size in enumerate(sizes) if size]
    chosen = np.empty(total, np.int64)
    for turn in range(total):
        so_far = float(max(turn, 1))
        corpus = max(open_ones, key=lambda each: (weights[each] * so_far - had[each], -each))
        chosen[turn] = corpus
        had[corpus] += 1
        left[corpus] -= 1
        if left[corpus] == 0:
            open_ones.remove(corpus)
    return chosen
