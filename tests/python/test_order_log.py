"""Order logs of real runs, and what `leat verify` proves of them."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys

import pytest

import leat
from leat import testing
from small_datasets import make_pictures, make_shards


def verify(*runs, code: int = 0) -> str:
    done = subprocess.run(
        [testing.find_binary(), "verify", *map(str, runs)], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def load(source, log, **options) -> leat.Loader:
    usual = {"shuffle": "full", "seed": 7, "global_batch_size": 20, "batch": "dict", "output": "numpy", "ids": True}
    return leat.Loader(source, trace={"order_log": log}, **{**usual, **options})


def ranks_of(source, log, world_size: int, **options) -> list[leat.Loader]:
    return [load(source, log, rank=rank, world_size=world_size, **options) for rank in range(world_size)]


def train(loaders: list[leat.Loader], epochs: int = 1, steps: int | None = None) -> None:
    """All ranks, step by step; with `steps`, the rest of the last epoch is left."""
    for epoch in range(epochs):
        iterators = [iter(loader) for loader in loaders]
        number = 0
        while steps is None or epoch + 1 < epochs or number < steps:
            if None in [next(iterator, None) for iterator in iterators]:
                break
            number += 1


def close(loaders: list[leat.Loader]) -> None:
    for loader in loaders:
        loader.close()


def test_one_rank_and_four_saw_one_stream(pictures, tmp_path):
    for world_size in (1, 4):
        loaders = ranks_of(pictures, tmp_path / f"{world_size}.order", world_size)
        train(loaders, epochs=2)
        close(loaders)

    told = verify(tmp_path / "1.order", tmp_path / "4.order")

    assert "the two runs saw one stream" in told
    assert told.count("3 steps, 60 samples: each of 60 once\n") == 2
    assert "in all    2 epochs, 6 steps, 120 samples" in told
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "1.order", "4.rank0.order", "4.rank1.order", "4.rank2.order", "4.rank3.order",
    ]  # fmt: skip


def test_a_stopped_run_that_goes_on_with_other_ranks_saw_the_same(pictures, tmp_path):
    whole, parts = tmp_path / "whole.order", tmp_path / "parts.order"
    alone = ranks_of(pictures, whole, 1)
    train(alone, epochs=2)
    close(alone)
    first = ranks_of(pictures, parts, 1)
    batches = iter(first[0])
    next(batches), next(batches)
    state = first[0].state_dict()
    next(batches)  # It delivers more than its checkpoint has.
    close(first)
    second = ranks_of(pictures, parts, 4)
    for loader in second:
        loader.load_state_dict(state)
    train(second, epochs=2)
    close(second)

    told = verify(whole, parts)

    assert "the two runs saw one stream" in told
    assert "world size 1, then 4" in told
    assert "went back to position 40 of epoch 0" in told


def test_a_resumed_run_on_one_name_begins_another_file(pictures, tmp_path):
    log = tmp_path / "run.order"
    first = load(pictures, log)
    train([first], steps=1)
    state = first.state_dict()
    first.close()
    again = load(pictures, log)
    again.load_state_dict(state)
    train([again])
    again.close()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.2.order", "run.order"]
    assert "3 steps, 60 samples: each of 60 once" in verify(log)


def test_epochs_that_are_chosen_or_left_early_are_followed(pictures, tmp_path):
    for world_size in (1, 2):
        loaders = ranks_of(pictures, tmp_path / f"{world_size}.order", world_size)
        for epoch in (0, 1, 3):
            for loader in loaders:
                loader.set_epoch(epoch)
            train(loaders)
        train(loaders, steps=2)
        train(loaders)
        close(loaders)

    told = verify(tmp_path / "1.order", tmp_path / "2.order")

    assert "in all    5 epochs, 14 steps, 280 samples" in told
    assert "epoch 4   2 steps, 40 samples: none twice; positions 0 to 40 alone\n" in told
    assert "epoch 5   3 steps, 60 samples: each of 60 once\n" in told
    assert "note" not in told


def test_an_epoch_that_is_asked_for_again_counts_once(pictures, tmp_path):
    loader = load(pictures, tmp_path / "run.order")
    for _ in range(3):
        loader.set_epoch(1)
        train([loader])
    loader.close()

    told = verify(tmp_path / "run.order")

    assert "in all    1 epochs, 3 steps, 60 samples" in told
    assert told.count("training went back to position 0 of epoch 1") == 2


def test_two_seeds_differ_from_the_first_step_on(pictures, tmp_path):
    for seed in (7, 8):
        loader = load(pictures, tmp_path / f"{seed}.order", seed=seed)
        train([loader])
        loader.close()

    told = verify(tmp_path / "7.order", tmp_path / "8.order", code=1)

    assert "the first difference is in step 0 of epoch 0 (positions 0 to 20); only " in told


def test_a_rank_that_saw_anothers_samples_is_named(pictures, tmp_path):
    loaders = [
        load(pictures, tmp_path / name, rank=0, world_size=2) for name in ("run.order", "run.order")
    ]  # The second should have had rank=1.
    train(loaders)
    close(loaders)

    assert "rank 1 of 2 has no log of step 0 of epoch 0" in verify(tmp_path, code=1)


def test_a_doubled_log_entry_is_named(pictures, tmp_path):
    log = tmp_path / "run.order"
    loader = load(pictures, log)
    train([loader])
    loader.close()
    data = log.read_bytes()
    ends = entry_ends(data)
    second = data[ends[1] : ends[2]]
    log.write_bytes(data[: ends[2]] + second + data[ends[2] :])

    assert "rank 0 delivered again positions 20 to 40 of epoch 0" in verify(log, code=1)


def entry_ends(data: bytes) -> list[int]:
    """The ends of the entries of a log, the head first."""
    ends, at = [], 8
    while at < len(data):
        at += 9 + int.from_bytes(data[at : at + 4], "little")
        ends.append(at)
    return ends


def test_a_tail_is_told(pictures, tmp_path):
    for name, options, says in (
        ("drop", {}, "7 steps, 56 samples: none twice, and the tail of 4 is left out\n"),
        ("keep", {"drop_last": False}, "8 steps, 60 samples: each of 60 once\n"),
        ("pad", {"drop_last": "pad"}, "8 steps, 60 samples: each of 60 once; 4 pad\n"),
    ):
        loaders = ranks_of(pictures, tmp_path / f"{name}.order", 2, global_batch_size=8, **options)
        train(loaders)
        close(loaders)
        assert says in verify(tmp_path / f"{name}.order")


def test_draws_may_come_again(pictures, tmp_path):
    sampler = leat.WeightedSampler([0.0] * 50 + [1.0] * 10)
    loader = load(pictures, tmp_path / "run.order", shuffle=None, sampler=sampler)
    train([loader])
    loader.close()

    assert "different ones, as drawn" in verify(tmp_path / "run.order")


def test_shards_in_blocks_are_one_stream_too(tmp_path):
    make_shards(tmp_path / "data", shards=4, samples=16, size=2**12)
    for world_size in (1, 2):
        loaders = ranks_of(tmp_path / "data", tmp_path / f"{world_size}.order", world_size, shuffle=True,
                           global_batch_size=8)  # fmt: skip
        train(loaders, epochs=2)
        close(loaders)

    assert "the two runs saw one stream" in verify(tmp_path / "1.order", tmp_path / "2.order")


def test_a_stream_without_an_index_is_the_stream_with_one(tmp_path, fresh_cache):
    make_shards(tmp_path / "data", shards=4, samples=16, size=2**12)
    for name in ("without", "with"):
        loader = load(tmp_path / "data", tmp_path / f"{name}.order", shuffle="stream", global_batch_size=8)
        train([loader])
        loader.close()

    told = verify(tmp_path / "without.order", tmp_path / "with.order")

    assert "8 steps, 64 samples: each of 64 once" in told


def test_substitutes_are_told_and_are_a_difference(tmp_path):
    make_pictures(tmp_path / "data", 60)
    for name in ("good", "bad"):
        loader = load(tmp_path / "data", tmp_path / f"{name}.order", ops=[leat.ops.DecodeImage()],
                      on_error="substitute")  # fmt: skip
        train([loader])
        loader.close()
        bad = sorted((tmp_path / "data").rglob("*.png"))[17]
        bad.write_bytes(bad.read_bytes()[:40] + bytes(bad.stat().st_size - 40))

    assert "59 different ones, since 1 replace bad ones" in verify(tmp_path / "bad.order")
    assert "only " + str(tmp_path / "good.order") + " has samples 17" in verify(
        tmp_path / "good.order", tmp_path / "bad.order", code=1
    )


KILLED = """
import sys, leat
loader = leat.Loader(sys.argv[1], shuffle="full", seed=7, global_batch_size=5, trace={"order_log": sys.argv[2]})
while True:
    for number, batch in enumerate(loader):
        print(loader.state_dict()["epoch"], loader.state_dict()["position"], flush=True)
