"""Adapters of bench/landscape_way.py for loaders whose threads fetch: SPDL and Grain."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from landscape_chain import SEED, finished, number_of
from landscape_ways_torch import Told, getter, listed, mine, obstore_of

SINK = 3  # Batches that wait at the end of SPDL's pipeline.


def spdl(told: Told) -> Iterator[Any]:
    import spdl.pipeline

    told["client"] = "obstore"
    if told["store"] == "bucket":
        import obstore
    yield None
    keys = mine(told, listed(told))
    threads = told["setting"]["threads"]
    if told["store"] == "bucket":
        store = obstore_of(told)

        async def fetch(key: str) -> tuple[str, bytes]:
            return key, bytes(await (await obstore.get_async(store, key)).bytes_async())

        ahead = told["setting"]["ahead"]
    else:
        read, ahead = getter(told), threads

        def fetch(key: str) -> tuple[str, bytes]:  # type: ignore[misc]
            return key, read(key)

    def finish(one: tuple[str, bytes]) -> tuple[int, np.ndarray]:
        return 0 if told["numbered"] is None else number_of(one[0]), finished(told["task"], one[1])

    draw = random.Random(SEED)
    for _ in range(told["epochs"]):
        draw.shuffle(keys)
        built = (
            spdl.pipeline.PipelineBuilder().add_source(list(keys)).pipe(fetch, concurrency=ahead)
            .pipe(finish, concurrency=threads).aggregate(told["batch"]).pipe(stacked).add_sink(SINK)
            .build(num_threads=threads)
        )  # fmt: skip
        with built.auto_stop():
            yield iter(built)


def stacked(samples: list[tuple[int, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([number for number, _ in samples]), np.stack([row for _, row in samples])


class Source:
    """Grain's random access source: each sample is a GET or a file."""

    def __init__(self, told: Told) -> None:
        self._told = {name: value for name, value in told.items() if name != "state_of"}
        self._keys = listed(told)
        self._get: Any = None

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: Any) -> tuple[int, np.ndarray]:
        if self._get is None:  # In the process that uses it.
            self._get = getter(self._told)
        key = self._keys[index]
        return 0 if self._told["numbered"] is None else number_of(key), finished(self._told["task"], self._get(key))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_get": None}


def grain(told: Told) -> Iterator[Any]:
    import grain

    told["client"] = "obstore"
    if told["store"] == "bucket":
        __import__("obstore")
    yield None
    threads, workers = told["setting"]["threads"], told["setting"]["workers"]
    dataset = grain.MapDataset.source(Source(told)).seed(SEED).shuffle()
    if told["ranks"] > 1:
        dataset = dataset[told["rank"] :: told["ranks"]]
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=max(2 * threads, told["batch"]))
    for _ in range(told["epochs"]):
        batches = dataset.to_iter_dataset(options).batch(told["batch"])
        if workers:
            batches = batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
        iterator = iter(batches)
        if told["state"] is not None:
            iterator.set_state(told["state"])
        told["state_of"] = lambda seen, iterator=iterator: iterator.get_state()
        yield iterator


ADAPTERS = {"spdl": spdl, "grain": grain}
