"""Mixes: one stream of several datasets, the same for any number of ranks and after any stop."""

from __future__ import annotations

import itertools
import json
import logging
import pathlib
import pickle
import random
import re
import subprocess
import threading
from collections import Counter

import numpy as np
import pytest

import leat
import leat.research
from small_datasets import tar_of, write

MIB = 2**20
USUAL = {"shuffle": True, "drop_last": True, "ids": True, "batch": "dict", "output": "numpy"}
KEEPS = {**USUAL, "drop_last": False}


def folder_of(folder, name: str, samples: int) -> leat.Dataset:
    """Objects that tell their source and their number."""
    for number in range(samples):
        write(folder / name / f"{number:04}.bin", f"{name} {number}".encode())
    return leat.Dataset(folder / name)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    sizes = {"books": 30, "code": 50, "web": 200}
    return {name: folder_of(folder, name, samples) for name, samples in sizes.items()}


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Two sources in shards: 6 of 17 MB, and 4 of 11 MB."""
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(3)
    for name, count, samples in (("large", 6, 96), ("small", 4, 60)):
        for shard in range(count):
            members = []
            for sample in range(samples):
                key = f"{name}-{shard:02}-{sample:03}"
                members += [(f"{key}.bin", rng.bytes(180_000)), (f"{key}.txt", key.encode())]
            write(folder / name / f"{shard:02}.tar", tar_of(members))
    return folder


def weighed(parts, **weights: float) -> dict:
    return {name: (parts[name], weight) for name, weight in weights.items()}


def read(batch) -> list[str]:
    """The contents of a batch."""
    return [bytes(data).decode() for data in batch["data"].tolist()]


def contents(mix, epochs: int = 1, **options) -> list[str]:
    with leat.Loader(mix, epochs=epochs, **{**KEEPS, "batch_size": 4, **options}) as loader:
        return [text for _ in range(epochs) for batch in loader for text in read(batch)]


def laps(texts: list[str], name: str, size: int) -> list[list[str]]:
    its = [text for text in texts if text.startswith(f"{name} ")]
    return [its[i : i + size] for i in range(0, len(its), size)]


def assert_laps_are_whole(texts: list[str], parts, names) -> None:
    for name in names:
        size = len(parts[name])
        for lap in laps(texts, name, size):
            assert len(set(lap)) == len(lap), f"a sample of {name} came twice before all had come"


def test_an_epoch_that_would_be_unequal_among_ranks_raises_as_it_begins(parts):
    """With weights, each epoch of a mix has a length of its own."""

    def steps(loader) -> int:
        try:
            return sum(1 for _ in loader)
        except leat.InvalidArgument as error:
            assert re.search("of 4 ranks would get .* batches and the others", str(error))
            return -1

    mix = leat.mix(weighed(parts, books=1, code=2))
    meshes = [leat.Mesh({"dp": 4, "pp": 2}, rank=process, needs_data=process % 2 == 0) for process in range(8)]
    loaders = [leat.Loader(mix, global_batch_size=8, rank=mesh, **KEEPS) for mesh in meshes]
    ends = []
    for epoch in range(10):
        for loader in loaders:
            loader.set_epoch(epoch)
        ends.append({steps(loader) for loader in loaders})
    for loader in loaders:
        loader.close()

    assert [len(end) for end in ends] == [1] * 10
    assert {-1} in ends and ends[0] != {-1}


def test_each_sample_tells_its_source_and_is_what_it_says(parts):
    mix = leat.mix(weighed(parts, books=0.5, code=0.5))
    with leat.Loader(mix, batch_size=8, epochs=1, **USUAL) as loader:
        for batch in loader:
            names = [mix.sources[number] for number in batch["source"]]
            assert [text.split()[0] for text in read(batch)] == names
            assert batch["key"] == [text.split()[1].zfill(4) + ".bin" for text in read(batch)]


def test_an_epoch_ends_as_stop_says(parts):
    first = contents(leat.mix(weighed(parts, books=0.75, code=0.25), stop="first_exhausted", composition="stratified"))
    assert Counter(text.split()[0] for text in first) == {"books": 30, "code": 10}
    every = contents(leat.mix(weighed(parts, books=0.75, code=0.25), stop="all_exhausted", composition="stratified"))
    assert len({text for text in every if text.startswith("code")}) == 50
    assert Counter(text.split()[0] for text in every)["code"] == 50
    once = contents(leat.mix(weighed(parts, books=5, code=1), stop="all_exhausted_without_replacement"))
    assert len(set(once)) == len(once) == 80
    assert len(contents(leat.mix(weighed(parts, books=1, code=1), samples=33))) == 33


def test_without_weights_each_sample_comes_once_in_proportion(parts):
    mix = leat.mix({name: parts[name] for name in ("books", "web")}, composition="stratified")
    found = contents(mix)
    assert len(set(found)) == len(found) == 230
    for end in range(1, 231):
        had = sum(text.startswith("books") for text in found[:end])
        assert abs(had - end * 30 / 230) < 1


def test_sources_are_repeated_and_chosen_exactly(parts):
    twice = contents(leat.mix({"books": parts["books"], "code": parts["code"]}, repeat={"books": 2.5}))
    assert Counter(text.split()[0] for text in twice) == {"books": 75, "code": 50}
    some = contents(leat.mix({"books": parts["books"], "web": parts["web"]}, choose={"books": 10, "web": 70}), epochs=3)
    assert Counter(text.split()[0] for text in some) == {"books": 30, "web": 210}
    # A source goes on where it stopped.
    assert_laps_are_whole(some, parts, ["books", "web"])


def test_after_any_prefix_each_source_has_its_share(parts):
    weights = {"books": 0.5, "code": 0.3, "web": 0.2}
    mix = leat.mix(weighed(parts, **weights), composition="stratified", samples=10_000)
    with leat.Loader(mix, batch_size=100, fields=("source",), shuffle=True, epochs=1, output="numpy") as loader:
        sources = np.concatenate([source for (source,) in loader])
    assert len(sources) == 10_000
    for number, share in enumerate(weights.values()):
        had = np.cumsum(sources == number)
        assert np.abs(had - share * np.arange(1, 10_001)).max() < 1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_after_any_prefix_random_turns_are_within_four_sigma(parts, seed):
    """A draw for each sample by itself has this sigma; the first few samples may be one turn farther off."""
    weights = {"books": 0.73, "code": 0.2, "web": 0.07}
    sources = sources_of(leat.mix(weighed(parts, **weights), samples=10_000), seed=seed, batch_size=100)
    ends = np.arange(1, 10_001)
    for number, share in enumerate(weights.values()):
        sigma = np.sqrt(ends * share * (1 - share))
        off = np.abs(np.cumsum(sources == number) - share * ends)
        assert (off <= 4 * sigma + 1).all()
        assert off.max() > 1, "turns are drawn, and not spread evenly"


def test_proportions_hold_on_any_number_of_ranks_after_each_step(parts):
    """All ranks together have had in a step what one rank has had."""
    weights = {"books": 0.5, "code": 0.3, "web": 0.2}
    mix = leat.mix(weighed(parts, **weights), composition="stratified", samples=960)
    for world in (1, 3, 8):
        ranks = [
            sources_of(mix, global_batch_size=48, batch_size=None, rank=rank, world_size=world).reshape(20, -1)
            for rank in range(world)
        ]
        steps = np.concatenate(ranks, axis=1)
        for number, share in enumerate(weights.values()):
            assert np.abs(np.cumsum((steps == number).sum(1)) - share * 48 * np.arange(1, 21)).max() < 1


def sources_of(mix, **options) -> np.ndarray:
    usual = {"batch_size": 50, "shuffle": True, "epochs": 1, "output": "numpy", "drop_last": False}
    with leat.Loader(mix, fields=("source",), **{**usual, **options}) as loader:
        return np.concatenate([source for (source,) in loader])


def test_a_schedule_changes_weights_and_a_ramp_moves_them(parts):
    start, later = weighed(parts, books=1, web=0), {400: {"books": 0, "web": 1}}
    steps = sources_of(leat.mix(start, samples=600, schedule=later, composition="stratified"))
    assert steps.tolist() == [0] * 400 + [1] * 200
    moved = sources_of(leat.mix(start, samples=600, schedule=later, ramp=True, composition="stratified"))
    assert abs(int((moved[:400] == 1).sum()) - 200) <= 32  # Less than one in each of 64 stages.
    assert (moved[:100] == 1).sum() < (moved[300:400] == 1).sum() / 3
    assert (moved[400:] == 1).all()


def test_a_schedule_goes_on_through_epochs_and_states(parts):
    mix = leat.mix(weighed(parts, books=1, web=1), samples=300, schedule={450: {"books": 1, "web": 9}})
    options = {"epochs": 3}
    whole = [sources_of(mix, **options)]
    with leat.Loader(mix, fields=("source",), batch_size=50, shuffle=True, output="numpy", drop_last=False) as loader:
        batches = [source for _ in range(3) for (source,) in loader]
    assert np.array_equal(whole[0], np.concatenate(batches[:6]))
    counts = [int((batch == 1).sum()) for batch in batches]
    assert sum(counts[:9]) < 0.65 * 450 and sum(counts[9:]) > 0.8 * 450
    with leat.Loader(mix, fields=("source",), batch_size=50, shuffle=True, output="numpy", drop_last=False) as loader:
        running = (source for _ in range(3) for (source,) in loader)
        for _ in itertools.islice(running, 8):
            pass
        state = loader.state_dict()
    with leat.Loader(mix, fields=("source",), batch_size=50, shuffle=True, output="numpy", drop_last=False) as loader:
        loader.load_state_dict(state)
        rest = [source for _ in range(2) for (source,) in loader]
    assert np.array_equal(np.concatenate(rest), np.concatenate(batches[8:]))


def test_a_step_is_of_one_source(parts):
    mix = leat.mix(weighed(parts, books=1, code=1), composition="per_source")
    with leat.Loader(mix, batch_size=8, fields=("source",), shuffle=True, epochs=1, output="numpy") as loader:
        steps = [set(source.tolist()) for (source,) in loader]
    assert all(len(step) == 1 for step in steps) and len(set.union(*steps)) == 2


def test_unshuffled_sources_come_in_their_own_order(parts):
    found = contents(leat.mix(weighed(parts, books=1, code=2), stop="first_exhausted"), shuffle=False)
    for name in ("books", "code"):
        numbers = [int(text.split()[1]) for text in found if text.startswith(name)]
        assert numbers == list(range(len(numbers))) and numbers


def test_a_mix_of_mixes_has_the_shares_of_both(parts):
    text = leat.mix(weighed(parts, books=3, web=1))
    mix = leat.mix({"text": (text, 1), "code": (parts["code"], 1)})
    assert mix.weights == {"text/books": 0.375, "text/web": 0.125, "code": 0.5}
    assert_laps_are_whole(contents(mix), parts, ["books", "web", "code"])


MIXES = {
    "random": {"stop": "all_exhausted"},
    "stratified": {"stop": "first_exhausted", "composition": "stratified"},
    "per_source": {"composition": "per_source"},
    "once": {"stop": "all_exhausted_without_replacement"},
}


def steps_of(make, world: int, skipped: int, steps: int, state: dict | None) -> list[list[int]]:
    """The samples of each step over all ranks; and checks that bytes belong to them."""
    found: list[list[int]] = [[] for _ in range(steps)]
    for rank in range(world):
        with make(rank=rank, world_size=world) as loader:
            if state is not None:
                loader.load_state_dict(state)
            batches = (batch for _ in itertools.count() for batch in loader)
            for number, batch in enumerate(itertools.islice(batches, skipped, skipped + steps)):
                found[number] += batch["index"].tolist()
    return [sorted(step) for step in found]


@pytest.mark.parametrize("kind", MIXES)
def test_any_number_of_ranks_sees_one_stream_and_resumes_it(parts, kind):
    mix = leat.mix(weighed(parts, books=0.5, code=0.2, web=0.3), **MIXES[kind])

    def make(**rank):
        return leat.Loader(mix, global_batch_size=24, memory="64MiB", **USUAL, **rank)

    whole = steps_of(make, 1, 0, 60, None)
    rng = random.Random(5)
    for world in (2, 3, 4, 8):
        assert steps_of(make, world, 0, 60, None) == whole
        stop = rng.randrange(1, 40)
        with make(rank=0, world_size=1) as loader:
            batches = (batch for _ in itertools.count() for batch in loader)
            for _ in itertools.islice(batches, stop):
                pass
            state = json.loads(json.dumps(loader.state_dict()))
        assert steps_of(make, world, 0, 60 - stop, state) == whole[stop:], (world, stop)


def test_pieces_of_shards_are_read_about_once_by_any_number_of_ranks(shards, serve):
    served = serve(shards)
    sources = {
        name: (leat.Dataset(f"{served.url}/{name}", **served.options), weight)
        for name, weight in (("large", 0.7), ("small", 0.3))
    }
    mix = leat.mix(sources, stop="all_exhausted_without_replacement")
    size = sum(path.stat().st_size for path in shards.rglob("*.tar"))
    found = {}
    for world in (1, 2, 4):
        served.reset()
        steps: list[list[str]] = [[] for _ in range(len(mix) // 48)]
        for rank in range(world):
            with leat.Loader(
                mix, global_batch_size=48, memory="1GiB", epochs=1, rank=rank, world_size=world, **USUAL
            ) as loader:
                for number, batch in enumerate(loader):
                    steps[number] += [text.decode() for text in batch["txt"].tolist()]
                    assert batch["key"] == [text.decode() for text in batch["txt"].tolist()]
        found[world] = [sorted(step) for step in steps]
        counters = served.counters()
        assert counters["get"] <= 1.5 * size / (8 * MIB) + 4 * world, (world, counters)
        assert counters["bytes"] <= 1.1 * size, (world, counters)
    assert found[1] == found[2] == found[4]


def test_a_source_of_shards_that_begins_anew_is_read_anew(shards, serve):
    served = serve(shards)
    sources = {
        name: (leat.Dataset(f"{served.url}/{name}", **served.options), weight)
        for name, weight in (("large", 1), ("small", 2))
    }
    served.reset()
    with leat.Loader(leat.mix(sources), batch_size=48, memory="1GiB", epochs=1, **USUAL) as loader:
        keys = [key for batch in loader for key in batch["key"]]
    had = Counter(key for key in keys if key.startswith("small"))
    assert len(had) == 240 and min(had.values()) >= 4
    read_of = {"large": 6 * 96 * 180_000, "small": 4 * 60 * 180_000}
    turns = Counter(key.split("-")[0] for key in keys)
    wanted = sum(turns[name] / size * read_of[name] for name, size in (("large", 576), ("small", 240)))
    assert served.counters()["bytes"] <= 1.2 * wanted


def test_a_state_goes_on_in_another_mix_and_nothing_is_lost_or_repeated(parts, caplog):
    caplog.set_level(logging.INFO, "leat")
    rng = random.Random(11)
    for _ in range(6):
        before = leat.mix(weighed(parts, books=0.6, code=0.4))
        texts: list[str] = []
        with leat.Loader(before, batch_size=4, **KEEPS) as loader:
            batches = (batch for _ in itertools.count() for batch in loader)
            for batch in itertools.islice(batches, rng.randrange(1, 60)):
                texts += read(batch)
            state = json.loads(json.dumps(loader.state_dict()))
        # Other weights, a source more, in another place of the dict.
        after = leat.mix(weighed(parts, web=0.3, code=0.6, books=0.1))
        with leat.Loader(after, batch_size=8, **KEEPS) as loader:
            loader.load_state_dict(state)
            assert loader.state_dict()["epoch"] == state["epoch"]
            batches = (batch for _ in itertools.count() for batch in loader)
            for batch in itertools.islice(batches, 40):
                texts += read(batch)
            later = json.loads(json.dumps(loader.state_dict()))
            rest = [read(batch) for batch in itertools.islice(batches, 20)]
        assert_laps_are_whole(texts, parts, ["books", "code", "web"])
        # The state of a mix that went on is one as any other.
        with leat.Loader(after, batch_size=8, **KEEPS) as loader:
            loader.load_state_dict(later)
            batches = (batch for _ in itertools.count() for batch in loader)
            assert [read(batch) for batch in itertools.islice(batches, 20)] == rest
    assert any("another mix" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("weights", [{"books": 1, "code": 1}, {"books": 1, "code": 3}], ids=["same", "another"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_state_of_another_shuffle_is_refused(parts, tmp_path, weights, packed):
    if packed:
        for name in ("books", "code"):
            write(tmp_path / name / "0.bin", np.array([7, 7, 0] * 40, "<u2").tobytes())
        parts = {name: leat.Dataset.tokens(tmp_path / name, dtype="uint16", seq_len=64, eos=0) for name in ("books", "code")}
    usual = {"batch_size": 4, "fields": ("tokens",), "sampler": leat.Pack(6)} if packed else {"batch_size": 4, **USUAL}
    with leat.Loader(leat.mix(weighed(parts, books=1, code=1)), **{**usual, "shuffle": True}) as loader:
        list(loader) if packed else next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
    with leat.Loader(leat.mix(weighed(parts, **weights)), **{**usual, "shuffle": False}) as loader:
        with pytest.raises(leat.InvalidArgument, match="source.*shuffle full.*none.*shuffle="):
            loader.load_state_dict(state)
        loader.load_state_dict({key: value for key, value in loader.state_dict().items()})


def test_a_mix_of_shards_with_one_source_more_takes_over_the_window(shards):
    def make(*names, **options):
        sources = {name: (leat.Dataset(shards / ("small" if name == "again" else name)), 1) for name in names}
        return leat.Loader(leat.mix(sources), batch_size=4, train=True, fields=("txt",), output="numpy", **options)

    with make("large", "small") as loader:
        next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
    with make("large", "small", "again") as loader:
        assert loader.state_dict()["shuffle_window"] != state["shuffle_window"]
        loader.load_state_dict(state)
        next(iter(loader))
        later = loader.state_dict()
        following = next(iter(loader))
        assert later["shuffle_window"] == state["shuffle_window"] and later["had"][:2] != [0, 0]
    with make("large", "small", "again") as loader:  # A state of the wider mix is one as any other.
        loader.load_state_dict(later)
        assert loader.state_dict() == later
    with make("large", "small") as loader:
        engine = loader._native
        loader.load_state_dict(state)
        assert loader._native is engine, "opened again, though nothing differs"
    with make("large", "small", "again", seed=1) as loader:
        mine = loader.state_dict()
        with pytest.raises(leat.InvalidArgument, match="seed"):
            loader.load_state_dict(state)
        assert loader.state_dict() == mine
    assert len(following[0]) == 4


@pytest.mark.parametrize("kind", ["random", "per_source"])
@pytest.mark.parametrize("worlds", [(1, 2), (2, 1), (8, 2)])
def test_a_mix_goes_on_at_another_world_size_where_a_ranks_batch_is_given(parts, kind, worlds):
    mix = leat.mix(weighed(parts, books=1, code=0), samples=640, composition=kind, schedule={160: {"books": 0, "code": 1}})

    def make(rank, world):
        return leat.Loader(mix, batch_size=4, rank=rank, world_size=world, **USUAL)

    before, after = worlds
    with make(0, before) as loader:
        assert sum(1 for _ in itertools.islice(loader, 60 // before)) == 60 // before  # 240 samples, over all ranks.
        state = json.loads(json.dumps(loader.state_dict()))
        size = state["global_batch_size"]
    with make(0, after) as loader:
        loader.load_state_dict(state)
        assert loader.state_dict() == state
    steps = [[] for _ in range((640 - state["position"]) // size)]
    for rank in range(after):
        with make(rank, after) as loader:
            loader.load_state_dict(state)
            batches = list(loader)
            assert len(batches) == len(steps)
            for step, batch in zip(steps, batches):
                step += read(batch)
    assert [len(step) for step in steps] == [size] * len(steps)
    assert all(text.startswith("code ") for step in steps for text in step)


@pytest.mark.parametrize("option, words", [({"schedule": {10: {"books": 1, "web": 0}}}, "schedule="),
                                           ({"composition": "per_source"}, "per_source"), ({"composition": "stratified"}, "stratified")])
def test_what_a_mix_says_of_its_epochs_is_not_lost_within_another(parts, option, words):
    inner = leat.mix(weighed(parts, books=1, web=1), **option)
    with pytest.raises(leat.InvalidArgument, match=f"source 'text' is a mix with .*{words}"):
        leat.mix({"text": (inner, 1), "code": (parts["code"], 1)})
    if "composition" in option:
        assert len(leat.mix({"text": (inner, 1), "code": (parts["code"], 1)}, **option).sources) == 3


def test_a_source_with_other_data_is_refused(parts, tmp_path):
    mix = leat.mix(weighed(parts, books=1, code=1))
    with leat.Loader(mix, batch_size=4, **USUAL) as loader:
        next(iter(loader))
        state = loader.state_dict()
    other = leat.mix({"books": (folder_of(tmp_path, "books", 31), 1), "code": (parts["code"], 2)})
    with leat.Loader(other, batch_size=4, **USUAL) as loader:
        with pytest.raises(leat.InvalidArgument, match="source 'books' has other data"):
            loader.load_state_dict(state)
    with leat.Loader(mix, batch_size=4, seed=1, **USUAL) as loader:
        with pytest.raises(leat.InvalidArgument, match="seed"):
            loader.load_state_dict(state)


@pytest.mark.parametrize(
    "name, value",
    [("position", 8.0), ("position", "8"), ("position", None), ("epoch", "0"), ("catalogue", 7), ("had", [8])],
)
def test_a_damaged_state_of_a_mix_is_refused_and_what_is_wrong_is_named(parts, name, value):
    mix = leat.mix(weighed(parts, books=1, code=1))
    with leat.Loader(mix, batch_size=4, rank=0, world_size=1, **USUAL) as loader:
        assert sum(1 for _ in itertools.islice(loader, 2)) == 2
        state = json.loads(json.dumps(loader.state_dict()))
    assert state["position"] == 8
    state[name] = value
    for damaged in (state, {key: known for key, known in state.items() if key != name}):
        with leat.Loader(mix, batch_size=4, rank=0, world_size=1, **USUAL) as loader:
            with pytest.raises(leat.InvalidArgument, match=f'"{name}" is missing or of another type'):
                loader.load_state_dict(damaged)
            assert loader.state_dict()["position"] == 0


def test_an_epoch_before_the_mix_began_is_refused(parts):
    with leat.Loader(leat.mix(weighed(parts, books=1, code=1)), batch_size=4, **USUAL) as loader:
        loader.set_epoch(3)
        next(iter(loader))
        state = loader.state_dict()
    with leat.Loader(leat.mix(weighed(parts, books=1, code=3)), batch_size=4, **USUAL) as loader:
        loader.load_state_dict(state)
        loader.set_epoch(2)
        with pytest.raises(leat.InvalidArgument, match="began with epoch 3"):
            next(iter(loader))


def test_64_sources_take_the_threads_of_one_and_a_state_of_2_kb(tmp_path):
    sources = {f"domain{number:02}": folder_of(tmp_path, f"d{number}", 8) for number in range(64)}
    mix = leat.mix({name: (each, 1 + number) for number, (name, each) in enumerate(sources.items())})

    def threads_of(source) -> tuple[int, int]:
        with leat.research.Loader(source, batch_size=32, threads=2, tune=False, **USUAL) as loader:
            batches = (batch for _ in itertools.count() for batch in loader)
            for _ in itertools.islice(batches, 20):
                pass
            threads = len(list(_threads()))
            return threads, len(json.dumps(loader.state_dict()))

    one, _ = threads_of(sources["domain00"].select([number % 8 for number in range(512)]))
    many, state = threads_of(mix)
    assert many <= one + 2  # Threads begin as they are needed. With a client for each source: 250 more.
    assert state <= 2048


def _threads():
    return pathlib.Path("/proc/self/task").iterdir()


def test_a_cache_keeps_what_comes_again(parts, tmp_path):
    mix = leat.mix(weighed(parts, books=1, code=1))
    with leat.Loader(mix, batch_size=8, cache=leat.Cache(ram="16MiB"), epochs=2, **KEEPS) as loader:
        found = [text for _ in range(2) for batch in loader for text in read(batch)]
        last = loader.stats()[-1]
    assert found == contents(mix, 2, batch_size=8)
    assert last["cache"]["ram_hits"] > 0 and last["cache"]["misses"] == 0


def test_a_store_that_throttles_changes_no_step_of_any_rank(tmp_path, serve):
    names = {"a": 120, "b": 200}
    for name, samples in names.items():
        folder_of(tmp_path / "data", name, samples)
    served = serve(tmp_path / "data", most_gets=200)
    mix = leat.mix({name: (leat.Dataset(f"{served.url}/{name}", **served.options), 1) for name in names})
    found = {}
    for world in (1, 2, 8):
        steps = [[] for _ in range(20)]

        def run(rank, world=world, steps=steps):
            with leat.Loader(mix, global_batch_size=16, epochs=1, rank=rank, world_size=world, **USUAL) as loader:
                for number, batch in enumerate(itertools.islice(loader, 20)):
                    steps[number] += read(batch)

        ranks = [threading.Thread(target=run, args=(rank,)) for rank in range(world)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        found[world] = [sorted(step) for step in steps]
    assert all(len(step) == 16 for step in found[1]) and found[1] == found[2] == found[8]
    assert served.counters()["faults"] > 0


def twice_said(sources, caplog) -> list[str]:
    caplog.clear()
    leat.mix(sources)
    return [record.getMessage() for record in caplog.records if "same data" in record.getMessage()]


def test_only_sources_that_are_the_same_data_are_said_to_be(tmp_path, serve, caplog):
    caplog.set_level(logging.WARNING, "leat")
    for name in "abcd":
        for number in range(3):
            write(tmp_path / "data" / name / f"{number}.bin", f"{name}{number}".encode())
    alike = {name: leat.Dataset(tmp_path / "data" / name) for name in "abcd"}
    assert len({part.digest for part in alike.values()}) == 1  # Names and sizes are equal, and no more.
    assert twice_said(alike, caplog) == []
    again = {f"{name}{number}": alike[name] for name in "ab" for number in range(5)}
    said = twice_said(again, caplog)
    assert len(said) == 2 and "'a0', 'a1', 'a2' (and 1 more) and 'a4' are the same data" in said[0]

    served = serve(tmp_path / "data")
    remote = {name: leat.Dataset(f"{served.url}/{name}", **served.options) for name in "abcd"}
    assert twice_said(remote, caplog) == []
    assert ["'b' and 'b again'" in line for line in twice_said({**remote, "b again": remote["b"]}, caplog)] == [True]


def test_a_mix_pickles(parts):
    mix = leat.mix(weighed(parts, books=0.6, code=0.4), composition="stratified", samples=77)
    again = pickle.loads(pickle.dumps(mix))
    assert again.weights == mix.weights and again.digest == mix.digest
    assert contents(again) == contents(mix)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda p: leat.mix({}), "give a dict"),
        (lambda p: leat.mix({"a": "s3://b"}), "source 'a' is 's3://b'"),
        (lambda p: leat.mix({"a": (p["books"], -1)}), "weight -1"),
        (lambda p: leat.mix({"a": (p["books"], 1), "b": p["code"]}), "source 'b' has no weight"),
        (lambda p: leat.mix({"a": (p["books"], 1)}, stop="never"), "stop='never'"),
        (lambda p: leat.mix({"a": (p["books"], 1)}, composition="even"), "composition='even'"),
        (lambda p: leat.mix({"a": (p["books"], 1)}, repeat={"a": 2}), "give one of them"),
        (lambda p: leat.mix({"a": p["books"]}, repeat={"b": 2}), "repeat= names 'b'"),
        (lambda p: leat.mix({"a": p["books"], "b": p["code"]}, choose={"a": 2}), "choose= has no number for source 'b'"),
        (lambda p: leat.mix({"a": p["books"]}, choose={"a": 2.5}), "a whole number"),
        (lambda p: leat.mix({"a": p["books"]}, samples=5, stop="all_exhausted"), "give one of them"),
        (lambda p: leat.mix({"a": p["books"]}, schedule={5: {"a": 1}}), "have none"),
        (lambda p: leat.mix({"a": (p["books"], 1)}, schedule={5: {"b": 1}}), "a weight for each of a"),
        (lambda p: leat.mix({"a": (p["books"], 1)}, schedule={0: {"a": 1}}), "from 1 on"),
        (lambda p: leat.mix({"a": (p["books"], 1)}, ramp=True), "there is none"),
        (lambda p: leat.mix({"a": (leat.mix({"x": p["books"]}, repeat={"x": 2}), 1)}), "repeat= or choose="),
        (lambda p: leat.mix({"a": p["books"]}).take(3), "before you mix it"),
        (lambda p: leat.mix({"a": (p["books"], 0)}), "no source has a weight above 0"),
        (lambda p: leat.Loader(leat.mix({"a": p["books"]}), batch_size=2, sampler=[1, 2]), "sampler="),
        (lambda p: leat.Loader(leat.mix({"a": p["books"]}), batch_size=2, shuffle="stream"), "need an index"),
        (
            lambda p: leat.Loader(leat.mix({"a": p["books"]}, composition="per_source"), batch_size=2, train=True),
            'stop="all_exhausted"',
        ),
    ],
)  # fmt: skip
def test_a_mix_that_cannot_be_meant_is_refused(parts, make, words):
    with pytest.raises(leat.InvalidArgument, match=re.escape(words)):
        make(parts)


def test_sources_with_other_fields_are_named(parts, shards):
    with pytest.raises(leat.InvalidArgument) as caught:
        leat.mix({"text": (parts["books"], 1), "tars": (leat.Dataset(shards / "large"), 1)})
    message = str(caught.value)
    assert all(word in message for word in ("'text'", "'tars'", "data: bytes", "txt: bytes"))


def test_windows_of_unequal_length_are_never_joined(tmp_path):
    """A batch of windows of 16 and of 32 tokens would have rows of 24."""
    write(tmp_path / "0.bin", np.arange(640, dtype="<u2").tobytes())
    short, long = (leat.Dataset.tokens(tmp_path, dtype="uint16", seq_len=length) for length in (16, 32))

    for join in (lambda: leat.mix({"short": (short, 1), "long": (long, 1)}), lambda: leat.Dataset.concat([short, long])):
        with pytest.raises(leat.InvalidArgument) as caught:
            join()
        assert "(16,)" in str(caught.value) and "(32,)" in str(caught.value)


def test_what_a_loader_says_of_a_mix(parts, caplog):
    caplog.set_level(logging.INFO, "leat")
    mix = leat.mix(weighed(parts, books=3, code=1), samples=50)
    with leat.Loader(mix, batch_size=7, **USUAL) as loader:
        next(iter(loader))
    (line,) = [record.getMessage() for record in caplog.records if "a mix of" in record.getMessage()]
    assert "a mix of books 75%, code 25% (random), seed 0" in line and "drops 1 of the last step" in line


@pytest.mark.parametrize("packs", [False, True])
def test_the_certificate_agrees(parts, tmp_path, packs):
    """Two runs of a mix, or of its packed documents, at other numbers of ranks; one was stopped."""
    if packs:
        for name, size in (("low", 60), ("high", 90)):
            tokens = [token for number in range(size) for token in [*range(1, 5 + number % 30), 0]]
            write(tmp_path / name / "a.bin", np.array(tokens, "<u2").tobytes())
        sources = {
            name: (leat.Dataset.tokens(tmp_path / name, dtype="uint16", seq_len=4096, eos=0), 1) for name in ("low", "high")
        }
        mix, options = leat.mix(sources), {"sampler": leat.Pack(64), "train": True, "fields": ("tokens",)}
    else:
        mix, options = leat.mix(weighed(parts, books=0.4, code=0.6)), {"shuffle": True}

    def run(name: str, worlds: list[int]) -> None:
        state = None
        for number, world in enumerate(worlds):
            for rank in range(world):
                with leat.Loader(
                    mix, global_batch_size=8, epochs=2, rank=rank, world_size=world, output="numpy",
                    trace={"order_log": tmp_path / name / "run.order"}, **options,
                ) as loader:  # fmt: skip
                    if state is not None:
                        loader.load_state_dict(state)
                    batches = (batch for _ in range(2) for batch in loader)
                    stopped = None if number + 1 == len(worlds) else 2
                    for _ in itertools.islice(batches, stopped):
                        pass
                    last = loader.state_dict()
            state = last

    for name, worlds in (("whole", [1]), ("parts", [4, 2])):
        (tmp_path / name).mkdir()
        run(name, worlds)
    command = [leat.testing.find_binary(), "verify", tmp_path / "whole", tmp_path / "parts"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
