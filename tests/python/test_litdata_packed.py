"""LitData's chunks that are read whole: compressed ones, and Arrow tables."""

from __future__ import annotations

import json
import pathlib
import struct
import tracemalloc

import numpy as np
import pyarrow
import pytest

import leat
from leat._formats._litdata import _index as _litdata, _chunks as _litdata_chunks, _packed as _litdata_packed
from leat.ops import ParseJson, ParseText
from litdata_writer import PACKS, arrow_of, change_index, chunk_of, write_arrow, write_litdata, write_packed

MIB = 2**20
SHAPE = {"image": "image:png", "label": "int"}
SAMPLES = [(bytes([number]) * 300, struct.pack("<q", number - 30)) for number in range(60)]


@pytest.mark.parametrize("kind", PACKS)
def test_compressed_chunks(tmp_path, fresh_cache, kind):
    folder = write_packed(tmp_path / kind, kind, SAMPLES, SHAPE)
    dataset = leat.Dataset(folder)
    assert [found["image"] for found in dataset] == [each[0] for each in SAMPLES]
    assert [found["label"] for found in dataset] == list(range(-30, 30))


@pytest.mark.parametrize("kind", [*PACKS, "arrow"])
def test_each_packed_chunk_is_read_about_once(tmp_path, fresh_cache, serve, kind):
    rng = np.random.default_rng(5)
    rows = [{"raw": rng.bytes(20_000), "n": number} for number in range(240)]
    shape = {"raw": "bytes", "n": "int"}
    if kind == "arrow":
        folder = write_arrow(tmp_path / "bucket", rows, shape, each=20)
    else:
        samples = [(row["raw"], struct.pack("<q", row["n"])) for row in rows]
        folder = write_packed(tmp_path / "bucket", kind, samples, shape, each=20)
    served = serve(folder)
    dataset = leat.Dataset(served.url, **served.options)
    found = []
    for world in (1, 2, 8):
        served.reset()
        seen, hashes = [], 0
        for rank in range(world):
            with leat.Loader(
                dataset, global_batch_size=24, shuffle=True, ids=True, output="numpy", epochs=1, fields=("raw", "n", "index"),
                rank=rank, world_size=world,
            ) as loader:  # fmt: skip
                for raws, numbers, index, *_ in loader:
                    assert numbers.tolist() == index.tolist()
                    assert [raw.tobytes() for raw in raws] == [rows[number]["raw"] for number in index]
                    seen += index.tolist()
                hashes += int(loader.stats()[-1]["content_hash"], 16)
        found.append((sorted(seen), hashes % 2**128))
        assert served.counters()["get"] <= 12 * world, world
    assert found[0] == found[1] == found[2] and found[0][0] == list(range(240))
    path = next(folder.glob("chunk-0-3*"))
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(leat.Corrupt, match=r"chunk-0-3"):
        list(leat.Dataset.litdata(served.url, **served.options))


ROWS = [{"a": number, "b": {"c": "é" * (number % 3), "d": [1] * (number % 4)}, "e": number / 2, "f": bytes(number % 5)}
        for number in range(60)]  # fmt: skip
ROW_SHAPE = {"a": "int", "b": {"c": "str", "d": "json"}, "e": "float", "f": "bytes"}


def write_damaged(folder: pathlib.Path, kind: str) -> pathlib.Path:
    if kind == "arrow":
        return write_arrow(folder, ROWS, ROW_SHAPE, each=40)
    if kind == "arrow-zstd":
        return write_arrow(folder, ROWS, ROW_SHAPE, each=40, options=pyarrow.ipc.IpcWriteOptions(compression="zstd"))
    return write_packed(folder, kind, SAMPLES, SHAPE)


