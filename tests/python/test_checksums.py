"""Checksums of samples that `leat index --checksums` keeps, and what is read compared with them."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pathlib
import subprocess

import pytest

import leat
import leat.testing
from small_datasets import tar_of, write
from unwell_bucket import Comings

READING = {"batch_size": 10, "shuffle": True, "epochs": 1, "output": "numpy", "batch": "dict"}


def index(url: object, *flags: str) -> dict:
    done = subprocess.run(
        [leat.testing.find_binary(), "index", str(url), "--json", *flags], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout) | {"said": done.stderr}


def make_shards(folder: pathlib.Path) -> pathlib.Path:
    """Some samples lack a field, and some values are empty."""
    for shard in range(6):
        members = []
        for number in range(41):  # The middle of a shard, where the bucket flips a bit, lies in a value.
            name = f"{shard}-{number:02}"
            members.append((f"{name}.bin", hashlib.shake_128(name.encode()).digest(9000 + 300 * shard + number)))
            members.append((f"{name}.txt", b"" if number % 7 == 0 else name.encode()))
            if number % 3:
                members.append((f"{name}.more", os.urandom(10)))
        write(folder / f"{shard}.tar", tar_of(members))
    return folder


@pytest.fixture
def shards(tmp_path) -> pathlib.Path:
    return make_shards(tmp_path / "data" / "shards")


def contents(loader) -> list[bytes]:
    return sorted(bytes(one) for batch in loader for one in batch["bin"])


def damage(path: pathlib.Path, at: int) -> None:
    """Another bit, and the size as before."""
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_they_change_neither_digest_nor_content(shards):
    plain = index(shards)
    with leat.Loader(shards, fields=["bin", "txt"], **READING) as loader:
        expected = contents(loader)

    checked = index(shards, "--checksums")

    assert not plain["checksums"] and checked["checksums"] and checked["digest"] == plain["digest"]
    assert checked["samples"] == 246
    with leat.Loader(shards, fields=["bin", "txt"], **READING) as loader:
        assert contents(loader) == expected
    assert index(shards)["catalogue"]["source"] == "cache"  # It stays what it is.


@pytest.mark.parametrize("shuffle", [True, False])
def test_bits_that_flip_in_pieces_are_read_again(shards, tmp_path, caplog, shuffle):
    """A piece is a part of an object: the service's checksum says nothing of it."""
    well = Comings(shards.parent)
    well.begin()
    index("s3://shards", "--checksums", "--endpoint-url", well.url, "--no-sign-request")
    storage = {"endpoint_url": well.url, "no_sign_request": True}
    options = {**READING, "shuffle": shuffle, "storage_options": storage, "fields": ["bin"]}
    with leat.Loader("s3://shards", **options) as loader:
        right = contents(loader)
    well.end()
    script = write(tmp_path / "script", b"after 1 GET * flip x3\n")
    unwell = Comings(shards.parent, "--fault-script", str(script), port=well.port)
    unwell.begin()
    try:
        with caplog.at_level(logging.WARNING, "leat"), leat.Loader("s3://shards", **options) as loader:
            assert contents(loader) == right
        assert unwell.counters()["faults"] == 3
        assert unwell.counters()["get"] == 6 + 3
        assert caplog.text.count("have not the checksum") == 1
    finally:
        unwell.end()


def test_damage_is_an_error_that_names_the_object_and_the_remedy(shards):
    index(shards, "--checksums", "--publish")  # Without ETags, which tell of files' times.
    data = leat.Dataset(shards)
    first = data[0]["bin"]
    damage(shards / "0.tar", 600)

    with pytest.raises(leat.Corrupt, match=r"0\.tar .*leat index --checksums.* kept"):
        data[0]
    with leat.Loader(data, fields=["bin"], **READING) as loader, pytest.raises(leat.Corrupt, match=r"0\.tar"):
        contents(loader)
    with leat.Loader(data, fields=["bin"], on_error="substitute", **READING) as loader:
        assert first not in contents(loader)
    assert data[1]["bin"] == leat.Dataset(shards)[1]["bin"]


def test_selections_and_joins_keep_them(shards, tmp_path):
    other = make_shards(tmp_path / "other")
    index(shards, "--checksums", "--publish")
    index(other, "--publish")
    joined = leat.Dataset.concat([leat.Dataset(other), leat.Dataset(shards)])
    chosen = joined.select([0, 246, 247])
    assert chosen[1]["bin"]
    damage(shards / "0.tar", 600)
    damage(other / "0.tar", 600)

    for data, number in ((joined, 246), (chosen, 1)):
        data[0]  # It lies in the other, which has no checksums.
        with pytest.raises(leat.Corrupt, match=r"shards.0\.tar"):
            data[number]


def test_a_listing_that_loses_them_is_told(shards, capfd):
    index(shards, "--checksums")
    write(shards / "6.tar", tar_of([("6-00.bin", b"new"), ("6-00.txt", b"new")]))

    said = index(shards)["said"]

    assert "has no checksums of samples, and the former one had" in said and "--checksums" in said


def test_an_index_that_is_stopped_or_fails_names_the_object(shards, tmp_path):
    bucket = Comings(shards.parent, "--fault-script", str(write(tmp_path / "script", b"after 9 GET * 404 x99\n")))
    bucket.begin()
    try:
        with pytest.raises(subprocess.CalledProcessError) as raised:
            index("s3://shards", "--checksums", "--endpoint-url", bucket.url, "--no-sign-request")
        assert ".tar" in raised.value.stderr
    finally:
        bucket.end()
