"""Indexes that lie beside shards: used where they fit, else said and passed over."""

from __future__ import annotations

import hashlib
import json
import pathlib
import tarfile

import pytest

import leat
from small_datasets import make_shards, tar_of, write

SAMPLES = 20


def write_index(shard: pathlib.Path, name: str | None = None) -> pathlib.Path:
    """Writes what DALI's wds2idx writes for this shard."""
    samples: dict[str, list[str]] = {}
    with tarfile.open(shard) as tar:
        for member in tar:
            key, _, field = member.name.partition(".")
            entry = f"{field} {member.offset_data} {member.size} {member.name}"
            samples.setdefault(key, []).append(entry)
    lines = [f"v1.2 {len(samples)}", *(" ".join(entries) for entries in samples.values())]
    path = shard.with_suffix(".idx") if name is None else shard.parent / name
    return write(path, ("\n".join(lines) + "\n").encode())


@pytest.fixture
def shards(tmp_path) -> pathlib.Path:
    """Four shards of 2 MB."""
    make_shards(tmp_path / "shards", shards=4, samples=SAMPLES, size=100_000)
    return tmp_path / "shards"


@pytest.fixture
def scanned(shards) -> str:
    return leat.Dataset(shards, refresh="always").digest


def opened(served) -> leat.Dataset:
    served.reset()
    return leat.Dataset(served.url, refresh="always", **served.options)


def test_an_index_spares_the_scan(shards, serve, scanned, caplog):
    served = serve(shards)
    opened(served)
    without = served.counters()
    for path in shards.glob("*.tar"):
        write_index(path)

    dataset = opened(served)

    assert dataset.digest == scanned and len(dataset) == 4 * SAMPLES
    # The index, two headers and the end: not the shard.
    counters = served.counters()
    assert counters["get"] == 4 * 4 and counters["bytes"] < 4 * 8_000
    assert without["bytes"] > 100 * counters["bytes"]
    assert "idx" not in caplog.text


@pytest.mark.parametrize("name", ["000.tar.idx", "000.idx"])
def test_the_names_that_indexes_have(shards, serve, scanned, name):
    write_index(shards / "000.tar", name)
    served = serve(shards)

    assert opened(served).digest == scanned
    assert served.counters()["bytes"] < 3.2 * 2_000_000 + 8_000


def swap_first_two(text: str) -> str:
    return text.replace("000-00000", "x").replace("000-00001", "000-00000")


@pytest.mark.parametrize("spoil, why", [
    (lambda text: text.replace("v1.2", "v1.1"), "v1.2"),
    (lambda text: text.rsplit("\n", 2)[0] + "\n", "missing"),
    (lambda text: swap_first_two(text), "no member 'x.bin'"),
    (lambda text: text.replace("100000", "100001", 1), "no member"),
    (lambda text: f"v1.2 {SAMPLES - 1}\n" + text.split("\n", 1)[1].rsplit("\n", 2)[0] + "\n",
     "goes on behind"),
    (lambda text: "", "v1.2"),
    (lambda text: text + "\0" * 1000, "more"),
])  # fmt: skip
def test_an_index_that_does_not_fit_is_said_and_passed_over(shards, scanned, caplog, spoil, why):
    index = write_index(shards / "000.tar")
    write(index, spoil(index.read_text()).encode())
    write_index(shards / "001.tar")

    assert leat.Dataset(shards, refresh="always").digest == scanned

    said = caplog.text
    assert "1 of 2 indexes" in said and "000.idx" in said and why in said


def test_an_index_of_a_shard_that_was_written_again(shards, caplog):
    write_index(shards / "000.tar")
    write(shards / "000.tar", tar_of([("1.bin", b"new"), ("1.txt", b"new")]))

    dataset = leat.Dataset(shards, refresh="always")

    assert len(dataset) == 3 * SAMPLES + 1 and dataset.key(0) == "1"
    assert "000.idx" in caplog.text


def test_a_shard_cut_short_is_an_error_with_its_index_too(shards):
    write_index(shards / "000.tar")
    whole = (shards / "000.tar").read_bytes().rstrip(b"\0")
    write(shards / "000.tar", whole[: len(whole) // 512 * 512])

    with pytest.raises(leat.Corrupt, match=r"000\.tar.*cut short"):
        leat.Dataset(shards, refresh="always")


def test_what_else_lies_beside_shards_is_no_data(shards, scanned):
    write(shards / "000_stats.json", b"{}")
    write(shards / "000.parquet", b"PAR1")
    write(shards / "sizes.json", b'{"000.tar": 20}')

    assert leat.Dataset(shards, refresh="always").digest == scanned


def test_a_list_of_shards_by_wids(shards, scanned, caplog):
    # As `wids-index create` wrote it; webdataset 1.0 no longer brings that program.
    listed = [
        {"url": path.name, "md5sum": hashlib.md5(path.read_bytes()).hexdigest(),
         "nsamples": SAMPLES, "filesize": path.stat().st_size}
        for path in sorted(shards.glob("*.tar"))
    ]  # fmt: skip
    index = {"__kind__": "wids-shard-index-v1", "wids_version": 1, "name": "x", "shardlist": listed}
    write(shards / "shardindex.json", json.dumps(index, indent=2).encode())

    assert leat.Dataset(shards, refresh="always").digest == scanned
    assert caplog.text == ""

    # It has no offsets: the shards that are there are right.
    write(shards / "004.tar", tar_of([("1.bin", b"new"), ("1.txt", b"new")]))
    assert len(leat.Dataset(shards, refresh="always")) == 4 * SAMPLES + 1
    said = caplog.text
    assert "shardindex.json does not fit" in said and "'004.tar' is not in it" in said