"""


def test_a_killed_run_has_all_but_its_last_batch(pictures, tmp_path):
    log = tmp_path / "run.order"
    run = subprocess.Popen([sys.executable, "-c", KILLED, str(pictures), str(log)], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    for _ in range(40):
        run.stdout.readline()
    os.kill(run.pid, signal.SIGKILL)
    seen = 40 + sum(line.count("\n") for line in run.stdout.readlines())
    run.wait()

    told = verify(log)

    steps = sum(int(line.split()[2]) for line in told.splitlines() if line.strip().startswith("epoch "))
    assert seen - 1 <= steps <= seen + 1  # One may be delivered and not yet told.


@pytest.mark.parametrize("trace", [{"order": "x"}, {"order_log": 3}, 3])
def test_another_trace_is_refused(pictures, trace):
    with pytest.raises(leat.InvalidArgument, match='"timeline": "t.json", "order_log": "run.order"'):
        leat.Loader(pictures, batch_size=4, train=True, trace=trace)


def test_a_log_that_cannot_be_written_is_an_error(pictures, tmp_path):
    with pytest.raises(leat.NotFound, match="none/run.order"):
        load(pictures, tmp_path / "none" / "run.order")
    with pytest.raises(TypeError, match="order_log"):
        leat.Loader(pictures, batch_size=4, train=True, order_log="run.order")


def test_a_timeline_and_an_order_log_go_together(pictures, tmp_path):
    files = {"timeline": tmp_path / "t.json", "order_log": pathlib.Path("run.order")}
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        loader = leat.Loader(pictures, batch_size=20, train=True, trace=files)
        train([loader])
        loader.close()
    finally:
        os.chdir(before)

    assert (tmp_path / "t.json").stat().st_size > 1000
    assert "each of 60 once" in verify(tmp_path)
