"""shuffle="stream" with a cache: shards that are indexed while they are read
are cached, too.

Without a cache: test_stream.py; several ranks: test_stream_ranks.py.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import leat
from leat import _native
from leat.ops import DecodeImage, RandomHorizontalFlip, RandomResizedCrop
from small_datasets import encoded, make_shards, pixels, tar_of, write
from test_stream import is_indexed

MIB = 2**20
OPTIONS = {"global_batch_size": 16, "drop_last": False, "ids": True, "shuffle": "stream", "batch": "dict", "output": "numpy", "seed": 7}
SHARDS, SAMPLES = 8, 8 * 32
"""The size of `small`; a shard is a piece."""


def tier_of(tmp_path, kind: str, size: int = 64 * MIB) -> leat.Cache:
    folder = str(tmp_path / "records")
    if kind == "ram":
        return leat.Cache(ram=size)
    if kind == "disk":
        return leat.Cache(disk=folder, disk_limit=size)
    return leat.Cache(ram=size // 2, disk=folder, disk_limit=size)


def epochs_of(loader, epochs: int) -> list[list[list[int]]]:
    return [[batch["index"].tolist() for batch in loader] for _ in range(epochs)]


def indexed_epochs(folder, epochs: int, **options) -> tuple[list[list[list[int]]], list[dict]]:
    """The content of epochs if there was a catalogue before, and no cache."""
    with leat.Loader(leat.Dataset(folder), **{**OPTIONS, **options}) as loader:
        return epochs_of(loader, epochs), loader.stats()


def hashes_of(stats: list[dict]) -> list[tuple[str, str]]:
    return [(epoch["order_hash"], epoch["content_hash"]) for epoch in stats]


# --- what the scan fetched is kept ------------------------------------------


@pytest.mark.parametrize("window", [1, 3, 16])
@pytest.mark.parametrize("batch", [16, 7])
@pytest.mark.parametrize("kind", ["ram", "disk", "both"])
def test_later_epochs_ask_for_nothing(small, serve, fresh_cache, tmp_path, kind, window, batch):
    """Holds for any parts that the first epoch was cut into."""
    served = serve(small)
    stored = sum(path.stat().st_size for path in small.glob("*.tar"))
    options = {"shuffle": leat.Shuffle("stream", window), "global_batch_size": batch}
    with served.loader(**OPTIONS | options, epochs=3, cache=tier_of(tmp_path, kind)) as loader:
        assert not is_indexed(loader)
        came = epochs_of(loader, 3)
        stats = loader.stats()
    counters = served.counters()

    expected, indexed = indexed_epochs(small, 3, **options)
    assert came == expected
    assert hashes_of(stats) == hashes_of(indexed)
    assert [epoch["requests"]["get"] for epoch in stats] == [SHARDS, 0, 0]
    assert [epoch["bytes_read"] for epoch in stats] == [stored, 0, 0]
    # One request asks for a catalogue beside the data, and for no sample.
    assert (counters["list"], counters["get"]) == (1, SHARDS)
    for epoch in stats[1:]:
        hits = epoch["cache"]
        assert hits["ram_hits"] + hits["disk_hits"] == SHARDS and hits["misses"] == 0


def test_shards_of_several_pieces(serve, fresh_cache, tmp_path):
    make_shards(tmp_path / "shards", shards=3, samples=80, size=MIB // 4)  # 20 MiB: two each.
    served = serve(tmp_path / "shards")
    options = {"shuffle": leat.Shuffle("stream", 2), "memory": "128MiB"}
    with served.loader(**OPTIONS | options, epochs=3, cache=leat.Cache(ram=80 * MIB)) as loader:
        came = epochs_of(loader, 3)
        stats = loader.stats()
    expected, indexed = indexed_epochs(tmp_path / "shards", 3, **options)
    assert came == expected and hashes_of(stats) == hashes_of(indexed)
    assert [epoch["requests"]["get"] for epoch in stats[1:]] == [0, 0]
    assert [epoch["cache"]["ram_hits"] for epoch in stats[1:]] == [6, 6]


@pytest.mark.parametrize("policy", ["belady", "never_evict", "lru"])
def test_half_hits_what_leat_plan_said(small, serve, fresh_cache, tmp_path, policy):
    """From the second epoch on, as if the catalogue had been there from the start."""
    size = -(-max(path.stat().st_size for path in small.glob("*.tar")) // 4096 + 1) * 4096
    ram = SHARDS // 2 * size + 128 * 1024
    file = write(tmp_path / "job.toml", (
        f'[[simulation]]\nsamples = {SHARDS}\nsample_bytes = {size}\nshuffle = "none"\n'
        "global_batch_size = 1\nepochs = 4\n"
        f'tiers = [{{policy = "{policy}", capacity = {ram}}}]\n'
    ).encode())  # fmt: skip
    said = subprocess.run([leat.testing.find_binary(), "plan", "--simulate", str(file), "--json"],
                          check=True, capture_output=True, text=True)  # fmt: skip
    planned = [epoch["tier_hits"][0] for epoch in json.loads(said.stdout)["simulations"][0]["epochs"]]
    assert planned == ([0, 0, 0, 0] if policy == "lru" else [0, 4, 4, 4])

    served = serve(small)
    # Little memory: samples on their way count as kept.
    options = {"shuffle": leat.Shuffle("stream", 1), "memory": "8MiB", "max_in_flight": 1, "global_batch_size": 8}
    with served.loader(**OPTIONS | options, epochs=4,
                       cache=leat.Cache(ram=ram, policy=policy)) as loader:  # fmt: skip
        assert not is_indexed(loader)
        came = []
        for _ in range(4):
            came.append([])
            for batch in loader:
                came[-1].append(batch["index"].tolist())
                assert loader.metrics()["leat_cache_ram_bytes"] <= ram
        stats = loader.stats()
    assert came == indexed_epochs(small, 4, **options)[0]
    hits = [epoch["cache"]["ram_hits"] for epoch in stats]
    # A piece that is on its way, or waits to be written, is as good as kept.
    assert all(said <= found <= said + 1 for found, said in zip(hits, planned)), hits
    assert sum(epoch["requests"]["get"] for epoch in stats) == served.counters()["get"]
    assert [epoch["requests"]["get"] for epoch in stats[1:]] == [SHARDS - found for found in hits[1:]]


def test_auto_is_chosen_by_what_was_listed(small, serve, fresh_cache):
    served = serve(small)
    with served.loader(**OPTIONS, epochs=2, cache="auto") as loader:
        assert not is_indexed(loader)
        epochs_of(loader, 2)
        assert loader.stats()[1]["requests"]["get"] == 0


def test_peers_hold_what_the_first_epoch_indexed(small, serve, fresh_cache):
    server = _native.PeerServer("127.0.0.1", "64MiB")
    served = serve(small)
    cache = leat.Cache(peers=[server.name], peer_patience="20s")
    with served.loader(**OPTIONS, epochs=3, cache=cache) as loader:
        assert not is_indexed(loader)
        came = epochs_of(loader, 3)
        stats = loader.stats()
    assert came == indexed_epochs(small, 3)[0]
    assert [epoch["cache"]["peer_hits"] for epoch in stats] == [0, SHARDS, SHARDS]
    # A piece that peers are asked for may be behind those that the next window lets go.
    assert stats[0]["requests"]["get"] >= SHARDS
    assert [epoch["requests"]["get"] for epoch in stats[1:]] == [0, 0]


@pytest.mark.parametrize("form", ["decoded", "auto"])
def test_pictures_may_be_kept_decoded(serve, fresh_cache, tmp_path, form):
    folder = tmp_path / "shards"
    for shard in range(6):
        write(folder / f"{shard}.tar", tar_of(
            [(f"{shard}-{i:03}.png", encoded(pixels(100 * shard + i))) for i in range(10)]))  # fmt: skip
    served = serve(folder)
    # Little memory: an epoch that is read ahead while the one before still decodes does not find all of it.
    options = {"fields": ["png"], "shuffle": leat.Shuffle("stream", 1), "global_batch_size": 4, "memory": "64KiB", "max_in_flight": 1,
               "ops": [DecodeImage(field="png", to="png"), RandomResizedCrop(8, field="png"),
                       RandomHorizontalFlip(field="png")]}  # fmt: skip

    def images(loader):
        return [np.concatenate([batch["png"] for batch in loader]) for _ in range(3)]

    with served.loader(**OPTIONS | options, epochs=3, cache=leat.Cache(ram=8 * MIB, form=form)) as loader:
        assert not is_indexed(loader)
        came, stats = images(loader), loader.stats()
    with leat.Loader(leat.Dataset(folder), **OPTIONS | options) as loader:
        expected, indexed = images(loader), loader.stats()
    for one, other in zip(came, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert hashes_of(stats) == hashes_of(indexed)
    assert stats[2]["requests"]["get"] == 0
    if form == "decoded":
        assert [epoch["cache"]["decoded_hits"] for epoch in stats[1:]] == [60, 60]


def test_what_cannot_be_kept_decoded_is_said_with_the_first_batch(small, fresh_cache):
    with leat.Loader(small, **OPTIONS, cache=leat.Cache(ram="8MiB", form="decoded")) as loader:
        with pytest.raises(leat.InvalidArgument, match="no field begins with decode_image"):
            next(iter(loader))  # Not before the fields are known.


# --- what is kept is served only where it belongs ---------------------------


def test_shards_that_changed_are_not_served_from_the_disk(small, serve, tmp_path, monkeypatch):
    folder = tmp_path / "bucket" / "shards"
    shutil.copytree(small, folder)
    served = serve(folder)
    came = []
    for run in range(2):
        monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / f"catalogue-{run}"))
        with served.loader(**OPTIONS, epochs=1, cache=tier_of(tmp_path, "disk")) as loader:
            assert not is_indexed(loader)
            came.append([text for batch in loader for text in batch["txt"].tolist()])
            hits = loader.stats()[0]["cache"]["disk_hits"]
        # Each a shard of the same size, and of other bytes.
        for shard in range(3):
            names = [f"{shard:03}-{i:05}" for i in range(32)]
            write(folder / f"{shard:03}.tar", tar_of(
                [(f"{name}.{kind}", b"x" * size)
                 for name in names for kind, size in (("bin", 50_000), ("txt", 9))]))  # fmt: skip
    assert hits == SHARDS - 3
    assert sum(text.startswith(b"x") for text in came[0]) == 0
    assert sum(text.startswith(b"x") for text in came[1]) == 3 * 32


def test_a_later_run_finds_what_an_unfinished_first_epoch_has_left(
    small, serve, tmp_path, monkeypatch
):
    """Killed in the middle of it: no catalogue, but records of the delivered
    samples."""
    served = serve(small)
    code = """
