"""Bugs that users of other loaders met when they resumed, as tests of this one.

Each test names the thread that tells of the bug.
"""

from __future__ import annotations

import itertools
import json
import logging

import numpy as np
import pytest

import leat
from small_datasets import make_pictures, tar_of, write

EOS = 0
USUAL = {"shuffle": True, "ids": True, "batch": "dict", "output": "numpy", "drop_last": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objects")
    for number in range(600):
        write(folder / f"{number:04}.bin", b"%d" % number)
    return folder


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for shard in range(4):
        members = [(f"{shard}-{sample:03}.bin", b"%d" % sample) for sample in range(150)]
        write(folder / f"{shard}.tar", tar_of(members))
    return folder


def sources_of(tmp_path_factory, *sizes: int) -> dict[str, leat.Dataset]:
    folder = tmp_path_factory.mktemp("sources")
    for size in sizes:
        for number in range(size):
            write(folder / f"of{size}" / f"{number:04}.bin", b"%d of %d" % (number, size))
    return {f"of{size}": leat.Dataset(folder / f"of{size}") for size in sizes}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return sources_of(tmp_path_factory, 40, 90)


def ids(loader, batches: int | None = None) -> list[int]:
    """The samples of this many batches, through epochs; of one epoch if None."""
    if batches is None:
        return [int(i) for batch in loader for i in batch["index"]]
    endless = (batch for _ in itertools.count() for batch in loader)
    return [int(i) for batch in itertools.islice(endless, batches) for i in batch["index"]]


def state_of(loader) -> dict:
    return json.loads(json.dumps(loader.state_dict()))


@pytest.fixture(scope="module")
def mixed(two):
    return leat.mix({"a": (two["of40"], 0.3), "b": (two["of90"], 0.7)}, samples=600)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """300 documents."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = np.random.default_rng(3)
    documents = [[number + 1] * int(rng.integers(1, 30)) + [EOS] for number in range(300)]
    write(folder / "a.bin", np.array(sum(documents, []), "<u2").tobytes())
    return leat.Dataset.tokens(folder, dtype="uint16", seq_len=4096, eos=EOS)


@pytest.mark.parametrize("source", ["folder", "shards", "mixed"])
def test_datasets_8308_and_8295_a_second_resume_goes_on_where_the_first_got_to(source, request):
    """datasets#8308 and #8295: after one resume the state stood still, so that a second one began anew."""
    data = request.getfixturevalue(source)
    with leat.Loader(data, batch_size=16, **USUAL) as loader:
        whole = ids(loader)
    found, state = [], None
    for _ in range(10):
        with leat.Loader(data, batch_size=16, **USUAL) as loader:
            if state is not None:
                loader.load_state_dict(state)
            found += [int(i) for batch in itertools.islice(loader, 3) for i in batch["index"]]
            state = state_of(loader)
    assert found == whole[: len(found)] and len(found) == 480


def test_datasets_8295_a_second_resume_of_packed_rows_goes_on_too(corpus):
    """datasets#8295 in the place where its author met it: documents that a trainer packs, resumed twice."""
    options = {"batch_size": 4, "train": True, "sampler": leat.Pack(64), "fields": ("tokens",), "output": "numpy", "epochs": 1}
    with leat.Loader(corpus, **options) as loader:
        whole = [tokens.tolist() for tokens, _, _ in loader]
    found, state = [], None
    while len(found) < len(whole):
        with leat.Loader(corpus, **options) as loader:
            if state is not None:
                loader.load_state_dict(state)
            found += [tokens.tolist() for tokens, _, _ in itertools.islice(loader, 3)]
            state = state_of(loader)
    assert found == whole and len(whole) > 9


def test_datasets_8145_and_7656_a_function_on_samples_skips_none(folder):
    """datasets#8145 and #7656: behind map(), what was read ahead counted as delivered."""

    def tagged(data):
        return np.int64(int(bytes(data)) + 10_000)

    def make():
        ops = [leat.ops.Python(tagged, field="data", to="tag")]
        return leat.Loader(folder, batch_size=1, fields=("tag",), ops=ops, shuffle=False, output="numpy", epochs=1)

    with make() as loader:
        running = iter(loader)
        for _ in range(200):
            next(running)
        state = state_of(loader)
        expected = [int(next(running)[0][0]) for _ in range(5)]
    with make() as loader:
        loader.load_state_dict(state)
        assert [int(tag[0]) for (tag,) in itertools.islice(loader, 5)] == expected == list(range(10_200, 10_205))


def test_datasets_7538_ranks_that_divide_the_shards_lose_nothing(shards):
    """datasets#7538: with shards that the ranks divide evenly, a batch read ahead was lost."""

    def rank_of(rank, state=None, batches=None):
        with leat.Loader(shards, global_batch_size=24, rank=rank, world_size=4, **USUAL) as loader:
            if state is not None:
                loader.load_state_dict(state)
            return ids(itertools.islice(loader, batches)), state_of(loader)

    parts = [rank_of(rank, batches=7) for rank in range(4)]
    rest = [rank_of(rank, state=parts[0][1])[0] for rank in range(4)]
    assert sorted([i for part, _ in parts for i in part] + [i for part in rest for i in part]) == list(range(600))


def test_datasets_7447_epochs_after_a_resume_are_whole(folder):
    """datasets#7447: all epochs after a resume had as many batches as the first was left with."""
    with leat.Loader(folder, batch_size=50, **USUAL) as loader:
        ids(itertools.islice(loader, 9))
        state = state_of(loader)
    with leat.Loader(folder, batch_size=50, **USUAL) as loader:
        loader.load_state_dict(state)
        assert [len(ids(loader)) for _ in range(3)] == [150, 600, 600]


def test_energon_266_one_dataset_twice_has_two_orders_and_is_said(two, caplog):
    """Megatron-Energon#266: the same dataset at two places of a blend came in the same order twice."""
    caplog.set_level(logging.WARNING, "leat")
    once = two["of90"]
    inner = leat.mix({"a": (two["of40"], 0.5), "b": (once, 0.5)})
    mix = leat.mix({"again": (once, 0.5), "inner": (inner, 0.5)}, samples=2000, composition="stratified")
    with leat.Loader(mix, batch_size=50, **USUAL) as loader:
        batches = list(loader)
    sources = np.concatenate([batch["source"] for batch in batches])
    keys = np.array([key for batch in batches for key in batch["key"]])
    names = mix.sources
    orders = {name: keys[sources == names.index(name)][:90].tolist() for name in ("again", "inner/b")}
    assert sorted(orders["again"]) == sorted(orders["inner/b"]) and orders["again"] != orders["inner/b"]
    assert any("'again' and 'inner/b' are the same data" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("saved, loaded, weights, stopped", [
    (8, 2, (0.4, 0.6), 11), (1, 8, (0.4, 0.6), 3), (3, 6, (0.4, 0.6), 11),
    (8, 2, None, 11), (2, 3, None, 0), (2, 3, (0.4, 0.6), 0),
])  # fmt: skip
def test_litdata_694_and_507_a_mix_resumes_at_another_number_of_ranks(two, saved, loaded, weights, stopped):
    """litData#694, #507, #363, #248: a combined dataset could not resume on several nodes, or on others; nor in its
    second epoch (step 11), nor without weights, nor with a state from before the first step."""
    both = (two["of40"], two["of90"])
    mix = leat.mix(dict(zip("ab", both if weights is None else zip(both, weights))))

    def steps(world, state, skip, count):
        found = [[] for _ in range(count)]
        for rank in range(world):
            with leat.Loader(mix, global_batch_size=24, rank=rank, world_size=world, **{**USUAL, "drop_last": True}) as loader:
                if state is not None:
                    loader.load_state_dict(state)
                endless = (batch for _ in itertools.count() for batch in loader)
                for number, batch in enumerate(itertools.islice(endless, skip, skip + count)):
                    found[number] += batch["index"].tolist()
                last = state_of(loader)
        return [sorted(step) for step in found], last

    whole, _ = steps(1, None, 0, 20)
    begun, state = steps(saved, None, 0, stopped)
    rest, _ = steps(loaded, state, 0, 20 - stopped)
    assert begun + rest == whole and (stopped < 11 or state["epoch"] >= 1)


def test_megatron_457_weights_change_and_no_sample_is_lost_or_doubled(two):
    """Megatron-LM#457: after a change of weights, samples of one source were lost and others came twice."""
    with leat.Loader(leat.mix({"a": (two["of40"], 1), "b": (two["of90"], 1)}), batch_size=10, **USUAL) as loader:
        found = ids(loader, 3)
        state = state_of(loader)
    with leat.Loader(leat.mix({"a": (two["of40"], 2), "b": (two["of90"], 1)}), batch_size=10, **USUAL) as loader:
        loader.load_state_dict(state)
        found += ids(loader, 40)
    for first, size in ((0, 40), (40, 90)):
        its = [i for i in found if first <= i < first + size]
        for lap in range(len(its) // size):
            assert len(set(its[lap * size : lap * size + size])) == size


def test_llm_foundry_1277_a_packed_stream_counts_documents_and_not_rows(corpus):
    """llm-foundry#1277: a state counted packed rows as samples, so that a resume repeated documents."""

    def make():
        return leat.Loader(corpus, batch_size=4, train=True, sampler=leat.Pack(64), fields=("tokens",), output="numpy")

    with make() as loader:
        running = iter(loader)
        seen = [next(running)[0] for _ in range(6)]
        state = state_of(loader)
        rest = [tokens.tolist() for tokens, _, _ in running]
    with make() as loader:
        loader.load_state_dict(state)
        resumed = [tokens.tolist() for tokens, _, _ in loader]
    assert resumed == rest
    both = set(np.concatenate(seen).ravel().tolist()) & set(np.array(resumed).ravel().tolist())
    assert both == {EOS}


def test_a_fresh_loader_over_pictures_goes_on_mid_epoch(tmp_path):
    """torchtitan#3907: the same through a trainer's checkpoints, each of a resumed run."""
    make_pictures(tmp_path / "pictures", 45)
    state, seen = None, []
    for _ in range(5):
        with leat.Loader(tmp_path / "pictures", batch_size=9, **USUAL) as loader:
            if state is not None:
                loader.load_state_dict(state)
            seen += next(iter(loader))["index"].tolist()
            state = state_of(loader)
    assert sorted(seen) == list(range(45)) and (state["epoch"], state["position"]) == (1, 0)
