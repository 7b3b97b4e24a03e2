"""Filters that have to see the data: equal steps on all ranks, and nothing read twice to be passed over."""

from __future__ import annotations

import io
import json
import logging
import pathlib
import random
import subprocess
import threading
from collections import Counter

import numpy as np
import pytest

import leat
from leat.ops import DecodeImage, Filter, LoadNpy, ParseInt, Python, RandomHorizontalFlip
from small_datasets import make_pictures, tar_of, write

USUAL = {"ids": True, "batch": "dict", "output": "numpy", "seed": 5}
SAMPLES = 120


def is_third(number) -> bool:
    return int(number) % 3 == 0


@pytest.fixture
def numbers(tmp_path, fresh_cache):
    """Objects that hold their own number."""
    for number in range(SAMPLES):
        write(tmp_path / "set" / f"{number:04}.bin", str(number).encode())
    return tmp_path / "set"


@pytest.fixture
def shards(tmp_path, fresh_cache):
    """Shards of samples that hold their own number."""
    for shard in range(6):
        members = []
        for number in range(shard * 20, shard * 20 + 20):
            members += [(f"{number:04}.cls", str(number).encode()), (f"{number:04}.bin", bytes([number]) * (1 + number))]
        write(tmp_path / "shards" / f"{shard}.tar", tar_of(members))
    return tmp_path / "shards"


def thirds(**more) -> Filter:
    return Filter(is_third, **more)


def load(data, *, ops=None, batch=12, **options) -> leat.Loader:
    ops = [ParseInt(), thirds()] if ops is None else ops
    return leat.Loader(data, **{**USUAL, "shuffle": True, "drop_last": False, "global_batch_size": batch, "ops": ops, **options})


def field_of(batch) -> np.ndarray:
    return batch["data"] if "data" in batch else batch["cls"]


def steps(loaders, epochs: int = 1) -> list[list[list[int]]]:
    """The samples of each global batch, by epoch."""
    epochs_of = []
    for _ in range(epochs):
        found: list[list[int]] = []
        for batches in zip(*loaders):
            found.append([int(i) for batch in batches for i in batch["index"]])
        epochs_of.append(found)
    return epochs_of


def ranks(data, world: int, **options) -> list[leat.Loader]:
    return [load(data, rank=rank, world_size=world, **options) for rank in range(world)]


def test_what_is_delivered_passes_and_no_step_is_shorter(numbers):
    with load(numbers) as loader:
        (epoch,) = steps([loader])
        stats = loader.stats()[0]
    assert [len(step) for step in epoch] == [12] * 10
    got = Counter(i for step in epoch for i in step)
    assert all(is_third(i) for i in got)
    # Each of those that pass came at its own place, and some came again.
    assert set(got) == {i for i in range(SAMPLES) if is_third(i)}
    assert stats["skipped"] == SAMPLES - 40 and stats["substituted"] == 0


def test_values_belong_to_the_sample_that_the_batch_names(numbers):
    with load(numbers) as loader:
        for batch in loader:
            assert batch["data"].tolist() == batch["index"].tolist()
            assert [int(pathlib.PurePath(key).stem) for key in batch["key"]] == batch["index"].tolist()


