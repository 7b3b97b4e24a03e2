"""Adapters of bench/landscape_way.py for libraries with formats of their own, and what writes these formats."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from landscape_chain import SEED, finished, number_of

Told = dict[str, Any]
SHUFFLED = 1000  # WebDataset's usual buffer.


def writes(told: Told) -> Any:
    """The samples of the data in order, (number, bytes)."""
    source = pathlib.Path(told["source"])
    if told["kind"] == "objects" and source.suffix == ".bin" or told["kind"] == "tokens":
        data = np.memmap(source, np.uint8, "r").reshape(-1, told["size"])
        return ((number, row.tobytes()) for number, row in enumerate(data))
    return ((number_of(path.name), path.read_bytes()) for path in sorted(source.iterdir()))


class Sample:
    """A sample for LitData, by number; of a module, so that its workers find it."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._paths: list[pathlib.Path] = []

    def __call__(self, number: int) -> Any:
        source, size = pathlib.Path(self._told["source"]), self._told["size"]
        if source.is_file():
            with source.open("rb") as file:
                file.seek(number * size)
                data = file.read(size)
        else:
            self._paths = self._paths or sorted(source.iterdir())
            data = self._paths[number].read_bytes()
        if self._told["kind"] == "tokens":
            import torch

            return torch.from_numpy(np.frombuffer(data, np.uint16).astype(np.int32))
        return {"data": data if self._told["kind"] == "jpegs" else np.frombuffer(data, np.uint8), "label": number}


