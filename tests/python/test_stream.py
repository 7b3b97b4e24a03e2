"""shuffle="stream": shards without a catalogue are indexed while they are read.

For several ranks: test_stream_ranks.py; with a cache: test_stream_cache.py.
"""

from __future__ import annotations

import json
import pathlib
import threading
import time

import numpy as np
import pytest

import leat
from small_datasets import ids_of, make_shards, tar_of, write
from test_shard_index import write_index

MIB = 2**20
OPTIONS = {"global_batch_size": 16, "drop_last": False, "ids": True, "shuffle": "stream", "batch": "dict", "output": "numpy"}
SMALL = 8 * 32
"""Samples of `small`."""


def is_indexed(loader) -> bool:
    try:
        return len(loader) > 0
    except TypeError:
        return False


def epoch_of_indexed(folder, **options) -> tuple[list[list[int]], dict]:
    """The content of an epoch if there was a catalogue before."""
    dataset = leat.Dataset(folder)
    with leat.Loader(dataset, **{**OPTIONS, **options}) as loader:
        batches = [batch["index"].tolist() for batch in loader]
        return batches, loader.stats()[0]


# --- what comes -------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 2, 3, 16])
@pytest.mark.parametrize("batch", [16, 7, 100])
def test_the_first_epoch_is_that_of_an_indexed_dataset(small, fresh_cache, window, batch):
    options = {"shuffle": leat.Shuffle("stream", window), "global_batch_size": batch, "seed": 5}
    with leat.Loader(small, **{**OPTIONS, **options}) as loader:
        assert not is_indexed(loader)
        batches, keys = [], []
        for got in loader:
            batches.append(got["index"].tolist())
            keys += got["key"]
            assert [text.decode() for text in got["txt"].tolist()] == got["key"]
        streamed = loader.stats()[0]
        assert is_indexed(loader)

    expected, indexed = epoch_of_indexed(small, **options)
    assert batches == expected
    assert sorted(i for ids in batches for i in ids) == list(range(SMALL))
    assert keys == [f"{i // 32:03}-{i % 32:05}" for ids in batches for i in ids]
    assert streamed["order_hash"] == indexed["order_hash"]
    assert streamed["content_hash"] == indexed["content_hash"]


def test_later_epochs_go_on_over_the_catalogue(small, fresh_cache):
    with leat.Loader(small, **OPTIONS | {"shuffle": leat.Shuffle("stream", 2)}) as loader:
        epochs = [ids_of(loader) for _ in range(3)]
    with leat.Loader(leat.Dataset(small), **OPTIONS | {"shuffle": leat.Shuffle("stream", 2)}) as loader:
        assert epochs == [ids_of(loader) for _ in range(3)]
    assert len({tuple(epoch) for epoch in epochs}) == 3
    for epoch in epochs:
        assert sorted(epoch) == list(range(SMALL))
        for begin in range(0, SMALL, 64):  # Windows stay where they lie.
            assert sorted(epoch[begin : begin + 64]) == list(range(begin, begin + 64))


def test_random_ops_draw_as_ever(fresh_cache, tmp_path):
    for shard in range(4):
        members = []
        for sample in range(10):
            array = np.arange(12, dtype=np.float32) + 100 * shard + sample
            members.append((f"{shard}-{sample}.npy", npy(array)))
        write(tmp_path / "shards" / f"{shard}.tar", tar_of(members))
    options = {**OPTIONS, "global_batch_size": 3, "shuffle": leat.Shuffle("stream", 1), "fields": ["npy", "index"],
               "ids": False, "ops": [leat.ops.LoadNpy(), leat.ops.Python(jitter, global_rng=True)]}
    batches = []
    with leat.Loader(tmp_path / "shards", **options) as loader:
        batches.append([(b["index"].tolist(), b["npy"].tolist()) for b in loader])
    with leat.Loader(leat.Dataset(tmp_path / "shards"), **options) as loader:
        batches.append([(b["index"].tolist(), b["npy"].tolist()) for b in loader])
    assert batches[0] == batches[1]


def npy(array) -> bytes:
    import io

    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def jitter(value):
    return value + np.random.random()


# --- requests ---------------------------------------------------------------


