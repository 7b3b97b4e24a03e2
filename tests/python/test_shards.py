"""Tar shards: read in large pieces, shuffled in blocks, in bounded memory."""

from __future__ import annotations

import re

import numpy as np
import pytest

import leat
from small_datasets import ids_of, tar_of, write

MIB = 2**20
OPTIONS = {"global_batch_size": 16, "shuffle": True, "drop_last": False, "ids": True,
           "batch": "dict", "output": "numpy"}


def bytes_of(folder) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.tar"))


# --- requests ---------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [True, False])
def test_shards_are_read_in_large_pieces(large, serve, shuffle):
    served = serve(large)
    most = bytes_of(large) / (8 * MIB) * 1.1
    with served.loader(**{**OPTIONS, "shuffle": shuffle}, epochs=3) as loader:
        served.reset()
        for _ in range(3):
            assert len(ids_of(loader)) == 6 * 52
        epochs = loader.stats()
    assert all(e["requests"]["get"] <= most for e in epochs)
    # The server saw the same.
    assert served.counters()["get"] == sum(e["requests"]["get"] for e in epochs)
    for epoch in epochs:  # Each byte once; headers between samples come along.
        assert 6 * 52 * MIB // 4 <= epoch["bytes_read"] <= bytes_of(large)


def test_fields_left_out_are_not_waited_for(large, serve):
    served = serve(large)
    with served.loader(**{**OPTIONS, "fields": ["txt", "key"]}) as loader:
        for batch in loader:
            assert [t.decode() for t in batch["txt"].tolist()] == batch["key"]


# --- the order --------------------------------------------------------------


def test_a_block_shuffle_delivers_what_no_shuffle_does(small):
    content, orders = [], []
    for shuffle in (True, False, "full"):
        with leat.Loader(small, **{**OPTIONS, "shuffle": shuffle}) as loader:
            orders.append(ids_of(loader))
            content.append(loader.stats()[0]["content_hash"])
    assert len(set(content)) == 1
    assert orders[1] == list(range(256))
    assert all(sorted(order) == orders[1] for order in orders)
    assert len({tuple(order) for order in orders}) == 3


def test_the_samples_are_those_of_the_shards(small):
    with leat.Loader(small, **OPTIONS) as loader:
        for batch in loader:
            assert [t.decode() for t in batch["txt"].tolist()] == batch["key"]
            assert np.diff(batch["bin"].offsets).tolist() == [50_000] * 16
            for key, number in zip(batch["key"], batch["index"]):
                assert key == f"{number // 32:03}-{number % 32:05}"


def test_a_window_mixes_whole_pieces(small):
    with leat.Loader(small, **OPTIONS | {"shuffle": leat.Shuffle(window=2)}) as loader:
        for _ in range(3):
            order = ids_of(loader)
            for begin in range(0, 256, 64):
                window = order[begin:begin + 64]
                shards = {number // 32 for number in window}
                assert len(shards) == 2 and len(set(window)) == 64
                assert sorted(window) != window
                # Mixed, not one after the other.
                assert len({number // 32 for number in window[:16]}) == 2


def test_the_order_is_strict_and_reproducible(small, serve):
    orders = []
    for options in ({}, {"threads": 1}, {"max_in_flight": 1}, {"memory": "20MB"}):
        served = serve(small, latency="lognormal:5ms,1", faults=["503:5%"], seed=len(orders))
        with served.loader(**OPTIONS | options | {"shuffle": leat.Shuffle(window=3)}) as loader:
            orders.append([ids_of(loader), ids_of(loader)])
    assert orders[0][0] != orders[0][1]
    assert all(order == orders[0] for order in orders)


def test_more_of_a_sample_than_a_piece_holds(tmp_path):
    rng = np.random.default_rng(1)
    large, little = rng.bytes(20 * MIB), b"little"
    write(tmp_path / "a.tar", tar_of([("1.bin", little), ("2.bin", large), ("3.bin", little)]))
    write(tmp_path / "b.tar", tar_of([("4.bin", little)]))
    with leat.Loader(tmp_path, global_batch_size=2, shuffle="block", ids=True) as loader:
        for batch in loader:
            for number, data in zip(batch["index"], batch["bin"].tolist()):
                assert data == (large if number == 1 else little)


# --- memory -----------------------------------------------------------------


def test_too_little_memory_for_a_batch_says_how_much_and_what_to_lower(small):
    options = {**OPTIONS, "shuffle": leat.Shuffle(window=8), "global_batch_size": 64}
    with leat.Loader(small, **options, memory="2MB") as loader:
        with pytest.raises(leat.ResourceExhausted) as caught:
            ids_of(loader)
    message = str(caught.value)
    assert re.search(r"\d{7} bytes", message)
    assert "window=" in message and "memory=" in message


@pytest.mark.parametrize("megabytes", [2, 3, 4, 5, 6, 7, 8, 12])
def test_whatever_the_memory_it_ends(small, megabytes):
    """A window of two pieces of 1.6 MB and batches of 0.8 MB: 4.1 MB hold both pieces."""
    with leat.Loader(small, **OPTIONS | {"shuffle": leat.Shuffle(window=2)}, memory=f"{megabytes}MB") as loader:
        for _ in range(2):
            assert sorted(ids_of(loader)) == list(range(256))
    assert loader.metrics()["leat_runtime_reserved_bytes"] == 0


def test_samples_without_bytes_hold_no_memory(tmp_path):
    rng = np.random.default_rng(2)
    for shard in range(12):
        members = []
        for sample in range(20):
            data = b"" if rng.random() < 0.5 else rng.bytes(50_000)
            members.append((f"{shard:02}-{sample:02}.bin", data))
        write(tmp_path / f"{shard:02}.tar", tar_of(members))
    with leat.Loader(tmp_path, **OPTIONS | {"shuffle": leat.Shuffle(window=2)}, memory="4MB") as loader:
        for _ in range(2):
            assert sorted(ids_of(loader)) == list(range(240))


@pytest.mark.parametrize("shuffle", [True, False])
def test_padding_and_resume_over_shards(small, shuffle):
    options = {**OPTIONS, "drop_last": "pad", "shuffle": leat.Shuffle(window=2) if shuffle else False,
               "global_batch_size": 100, "memory": "32MB"}
    with leat.Loader(small, **options) as loader:
        whole = [batch["bin"].tolist() for batch in loader]
    assert len(whole) == 3 and whole[2][56:] == whole[0][:44]
    with leat.Loader(small, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with leat.Loader(small, **options) as loader:
        loader.load_state_dict(state)
        assert [batch["bin"].tolist() for batch in loader] == whole[1:]