def write(told: Told) -> dict[str, Any]:
    """Writes MDS shards or LitData's chunks of the data."""
    load_torchvision()
    if told["form"] == "mds":
        from streaming import MDSWriter

        kind = {"jpegs": "bytes", "tokens": f"ndarray:uint16:{told['size'] // 2}"}.get(
            told["kind"], f"ndarray:uint8:{told['size']}"
        )
        with MDSWriter(columns={"data": kind, "label": "int"}, out=told["folder"], size_limit=told["shard"]) as out:
            for number, data in writes(told):
                value = (
                    data
                    if kind == "bytes"
                    else np.frombuffer(data, np.uint16 if told["kind"] == "tokens" else np.uint8)
                )
                out.write({"data": value, "label": number})
    else:
        import litdata

        allow_http()
        more = {"item_loader": litdata.TokensLoader(block_size=told["size"] // 2)} if told["kind"] == "tokens" else {}
        litdata.optimize(Sample(told), list(range(told["samples"])), output_dir=told["folder"], num_workers=1,
                         chunk_bytes=told["shard"], verbose=False, **more)  # fmt: skip
    return {"written": told["samples"]}


def allow_http() -> None:
    """LitData's workers are forked, as in notebooks; its client is allowed HTTP, which the bench's bucket speaks."""
    import litdata.processing.data_processor
    import litdata.streaming.downloader

    litdata.processing.data_processor.in_notebook = lambda: True
    litdata.streaming.downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = "true"


def load_torchvision() -> None:
    """Streaming and LitData import torchvision, whose compiled part may not fit this build of torch."""
    import torchvision_apart

    torchvision_apart.load()


def join_ranks(told: Told) -> None:
    """Those two libraries ask torch.distributed which rank this is."""
    if told["ranks"] > 1:
        import torch.distributed

        torch.distributed.init_process_group("gloo", rank=told["rank"], world_size=told["ranks"])


def prepared(told: Told, sample: dict[str, Any]) -> tuple[int, Any]:
    """(number, what is delivered) of a sample as it lies in chunks or shards."""
    data = sample["data"]
    if isinstance(data, (bytes, bytearray)):
        return int(sample["label"]), finished(told["task"], bytes(data))
    return int(sample["label"]), data


def litdata_raw(told: Told) -> Iterator[Any]:
    load_torchvision()
    from litdata import StreamingRawDataset
    from torch.utils.data import DataLoader

    allow_http()

    class Numbered(StreamingRawDataset):  # Its transform sees bytes alone: the number is in the path.
        def __getitems__(self, indices: list[int]) -> Any:
            import torch

            numbers = [0 if told["numbered"] is None else number_of(self.items[i].path) for i in indices]
            return [(number, torch.as_tensor(data)) for number, data in zip(numbers, super().__getitems__(indices))]

    yield None
    dataset = Numbered(f"s3://{told['bucket']}/", cache_dir=told["cache"], cache_files=told["epochs"] > 1,
                       transform=lambda data: finished(told["task"], data))  # fmt: skip
    workers = told["setting"]["workers"]
    loader = DataLoader(
        dataset, told["batch"], shuffle=True, num_workers=workers, persistent_workers=workers > 0 < told["epochs"] - 1
    )
    for _ in range(told["epochs"]):
        yield loader


def litdata(told: Told) -> Iterator[Any]:
    load_torchvision()
    import litdata

    allow_http()
    join_ranks(told)

    class Samples(litdata.StreamingDataset):
        def __getitem__(self, index: Any) -> Any:
            sample = super().__getitem__(index)
            return (0, sample) if told["task"] == "tokens" else prepared(told, sample)

    yield None
    more = {"item_loader": litdata.TokensLoader(block_size=told["size"] // 2)} if told["task"] == "tokens" else {}
    ahead = told["setting"].get("ahead", 2)
    dataset = Samples(f"s3://{told['bucket']}", cache_dir=told["cache"], shuffle=True, max_pre_download=ahead, **more)
    loader = litdata.StreamingDataLoader(dataset, batch_size=told["batch"], num_workers=told["setting"]["workers"])
    if told["state"] is not None:
        loader.load_state_dict(told["state"])
    told["state_of"] = lambda seen: loader.state_dict()
    for _ in range(told["epochs"]):
        yield ((numbers, as_tokens(rows)) for numbers, rows in loader) if told["task"] == "tokens" else loader


def as_tokens(rows: Any) -> np.ndarray:
    return np.asarray(rows).astype(np.uint16)


def streaming(told: Told) -> Iterator[Any]:
    load_torchvision()
    from streaming import StreamingDataLoader, StreamingDataset

    class Samples(StreamingDataset):
        def __getitem__(self, index: Any) -> Any:
            return prepared(told, super().__getitem__(index))

    join_ranks(told)
    yield None
    batch, ahead = told["batch"], told["setting"].get("ahead", 8)
    dataset = Samples(remote=f"s3://{told['bucket']}", local=told["cache"], shuffle=True, batch_size=batch,
                      predownload=ahead * batch)  # fmt: skip
    loader = StreamingDataLoader(dataset, batch_size=batch, num_workers=told["setting"]["workers"])
    if told["state"] is not None:
        loader.load_state_dict(told["state"])
    told["state_of"] = lambda seen: loader.state_dict()
    for _ in range(told["epochs"]):
        yield loader


def webdataset(told: Told) -> Iterator[Any]:
    import webdataset as wds

    yield None
    names = json.loads(pathlib.Path(told["shards"]).read_text())
    place = told["folder"] if told["store"] == "files" else f"{told['url']}/{told['bucket']}"
    cached = {"cache_dir": told["cache"]} if told["epochs"] > 1 else {}
    os.makedirs(told["cache"], exist_ok=True)
    urls = [f"{place}/{name}" for name in names]
    dataset = wds.WebDataset(urls, shardshuffle=len(names), seed=SEED, empty_check=False,
                             nodesplitter=wds.split_by_node, **cached)  # fmt: skip
    field = "jpg" if told["task"] == "pixels" else "bin"
    dataset = dataset.shuffle(SHUFFLED).map(lambda one: (number_of(one["__key__"]), finished(told["task"], one[field])))
    loader = wds.WebLoader(dataset.batched(told["batch"], collation_fn=stacked), batch_size=None,
                           num_workers=told["setting"]["workers"])  # fmt: skip
    for _ in range(told["epochs"]):
        yield loader


def stacked(samples: list[tuple[int, np.ndarray]]) -> tuple[np.ndarray, Any]:
    import torch

    return np.array([number for number, _ in samples]), torch.from_numpy(np.stack([row for _, row in samples]))


ADAPTERS = {"litdata-raw": litdata_raw, "litdata": litdata, "streaming": streaming, "webdataset": webdataset}
