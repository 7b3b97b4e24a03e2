"""Segments of sound, and clips of video, at random places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from leat.errors import InvalidArgument

if TYPE_CHECKING:
    from leat._dataset import Dataset


class SegmentSampler:
    """The ``sampler=`` that draws segments or clips of each file anew in each epoch, in a random order.

        dataset = leat.Dataset.audio("s3://bucket/speech", seconds=4, stride=0.25, drawn=True)
        loader = leat.Loader(dataset, sampler=leat.SegmentSampler(dataset), batch_size=32)

    Which segments an epoch has, and where each stands, is a function of the seed, the epoch and
    the files, for any number of ranks and after any resume.

    Args:
        dataset: of `leat.Dataset.audio` or `leat.Dataset.video`, or a part of it. A segment begins at one of its samples,
            so that ``stride=`` of the dataset says how finely places are drawn.
        per_file: segments of each file in an epoch.
        seed: the same on all ranks.

    Raises:
        leat.InvalidArgument: the dataset has no ``file``, or a number is none.
    """

    def __init__(self, dataset: Dataset, *, per_file: int = 1, seed: int = 0) -> None:
        for name, value, least in (("per_file", per_file, 1), ("seed", seed, 0)):
            if type(value) is not int or not least <= value < 1 << 63:
                raise InvalidArgument(f"{name}={value!r}; it is a whole number from {least}")
        if dataset.fields.get("file") != "int64":
            raise InvalidArgument(
                f"{dataset!r} has no column 'file' that tells which samples are of one file; "
                "leat.Dataset.audio(…) and leat.Dataset.video(…) make such datasets"
            )
        files = np.asarray(dataset.column("file"))
        self._samples = np.argsort(files, kind="stable")
        _, firsts, counts = np.unique(files[self._samples], return_index=True, return_counts=True)
        self._firsts, self._counts = np.repeat(firsts, per_file), np.repeat(counts, per_file)
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """The loader calls it before each epoch."""
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._firsts)

    def __iter__(self) -> Iterator[int]:
        # The numbers of the generator itself: those of NumPy's distributions may change with its version.
        draws = np.random.Philox(key=np.array([self._seed, self._epoch], np.uint64)).random_raw(2 * len(self))
        shares = (draws[: len(self)] >> np.uint64(11)).astype(np.float64) / 2.0**53
        places = np.minimum((shares * self._counts).astype(np.int64), self._counts - 1)
        chosen = self._samples[self._firsts + places]
        return iter(chosen[np.argsort(draws[len(self) :], kind="stable")].tolist())
