"""MDS, LitData's chunks and TFRecord files in a store that throttles: the same steps at any number of ranks."""

from __future__ import annotations

import pathlib
import struct
import threading

import numpy as np
import pytest

import leat
from leat.ops import ParseFeature
from litdata_writer import write_litdata
from mds_writer import write_mds

FILES, EACH = 60, 16


def values() -> list[tuple[bytes, int]]:
    rng = np.random.default_rng(6)
    return [(rng.bytes(3_000), number) for number in range(FILES * EACH)]


def as_mds(folder: pathlib.Path) -> None:
    samples = [{"data": data, "number": struct.pack("<q", number)} for data, number in values()]
    write_mds(folder, {"data": ("bytes", None), "number": ("int", 8)}, samples, each=EACH)


def as_litdata(folder: pathlib.Path) -> None:
    samples = [(data, struct.pack("<q", number)) for data, number in values()]
    write_litdata(folder, {"data": "bytes", "number": "int"}, samples, each=EACH)


def as_tfrecord(folder: pathlib.Path) -> None:
    tfrecord = pytest.importorskip("tfrecord", reason="the package tfrecord is not in Debian: pip install tfrecord")
    folder.mkdir(parents=True)
    samples = values()
    for file in range(FILES):
        writer = tfrecord.TFRecordWriter(str(folder / f"{file:03}.tfrecord"))
        for data, number in samples[file * EACH : (file + 1) * EACH]:
            writer.write({"data": ([data], "byte"), "number": ([number], "int")})
        writer.close()


@pytest.mark.parametrize("write, ops", [(as_mds, []), (as_litdata, []), (as_tfrecord, [ParseFeature("number")])])
def test_a_store_that_throttles_changes_no_step_of_any_rank(tmp_path, fresh_cache, serve, write, ops):
    write(tmp_path / "served")
    served = serve(tmp_path / "served", most_gets=60)
    dataset = leat.Dataset(served.url, **served.options)
    found = {}
    for world in (1, 2, 8):
        batches: list[list] = [[] for _ in range(world)]
        hashes = [0] * world

        def run(rank, world=world, batches=batches, hashes=hashes):
            with leat.Loader(
                dataset, global_batch_size=96, shuffle=True, ids=True, output="numpy", batch="dict", epochs=1, ops=ops,
                fields=("data", "number"), rank=rank, world_size=world,
            ) as loader:  # fmt: skip
                for batch in loader:
                    assert batch["number"].tolist() == batch["index"].tolist()
                    batches[rank].append(batch["index"].tolist())
                hashes[rank] = int(loader.stats()[-1]["content_hash"], 16)

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(world)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found[world] = [sorted(sum(step, [])) for step in zip(*batches)], sum(hashes) % 2**128
    assert [len(step) for step in found[1][0]] == [96] * 10 and found[1] == found[2] == found[8]
    assert served.counters()["faults"] > 0
