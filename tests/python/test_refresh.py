"""The time when an existing catalogue is made anew, and by which rank."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

import leat
from small_datasets import tar_of, write

DAY = 86_400


def age(path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


@pytest.fixture
def folder(tmp_path, fresh_cache):
    for number in range(3):
        write(tmp_path / "data" / f"{number}.bin", b"x")
    return tmp_path / "data"


def test_a_cached_catalogue_that_is_too_old(folder, fresh_cache):
    assert len(leat.Dataset(folder)) == 3
    write(folder / "3.bin", b"x")

    assert len(leat.Dataset(folder, refresh="never")) == 3
    assert len(leat.Dataset(folder, refresh="if-older-than:1d")) == 3
    (cached,) = fresh_cache.glob("catalogues/*.leatcat")
    age(cached, 1.1 * DAY)
    assert len(leat.Dataset(folder, refresh="never")) == 3
    assert len(leat.Dataset(folder, refresh="if-older-than:2d")) == 3
    assert len(leat.Dataset(folder, refresh="if-older-than:1d")) == 4


def test_a_published_catalogue_that_is_too_old(folder, serve):
    """Its age is told by the bucket."""
    subprocess.run(["leat", "index", str(folder), "--publish"], check=True, capture_output=True)
    write(folder / "3.bin", b"x")
    age(folder / ".leat" / "catalogue", 10 * DAY)
    served = serve(folder)

    def samples(refresh: str) -> int:
        served.reset()
        return len(leat.Dataset(served.url, refresh=refresh, **served.options))

    assert samples("never") == 3
    assert samples("if-older-than:11d") == 3 and served.counters()["list"] == 0
    assert samples("if-older-than:9d") == 4 and served.counters()["list"] == 1
    # The one just made is younger.
    assert samples("if-older-than:9d") == 4 and served.counters()["list"] == 0


@pytest.mark.parametrize("refresh", ["sometimes", "if-older-than:", "if-older-than:1", "if-older-than:999ms"])
def test_what_it_may_be(folder, refresh):
    with pytest.raises(leat.InvalidArgument, match="if-older-than:AGE"):
        leat.Dataset(folder, refresh=refresh)
    told = subprocess.run(["leat", "index", str(folder), f"--refresh={refresh}"],
                          capture_output=True, text=True)
    assert told.returncode != 0 and "refresh" in told.stderr


# --- auto: a cheap look at the store -----------------------------------------


def changes(caplog) -> list[str]:
    """The messages about listings that have changed; forgets them."""
    said = [record.getMessage() for record in caplog.records
            if record.name == "leat" and "listed again" in record.getMessage()]
    assert all(record.levelname == "WARNING" for record in caplog.records
               if "listed again" in record.getMessage())
    caplog.clear()
    return said


def test_what_came_and_went_is_seen_and_said_once(folder, serve, fresh_cache, caplog):
    served = serve(folder)

    def opened() -> tuple[int, int]:
        served.reset()
        dataset = leat.Dataset(served.url, **served.options)
        return len(dataset), served.counters()["list"]

    assert opened() == (3, 1)
    assert opened() == (3, 1) and changes(caplog) == []
    (cached,) = fresh_cache.glob("catalogues/*.leatcat")
    age(cached, 2.1 * 3600)
    write(folder / "3.bin", b"x")
    write(folder / "4.bin", b"x")
    (folder / "0.bin").unlink()

    assert opened() == (4, 2)
    (said,) = changes(caplog)
    assert served.url in said
    assert "2 objects were added and 1 removed since the catalogue of 2 h ago" in said
    assert opened() == (4, 1) and changes(caplog) == []


@pytest.mark.parametrize("command, counted", [("stat", lambda out: json.loads(out)["samples"]),
                                              ("ls", lambda out: len(out.splitlines()))])  # fmt: skip
def test_the_commands_see_what_came(folder, serve, fresh_cache, command, counted):
    served = serve(folder)

    def told() -> tuple[int, str]:
        done = subprocess.run(
            ["leat", command, served.url, "--json", "--endpoint-url", served.bucket.url, "--no-sign-request"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return counted(done.stdout), done.stderr

    assert told()[0] == told()[0] == 3
    write(folder / "3.bin", b"x")

    count, said = told()
    assert count == 4 and "1 object was added and 0 removed" in said


def test_an_object_that_was_written_anew_is_another(folder, serve, fresh_cache, caplog):
    served = serve(folder)
    leat.Dataset(served.url, **served.options)
    write(folder / "1.bin", b"y")  # As long as it was.

    dataset = leat.Dataset(served.url, **served.options)

    assert dataset[1]["data"] == b"y"
    assert "0 objects were added, 0 removed and 1 written anew" in changes(caplog)[0]


@pytest.mark.parametrize("place", ["folder", "bucket", "web server"])
def test_an_object_that_grew_is_noticed_without_etags(folder, serve, fresh_cache, place):
    """A catalogue that is published from a folder has none."""
    subprocess.run(["leat", "index", str(folder), "--publish"], check=True, capture_output=True)
    served = serve(folder)
    url, options = {
        "folder": (folder, {}), "bucket": (served.url, served.options), "web server": (served.http_url, {}),
    }[place]  # fmt: skip
    dataset = leat.Dataset(url, refresh="never", **options)
    assert dataset[1]["data"] == b"x"
    write(folder / "1.bin", b"xyz")

    with pytest.raises(leat.Corrupt, match=r"1\.bin.*it has 3 bytes, not 1"):
        dataset[1]
    with leat.Loader(dataset, batch_size=1, train=False, fields=["data"]) as loader:
        with pytest.raises(leat.Corrupt, match=r"1\.bin.*it has 3 bytes, not 1"):
            list(loader)


def test_a_folder_of_this_machine_is_looked_at_too(folder, caplog):
    assert len(leat.Dataset(folder)) == 3
    write(folder / "3.bin", b"x")
    assert len(leat.Dataset(folder)) == 4 and len(changes(caplog)) == 1
    with leat.Loader(folder, batch_size=1, train=False) as loader:
        assert len(loader) == 4
    assert changes(caplog) == []


def test_hidden_objects_change_nothing(folder, caplog):
    leat.Dataset(folder)
    write(folder / ".DS_Store", b"x")
    write(folder / "_SUCCESS", b"")
    assert len(leat.Dataset(folder)) == 3 and changes(caplog) == []


def test_what_is_left_out_changes_nothing(tmp_path, serve, fresh_cache, caplog):
    folder = tmp_path / "data"
    for name in ("a/1.png", "b/2.png", "README.md", "b/3.txt"):
        write(folder / name, b"x")
    served = serve(folder)
    for number, options in enumerate(({}, {"include": ["b/*"]}, {"extensions": ["txt"]})):
        def opened() -> tuple[int, int]:
            served.reset()
            dataset = leat.Dataset(served.url, **options, **served.options)
            return len(dataset), served.counters()["list"]

        count, _ = opened()
        write(folder / "README.md", b"another")
        assert opened() == (count, 1), options
        write(folder / "b" / f"more{number}.{'txt' if 'extensions' in options else 'png'}", b"x")
        assert opened() == (count + 1, 2), options
        assert opened() == (count + 1, 1), options
    assert len(changes(caplog)) == 3


def test_a_class_that_was_added(tmp_path, fresh_cache, caplog):
    for name in "ac":
        write(tmp_path / "data" / name / "1.bin", b"x")
    assert leat.Dataset(tmp_path / "data").classes == ["a", "c"]
    write(tmp_path / "data" / "b" / "1.bin", b"x")
    assert leat.Dataset(tmp_path / "data").classes == ["a", "b", "c"]
    (said,) = changes(caplog)
    assert "class 'c' has label 2 now, and had 1: " in said
    assert "give leat.Dataset classes=['a', 'c', 'b']" in said
    write(tmp_path / "data" / "d" / "1.bin", b"x")
    assert leat.Dataset(tmp_path / "data").classes == ["a", "b", "c", "d"]
    (said,) = changes(caplog)
    assert said.endswith("listed again")


@pytest.mark.parametrize("refresh", ["always", "if-older-than:1d"])
def test_labels_that_change_are_said_without_a_look_too(tmp_path, fresh_cache, caplog, refresh):
    for name in "ac":
        write(tmp_path / "data" / name / "1.bin", b"x")
    leat.Dataset(tmp_path / "data")
    write(tmp_path / "data" / "b" / "1.bin", b"x")
    (cached,) = fresh_cache.glob("catalogues/*.leatcat")
    age(cached, 2 * DAY)
    caplog.clear()
    leat.Dataset(tmp_path / "data", refresh=refresh)
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "data: class 'c' has label 2 now, and had 1" in said
    caplog.clear()
    leat.Dataset(tmp_path / "data", refresh="always")
    assert "has label" not in caplog.text


def test_shards_that_were_added(tmp_path, fresh_cache, caplog):
    from small_datasets import make_shards

    make_shards(tmp_path / "more", shards=3, samples=4, size=10)
    shards = sorted((tmp_path / "more").glob("*.tar"))
    (tmp_path / "data").mkdir()
    shards[0].rename(tmp_path / "data" / shards[0].name)
    options = {"batch_size": 1, "shuffle": "stream", "output": "numpy"}
    assert len(leat.Dataset(tmp_path / "data")) == 4
    shards[1].rename(tmp_path / "data" / shards[1].name)
    assert len(leat.Dataset(tmp_path / "data")) == 8
    assert "1 object was added and 0 removed" in changes(caplog)[0]

    shards[2].rename(tmp_path / "data" / shards[2].name)
    with leat.Loader(tmp_path / "data", **options) as loader:
        assert len(list(loader)) == 12
    assert len(changes(caplog)) == 1
    with leat.Loader(tmp_path / "data", **options) as loader:
        assert len(loader) == 12  # Indexed.
    assert changes(caplog) == []


def test_what_lies_beside_shards_is_no_shard(tmp_path, fresh_cache, caplog):
    folder = tmp_path / "beside"
    write(folder / "0.tar", tar_of([("a.txt", b"1")]))
    assert len(leat.Dataset(folder)) == 1
    for name in ("0.idx", "index.json"):
        write(folder / name, b"{}")

    with caplog.at_level("INFO", logger="leat"):
        assert len(leat.Dataset(folder)) == 1
        assert "listed again" not in caplog.text
        write(folder / "1.tar", tar_of([("b.txt", b"2")]))
        assert len(leat.Dataset(folder)) == 2
        assert "listed again" in caplog.text


def test_what_is_published_is_looked_at_too(folder, serve, fresh_cache, caplog):
    subprocess.run(["leat", "index", str(folder), "--publish"], check=True, capture_output=True)
    served = serve(folder)
    assert len(leat.Dataset(served.url, **served.options)) == 3
    write(folder / "3.bin", b"x")

    assert len(leat.Dataset(served.url, **served.options)) == 4
    assert len(changes(caplog)) == 1
    assert len(leat.Dataset(served.url, **served.options)) == 4 and changes(caplog) == []
    assert len(leat.Dataset(served.url, refresh="never", **served.options)) == 3


def test_a_large_listing_is_looked_at_where_it_begins_and_ends(tmp_path, serve, fresh_cache):
    folder = tmp_path / "data"
    for number in range(4500):
        write(folder / f"{number:05}", b"x")
    served = serve(folder)

    def opened() -> tuple[int, int]:
        served.reset()
        return len(leat.Dataset(served.url, **served.options)), served.counters()["list"]

    assert opened()[0] == 4500
    assert opened() == (4500, 2)
    write(folder / "99999", b"x")  # Behind the last, as most data grows.
    assert opened()[0] == 4501
    (folder / "00000").unlink()
    assert opened()[0] == 4500
    write(folder / "02000x", b"x")  # In the middle: docs/howto/data-that-changes.md.
    assert opened() == (4500, 2)
    assert len(leat.Dataset(served.url, refresh="always", **served.options)) == 4501


def test_the_age_of_a_catalogue(folder, fresh_cache):
    begun = time.time()
    assert begun - 2 <= leat.Dataset(folder).listed_at <= time.time() + 1
    (cached,) = fresh_cache.glob("catalogues/*.leatcat")
    age(cached, 7200)
    dataset = leat.Dataset(folder)
    assert 7199 <= dataset.catalogue_age <= 7300
    assert dataset[:2].listed_at == dataset.listed_at
    assert leat.Dataset.concat([dataset, leat.Dataset(folder, refresh="always")]).catalogue_age > 7000


@pytest.mark.parametrize("refresh", ["auto", "never"])
@pytest.mark.parametrize("published", [False, True])
def test_wrong_credentials_are_noticed_though_a_catalogue_is_kept(
    folder, monkeypatch, fresh_cache, refresh, published
):
    if published:
        subprocess.run(["leat", "index", str(folder), "--publish"], check=True, capture_output=True)
    with leat.testing.Bucket(folder.parent, latency="0", credentials=("key", "s3cr3t")) as bucket:
        for name, value in bucket.env().items():
            monkeypatch.setenv(name, value)
        assert len(leat.Loader("s3://data", batch_size=1, train=False)) == 3
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
        with pytest.raises(leat.PermissionDenied, match="SignatureDoesNotMatch"):
            leat.Dataset("s3://data", refresh=refresh)


def test_who_may_read_but_not_list_goes_on(folder, serve, fresh_cache, caplog):
    listing = serve(folder, fault_script="after 0 LIST * 403 x*")
    with pytest.raises(leat.PermissionDenied):
        leat.Dataset(listing.url, **listing.options)
    subprocess.run(["leat", "index", str(folder), "--publish"], check=True, capture_output=True)
    caplog.clear()
    assert len(leat.Dataset(listing.url, **listing.options)) == 3
    assert "cannot be listed with these credentials" in caplog.text


def test_manifests_and_tokens_ask_whether_they_may_read(tmp_path, monkeypatch, fresh_cache):
    write(tmp_path / "data" / "1.bin", b"\0" * 8)
    write(tmp_path / "list.csv", b"file\n1.bin\n")
    with leat.testing.Bucket(tmp_path, latency="0", credentials=("key", "s3cr3t")) as bucket:
        for name, value in bucket.env().items():
            monkeypatch.setenv(name, value)

        def manifest() -> leat.Dataset:
            return leat.Dataset.from_manifest(
                tmp_path / "list.csv", fields={"x": "file"}, base="s3://data")

        def tokens() -> leat.Dataset:
            return leat.Dataset.tokens("s3://data", dtype="uint16", seq_len=2)

        assert len(manifest()) == 1 and len(tokens()) == 2
        assert len(manifest()) == 1 and len(tokens()) == 2
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
        for make in (manifest, tokens):
            with pytest.raises(leat.PermissionDenied):
                make()


def write_tokens(path: pathlib.Path, count: int, first: int = 0) -> None:
    write(path, np.arange(first, first + count, dtype="<u2").tobytes())


@pytest.mark.parametrize("options", [{}, {"eos": 60_000}, {"stride": 10}], ids=repr)
@pytest.mark.parametrize("pattern", ["", "/*.bin"])
def test_token_files_that_came_went_or_were_written_anew(tmp_path, serve, fresh_cache, caplog, pattern, options):
    folder = tmp_path / "data"
    write_tokens(folder / "a.bin", 100)
    served = serve(folder)

    def opened() -> tuple[leat.Dataset, int]:
        served.reset()
        dataset = leat.Dataset.tokens(
            served.url + pattern, dtype="uint16", seq_len=10, **options, **served.options)
        return dataset, served.counters()["list"]

    dataset, lists = opened()
    assert (len(dataset), lists) == (10, 1)
    dataset, lists = opened()
    assert (len(dataset), lists) == (10, 1) and changes(caplog) == []
    (cached,) = fresh_cache.glob("catalogues/*.leatcat")
    age(cached, 2.1 * 3600)

    write_tokens(folder / "b.bin", 50)
    write(folder / "notes.txt", b"none of it")
    dataset, lists = opened()
    assert (len(dataset), lists) == (15, 2)
    (said,) = changes(caplog)
    assert "1 object was added and 0 removed since the catalogue of 2 h ago; listed again" in said
    write_tokens(folder / "a.bin", 100, first=500)  # As long as it was.
    dataset, _ = opened()
    assert dataset[0]["tokens"][0] == 500
    assert "0 objects were added, 0 removed and 1 written anew" in changes(caplog)[0]
    (folder / "a.bin").unlink()
    dataset, _ = opened()
    assert len(dataset) == 5 and dataset[0]["tokens"][0] == 0
    assert "0 objects were added and 1 removed" in changes(caplog)[0]
    dataset, lists = opened()
    assert (len(dataset), lists) == (5, 1) and changes(caplog) == []


def test_when_token_files_are_listed_again(tmp_path, fresh_cache):
    def windows(refresh: str) -> int:
        return len(leat.Dataset.tokens(tmp_path / "data", dtype="uint16", seq_len=10, refresh=refresh))

    write_tokens(tmp_path / "data" / "a.bin", 100)
    assert windows("auto") == 10
    write_tokens(tmp_path / "data" / "b.bin", 50)
    assert windows("never") == windows("if-older-than:1d") == 10
    (cached,) = fresh_cache.glob("catalogues/*.leatcat")
    age(cached, 1.1 * DAY)
    assert windows("if-older-than:2d") == 10 and windows("if-older-than:1d") == 15
    write_tokens(tmp_path / "data" / "c.bin", 50)
    assert windows("never") == 15 and windows("always") == 20


def test_one_named_file_is_asked_for_and_nothing_is_listed(tmp_path, serve, fresh_cache, caplog):
    folder = tmp_path / "data"
    write_tokens(folder / "a.bin", 100)
    served = serve(folder)

    def first() -> int:
        served.reset()
        dataset = leat.Dataset.tokens(f"{served.url}/a.bin", dtype="uint16", seq_len=10, **served.options)
        assert served.counters()["list"] == 0
        return int(dataset[0]["tokens"][0])

    assert first() == first() == 0 and changes(caplog) == []
    write_tokens(folder / "b.bin", 100)  # Nobody has named it.
    assert first() == 0 and changes(caplog) == []
    write_tokens(folder / "a.bin", 100, first=500)
    assert first() == 500
    assert "1 written anew" in changes(caplog)[0]
    (folder / "a.bin").unlink()
    with pytest.raises(leat.NotFound, match=r"a\.bin"):
        first()


def test_a_file_of_a_web_server_is_asked_for_too(tmp_path, serve, fresh_cache, caplog):
    folder = tmp_path / "data"
    write_tokens(folder / "a.bin", 100)
    url = f"{serve(folder).http_url}/a.bin"

    def first() -> int:
        return int(leat.Dataset.tokens(url, dtype="uint16", seq_len=10)[0]["tokens"][0])

    assert first() == first() == 0 and changes(caplog) == []
    write_tokens(folder / "a.bin", 100, first=500)
    assert first() == 500 and len(changes(caplog)) == 1


_RANK = """
import sys, leat
dataset = leat.Dataset(sys.argv[1])
print(len(dataset), dataset.digest, flush=True)
"""


@pytest.mark.parametrize("seconds", [60, -DAY], ids=["before", "by a clock that was ahead"])
def test_ranks_of_a_job_go_by_one_listing_though_data_grows(folder, fresh_cache, seconds):
    """The second rank comes after another object has come."""
    leat.Dataset(folder)
    (seen,) = fresh_cache.glob("catalogues/*.seen")
    age(seen, seconds)  # Not by a process that was started with these.
    write(folder / "3.bin", b"x")
    told = []
    for rank in range(2):
        environment = {"RANK": f"{rank}", "WORLD_SIZE": "2", "LOCAL_RANK": f"{rank}",
                       "LOCAL_WORLD_SIZE": "2"}
        done = subprocess.run([sys.executable, "-c", _RANK, folder], text=True, check=True,
                              env={**os.environ, **environment}, capture_output=True)
        told.append((done.stdout.split(), "listed again" in done.stderr))
        write(folder / f"later{rank}.bin", b"x")
    assert told[0][0] == told[1][0] and told[0][0][0] == "4"
    assert [said for _, said in told] == [True, False]
    assert len(leat.Dataset(folder)) == 6  # A process by itself looks for itself.


# --- epochs that began before a change ----------------------------------------


def loader_of(folder, **options) -> leat.Loader:
    return leat.Loader(folder, global_batch_size=1, shuffle=True, seed=3, ids=True, batch="dict",
                       output="numpy", **options)


def test_a_state_is_refused_where_labels_are_other_classes(tmp_path, fresh_cache):
    folder = tmp_path / "data"
    for name in "ac":
        write(folder / name / "1.bin", b"x")
    with loader_of(folder, epochs=1) as loader:
        list(loader)
        state = json.loads(json.dumps(loader.state_dict()))
    assert (state["epoch"], state["position"]) == (1, 0)
    write(folder / "b" / "1.bin", b"x")

    with loader_of(folder) as loader:
        says = r"class 'c' has label 2 now, and had 1.*classes=\['a', 'c', 'b'\].*set_epoch\(1\)"
        with pytest.raises(leat.InvalidArgument, match=says):
            loader.load_state_dict(state)
        loader.set_epoch(1)
        assert len(list(loader)) == 3
    with loader_of(leat.Dataset(folder, classes=["a", "c", "b"])) as loader:
        loader.load_state_dict(state)
        labels = {batch["key"][0]: int(batch["label"][0]) for batch in loader}
    assert labels == {"a/1.bin": 0, "c/1.bin": 1, "b/1.bin": 2}


def test_a_state_goes_on_where_a_class_was_added_behind_the_others(tmp_path, fresh_cache):
    folder = tmp_path / "data"
    for name in "ac":
        write(folder / name / "1.bin", b"x")
    with loader_of(folder, epochs=1) as loader:
        list(loader)
        state = loader.state_dict()
    write(folder / "d" / "1.bin", b"x")

    with loader_of(folder) as loader:
        loader.load_state_dict(state)
        assert len(list(loader)) == 3


def keys_of(batches) -> list[str]:
    return [batch["key"][0] for batch in batches]


@pytest.mark.parametrize("refresh", ["auto", "always", "if-older-than:1d"])
def test_an_epoch_goes_on_with_the_catalogue_that_it_began_with(folder, fresh_cache, caplog, refresh):
    def opened() -> leat.Loader:
        return loader_of(leat.Dataset(folder, refresh=refresh))

    with opened() as loader:
        whole = keys_of(loader)
    with opened() as loader:
        begun = [next(iter(loader))["key"][0]]
        state = json.loads(json.dumps(loader.state_dict()))
    write(folder / "3.bin", b"x")
    (cached,) = fresh_cache.glob("catalogues/*.leatcat")
    age(cached, 2 * DAY)

    with opened() as loader:
        assert len(loader) == 4
        loader.load_state_dict(state)
        assert "goes on with the catalogue that it began with" in caplog.text
        assert begun + keys_of(loader) == whole
        assert len(loader.dataset) == 3


def test_an_epoch_goes_on_with_the_versions_that_it_began_with(folder, fresh_cache):
    leat.Dataset(folder)
    for number in range(3):
        write(folder / f"{number}.bin", b"y")  # As long as it was: the digest is the same.
    with loader_of(folder) as loader:
        begun = next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
    write(folder / "3.bin", b"x")

    with loader_of(folder) as loader:
        loader.load_state_dict(state)
        batches = [begun, *loader]
    assert sorted(keys_of(batches)) == ["0.bin", "1.bin", "2.bin"]
    assert all(bytes(batch["data"][0]) == b"y" for batch in batches)


def test_a_state_between_epochs_goes_on_with_what_is_there(folder, fresh_cache):
    with loader_of(folder) as loader:
        list(loader)
        state = loader.state_dict()
    write(folder / "3.bin", b"x")
    with loader_of(folder) as loader:
        loader.load_state_dict(state)
        assert len(keys_of(loader)) == 4 and loader.state_dict()["epoch"] == 2


@pytest.mark.parametrize("opened", [
    lambda folder: leat.Dataset(f"{folder}/*.bin"),
    lambda folder: leat.Dataset(folder, include="*.bin"),
    lambda folder: leat.Dataset.tokens(folder, dtype="uint8", seq_len=1),
], ids=["wildcard", "include", "tokens"])  # fmt: skip
def test_so_does_one_over_a_part_of_a_place_and_over_token_files(folder, fresh_cache, caplog, opened):
    with loader_of(opened(folder)) as loader:
        whole = keys_of(loader)
    with loader_of(opened(folder)) as loader:
        begun = [next(iter(loader))["key"][0]]
        state = json.loads(json.dumps(loader.state_dict()))
    write(folder / "3.bin", b"x")

    with loader_of(opened(folder)) as loader:
        assert len(loader) == 4
        loader.load_state_dict(state)
        assert "goes on with the catalogue that it began with" in caplog.text
        assert begun + keys_of(loader) == whole


def test_without_the_catalogue_that_it_began_with_an_epoch_is_refused(folder, fresh_cache):
    with loader_of(folder) as loader:
        next(iter(loader))
        state = loader.state_dict()
    write(folder / "3.bin", b"x")
    with loader_of(folder) as loader:
        for kept in pathlib.Path(fresh_cache).glob("catalogues/*.of-*"):
            kept.unlink()
        says = r'keeps the last four catalogues that a place had.*set_epoch\(0\).*refresh="never"'
        with pytest.raises(leat.InvalidArgument, match=says):
            loader.load_state_dict(state)


@pytest.mark.parametrize("derived", [
    lambda folder: leat.Dataset(folder).select(range(len(leat.Dataset(folder)))),
    lambda folder: leat.Dataset(folder).split(0.9, 0.1)[0],
    lambda folder: leat.Dataset(folder).filter(lambda of: of.lengths("data") > 0),
    lambda folder: leat.Dataset.concat([leat.Dataset(folder), leat.Dataset(folder)]),
    lambda folder: leat.Dataset([f"{folder}/0.bin", f"{folder.parent}/more/*.bin"]),
], ids=["select", "split", "filter", "concat", "places"])  # fmt: skip
def test_of_what_is_made_of_places_no_earlier_catalogue_is_kept_and_that_is_said(folder, fresh_cache, derived):
    for number in range(20):
        write(folder.parent / "more" / f"{number}.bin", b"x")
        write(folder / f"{number}.bin", b"x")
    with loader_of(derived(folder), epochs=1) as loader:
        next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
    for place in (folder, folder.parent / "more"):
        write(place / "20.bin", b"x")

    with loader_of(derived(folder), epochs=1) as loader:
        with pytest.raises(leat.InvalidArgument) as refused:
            loader.load_state_dict(state)
        assert "any more" not in str(refused.value)
        assert "no earlier catalogue is kept of" in str(refused.value)
        assert "of what select, split, filter, concat and several places make" in str(refused.value)
        assert "set_epoch(0)" in str(refused.value) and 'refresh="never"' in str(refused.value)
        loader.set_epoch(0)
        assert len(keys_of(loader)) == len(loader)


@pytest.mark.parametrize("batches", [1, 2], ids=["within an epoch", "between two"])
def test_of_rows_of_parquet_files_no_earlier_catalogue_is_kept_and_that_is_said(tmp_path, fresh_cache, batches):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = pa.table({"image": [b"a", b"b"]})
    (tmp_path / "data").mkdir()
    parquet.write_table(rows, tmp_path / "data" / "0.parquet")
    with leat.Loader(tmp_path / "data", train=False, batch_size=1) as loader:
        epoch = iter(loader)
        for _ in range(batches):
            next(epoch)
        state = loader.state_dict()
    assert state["epoch"] == batches - 1
    parquet.write_table(rows, tmp_path / "data" / "1.parquet")

    with leat.Loader(tmp_path / "data", train=False, batch_size=1) as loader:
        assert len(loader) == 4
        with pytest.raises(leat.InvalidArgument) as refused:
            loader.load_state_dict(state)
    assert "no earlier catalogue is kept of Parquet files" in str(refused.value)
    assert f"set_epoch({batches - 1})" in str(refused.value)


def test_never_reads_a_table_again_that_has_changed_as_its_page_says(tmp_path, fresh_cache):
    for number in range(2):
        write(tmp_path / f"{number}.bin", b"x")
    table = write(tmp_path / "table.csv", b"path\n0.bin\n")

    def opened() -> leat.Dataset:
        return leat.Dataset.from_manifest(table, fields={"data": "path"}, refresh="never")

    assert len(opened()) == 1
    table.write_bytes(b"path\n0.bin\n1.bin\n")
    assert len(opened()) == 2
    page = pathlib.Path(__file__).parents[2] / "docs/howto/data-that-changes.md"
    (never,) = [line for line in page.read_text().splitlines() if line.startswith('| `"never"`')]
    assert "tables, MDS, LitData and Megatron" in never
