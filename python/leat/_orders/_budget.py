"""Steps with as many samples as a budget of tokens holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from leat._arguments import checks_names, count
from leat._orders._balance import Balance
from leat.errors import InvalidArgument

_BUCKETS = 16
_MOST_BUCKETS = 1024
_LONG = ("raise", "drop")
_ADDS = ("micro_batches",)

Buckets = Union[int, Sequence[float], None]


@checks_names()
@dataclass(frozen=True, eq=False)
class TokenBudget:
    """A loader's ``sampler=`` that puts as many samples into a micro-batch as fit a budget of
    tokens, so that their number varies. Use it with ``train=``, or with ``shuffle=`` True or
    False.

        documents = leat.Dataset.tokens("s3://bucket/corpus", dtype="uint16", seq_len=2**20, eos=0)
        loader = leat.Loader(documents, train=True, sampler=leat.TokenBudget(8192), fields=("tokens",))
        for (tokens,) in loader: ...  # A leat.Ragged of at most 8192 tokens.

    ``batch_size`` and ``global_batch_size`` count micro-batches; without them, a step has one
    for each rank. So a rank's batch has at most ``batch_size`` times `max_tokens`. An epoch
    has each sample once, and all ranks have equally many steps. The micro-batches are the
    same at any number of ranks, and those of a step depend on (seed, epoch, global batch).
    A state resumes at exactly the next step.

    Args:
        max_tokens: the most tokens of a micro-batch.
        lengths: the length of each sample: the name of a field of tokens, or of a column of
            whole numbers; or an array of shape ``(samples,)``.
        padded: whether padding counts, as in batches that are padded to their longest
            sample. Micro-batches of a bucket then have equally many samples: as many as
            would fit if all were as long as the bucket's longest. Otherwise the lengths are
            added up.
        buckets: a step has samples of one bucket. A number of buckets, whose bounds follow
            from the lengths; or the longest length of each, rising. None for 16 if padding
            counts, else for a single one.
        max_samples: the most samples of a micro-batch; None for as many as fit.
        long_samples: the fate of a sample longer than `max_tokens`: ``"raise"`` refuses it,
            ``"drop"`` leaves it out, and a log line says how many.
        adds: ``"micro_batches"`` adds a field: int32, of shape ``(micro-batches + 1,)``;
            micro-batch ``m`` of the batch has the samples ``micro_batches[m]`` to
            ``micro_batches[m + 1]``.
        balance: a `leat.Balance`, which deals the samples of each step so that ranks take
            equally long, within their budgets; None: in runs.

    Raises:
        leat.InvalidArgument: an argument has another value; later, in a loader: no such
            lengths, or a sample that is too long.
    """

    max_tokens: int
    lengths: Union[str, Any] = "tokens"
    padded: bool = False
    buckets: Buckets = None
    max_samples: Optional[int] = None
    long_samples: str = "raise"
    adds: Sequence[str] = ()
    balance: Optional[Balance] = None

    def __post_init__(self) -> None:
        count("max_tokens", self.max_tokens, at_least=1, below=2**31)
        if not isinstance(self.padded, bool):
            raise InvalidArgument(f"padded={self.padded!r}; it is True or False")
        if self.max_samples is not None:
            count("max_samples", self.max_samples, at_least=1, below=2**31)
        if self.long_samples not in _LONG:
            raise InvalidArgument(f'long_samples={self.long_samples!r}; it is "raise" or "drop"')
        if self.balance is not None and not isinstance(self.balance, Balance):
            raise InvalidArgument(f"balance={self.balance!r}; it is a leat.Balance")
        names = [self.adds] if isinstance(self.adds, str) else list(self.adds)
        if any(name not in _ADDS for name in names) or len(set(names)) < len(names):
            raise InvalidArgument(f'adds={self.adds!r}; it may have "micro_batches"')
        object.__setattr__(self, "adds", tuple(names))
        self._check_buckets()

    def _check_buckets(self) -> None:
        if self.buckets is None:
            return
        if hasattr(self.buckets, "__index__"):
            count("buckets", self.buckets, at_least=1, below=_MOST_BUCKETS + 1)  # type: ignore[arg-type]
            return
        try:
            bounds = np.asarray(self.buckets, np.float64)
        except (TypeError, ValueError):
            bounds = np.empty(0)
        if bounds.ndim != 1 or not 1 <= len(bounds) <= _MOST_BUCKETS or (np.diff(bounds) <= 0).any():
            raise InvalidArgument(
                f"buckets={self.buckets!r}; it is a number of them, or their longest lengths, rising"
            )

    @property
    def bucket_count(self) -> int | None:
        """None: bounds are given."""
        if self.buckets is None:
            return _BUCKETS if self.padded else 1
        return self.buckets.__index__() if hasattr(self.buckets, "__index__") else None

    def lengths_of(self, dataset: Any) -> np.ndarray:
        """The length of each sample: int64, of shape ``(samples,)``."""
        return lengths_of("TokenBudget", self.lengths, dataset)


def lengths_of(whose: str, lengths: Any, dataset: Any) -> np.ndarray:
    """The length of each sample, given a field's name or an array: int64, of shape ``(samples,)``."""
    found, told = lengths, "lengths="
    if isinstance(found, str):
        told = f"lengths={found!r}"
        found = _named(whose, found, dataset)
    if hasattr(found, "detach"):  # A torch tensor.
        found = found.detach().cpu().numpy()
    array = np.asarray(found)
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.rint(array)).all():
        array = array.astype(np.int64)
    if array.shape != (len(dataset),) or array.dtype.kind not in "iu":
        raise InvalidArgument(
            f"{whose}: {told} is of {array.dtype} and shape {array.shape}, and the dataset has {len(dataset)} "
            "samples; give a whole number for each (seconds as milliseconds, for example)"
        )
    array = array.astype(np.int64)
    if (array < 0).any():
        at = int(np.argmax(array < 0))
        raise InvalidArgument(f"{whose}: sample {at} has the length {array[at]}; lengths are 0 or more")
    return array


def _named(whose: str, name: str, dataset: Any) -> np.ndarray:
    rows = dataset._dtypes.get(name)
    if rows is not None and rows.is_ragged:
        return dataset.lengths(name) // rows.dtype.itemsize
    if dataset.fields.get(name) in ("int64", "float64"):
        return dataset.column(name)
    numbers = [each for each, kind in dataset.fields.items() if kind in ("int64", "float64")]
    raise InvalidArgument(
        f"{whose}: lengths={name!r} is no field of tokens and no column of numbers; columns are "
        f"{', '.join(numbers) or 'not there'}. Give one, or an array, such as dataset.lengths(field) for bytes or dataset.measured(field, …) for what a function says"
    )