def test_each_byte_is_asked_for_once(large, serve, fresh_cache):
    served = serve(large)
    stored = sum(path.stat().st_size for path in large.glob("*.tar"))
    most = stored / (8 * MIB) * 1.1

    with served.loader(**OPTIONS | {"shuffle": leat.Shuffle("stream", 2)}, epochs=1) as loader:
        assert len(ids_of(loader)) == 6 * 52
        epoch = loader.stats()[0]

    counters = served.counters()
    assert counters["get"] <= most and counters["bytes"] <= stored * 1.01
    assert counters["list"] == 1
    assert epoch["requests"]["get"] == counters["get"]
    assert epoch["bytes_read"] == stored


def test_the_second_start_scans_nothing(small, serve, fresh_cache):
    served = serve(small)
    with served.loader(**OPTIONS, epochs=1) as loader:
        first = ids_of(loader)
    served.reset()

    with served.loader(**OPTIONS, epochs=1) as loader:
        assert is_indexed(loader)
        before = served.counters()
        assert ids_of(loader) == first

    assert before["list"] == 1 and before["get"] == 0  # Whether it is still so.
    assert leat.Dataset(served.url, **served.options).digest == (
        leat.Dataset(small, refresh="always").digest
    )


def test_a_shard_larger_than_the_memory(serve, fresh_cache, tmp_path):
    folder = tmp_path / "one"
    make_shards(folder, shards=2, samples=160, size=MIB // 4)  # 40 MiB each.
    served = serve(folder)

    with served.loader(**OPTIONS | {"shuffle": leat.Shuffle("stream", 1)}, memory="48MiB", epochs=1) as loader:
        assert sorted(ids_of(loader)) == list(range(320))
        streamed = loader.stats()[0]["content_hash"]

    expected, indexed = epoch_of_indexed(folder, shuffle=leat.Shuffle("stream", 1))
    assert streamed == indexed["content_hash"]


def test_memory_that_holds_a_window_and_little_more(small, serve, fresh_cache):
    served = serve(small)
    with served.loader(**OPTIONS | {"shuffle": leat.Shuffle("stream", 2)}, memory="9MB", epochs=1) as loader:
        assert sorted(ids_of(loader)) == list(range(SMALL))


# --- position ---------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 3, 5, 9, 15])
@pytest.mark.parametrize("has_catalogue", [False, True])
def test_a_state_of_the_first_epoch_goes_on_exactly(
    small, fresh_cache, monkeypatch, tmp_path, steps, has_catalogue
):
    options = {**OPTIONS, "shuffle": leat.Shuffle("stream", 2)}
    with leat.Loader(small, **options) as loader:
        batches = iter(loader)
        for _ in range(steps):
            next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
        rest = [int(i) for batch in batches for i in batch["index"]]
        following = ids_of(loader)
    assert (state["epoch"], state["position"]) == (0, 16 * steps)
    if not has_catalogue:
        monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "another"))

    with leat.Loader(small, **{**options, "global_batch_size": 8}) as loader:
        loader.load_state_dict(state)
        assert ids_of(loader) == rest
        assert ids_of(loader) == following


