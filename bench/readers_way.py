"""Writes a dataset in another library's format, or reads one through by a loader, for bench/readers_bench.py.

    python bench/readers_way.py '{"do": "write", "library": "litdata", "folder": ..., "samples": ..., …}'
    python bench/readers_way.py '{"do": "read", "library": "streaming", "url": ..., "workers": 4, "ahead": 2, …}'

Prints a line of JSON. Time runs from before a dataset is opened until its last batch is there, with the start of
workers and without imports. Batches are copied, and hashed when the time is over.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

MODULUS = 1 << 128


def row_of(number: int, size: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, size, dtype=np.uint8)


class Row:
    """A sample for LitData, by number; of a module, so that its workers find it."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __call__(self, number: int) -> dict[str, Any]:
        return {"data": row_of(number, self._size), "label": number}


def digest_of(label: int, data: np.ndarray) -> int:
    hashed = hashlib.blake2b(int(label).to_bytes(8, "little"), digest_size=16)
    hashed.update(np.ascontiguousarray(data))
    return int.from_bytes(hashed.digest(), "little")


def write(told: dict[str, Any]) -> dict[str, Any]:
    size, count = told["sample_bytes"], told["samples"]
    if told["library"] == "streaming":
        from streaming import MDSWriter

        columns = {"data": f"ndarray:uint8:{size}", "label": "int"}
        with MDSWriter(columns=columns, out=told["folder"], size_limit=told["shard_bytes"]) as out:
            for number in range(count):
                out.write({"data": row_of(number, size), "label": number})
    else:
        import litdata

        fork_workers()
        litdata.optimize(Row(size), list(range(count)), output_dir=told["folder"], num_workers=1,
                         chunk_bytes=told["shard_bytes"], verbose=False)  # fmt: skip
    return {"digest": f"{sum(digest_of(number, row_of(number, size)) for number in range(count)) % MODULUS:032x}"}


def fork_workers() -> None:
    """LitData's, as in notebooks; and its client is allowed HTTP, which the bench's bucket speaks."""
    import litdata.processing.data_processor
    import litdata.streaming.downloader

    litdata.processing.data_processor.in_notebook = lambda: True
    litdata.streaming.downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = "true"


def streaming_batches(told: dict[str, Any]) -> Iterable[Any]:
    from streaming import StreamingDataLoader, StreamingDataset

    batch = told["batch"]
    dataset = StreamingDataset(remote=told["url"], local=told["local"], shuffle=True, batch_size=batch,
                               predownload=told["ahead"] * batch)  # fmt: skip
    for found in StreamingDataLoader(dataset, batch_size=batch, num_workers=told["workers"]):
        yield found["data"].numpy(), found["label"].numpy()


def litdata_batches(told: dict[str, Any]) -> Iterable[Any]:
    from litdata import StreamingDataLoader, StreamingDataset

    dataset = StreamingDataset(told["url"], cache_dir=told["local"], shuffle=True, max_pre_download=told["ahead"])
    for found in StreamingDataLoader(dataset, batch_size=told["batch"], num_workers=told["workers"]):
        yield found["data"].numpy(), found["label"].numpy()


def leat_batches(told: dict[str, Any]) -> Iterable[Any]:
    import leat

    with leat.Loader(told["url"], batch_size=told["batch"], shuffle=True, epochs=1, drop_last=False, output="numpy",
                     fields=("data", "label")) as loader:  # fmt: skip
        for data, labels in loader:
            rows = data.values.reshape(len(labels), -1) if isinstance(data, leat.Ragged) else data
            yield rows, labels


READERS = {"streaming": streaming_batches, "litdata": litdata_batches, "leat": leat_batches}


def read(told: dict[str, Any]) -> dict[str, Any]:
    if told["library"] != "leat":
        __import__(told["library"])
    if told["library"] == "litdata":
        fork_workers()
    if told["library"] == "leat":
        import leat  # noqa: F401
    began = time.perf_counter()
    first = 0.0
    kept = []
    for data, labels in READERS[told["library"]](told):
        first = first or time.perf_counter() - began
        kept.append((data.copy(), labels.copy()))
    seconds = time.perf_counter() - began
    total = sum(digest_of(label, row) for data, labels in kept for row, label in zip(data, labels))
    samples = sum(len(labels) for _, labels in kept)
    return {"seconds": seconds, "first_batch_s": first, "samples": samples, "digest": f"{total % MODULUS:032x}"}


def main() -> None:
    sys.path += [str(path) for path in (pathlib.Path(sys.prefix) / "peers", pathlib.Path(sys.prefix) / "oracle")]
    sys.path.append(str(pathlib.Path(__file__).parent.parent / "tests" / "python"))
    told = json.loads(sys.argv[1])
    if told["library"] != "leat":
        import torchvision_apart

        torchvision_apart.load()
    print(json.dumps((write if told["do"] == "write" else read)(told)), flush=True)


if __name__ == "__main__":
    main()