@pytest.mark.parametrize("kind", [*PACKS, "arrow", "arrow-zstd"])
def test_packed_chunks_that_are_damaged(tmp_path, fresh_cache, kind):
    folder = write_damaged(tmp_path / kind, kind)
    path = next(folder.glob("chunk-0-1*"))
    whole = path.read_bytes()
    index = _litdata.parse((folder / "index.json").read_bytes(), "index.json")
    names = frozenset(leaf.name for leaf in index.leaves)

    def places_in(data: bytes) -> list:
        made = _litdata_packed.unpack(kind.partition("-")[0], data, 10 * MIB, index.leaves, names)
        return _litdata_chunks.scan_chunk(
            index.chunks[1], len(made), index.leaves, index.leaves, lambda at, length: made[at : at + length]
        )

    good = places_in(whole)
    for size in {*range(0, min(len(whole), 200)), *range(0, len(whole), 71), *range(len(whole) - 40, len(whole))}:
        with pytest.raises(leat.Corrupt):
            places_in(whole[:size])
    rng = np.random.default_rng(1)
    caught = 0
    for place in [*range(min(len(whole), 400)), *rng.integers(len(whole), size=1000), *range(len(whole) - 400, len(whole))]:
        spoilt = bytearray(whole)
        spoilt[place] ^= 1 << rng.integers(8)
        try:  # Values have no checksums, and may be anything; what says where they lie may not.
            found = places_in(bytes(spoilt))
        except (leat.Corrupt, leat.InvalidArgument):
            caught += 1
        else:
            assert len(found) == len(good) and all(len(lengths) == index.chunks[1].samples for _, lengths in found), place
    assert caught > 100
    for data in (b"", whole[:30], whole[: len(whole) // 2], whole[:-1], b"x" + whole[1:]):
        path.write_bytes(data)
        if kind != "zstd":
            change_index(folder, lambda index, data=data: index["chunks"][1].update(chunk_bytes=len(data)))
        with pytest.raises(leat.Corrupt, match="chunk-0-1"):
            leat.Dataset.litdata(folder, refresh="always")


@pytest.mark.parametrize("kind", PACKS)
def test_no_more_is_made_than_is_said(kind):
    bomb = bytes(50 * MIB)
    data = PACKS[kind][0]([bomb])
    assert len(data) < 100_000
    assert _litdata_packed.unpack(kind, data, len(bomb) + 12, [], frozenset()) == chunk_of([bomb])
    tracemalloc.start()
    with pytest.raises(leat.Corrupt):
        _litdata_packed.unpack(kind, data, 1000, [], frozenset())
    assert tracemalloc.get_traced_memory()[1] < 10 * MIB
    tracemalloc.stop()


def test_arrow_tables(tmp_path, fresh_cache, monkeypatch):
    folder = write_arrow(tmp_path / "arrow", ROWS, ROW_SHAPE, each=40)
    dataset = leat.Dataset(folder)
    assert list(dataset.fields) == ["a", "b.c", "b.d", "e", "f"]
    for number, found in enumerate(dataset):
        assert (found["a"], found["e"], found["f"]) == (number, number / 2, ROWS[number]["f"])
        assert (found["b.c"].decode(), json.loads(found["b.d"])) == tuple(ROWS[number]["b"].values())
    with leat.Loader(
        folder, batch_size=6, shuffle=True, epochs=1, fields=("a", "b.d", "b.c"), output="numpy",
        ops=[ParseJson("", field="b.d", ragged=True), ParseText("b.c")],
    ) as loader:  # fmt: skip
        for wholes, lists, texts in loader:
            assert [each.tolist() for each in lists] == [[1] * (number % 4) for number in wholes]
            assert texts == ["é" * (number % 3) for number in wholes]
    monkeypatch.setattr(_litdata_packed, "MOST_PACKED_BYTES", 1000)
    with pytest.raises(leat.InvalidArgument, match="chunk-0-0.bin.*chunk_bytes="):
        leat.Dataset.litdata(folder, refresh="always")


def test_tables_of_several_orders_joined(tmp_path, fresh_cache):
    """Each is made with the order of its own index."""
    one = write_arrow(tmp_path / "one", [{"text": "hello world", "label": 1}], {"text": "str", "label": "int"})
    two = write_arrow(tmp_path / "two", [{"label": 7, "text": "good morning"}], {"label": "int", "text": "str"})
    wanted = [(b"hello world", 1), (b"good morning", 7)]
    joined = leat.Dataset.concat([leat.Dataset.litdata(one), leat.Dataset.litdata(two)])
    assert [(found["text"], found["label"]) for found in joined] == wanted
    twice = leat.Dataset.concat([joined, joined.select([1, 0])])
    assert [(found["text"], found["label"]) for found in twice] == [*wanted, *wanted[::-1]]
    with leat.Loader(
        joined, batch_size=1, shuffle=False, epochs=1, fields=("text", "label"), output="numpy", ops=[ParseText("text")]
    ) as loader:
        assert [(texts[0].encode(), int(labels[0])) for texts, labels in loader] == wanted


def test_arrow_tables_with_gaps(tmp_path, fresh_cache):
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3}]
    folder = write_arrow(tmp_path / "arrow", rows, {"a": "int", "b": "str"})
    with pytest.raises(leat.InvalidArgument, match=r"chunk-0-0\.bin: sample 1 has no 'b' \(null\); choose other fields"):
        leat.Dataset(folder)
    assert [found["a"] for found in leat.Dataset.litdata(folder, fields=["a"])] == [1, 2, 3]
    other = write_arrow(tmp_path / "other", [{"a": 1.5}], {"a": "int"})
    with pytest.raises(leat.InvalidArgument, match="sample 0 has a 'a' that is no int"):
        leat.Dataset(other)
    assert list(leat.Dataset.litdata(folder, fields=["a"]).fields) == ["a"]


def test_an_arrow_table_behind_samples_is_left_alone(tmp_path, fresh_cache):
    folder = write_litdata(tmp_path / "chunks", SHAPE, SAMPLES, each=17)
    path = folder / "chunk-0-1.bin"
    samples = path.read_bytes()
    path.write_bytes(samples + arrow_of(ROWS[:17]))
    change_index(folder, lambda index: index["chunks"][1].update(chunk_bytes=path.stat().st_size))
    assert [found["label"] for found in leat.Dataset(folder)] == list(range(-30, 30))
    table = arrow_of(ROWS[:17])
    for behind in (table[:-1] + b"x", b"more" + table, b"more"):
        path.write_bytes(samples + behind)
        change_index(folder, lambda index: index["chunks"][1].update(chunk_bytes=path.stat().st_size))
        with pytest.raises(leat.Corrupt, match=r"chunk-0-1\.bin.*no Arrow table"):
            leat.Dataset.litdata(folder, refresh="always")
