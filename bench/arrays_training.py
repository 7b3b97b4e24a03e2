"""One rank of bench/arrays_bench.py: reads epochs of an HDF5 file in a bucket, as fast as it can.

    arrays_training.py '{"way": "torch" or "leat", "rank": 0, "ranks": 4, "epochs": 3, …}'

Prints one JSON object: the seconds of each epoch, and what the samples add up to, by which the bench sees that
all were there.
"""

from __future__ import annotations

import http.client
import io
import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np


class RangedFile(io.RawIOBase):
    """A file of a bucket: each read of HDF5's is one GET over a connection that stays open."""

    def __init__(self, host: str, path: str, size: int) -> None:
        self._host, self._path, self._size, self._at = host, path, size, 0
        self._connection: http.client.HTTPConnection | None = None

    readable = seekable = lambda self: True  # noqa: E731

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, into: Any) -> int:
        length = max(0, min(len(into), self._size - self._at))
        if length:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self._host)
            self._connection.request("GET", self._path, headers={"Range": f"bytes={self._at}-{self._at + length - 1}"})
            into[:length] = self._connection.getresponse().read()
            self._at += length
        return length


class Samples:
    """A dataset as torch's users write it: the file is opened once in each worker."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job
        self._array: Any = None

    def __len__(self) -> int:
        return int(self._job["samples"])

    def __getitem__(self, number: int) -> tuple[np.ndarray, int]:
        if self._array is None:
            import h5py

            job = self._job
            self._array = h5py.File(RangedFile(job["host"], job["path"], job["size"]), "r")["density"]
        return self._array[number], number


def torch_epochs(job: dict[str, Any]) -> Iterator[Iterable[tuple[Any, Any]]]:
    from torch.utils.data import DataLoader, DistributedSampler

    samples: Any = Samples(job)
    sampler: Any = DistributedSampler(samples, job["ranks"], job["rank"], shuffle=True, seed=1)
    loader = DataLoader(samples, job["batch"], sampler=sampler, num_workers=job["workers"], persistent_workers=True)
    for epoch in range(job["epochs"]):
        sampler.set_epoch(epoch)
        yield ((values.numpy(), numbers.numpy()) for values, numbers in loader)


def leat_epochs(job: dict[str, Any]) -> Iterator[Iterable[tuple[Any, Any]]]:
    import leat

    dataset = leat.Dataset.array(job["url"], variables=["density"])
    cache = leat.Cache(ram=job["cache_bytes"]) if job["cache_bytes"] else None
    with leat.Loader(
        dataset, batch_size=job["batch"], shuffle=True, seed=1, epochs=job["epochs"], fields=("density", "index"),
        output="numpy", drop_last=False, rank=job["rank"], world_size=job["ranks"], cache=cache,
    ) as loader:  # fmt: skip
        for _ in range(job["epochs"]):
            yield loader


def main() -> None:
    job = json.loads(sys.argv[1])
    seconds, sums = [], []
    begin = time.monotonic()
    for epoch in (torch_epochs if job["way"] == "torch" else leat_epochs)(job):
        total = 0
        for values, numbers in epoch:
            # The first value of each sample is its number.
            if not np.array_equal(values[:, 0, 0], numbers.astype(values.dtype)):
                sys.exit("a sample is another one's")
            total += int(numbers.sum())
        end = time.monotonic()
        seconds.append(end - begin)
        sums.append(total)
        begin = end
    print(json.dumps({"seconds": seconds, "sums": sums}))


if __name__ == "__main__":
    main()