@pytest.mark.parametrize("source", ["numbers", "shards"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_any_number_of_ranks_has_the_same_global_batches(source, shuffle, request):
    data = request.getfixturevalue(source)
    want = None
    hashes = set()
    for world in (1, 2, 3, 4, 6, 12):
        loaders = ranks(data, world, shuffle=shuffle)
        got = [[sorted(step) for step in epoch] for epoch in steps(loaders, epochs=2)]
        hashes.add(sum(int(loader.stats()[0]["content_hash"], 16) for loader in loaders) % 2**128)
        for loader in loaders:
            loader.close()
        want = want or got
        assert got == want, world
    assert len(hashes) == 1


def test_who_knows_the_answers_delivers_the_same(numbers):
    """Whether it reads a sample to pass over it, or has it in its records: the same batches."""
    with load(numbers, ops=[ParseInt(), thirds(name="thirds")]) as loader:
        first = steps([loader], epochs=2)
    with load(numbers, ops=[ParseInt(), thirds(name="thirds")]) as loader:
        later = steps([loader], epochs=2)
    assert later == first
    assert first[0] != first[1]


def test_a_sample_is_read_once_to_be_passed_over(numbers, serve):
    served = serve(numbers)
    options = {**USUAL, "shuffle": True, "drop_last": False, "global_batch_size": 12}
    looked: Counter = Counter()

    def keep(number) -> bool:
        looked[int(number)] += 1
        return is_third(number)

    with served.loader(ops=[ParseInt(), Filter(keep, name="thirds", workers="threads")], epochs=1, **options) as loader:
        assert len(list(loader)) == 10
    # Within an epoch that is under way at once, some are drawn as others' substitutes before they are known.
    assert set(looked) == set(range(SAMPLES))
    looked.clear()
    served.reset()
    with served.loader(ops=[ParseInt(), Filter(keep, name="thirds", workers="threads")], epochs=2, **options) as loader:
        for _ in range(2):
            assert len(list(loader)) == 10
    assert looked and all(is_third(i) for i in looked), "a later run reads none of them"
    assert served.counters()["get"] <= 2 * SAMPLES


def test_an_unnamed_filter_is_asked_again_by_a_later_run(numbers):
    with load(numbers) as loader:
        first = steps([loader])
    calls = []
    with load(numbers, ops=[ParseInt(), Filter(lambda number: calls.append(int(number)) or is_third(number))]) as loader:
        assert steps([loader]) == first
    assert any(not is_third(i) for i in calls)


def test_names_are_apart(numbers):
    with load(numbers, ops=[ParseInt(), thirds(name="thirds")]) as loader:
        steps([loader])
    with load(numbers, ops=[ParseInt(), Filter(lambda number: int(number) % 2 == 0, name="even")]) as loader:
        (epoch,) = steps([loader])
    assert {i for step in epoch for i in step} == set(range(0, SAMPLES, 2))


@pytest.mark.parametrize("source", ["numbers", "shards"])
def test_a_resume_at_any_point_by_any_number_of_ranks_goes_on_alike(source, request):
    data = request.getfixturevalue(source)
    draw = random.Random(11)
    with load(data) as loader:
        whole = [sorted(step) for epoch in steps([loader], epochs=2) for step in epoch]
    for _ in range(12):
        stop = draw.randrange(1, 19)
        before, after = draw.choice([1, 2, 3, 4]), draw.choice([1, 2, 3, 4, 6])
        loaders = ranks(data, before)
        iterators = [iter(loader) for loader in loaders]
        for step in range(stop):
            if step == 10:
                for iterator in iterators:
                    assert next(iterator, None) is None
                iterators = [iter(loader) for loader in loaders]
            for iterator in iterators:
                next(iterator)
        states = [loader.state_dict() for loader in loaders]
        assert len(json.dumps(states[0])) <= 2048
        for loader in loaders:
            loader.close()
        loaders = ranks(data, after)
        for loader in loaders:
            loader.load_state_dict(states[0])
        got = steps(loaders)[0] + (steps(loaders)[0] if stop < 10 else [])
        for loader in loaders:
            loader.close()
        assert [sorted(step) for step in got] == whole[stop:], (stop, before, after)


def test_in_a_mix_the_place_goes_to_the_same_source(tmp_path, fresh_cache):
    for name, first in (("small", 0), ("large", 1000)):
        for number in range(first, first + (30 if name == "small" else 90)):
            write(tmp_path / name / f"{number:04}.bin", str(number).encode())
    mixed = leat.mix({name: (leat.Dataset(tmp_path / name), weight) for name, weight in (("small", 1), ("large", 3))}, samples=240)
    plain = load(mixed, ops=[ParseInt()], batch=24)
    kept = load(mixed, batch=24)
    with plain, kept:
        for want, got in zip(plain, kept):
            assert (want["data"] >= 1000).tolist() == (got["data"] >= 1000).tolist()
            assert all(is_third(number) for number in got["data"])


def test_a_drawn_sample_keeps_to_what_a_sampler_gave(numbers):
    chosen = list(range(30, 90))
    with load(numbers, sampler=chosen, shuffle=None) as loader:
        (epoch,) = steps([loader])
    assert len(epoch) == 5 and {i for step in epoch for i in step} <= {i for i in chosen if is_third(i)}


def test_several_fields_and_raw_bytes_beside_them(shards):
    with load(shards, ops=[ParseInt("cls"), thirds(field="cls")], fields=["cls", "bin"]) as loader:
        for batch in loader:
            for number, data in zip(batch["cls"].tolist(), batch["bin"].tolist()):
                assert is_third(number) and data == bytes([number]) * (1 + number)


@pytest.mark.parametrize("fields", [{}, {"fields": ("txt", "bin")}])
def test_bytes_and_lists_of_unequal_length_stay_what_they_are(tmp_path, fresh_cache, fields):
    members = []
    for number in range(SAMPLES):
        members += [(f"{number:03}.txt", b"x" * number), (f"{number:03}.bin", bytes([number]))]
    write(tmp_path / "texts" / "0.tar", tar_of(members))
    keep = Filter(lambda text, *_: len(text) % 3 == 0, **(fields or {"field": "txt"}))
    with load(tmp_path / "texts", ops=[keep], batch=30) as loader:
        texts = [bytes(text) for batch in loader for text in batch["txt"].tolist()]
    assert len(texts) == SAMPLES and {len(text) for text in texts} == set(range(0, SAMPLES, 3))
    assert all(set(text) <= {ord("x")} for text in texts)


def test_lists_that_an_op_read_stay_ragged(tmp_path, fresh_cache):
    for number in range(30):
        out = io.BytesIO()
        np.save(out, np.arange(number))
        write(tmp_path / "lists" / f"{number:02}.npy", out.getvalue())
    with load(tmp_path / "lists", ops=[LoadNpy(ragged=True), Filter(lambda array: len(array) > 9)], batch=10) as loader:
        lists = [row for batch in loader for row in batch["data"].tolist()]
    assert len(lists) == 30 and all(row == list(range(len(row))) and len(row) > 9 for row in lists)


def test_a_filter_of_several_fields(tmp_path, fresh_cache):
    members = [(f"{number:03}.{name}", str(value).encode())
               for number in range(SAMPLES) for name, value in (("cls", number), ("half", number // 2))]  # fmt: skip
    write(tmp_path / "two" / "0.tar", tar_of(members))
    both = Filter(lambda number, half: is_third(number) and half > 20, fields=("cls", "half"))
    with load(tmp_path / "two", ops=[ParseInt("cls"), ParseInt("half"), both]) as loader:
        got = [(int(n), int(half)) for batch in loader for n, half in zip(batch["cls"], batch["half"])]
    assert len(got) == SAMPLES and all(half == n // 2 for n, half in got)
    assert {n for n, _ in got} == {n for n in range(SAMPLES) if is_third(n) and n >= 42}


def test_pictures_of_any_size_and_ops_behind(tmp_path, fresh_cache):
    make_pictures(tmp_path / "set", 30)
    bright = {}
    with leat.Loader(tmp_path / "set", shuffle=False, batch_size=1, ops=[DecodeImage(layout="HWC")], **USUAL) as loader:
        for batch in loader:
            bright[int(batch["index"][0])] = float(batch["image"].mean())
    middle = float(np.median(list(bright.values())))
    ops = [DecodeImage(layout="HWC"), Filter(lambda image: image.mean() > middle), RandomHorizontalFlip()]
    with leat.Loader(tmp_path / "set", shuffle=True, batch_size=10, ops=ops, **USUAL) as loader:
        got = [int(i) for batch in loader for i in batch["index"]]
    assert len(got) == 30 and all(bright[i] > middle for i in got)


def test_a_function_may_say_it_itself(numbers):
    def value(number):
        if not is_third(number):
            raise leat.Skipped("no third")
        return number

    with load(numbers, ops=[ParseInt(), Python(value)]) as loader:
        assert all(is_third(i) for step in steps([loader])[0] for i in step)


def test_a_function_may_say_that_a_sample_is_bad(numbers, caplog):
    def value(number):
        if not is_third(number):
            raise leat.Corrupt(f"{int(number)} is torn")
        return number

    ops = [ParseInt(), Python(value)]
    with load(numbers, ops=ops) as loader, pytest.raises(leat.Corrupt, match="is torn"):
        steps([loader])
    with load(numbers, ops=ops, on_error="substitute") as loader, caplog.at_level(logging.WARNING, logger="leat"):
        assert all(is_third(i) for step in steps([loader])[0] for i in step)
        assert loader.stats()[0]["substituted"] == SAMPLES - 40
    # Twenty are named, and the file has them all.
    named = [record for record in caplog.messages if "is torn" in record]
    assert len(named) == 20 and any("more than 20 samples are bad" in record for record in caplog.messages)


def test_processes_filter_alike(numbers):
    with load(numbers) as loader:
        want = steps([loader])
    with load(numbers, ops=[ParseInt(), thirds(workers="processes")]) as loader:
        assert steps([loader]) == want


def test_a_filter_that_takes_nothing_raises_and_does_not_hang(numbers):
    with load(numbers, ops=[ParseInt(), Filter(lambda number: False)]) as loader:
        with pytest.raises(leat.Skipped, match="1000 that were drawn for its place"):
            next(iter(loader))


def test_a_loader_is_closed_while_it_looks_for_others(numbers):
    for _ in range(20):
        loader = load(numbers, ops=[ParseInt(), Filter(lambda number: int(number) == 7, workers="threads")])
        iterator = iter(loader)
        next(iterator)
        loader.close()


def test_memory_is_given_back(numbers):
    loader = load(numbers)
    steps([loader], epochs=2)
    loader.close()
    assert loader.metrics()["leat_runtime_reserved_bytes"] == 0
    assert loader.metrics()["leat_pipeline_skipped_total"] == 2 * (SAMPLES - 40)


def test_what_cannot_be_meant_is_refused(numbers):
    with pytest.raises(leat.InvalidArgument, match="takes rng"):
        Filter(lambda image, rng: True)
    with pytest.raises(leat.InvalidArgument, match="cannot be called"):
        Filter("large")
    with pytest.raises(leat.InvalidArgument, match="can be printed"):
        Filter(is_third, name="a\tb")
    make_pictures(numbers.parent / "pictures", 5)
    with pytest.raises(leat.InvalidArgument, match=r"Filter \(op 2\) comes after random_horizontal_flip \(op 1\)"):
        leat.Loader(numbers.parent / "pictures", batch_size=2, shuffle=True, ops=[DecodeImage(), RandomHorizontalFlip(), Filter(is_third)])


def test_a_store_that_throttles_changes_no_step_of_any_rank(numbers, serve):
    served = serve(numbers, most_gets=300)
    found = {}
    for world in (1, 2, 8):
        batches: list[list] = [[] for _ in range(world)]

        def run(rank, world=world, batches=batches):
            with load(served.url, rank=rank, world_size=world, batch=24, epochs=1, **served.options) as loader:
                batches[rank] = [batch["index"].tolist() for batch in loader]

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(world)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found[world] = [sorted(sum(step, [])) for step in zip(*batches)]
    assert [len(step) for step in found[1]] == [24] * 5 and found[1] == found[2] == found[8]
    assert served.counters()["faults"] > 0


def test_the_order_log_certifies_it(numbers, tmp_path):
    for name, world in (("one", 1), ("three", 3)):
        loaders = [
            load(numbers, rank=rank, world_size=world, trace={"order_log": str(tmp_path / f"{name}.order")})
            for rank in range(world)
        ]
        steps(loaders, epochs=2)
        for loader in loaders:
            loader.close()
    told = subprocess.run(
        [leat.testing.find_binary(), "verify", *(str(tmp_path / f"{name}.order") for name in ("one", "three"))],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr
