"""Batches of samples of similar size."""

from __future__ import annotations

from typing import Any

import numpy as np

from leat._arguments import checks_names
from leat._orders._epochs import Arrangement, EpochOrder, Epochs, seeded
from leat.errors import InvalidArgument

_MOST = 1024


@checks_names()
class SizeBuckets:
    """A loader's ``sampler=`` that puts samples of similar size into the same steps, so
    that padding wastes little. Use it with ``train=``, or with ``shuffle=`` True or False.

        dataset = leat.Dataset.from_manifest("s3://photos/list.csv", fields={"image": "path"},
                                             columns=["height", "width"])
        loader = leat.Loader(dataset, global_batch_size=64, train=True, fields=("image",),
                             sampler=leat.SizeBuckets("height", "width"),
                             ops=[DecodeImage(), PadTo(multiple=32)])

    It divides samples into buckets of similar size. In each epoch it shuffles each bucket
    anew, cuts it into steps, and shuffles the steps of all buckets. Samples that do not
    fill a step of their own bucket join those left from its neighbours; an incomplete step
    is the epoch's last. Without shuffling, buckets come from small to large, and samples in
    their order. All ranks have samples of the same bucket in a step. The order is a
    function of (seed, epoch, global batch), at any world size.

    Args:
        by: the dimensions: names of columns of numbers, or one array of shape
            ``(samples,)`` or ``(samples, dimensions)``, such as heights and widths, or
            lengths.
        count: the largest number of buckets; there are fewer if there are few samples or
            few sizes. More buckets waste less padding, and mix less.

    Raises:
        leat.InvalidArgument: no dimensions, or a count outside 1 to 1,024; later, in a
            loader: no such column, or not a size above 0 for each sample.
    """

    def __init__(self, *by: Any, count: int = 16) -> None:
        if not by or (len(by) > 1 and not all(isinstance(each, str) for each in by)):
            raise InvalidArgument(
                f"SizeBuckets{by!r}: give names of columns, such as \"height\", \"width\"; or one array"
            )
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST:
            raise InvalidArgument(f"SizeBuckets: count={count!r}; it is 1 to {_MOST}")
        self.by = by
        self.count = count

    def __repr__(self) -> str:
        by = ", ".join(map(repr, self.by)) if isinstance(self.by[0], str) else "…"
        return f"leat.SizeBuckets({by}, count={self.count})"

    def sizes_of(self, dataset: Any) -> np.ndarray:
        """The sizes of all samples: float64, of shape ``(samples, dimensions)``."""
        if isinstance(self.by[0], str):
            for name in self.by:
                if dataset.fields.get(name) not in ("int64", "float64"):
                    numbers = [n for n, kind in dataset.fields.items() if kind in ("int64", "float64")]
                    raise InvalidArgument(
                        f"SizeBuckets: {name!r} is no column of numbers; there are "
                        f"{', '.join(numbers) or 'none'}. A manifest may have columns of sizes "
                        "(columns=), or give an array of them"
                    )
            sizes = np.stack([dataset.column(name) for name in self.by], 1).astype(np.float64)
        else:
            try:
                sizes = np.asarray(self.by[0], dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise InvalidArgument(f"SizeBuckets: no array of numbers: {error}") from None
            sizes = sizes[:, None] if sizes.ndim == 1 else sizes
        if sizes.ndim != 2 or len(sizes) != len(dataset) or not sizes.shape[1]:
            raise InvalidArgument(
                f"SizeBuckets: sizes of shape {sizes.shape}, and the dataset has {len(dataset)} samples"
            )
        wrong = ~(np.isfinite(sizes) & (sizes > 0)).all(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidArgument(f"SizeBuckets: sample {row} has the size {sizes[row].tolist()}; sizes are above 0")
        return sizes


def divide(sizes: np.ndarray, count: int, at_least: int) -> list[np.ndarray]:
    """Samples in at most `count` buckets of at least `at_least` each, from small to large.

    The bucket that would be padded most is divided in two, where that spares most; and
    again. Each is rising.
    """
    parts = [np.arange(len(sizes))]
    splits = [_best_split(sizes, parts[0], at_least)]
    while len(parts) < count:
        best = max(range(len(parts)), key=lambda part: splits[part][0])
        spared, halves = splits[best]
        if spared <= 0:
            break
        parts[best : best + 1] = halves
        splits[best : best + 1] = [_best_split(sizes, half, at_least) for half in halves]
    return sorted(parts, key=lambda part: (float(sizes[part].max(axis=0).prod()), int(part[0])))


def _best_split(
    sizes: np.ndarray, part: np.ndarray, at_least: int
) -> tuple[float, tuple[np.ndarray, ...]]:
    """How much padding it would spare to divide a bucket, and its halves."""
    mine = sizes[part]
    whole = len(part) * float(mine.max(axis=0).prod())
    best: tuple[float, tuple[np.ndarray, ...]] = (0.0, ())
    for dimension in range(sizes.shape[1]):
        order = np.argsort(mine[:, dimension], kind="stable")
        ordered = mine[order]
        ends = np.flatnonzero(np.diff(ordered[:, dimension])) + 1  # Equal sizes stay together.
        ends = ends[(ends >= at_least) & (ends <= len(part) - at_least)]
        if not len(ends):
            continue
        low = np.maximum.accumulate(ordered, axis=0).prod(axis=1)
        high = np.maximum.accumulate(ordered[::-1], axis=0)[::-1].prod(axis=1)
        spared = whole - ends * low[ends - 1] - (len(part) - ends) * high[ends]
        at = int(np.argmax(spared))
        if spared[at] > best[0]:
            end = int(ends[at])
            best = float(spared[at]), (np.sort(part[order[:end]]), np.sort(part[order[end:]]))
    return best


class InBuckets(Arrangement):
    """Steps of samples of similar size: see `SizeBuckets`."""

    follows_steps = True

    def __init__(self, sampler: SizeBuckets) -> None:
        self._sampler = sampler

    @property
    def columns(self) -> list[str]:
        return [each for each in self._sampler.by if isinstance(each, str)]

    def words(self, seed: int, *, mixes: bool) -> str:
        return seeded("steps of like size", seed, mixes=mixes)

    def order(self, epochs: Epochs) -> EpochOrder:
        return BucketOrder(
            self._sampler.sizes_of(epochs.dataset), self._sampler.count, epochs.rows_of_a_step,
            seed=epochs.seed, shuffles=epochs.mixes,
        )  # fmt: skip


class BucketOrder(EpochOrder):
    """The order of each epoch, as numbers of samples: see `SizeBuckets`."""

    knows_next = True

    def __init__(
        self, sizes: np.ndarray, count: int, global_batch: int, *, seed: int, shuffles: bool
    ) -> None:
        self._batch = global_batch
        self._seed = seed
        self._shuffles = shuffles
        # Most of a bucket of fewer than two steps would be mixed with another's.
        self._buckets = divide(sizes, count, 2 * global_batch)
        self._samples = len(sizes)
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def length(self) -> int:
        return self._samples

    def order(self) -> np.ndarray:
        """Samples by position: a permutation of all."""
        mixed = self._mixed() if self._shuffles else np.concatenate(self._buckets)
        return mixed.astype(np.uint64)

    def _mixed(self) -> np.ndarray:
        # Philox and a sort of its numbers: the same in all versions of NumPy.
        bits = np.random.Philox(key=np.array([self._seed, self._epoch], np.uint64))

        def shuffled(samples: np.ndarray) -> np.ndarray:
            return samples[np.argsort(bits.random_raw(len(samples)), kind="stable")]

        steps, left = [], []
        for bucket in self._buckets:
            mixed = shuffled(bucket)
            whole = len(mixed) // self._batch * self._batch
            steps.append(mixed[:whole].reshape(-1, self._batch))
            left.append(mixed[whole:])
        rest = np.concatenate(left)  # From small to large: neighbours together.
        # The last step may be of any size, or large samples would be dropped most.
        spare = len(rest) % self._batch
        at = int(bits.random_raw()) % (len(rest) // self._batch + 1) * self._batch
        last, rest = rest[at : at + spare], np.delete(rest, np.s_[at : at + spare])
        steps.append(rest.reshape(-1, self._batch))
        together = np.concatenate(steps)
        mixed_steps = together[shuffled(np.arange(len(together)))]
        return np.concatenate([mixed_steps.ravel(), shuffled(last)])