@pytest.mark.parametrize("calls_set_epoch", [False, True])
def test_a_state_behind_the_last_whole_step_ends_the_epoch_that_it_names(small, fresh_cache, calls_set_epoch):
    """Nobody knew that a dropped tail alone was left: a loop over epochs from the state's on repeats none."""
    options = {**OPTIONS, "global_batch_size": 48, "drop_last": True}
    with leat.Loader(small, **options) as loader:
        next(iter(loader))
        state = {**loader.state_dict(), "position": SMALL // 48 * 48, "samples": None}
    dataset = leat.Dataset(small)
    with leat.Loader(dataset, **options) as loader:
        whole = [ids_of(loader) for _ in range(2)]

    with leat.Loader(dataset, **options) as loader:
        loader.load_state_dict(state)
        found = []
        for epoch in range(state["epoch"], 2):
            if calls_set_epoch:
                loader.set_epoch(epoch)
            found.append(ids_of(loader))
        assert found == [[], whole[1]]


def test_a_state_of_other_shards_or_another_shuffle_is_refused(small, large, fresh_cache):
    with leat.Loader(small, **OPTIONS) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with leat.Loader(large, **OPTIONS) as loader:
        with pytest.raises(leat.InvalidArgument, match="another dataset"):
            loader.load_state_dict(state)
    with leat.Loader(small, **{**OPTIONS, "shuffle": "block"}) as loader:
        with pytest.raises(leat.InvalidArgument, match="shuffle stream.*has block"):
            loader.load_state_dict(state)
        other = loader.state_dict()
    with leat.Loader(small, **OPTIONS) as loader:
        with pytest.raises(leat.InvalidArgument, match="shuffle block.*has stream"):
            loader.load_state_dict(other)


def test_an_epoch_left_in_the_middle(small, fresh_cache):
    with leat.Loader(small, **OPTIONS | {"shuffle": leat.Shuffle("stream", 2)}) as loader:
        next(iter(loader))
        # The next epoch, over the shards that are indexed by then.
        second = ids_of(loader)
    with leat.Loader(leat.Dataset(small), **OPTIONS | {"shuffle": leat.Shuffle("stream", 2)}) as loader:
        assert [ids_of(loader), ids_of(loader)][1] == second


def until_scanned() -> None:
    """Waits until no loader of this process reads shards to index them.

    A loader that was waited for tells its length with the next part that it takes, so the length shows less.
    """
    deadline = time.monotonic() + 20
    while "leat-scan" in [name_of(thread) for thread in pathlib.Path("/proc/self/task").iterdir()]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def name_of(thread: pathlib.Path) -> str:
    try:
        return (thread / "comm").read_text().strip()
    except OSError:  # It has ended.
        return ""


@pytest.mark.parametrize("window", [1, 2, 3])
def test_the_first_epoch_begins_again_whole(small, fresh_cache, window):
    """As in a loop that calls set_epoch() after a look at a few batches."""
    options = OPTIONS | {"shuffle": leat.Shuffle("stream", window)}
    with leat.Loader(small, **options) as loader:
        batches = iter(loader)
        for _ in range(3):
            next(batches)
            time.sleep(0.05)  # The next part is begun.
        until_scanned()
        loader.set_epoch(0)
        again = ids_of(loader)
    with leat.Loader(leat.Dataset(small), **options) as loader:
        assert again == ids_of(loader)


@pytest.mark.parametrize("ranks", [1, 2, 8])
@pytest.mark.parametrize("faults", [[], ["503:20%"]], ids=["well", "unwell"])
def test_the_first_epoch_begins_again_whole_on_every_rank(serve, fresh_cache, tmp_path, monkeypatch, ranks, faults):
    make_shards(tmp_path / "shards", shards=8, samples=32, size=500)
    served = serve(tmp_path / "shards", latency="1ms", faults=faults, seed=7)
    options = {**OPTIONS, **served.options, "drop_last": True, "shuffle": leat.Shuffle("stream", 2), "world_size": ranks}
    read = []
    for rank in range(ranks):
        monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / f"cache-{rank}"))
        with leat.Loader(served.url, rank=rank, **options) as loader:
            batches = iter(loader)
            for _ in range(3):
                next(batches)
            until_scanned()
            loader.set_epoch(0)
            read.append(ids_of(loader))
    assert len({len(ids) for ids in read}) == 1
    assert sorted(i for ids in read for i in ids) == list(range(SMALL))


def test_after_a_first_batch_that_failed_the_epoch_begins_again_whole(small, fresh_cache):
    calls = []

    def fails_once(text):
        calls.append(None)
        if len(calls) == 1:
            raise ValueError("once")
        return np.frombuffer(bytes(text), np.uint8)

    options = OPTIONS | {"shuffle": leat.Shuffle("stream", 2), "ops": [leat.ops.Python(fails_once, field="txt")],
                         "threads": 1}
    with leat.Loader(small, **options) as loader:
        with pytest.raises(ValueError, match="once"):
            next(iter(loader))
        until_scanned()
        assert sorted(ids_of(loader)) == list(range(SMALL))


def test_another_epoch_may_be_the_first(small, fresh_cache):
    with leat.Loader(small, **OPTIONS | {"shuffle": leat.Shuffle("stream", 2)}) as loader:
        loader.set_epoch(3)
        assert loader.peek()["index"].tolist() == loader.peek()["index"].tolist()
        peeked = loader.peek()["index"].tolist()
        third = ids_of(loader)
        assert third[:16] == peeked
    with leat.Loader(leat.Dataset(small), **OPTIONS | {"shuffle": leat.Shuffle("stream", 2)}) as loader:
        loader.set_epoch(3)
        assert ids_of(loader) == third


