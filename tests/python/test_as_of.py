"""as_of=: a dataset as a snapshot of its catalogue has it, kept by `leat index --snapshot`."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import pickle
import subprocess

import pytest

import leat
from leat.testing import find_binary
from small_datasets import make_shards, write

UTC = datetime.timezone.utc


def leat_does(*words: object) -> dict:
    ended = subprocess.run([find_binary(), *map(str, words), "--json"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def dated(folder: pathlib.Path, name: str) -> None:
    """Keeps a snapshot, as if at that time."""
    places = folder / ".leat/catalogues"
    before = set(places.iterdir()) if places.exists() else set()
    leat_does("index", folder, "--snapshot")
    [made] = set(places.iterdir()) - before
    made.rename(places / name)


@pytest.fixture
def history(tmp_path) -> pathlib.Path:
    """Three objects on the first day; a fourth on the second, when another went."""
    for name in ("a/0", "a/1", "b/2"):
        write(tmp_path / "data" / name, name.encode())
    dated(tmp_path / "data", "20260501T120000Z")
    write(tmp_path / "data/b/3", b"b/3")
    (tmp_path / "data/a/0").unlink()
    dated(tmp_path / "data", "20260502T120000Z")
    write(tmp_path / "data/c/4", b"c/4")
    return tmp_path / "data"


def keys(dataset: leat.Dataset) -> list[str]:
    return [dataset.key(number) for number in range(len(dataset))]


def test_the_last_snapshot_of_then_or_before_counts(history):
    first, second = ["a/0", "a/1", "b/2"], ["a/1", "b/2", "b/3"]
    for as_of, expected in [
        ("2026-05-01T12:00:00Z", first), ("2026-05-02", first), ("2026-05-02T13:59:59+02:00", first),
        (datetime.datetime(2026, 5, 2, 11, 59, 59), first), ("2026-05-02T14:00:00+02:00", second),
        (datetime.datetime(2026, 5, 2, 12, tzinfo=UTC), second),
        (datetime.datetime(2026, 5, 2, 12, tzinfo=UTC).timestamp(), second),
        ("2031-01-01", second),
    ]:  # fmt: skip
        assert keys(leat.Dataset(history, as_of=as_of)) == expected, as_of
    assert keys(leat.Dataset(history)) == ["a/1", "b/2", "b/3", "c/4"]
    assert leat.Dataset(history, as_of="2026-05-02").classes == ["a", "b"]


def test_a_snapshot_keeps_its_time_in_a_pickle(history):
    dataset = leat.Dataset(history, as_of="2026-05-01T23:00:00Z")
    data = pickle.dumps(dataset)
    dated(history, "20260501T180000Z")

    assert pickle.loads(data).digest == dataset.digest != leat.Dataset(history, as_of="2026-05-01T23:00:00Z").digest


def test_before_the_first_snapshot_there_is_nothing(history, tmp_path):
    with pytest.raises(leat.NotFound, match=r"the first one is of 2026-05-01T12:00:00Z\. .*leat index .* --snapshot"):
        leat.Dataset(history, as_of="2026-05-01T11:59:59Z")
    write(tmp_path / "other/a", b"a")
    with pytest.raises(leat.NotFound, match="none at all"):
        leat.Dataset(tmp_path / "other", as_of="2026-05-01T11:59:59Z")


def test_an_object_that_went_or_changed_raises(history):
    dataset = leat.Dataset(history, as_of="2026-05-01T12:00:00Z")
    assert dataset[1]["data"] == b"a/1"
    with pytest.raises(leat.NotFound, match="a/0"):
        dataset[0]

    os.utime(history / "b/2", ns=(1, 1))  # The size stays.
    with pytest.raises(leat.Corrupt, match="b/2"):
        leat.Dataset(history, as_of="2026-05-01T12:00:00Z")[2]
    with leat.Loader(dataset.select([2]), batch_size=1, train=False, fields=["data"]) as loader:
        with pytest.raises(leat.Corrupt, match="b/2"):
            next(iter(loader))


def test_in_a_bucket_an_object_of_the_same_size_raises_by_its_etag(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / "bucket/data" / name, b"one" + name.encode())
    with leat.testing.Bucket(tmp_path, latency="0ms") as bucket:
        url, store = "s3://bucket/data", {"endpoint_url": bucket.url, "no_sign_request": True}
        leat_does("index", url, "--snapshot", "--endpoint-url", bucket.url, "--no-sign-request")
        then = leat.Dataset(url, as_of="2999-01-01", storage_options=store)
        assert [then[0]["data"], then[1]["data"]] == [b"onea", b"oneb"]
        write(tmp_path / "bucket/data/b", b"twob")
        with pytest.raises(leat.Corrupt, match="data/b"):
            leat.Dataset(url, as_of="2999-01-01", storage_options=store)[1]
        assert leat.Dataset(url, storage_options=store)[1]["data"] == b"twob"


def test_shards_have_snapshots_too(tmp_path):
    make_shards(tmp_path / "data", 2, 5, 40)
    before = leat.Dataset(tmp_path / "data").digest
    dated(tmp_path / "data", "20260501T120000Z")
    make_shards(tmp_path / "data", 3, 5, 40)

    assert len(leat.Dataset(tmp_path / "data")) == 15
    then = leat.Dataset(tmp_path / "data", as_of="2026-05-01T12:00:00Z")
    assert len(then) == 10 and then.digest == before


def test_diff_compares_a_snapshot_with_now(history):
    told = leat_does("diff", history, "--as-of", "2026-05-01T12:00:00Z")

    assert told == {"samples": [3, 4], "added": ["b/3", "c/4"], "removed": ["a/0"], "changed": []}


def test_diff_takes_a_number_that_is_missing_for_itself(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="pip install pyarrow")
    from pyarrow import parquet

    nan = float("nan")
    for name, last in (("a", nan), ("b", nan), ("c", 0.5)):
        table = arrow.table({"raw": [b"x", b"y", b"z"], "score": [0.25, nan, last]})
        parquet.write_table(table, write(tmp_path / name / "0.parquet", b""))

    assert leat_does("diff", tmp_path / "a", tmp_path / "b")["changed"] == []
    assert len(leat_does("diff", tmp_path / "a", tmp_path / "c")["changed"]) == 1


def test_a_damaged_snapshot_is_refused(history):
    place = history / ".leat/catalogues/20260501T120000Z"
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)

    with pytest.raises(leat.Corrupt, match="20260501T120000Z"):
        leat.Dataset(history, as_of="2026-05-01T12:00:00Z")


@pytest.mark.parametrize("name", ["20260501T120000Z.part", "x", "20261301T120000Z", "00000000T000000Z"])
def test_other_objects_are_no_snapshots(history, name):
    write(history / ".leat/catalogues" / name, b"junk")

    assert keys(leat.Dataset(history, as_of="2026-05-02")) == ["a/0", "a/1", "b/2"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"as_of": "yesterday"}, "2026-11-26T02:47:00Z"),
        ({"as_of": True}, "no time"),
        ({"as_of": 1e30}, "write a time"),
        ({"as_of": "2026-05-02", "include": "*.jpg"}, "include="),
        ({"as_of": "2026-05-02", "classes": ["a"]}, "classes="),
        ({"as_of": "2026-05-02", "refresh": "always"}, "refresh="),
    ],
)
def test_what_a_snapshot_cannot_mean_is_refused(history, given, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        leat.Dataset(history, **given)


def test_several_places_and_patterns_are_refused(history):
    with pytest.raises(leat.InvalidArgument, match="one folder"):
        leat.Dataset([history, history], as_of="2026-05-02")
    with pytest.raises(leat.InvalidArgument, match="pattern"):
        leat.Dataset(str(history / "*"), as_of="2026-05-02")


def test_snapshot_and_publish_do_not_go_together(history):
    words = [find_binary(), "index", history, "--snapshot", "--publish"]
    ended = subprocess.run(words, capture_output=True, check=False)

    assert ended.returncode == 2