import json, sys, leat
url, options, disk = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
options["shuffle"] = leat.Shuffle("stream", 1)
with leat.Loader(url, **options, cache=leat.Cache(disk=disk, disk_limit="64MiB")) as loader:
    batches = iter(loader)
    print(json.dumps([next(batches)["index"].tolist() for _ in range(9)]))
    print(json.dumps(loader.state_dict()), flush=True)
    sys.stdin.readline()
"""
    # It holds two shards at a time, so it cannot be at the end.
    options = OPTIONS | served.options | {"memory": "8MiB"}
    expected, _ = indexed_epochs(small, 1, shuffle=leat.Shuffle("stream", 1))
    process = subprocess.Popen(
        [sys.executable, "-c", code, served.url, json.dumps(options), str(tmp_path / "records")],
        env={**os.environ, "LEAT_CACHE_DIR": str(tmp_path / "first")},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
    begun = json.loads(process.stdout.readline())
    state = json.loads(process.stdout.readline())
    segments = tmp_path / "records"
    while sum(path.stat().st_size for path in segments.glob("*")) < 3 * 1_600_000:
        time.sleep(0.01)  # The writer is a thread of its own.
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert begun == expected[0][:9] and state["samples"] is None

    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "second"))
    served.reset()
    cache = leat.Cache(disk=str(segments), disk_limit="64MiB")
    with served.loader(**{**OPTIONS, "shuffle": leat.Shuffle("stream", 1)}, cache=cache) as loader:
        loader.load_state_dict(state)
        rest = [batch["index"].tolist() for batch in loader]
        again = [batch["index"].tolist() for batch in loader]
        stats = loader.stats()
    assert begun + rest == expected[0]
    assert sorted(itertools.chain(*again)) == list(range(SAMPLES))
    assert stats[1]["cache"]["disk_hits"] >= 3 and stats[1]["cache"]["misses"] <= SHARDS - 3


@pytest.mark.parametrize("steps", [1, 4, 9, 15])
@pytest.mark.parametrize("has_catalogue", [False, True])
def test_a_state_of_the_first_epoch_goes_on_exactly(
    small, tmp_path, monkeypatch, steps, has_catalogue
):
    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "first"))
    options = {**OPTIONS, "shuffle": leat.Shuffle("stream", 2)}
    with leat.Loader(small, **options, cache=tier_of(tmp_path, "both")) as loader:
        batches = iter(loader)
        begun = [next(batches)["index"].tolist() for _ in range(steps)]
        state = loader.state_dict()
    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "second"))
    if has_catalogue:
        leat.Dataset(small)
    with leat.Loader(small, **options, cache=tier_of(tmp_path, "both")) as loader:
        loader.load_state_dict(state)
        came = [begun + epochs_of(loader, 1)[0], *epochs_of(loader, 2)]
        stats = loader.stats()
    assert came == indexed_epochs(small, 3, shuffle=leat.Shuffle("stream", 2))[0]
    # In a window that was begun, a piece is the same record as ever.
    assert stats[2]["cache"]["misses"] == 0


def test_an_epoch_that_is_left_and_one_that_is_jumped_to(small, fresh_cache):
    with leat.Loader(small, **OPTIONS | {"shuffle": leat.Shuffle("stream", 2)}, cache=leat.Cache(ram="64MiB")) as loader:
        next(iter(loader))
        second = [batch["index"].tolist() for batch in loader]
        loader.set_epoch(4)
        fifth = [batch["index"].tolist() for batch in loader]
        stats = loader.stats()
    expected, _ = indexed_epochs(small, 5, shuffle=leat.Shuffle("stream", 2))
    assert (second, fifth) == (expected[1], expected[4])
    assert stats[2]["cache"]["misses"] == 0


def test_the_first_epoch_may_be_any(small, fresh_cache):
    """Times are told by epochs, however many samples an epoch has."""
    options = {"shuffle": leat.Shuffle("stream", 1), "global_batch_size": 8, "memory": "8MiB", "max_in_flight": 1}
    ram = SHARDS // 2 * 1_680_000
    with leat.Loader(small, **OPTIONS | options, cache=leat.Cache(ram=ram), epochs=1003) as loader:
        loader.set_epoch(1000)
        assert not is_indexed(loader)
        came = epochs_of(loader, 3)
        hits = [epoch["cache"]["ram_hits"] for epoch in loader.stats()]
    with leat.Loader(leat.Dataset(small), **OPTIONS | options) as loader:
        loader.set_epoch(1000)
        assert came == epochs_of(loader, 3)
    assert hits[0] <= 1 and all(4 <= found <= 5 for found in hits[1:]), hits