@pytest.mark.parametrize("of_what", ["a copy", "the engine's memory"])
def test_a_look_before_each_batch_sees_that_batch_at_the_ends_of_parts_too(small, fresh_cache, of_what):
    with leat.Loader(small, **OPTIONS | {"shuffle": leat.Shuffle("stream", 1)}) as loader:
        batches = iter(loader)
        seen, given = [], []
        while True:
            if of_what == "a copy":
                peeked = loader.peek()
            else:
                begun = time.monotonic()
                peeked = None  # "Not yet" and "the end" are the same to an onlooker.
                while peeked is None and time.monotonic() - begun < 5 and len(given) < 16:
                    peeked = loader._native.look(0.05)
                peeked = None if peeked is None else dict(peeked)
            seen += [] if peeked is None else [list(peeked["index"])]
            batch = next(batches, None)
            if batch is None:
                break
            given.append(batch["index"].tolist())
    assert len(given) == 16 and seen == given


def test_the_length_is_known_once_all_is_indexed(small, fresh_cache):
    with leat.Loader(small, **OPTIONS) as loader:
        with pytest.raises(TypeError, match="leat index"):
            len(loader)
        with pytest.raises(TypeError, match="being indexed"):
            _ = loader.remaining
        with pytest.raises(leat.InvalidArgument, match="being indexed"):
            _ = loader.dataset
        assert "first epoch indexes" in repr(loader)
        assert len(list(loader)) == SMALL // 16
        assert (len(loader), loader.remaining) == (SMALL // 16, 0)
        assert len(loader.dataset) == SMALL


@pytest.mark.parametrize("drop_last", [False, True])
def test_the_tail_is_that_of_the_whole_epoch(small, fresh_cache, drop_last):
    options = {"global_batch_size": 48, "shuffle": leat.Shuffle("stream", 1), "drop_last": drop_last}
    with leat.Loader(small, **{**OPTIONS, **options}) as loader:
        sizes = [len(batch["index"]) for batch in loader]
    assert sizes == [48] * 5 + ([] if drop_last else [16])


@pytest.mark.parametrize("batch", [48, 40, 200])
def test_the_last_step_is_padded_with_the_epochs_first(small, serve, fresh_cache, batch):
    options = {**OPTIONS, "drop_last": "pad", "shuffle": leat.Shuffle("stream", 1), "global_batch_size": batch}
    with serve(small).loader(**options) as loader:
        assert not is_indexed(loader)
        got = [(b["index"].tolist(), b["valid"].tolist(), b["key"]) for b in loader]
    with leat.Loader(leat.Dataset(small), **options) as loader:
        assert got == [(b["index"].tolist(), b["valid"].tolist(), b["key"]) for b in loader]
    ids = [i for ids, _, _ in got for i in ids]
    assert len(ids) % batch == 0 and ids[SMALL:] == ids[: len(ids) - SMALL]


# --- indexes beside the shards ----------------------------------------------


@pytest.mark.parametrize("with_index", [range(1), range(3, 6), range(7, 8)])
def test_shards_with_an_index_are_not_scanned(small, serve, fresh_cache, tmp_path, with_index):
    """Their headers are looked at three times each."""
    folder = tmp_path / "shards"
    for number, shard in enumerate(sorted(small.glob("*.tar"))):
        write(folder / shard.name, shard.read_bytes())
        if number in with_index:
            write_index(folder / shard.name)
    served = serve(folder)
    with served.loader(**OPTIONS | {"shuffle": leat.Shuffle("stream", 2)}, epochs=1) as loader:
        assert not is_indexed(loader)
        batches = [batch["index"].tolist() for batch in loader]
        epoch = loader.stats()[0]

    # A shard each; four for each index; one for a catalogue beside the data.
    assert served.counters()["get"] <= 8 + 4 * len(with_index) + 1
    assert batches == epoch_of_indexed(small, shuffle=leat.Shuffle("stream", 2))[0]
    assert epoch["content_hash"] == epoch_of_indexed(folder, shuffle=leat.Shuffle("stream", 2))[1]["content_hash"]


def test_an_index_that_does_not_fit_is_said_and_not_used(small, fresh_cache, tmp_path, caplog):
    for shard in small.glob("*.tar"):
        write(tmp_path / "shards" / shard.name, shard.read_bytes())
    write(tmp_path / "shards" / "000.idx", b"v1.2 0\n")
    with leat.Loader(tmp_path / "shards", **OPTIONS) as loader:
        assert not is_indexed(loader)
        assert sorted(ids_of(loader)) == list(range(SMALL))
    assert "1 of 1 indexes beside the shards do not fit" in caplog.text


def test_with_an_index_beside_each_nothing_is_left_to_the_epoch(small, fresh_cache, tmp_path):
    for shard in small.glob("*.tar"):
        write_index(write(tmp_path / "shards" / shard.name, shard.read_bytes()))
    with leat.Loader(tmp_path / "shards", **OPTIONS) as loader:
        assert is_indexed(loader)
        assert sorted(ids_of(loader)) == list(range(SMALL))


# --- what goes wrong --------------------------------------------------------


def test_a_shard_that_is_cut_short_fails_where_it_lies(fresh_cache, tmp_path):
    make_shards(tmp_path / "shards", shards=8, samples=32, size=50_000)
    cut = tmp_path / "shards" / "005.tar"
    cut.write_bytes(cut.read_bytes()[: 50_000 * 7])
    got = []
    with leat.Loader(tmp_path / "shards", **OPTIONS | {"shuffle": leat.Shuffle("stream", 1)}) as loader:
        with pytest.raises(leat.Corrupt, match="005.tar"):
            for batch in loader:
                got += batch["index"].tolist()
        assert sorted(got) == list(range(5 * 32))
        with pytest.raises(leat.Corrupt, match="005.tar"):
            next(iter(loader))
    with pytest.raises(leat.Corrupt, match="005.tar"):
        leat.Dataset(tmp_path / "shards")


def test_a_field_that_comes_late(fresh_cache, tmp_path, monkeypatch):
    for shard in range(4):
        members = [(f"{shard}-{i}.txt", b"text") for i in range(16)]
        if shard == 2:
            members += [(f"{shard}-x.txt", b"text"), (f"{shard}-x.cls", b"1")]
        write(tmp_path / "shards" / f"{shard}.tar", tar_of(members))
    options = {**OPTIONS, "shuffle": leat.Shuffle("stream", 1)}
    with leat.Loader(tmp_path / "shards", **options) as loader:
        with pytest.raises(leat.InvalidArgument, match='"cls".*fields='):
            ids_of(loader)

    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "another"))
    with leat.Loader(tmp_path / "shards", **options, fields=["txt"]) as loader:
        assert sorted(ids_of(loader)) == list(range(65))
        assert set(loader.dataset.fields) == {"txt", "cls"}
    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "a third"))
    with leat.Loader(tmp_path / "shards", **options, fields=["cls"]) as loader:
        with pytest.raises(leat.InvalidArgument, match="cls"):
            ids_of(loader)


def test_the_epoch_is_smaller_than_a_step(small, fresh_cache):
    options = {**OPTIONS, "global_batch_size": 1000, "drop_last": True}
    with leat.Loader(small, **options) as loader:
        with pytest.raises(leat.InvalidArgument, match="256 samples, a step 1000"):
            ids_of(loader)


def test_no_shard_holds_a_sample(fresh_cache, tmp_path):
    write(tmp_path / "shards" / "0.tar", tar_of([("readme", b"no field")]))
    with leat.Loader(tmp_path / "shards", **OPTIONS) as loader:
        with pytest.raises(leat.NotFound, match="no sample"):
            ids_of(loader)


def test_it_closes_while_it_waits_for_the_store(small, serve, fresh_cache):
    served = serve(small, bandwidth="50KB")  # A shard takes half a minute.
    with served.loader(**OPTIONS) as loader:
        ended = threading.Event()

        def wait():
            with pytest.raises(leat.Error, match="closed"):
                next(iter(loader))
            ended.set()

        thread = threading.Thread(target=wait)
        thread.start()
        while loader.stats() == []:
            ended.wait(0.01)
        begun = time.monotonic()
        loader.close()
        thread.join()
    assert ended.is_set() and time.monotonic() - begun < 20
