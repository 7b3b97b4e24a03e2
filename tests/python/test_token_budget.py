"""Steps with as many samples as a budget of tokens holds, and how ranks share them."""

from __future__ import annotations

import itertools
import json
import logging
import random

import numpy as np
import pytest

import leat
from leat.ops import Filter, Python
from small_datasets import run_python, write

EOS = 0
BUDGET = 400
MICRO_BATCHES = 24  # A step's: 1, 2, 3, 4 and 8 ranks divide them.
USUAL = {"train": True, "fields": ("tokens", "index"), "ids": True, "batch": "dict", "output": "numpy", "seed": 3}
WORLDS = (1, 2, 3, 4, 8)
KINDS = {
    "sums": {},
    "buckets": {"buckets": 4},
    "padded": {"padded": True, "buckets": 4},
    "few": {"max_samples": 7},
    "balanced": {"balance": leat.Balance()},
    "balanced, padded": {"padded": True, "balance": leat.Balance("tokens")},
    "balanced, two micro-batches": {"balance": leat.Balance(lambda lengths: 50 + lengths, micro_batches=2)},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """2,000 documents of 2 to 201 tokens; most are short."""
    folder = tmp_path_factory.mktemp("documents")
    rng = np.random.default_rng(2)
    for part in range(4):
        documents = []
        for number in range(part * 500, part * 500 + 500):
            tokens = rng.integers(3000, 4000, min(199, int(rng.lognormal(3, 1))))
            documents += [*tokens.tolist(), number + 1, EOS]
        write(folder / f"{part}.bin", np.array(documents, "<u2").tobytes())
    return folder


@pytest.fixture(scope="module")
def corpus(folder):
    return leat.Dataset.tokens(folder, dtype="uint16", seq_len=4096, eos=EOS)


def load(corpus, budget=None, **options) -> leat.Loader:
    budget = leat.TokenBudget(BUDGET) if budget is None else budget
    return leat.Loader(corpus, sampler=budget, **{**USUAL, **options})


def documents_of(batch) -> list[tuple[int, bytes]]:
    """The number and the bytes of each sample."""
    return [(int(number), tokens.tobytes()) for number, tokens in zip(batch["index"], batch["tokens"])]


def lengths_of(batch) -> np.ndarray:
    return np.diff(batch["tokens"].offsets)


def steps_of(make, world: int, skipped: int, steps: int, state=None) -> list[list[tuple[int, bytes]]]:
    """The samples of each step, of all ranks, sorted."""
    found: list[list[tuple[int, bytes]]] = [[] for _ in range(steps)]
    for rank in range(world):
        with make(rank=rank, world_size=world) as loader:
            if state is not None:
                loader.load_state_dict(state)
            batches = (batch for _ in itertools.count() for batch in loader)
            for number, batch in enumerate(itertools.islice(batches, skipped, skipped + steps)):
                found[number] += documents_of(batch)
    return [sorted(step) for step in found]


def state_after(make, world: int, rank: int, steps: int) -> dict:
    with make(rank=rank, world_size=world) as loader:
        batches = (batch for _ in itertools.count() for batch in loader)
        for _ in itertools.islice(batches, steps):
            pass
        return json.loads(json.dumps(loader.state_dict()))


@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_has_each_sample_once_within_the_budget(corpus, kind):
    options = KINDS[kind]
    world = 2
    found, steps = [], []
    for rank in range(world):
        budget = leat.TokenBudget(BUDGET, **options)
        with load(corpus, budget, batch_size=4, epochs=1, rank=rank, world_size=world) as loader:
            batches = list(loader)
            assert len(batches) == len(loader)
        steps.append(len(batches))
        for batch in batches:
            lengths = lengths_of(batch)
            held = len(lengths) * lengths.max() if budget.padded else lengths.sum()
            assert held <= 4 * BUDGET
            if budget.max_samples:
                assert len(lengths) <= 4 * budget.max_samples
        found += [sample for batch in batches for sample in documents_of(batch)]
    assert steps[0] == steps[1] >= 10
    assert sorted(found) == sorted((i, corpus[i]["tokens"].tobytes()) for i in range(len(corpus)))


@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_ranks_gets_the_same_steps_and_resumes_them(corpus, kind):
    balance = KINDS[kind].get("balance", leat.Balance())

    def make(**rank):
        batch = MICRO_BATCHES * balance.micro_batches
        return load(corpus, leat.TokenBudget(BUDGET, **KINDS[kind]), global_batch_size=batch, **rank)

    with make(rank=0, world_size=1) as loader:
        assert len(loader) >= 3
        count = len(loader) + 3  # Into the next epoch.
    whole = steps_of(make, 1, 0, count)
    assert len({len(step) for step in whole}) > 1 or "padded" in kind
    drawn = random.Random(kind)
    for world in WORLDS[1:]:
        assert steps_of(make, world, 0, count) == whole, world
    for _ in range(4):
        before, after, stop = drawn.choice(WORLDS), drawn.choice(WORLDS), drawn.randrange(1, count)
        state = state_after(make, before, drawn.randrange(before), stop)
        assert len(json.dumps(state)) < 2048
        assert steps_of(make, after, 0, count - stop, state) == whole[stop:], (before, after, stop)


@pytest.mark.parametrize("sampler", ["TokenBudget", "SizeBuckets"])
def test_a_state_of_another_global_batch_names_the_one_to_give(corpus, sampler):
    def make(batch):
        made = leat.TokenBudget(BUDGET) if sampler == "TokenBudget" else leat.SizeBuckets(corpus.lengths("tokens"))
        return load(corpus, made, global_batch_size=batch, rank=0, world_size=1)

    with make(8) as loader:
        next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
    with make(4) as loader:
        loader.load_state_dict(state)
        with pytest.raises(leat.InvalidArgument, match="batch of 8, .* has one of 4, .*; give global_batch_size=8,"):
            iter(loader)
    with make(8) as loader:
        loader.load_state_dict(state)
        assert len(list(loader)) == len(loader) - 1


def test_a_balanced_job_goes_on_with_its_own_global_batch_alone_and_has_each_sample_once(corpus):
    def make(batch, **rank):
        return load(corpus, leat.TokenBudget(BUDGET, balance=leat.Balance()), global_batch_size=batch, **rank)

    state = state_after(lambda **rank: make(8, **rank), 2, 0, 5)
    begun = steps_of(lambda **rank: make(8, **rank), 1, 0, 5)
    with make(6, rank=0, world_size=1) as loader:
        loader.load_state_dict(state)
        with pytest.raises(leat.InvalidArgument, match="batch of 8, .* has one of 6, .*; give global_batch_size=8,"):
            iter(loader)
    with make(8, rank=0, world_size=1) as loader:
        loader.load_state_dict(state)
        left = sorted(sample for batch in loader for sample in documents_of(batch))
    seen = {number for step in begun for number, _ in step}
    assert not seen & {number for number, _ in left} and len(seen) + len(left) == len(corpus)


@pytest.mark.parametrize("sampler", [leat.TokenBudget(BUDGET), leat.Pack(BUDGET)], ids=["budget", "rows"])
@pytest.mark.parametrize("worlds", [(4, 2), (2, 3), (8, 2)])
def test_steps_stay_those_of_the_state_where_a_ranks_size_is_given(corpus, sampler, worlds):
    fields = {"fields": ("tokens",), "ids": False}

    def make(rank, world):
        return load(corpus, sampler, batch_size=3, rank=rank, world_size=world, **fields)

    before, after = worlds
    with make(0, before) as loader:
        for _ in itertools.islice(loader, 2):
            pass
        state = json.loads(json.dumps(loader.state_dict()))
    with load(corpus, sampler, global_batch_size=3 * before, rank=0, world_size=1, **fields) as whole:
        whole.load_state_dict(state)
        expected = [np.sort(np.asarray(batch["tokens"].values if hasattr(batch["tokens"], "values") else batch["tokens"]).ravel()) for batch in whole]

    found = [[] for _ in expected]
    for rank in range(after):
        with make(rank, after) as loader:
            loader.load_state_dict(state)
            batches = list(loader)
            assert len(batches) == len(expected)
            for step, batch in zip(found, batches):
                tokens = batch["tokens"]
                step.append(np.asarray(tokens.values if hasattr(tokens, "values") else tokens).ravel())
    assert all(np.array_equal(np.sort(np.concatenate(step)), right) for step, right in zip(found, expected))


@pytest.mark.parametrize("sampler", [leat.TokenBudget(BUDGET), leat.Pack(BUDGET)], ids=["budget", "rows"])
@pytest.mark.parametrize("drop_last", [True, False])
def test_what_remains_of_an_epoch_is_known_before_it_begins(corpus, sampler, drop_last):
    options = {"drop_last": drop_last, "fields": ("tokens",), "ids": False}

    def make(batch):
        return load(corpus, sampler, global_batch_size=batch, **options)

    with make(7) as loader:
        whole = len(loader)
        assert loader.remaining == whole and f", {whole} batches an epoch)" in repr(loader)
        epoch = iter(loader)
        for _ in range(3):
            next(epoch)
        assert loader.remaining == whole - 3
        state = loader.state_dict()
    for batch in (7, 3) if isinstance(sampler, leat.Pack) else (7,):
        with make(batch) as loader:
            loader.load_state_dict(state)
            remaining, said = loader.remaining, repr(loader)
            assert f", {len(loader)} batches an epoch)" in said
            assert remaining == len(list(loader)) and (batch != 7 or remaining == whole - 3)


def test_a_loader_is_shown_though_its_sampler_has_no_length(corpus):
    class Endless:
        def __iter__(self):
            return iter(range(48))

    with load(corpus, Endless(), batch_size=24) as loader:
        assert "as many batches as its sampler gives" in repr(loader)
    assert "leat.Loader(" in repr(loader)  # Closed.


def test_draws_of_random_ops_do_not_depend_on_balance_or_ranks(corpus):
    def add(tokens, rng):
        return np.frombuffer(tokens, np.uint8) ^ rng.integers(1, 99, dtype=np.uint8)

    def make(balance=None, **rank):
        budget = leat.TokenBudget(BUDGET, balance=balance)
        return load(corpus, budget, global_batch_size=8, ops=[Python(add, field="tokens", ragged=True)], **rank)

    plain = steps_of(make, 1, 0, 4)
    for world in (1, 4):
        assert steps_of(lambda **rank: make(leat.Balance(), **rank), world, 0, 4) == plain


def test_a_step_holds_one_bucket_and_padding_is_small(corpus):
    budget = leat.TokenBudget(BUDGET, padded=True)
    with load(corpus, budget, batch_size=2, epochs=1) as loader:
        batches = list(loader)
    tokens = sum(int(lengths_of(batch).sum()) for batch in batches)
    padded = sum(len(batch["index"]) * int(lengths_of(batch).max()) for batch in batches)
    assert 1 - tokens / padded < 0.15  # 0.7 if samples come as they do.
    bounds = leat.TokenBudget(BUDGET, padded=True, buckets=[10, 30, 80, 201])
    with load(corpus, bounds, batch_size=1, epochs=1) as loader:
        sizes = {len(batch["index"]) for batch in loader}
    assert {40, 13, 5, 1} <= sizes  # 400 tokens of at most 10, 30, 80 and 201.


def test_short_samples_that_fill_no_step_do_not_take_the_places_of_long_ones(tmp_path):
    """In steps of the long ones they would need 23 steps more, with few tokens."""
    rng = np.random.default_rng(1)
    lengths = [*rng.integers(8, 11, 750), *rng.integers(90, 101, 160)]
    tokens = [token for length in lengths for token in [*[7] * (length - 1), EOS]]
    write(tmp_path / "a.bin", np.array(tokens, "<u2").tobytes())
    corpus = leat.Dataset.tokens(tmp_path, dtype="uint16", seq_len=4096, eos=EOS)
    budget = leat.TokenBudget(BUDGET, padded=True, buckets=[10, 100])
    with load(corpus, budget, batch_size=8, epochs=1) as loader:
        batches = [lengths_of(batch) for batch in loader]
    assert len(batches) == 3 + 5
    assert [len(set(lengths > 50)) for lengths in batches] == [1] * 8


def test_micro_batches_of_a_batch_are_told(corpus):
    for balance in (None, leat.Balance(micro_batches=3)):
        budget = leat.TokenBudget(BUDGET, adds=("micro_batches",), balance=balance)
        with load(corpus, budget, global_batch_size=24, epochs=1, rank=1, world_size=4) as loader:
            for batch in loader:
                edges = batch["micro_batches"]
                assert edges.dtype == np.int32 and len(edges) == (7 if balance is None else 4)
                assert edges[0] == 0 and edges[-1] == len(batch["index"]) and (np.diff(edges) > 0).all()
                held = np.add.reduceat(lengths_of(batch), edges[:-1])
                assert held.max() <= BUDGET * (1 if balance is None else 2)


def test_micro_batches_are_told_beside_a_tuple_of_a_function(corpus):
    budget = leat.TokenBudget(BUDGET, adds=("micro_batches",))
    options = {"global_batch_size": 24, "epochs": 1, "rank": 1, "world_size": 4}
    with load(corpus, budget, **options) as loader:
        told = [batch["micro_batches"].tolist() for batch in loader]
    pair = leat.ops.Python(lambda batch: (batch["index"], batch["tokens"]), per="batch")
    with load(corpus, budget, ops=[pair], **options) as loader:
        assert [edges.tolist() for _index, _tokens, edges in loader] == told
    listed = leat.ops.Python(lambda batch: [batch["index"]], per="batch")
    with load(corpus, budget, ops=[listed], **options) as loader, pytest.raises(leat.InvalidArgument, match="gave a list"):
        next(iter(loader))


def test_without_shuffling_an_epoch_is_the_same_each_time(corpus):
    with load(corpus, train=False, batch_size=4, epochs=2) as loader:
        first, second = ([documents_of(batch) for batch in loader] for _ in range(2))
    assert first == second and sum(map(len, first)) == len(corpus)
    with load(corpus, batch_size=4, epochs=2) as loader:
        third, fourth = ([documents_of(batch) for batch in loader] for _ in range(2))
    assert third != fourth


UNEQUAL_RANKS = """
import os, sys, leat
sampler = leat.TokenBudget(100, lengths=[1] * 100 + [100] * 7)
data = leat.Dataset(sys.argv[1])
for world in (1, 2, 8):
    for rank in range(world):
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world))
        with leat.Loader(data, sampler=sampler, shuffle=False, global_batch_size=8, ids=True, batch="dict",
                         output="numpy") as loader:
            print(world, rank, *(len(batch["index"]) for batch in loader))
"""


def test_a_rank_gets_its_batch_however_much_larger_than_those_of_others(tmp_path):
    for number in range(107):
        write(tmp_path / "data" / f"{number:03}.txt", b"some")
    done = run_python(UNEQUAL_RANKS, tmp_path / "data", timeout=60)
    assert done.returncode == 0, done.stderr
    found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    # The first row has the 100 short samples.
    assert found == [(1, 0, 107), (2, 0, 103), (2, 1, 4), (8, 0, 100), *((8, rank, 1) for rank in range(1, 8))]


def test_a_cache_refuses_no_step_that_is_the_whole_epoch(tmp_path):
    for number in range(107):
        write(tmp_path / "data" / f"{number:03}.txt", b"some")
    data = leat.Dataset(tmp_path / "data")
    budget = leat.TokenBudget(810, lengths=[30] * 107)  # 27 + 27 + 27 + 26 samples.

    def batches(rank, cache):
        with load(data, budget, fields=None, global_batch_size=4, rank=rank, world_size=4, cache=cache) as loader:
            return [[sorted(batch["index"].tolist()) for batch in loader] for _ in range(2)]

    for rank in range(4):
        found = batches(rank, leat.Cache(ram="8MiB"))
        assert found == batches(rank, None) and [len(epoch) for epoch in found] == [1, 1]


GOES_ON_ANEW = """
import sys, leat
budget = leat.TokenBudget(50, lengths=[1] * 200)
loader = leat.Loader(leat.Dataset(sys.argv[1]), sampler=budget, shuffle=False, batch_size=1, rank=0, world_size=1,
                     max_in_flight=8)
iter(loader)
engine = loader._native
engine.load_state(engine.state())  # As a process does whose sibling makes no batches for it any more.
iteration = engine.begin()
print(loader.stats()[-1]["lookahead"], flush=True)
while engine.next(iteration, leat._native.BatchPlace()) is not None:
    print("batch", flush=True)
"""


def test_steps_keep_their_samples_where_a_process_goes_on_by_itself(tmp_path):
    for number in range(200):
        write(tmp_path / "data" / f"{number:03}.txt", b"some")
    done = run_python(GOES_ON_ANEW, tmp_path / "data", timeout=60)
    assert done.stdout.split() == ["100", *["batch"] * 4], done.stderr  # Two batches of 50 samples ahead.


def test_lengths_are_a_column_or_an_array(tmp_path):
    rows = "".join(f"{number}.txt,{number + 1}\n" for number in range(20))
    for number in range(20):
        write(tmp_path / f"{number}.txt", b"x" * (number + 1))
    (tmp_path / "list.csv").write_text("path,words\n" + rows)
    listed = leat.Dataset.from_manifest(tmp_path / "list.csv", fields={"text": "path"}, columns=["words"])
    for lengths in ("words", listed.column("words"), listed.lengths("text"), np.arange(1.0, 21.0)):
        budget = leat.TokenBudget(40, lengths, buckets=2)
        with leat.Loader(listed, sampler=budget, fields=("words",), epochs=1, train=True, output="numpy") as loader:
            batches = [words.tolist() for (words,) in loader]
        assert sorted(sum(batches, [])) == list(range(1, 21))
        assert max(map(sum, batches)) <= 40


def test_a_mix_keeps_its_weights_at_any_number_of_ranks(tmp_path):
    sources = {}
    for name, first, weight in (("low", 1000, 0.25), ("high", 5000, 0.75)):
        rng = np.random.default_rng(first)
        tokens = [token for _ in range(150) for token in [*rng.integers(first, first + 900, int(rng.integers(3, 60))), EOS]]
        write(tmp_path / name / "a.bin", np.array(tokens, "<u2").tobytes())
        sources[name] = (leat.Dataset.tokens(tmp_path / name, dtype="uint16", seq_len=4096, eos=EOS), weight)
    mix = leat.mix(sources, samples=1000)

    def make(**rank):
        return load(mix, leat.TokenBudget(256), global_batch_size=8, **rank)

    with make(rank=0, world_size=1) as loader:
        count = len(loader)
    whole = steps_of(make, 1, 0, count)
    assert sum(map(len, whole)) == 1000
    high = sum(np.frombuffer(tokens, "<u2").max() > 4999 for step in whole for _, tokens in step)
    assert 700 < high < 800
    for world in (2, 8):
        assert steps_of(make, world, 0, count) == whole


def test_a_store_that_throttles_changes_no_step(folder, serve, corpus):
    def contents(source, world):
        found = []
        for rank in range(world):
            budget = leat.TokenBudget(BUDGET, balance=leat.Balance())
            with load(source, budget, global_batch_size=8, epochs=1, rank=rank, world_size=world) as loader:
                found.append([documents_of(batch) for batch in loader])
        return [sorted(sum(step, [])) for step in zip(*found)]

    served = serve(folder, most_gets=300)
    remote = leat.Dataset.tokens(served.url, dtype="uint16", seq_len=4096, eos=EOS, **served.options)
    assert contents(remote, 2) == contents(corpus, 1)
    assert served.counters()["faults"] > 0


# --- what is said and refused -------------------------------------------------------------


def test_samples_that_are_too_long_are_named_or_dropped_and_counted(corpus, caplog):
    lengths = corpus.lengths("tokens") // 2
    longest = int(lengths.max())
    with pytest.raises(leat.InvalidArgument, match=r'sample \d+ has \d+ tokens, and a micro-batch at most 100'):
        load(corpus, leat.TokenBudget(100))
    caplog.set_level(logging.INFO, "leat")
    assert longest > 100
    with load(corpus, leat.TokenBudget(100, long_samples="drop"), epochs=1) as loader:
        found = [number for batch in loader for number, _ in documents_of(batch)]
    assert sorted(found) == np.flatnonzero(lengths <= 100).tolist()
    lines = [record.getMessage() for record in caplog.records]
    dropped = int((lengths > 100).sum())
    assert sum(f"leaves out {dropped} samples of more than 100 tokens" in line for line in lines) == 1
    assert sum(f"puts {len(found)} samples into" in line and "0 do not fill" in line for line in lines) == 1


def test_only_steps_that_nothing_can_fill_are_dropped(tmp_path, caplog):
    caplog.set_level(logging.INFO, "leat")
    write(tmp_path / "a.bin", np.array([1, 2, 3, EOS] * 5, "<u2").tobytes())
    five = leat.Dataset.tokens(tmp_path, dtype="uint16", seq_len=64, eos=EOS)
    with load(five, leat.TokenBudget(4), batch_size=4) as loader:
        assert len(loader) == len(list(loader)) == 1
    assert any("drops 1 micro-batch of the last step" in record.getMessage() for record in caplog.records)
    with load(five, leat.TokenBudget(8), batch_size=4) as loader:  # Two fit one: a step.
        assert sum(len(batch["index"]) for batch in loader) == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_tokens": 0}, "max_tokens=0; it is at least 1"),
        ({"max_tokens": 8, "padded": 1}, "padded=1; it is True or False"),
        ({"max_tokens": 8, "max_samples": 0}, "max_samples=0"),
        ({"max_tokens": 8, "long_samples": "split"}, "long_samples='split'; it is \"raise\" or \"drop\""),
        ({"max_tokens": 8, "buckets": 0}, "buckets=0"),
        ({"max_tokens": 8, "buckets": [8, 4]}, "longest lengths, rising"),
        ({"max_tokens": 8, "buckets": "many"}, "longest lengths, rising"),
        ({"max_tokens": 8, "adds": ("labels",)}, "it may have \"micro_batches\""),
        ({"max_tokens": 8, "balance": "tokens"}, "it is a leat.Balance"),
    ],
)
def test_wrong_arguments_are_named(options, said):
    with pytest.raises(leat.InvalidArgument, match=said):
        leat.TokenBudget(**options)


@pytest.mark.parametrize(
    ("budget", "options", "said"),
    [
        ({"lengths": "words"}, {}, "lengths='words' is no field of tokens and no column of numbers"),
        ({"lengths": [1, 2]}, {}, "shape \\(2,\\), and the dataset has 2000 samples"),
        ({"lengths": np.full(2000, 0.5)}, {}, "give a whole number for each"),
        ({"lengths": np.full(2000, -1)}, {}, "sample 0 has the length -1"),
        ({"buckets": [10, 20]}, {}, "the last bucket ends with 20"),
        ({}, {"drop_last": "pad"}, "a step of leat.TokenBudget has micro-batches"),
        ({}, {"on_error": "substitute"}, "what takes the place of a bad one has another length"),
        ({}, {"ops": [Filter(len)]}, "what takes the place of one that is passed over has another length"),
        ({}, {"shuffle": "block", "train": None}, "leat.TokenBudget"),
        ({"balance": leat.Balance(micro_batches=3)}, {"batch_size": 4}, "micro_batches=3, and a step has 4 micro-batches"),
    ],
)
def test_what_cannot_be_meant_is_refused(corpus, budget, options, said):
    with pytest.raises(leat.InvalidArgument, match=said):
        load(corpus, leat.TokenBudget(BUDGET, **budget), **options)


def test_names_are_checked():
    with pytest.raises(TypeError, match="did you mean 'max_tokens'"):
        leat.TokenBudget(max_token=8)


def test_a_function_that_passes_over_a_sample_is_told_that_none_takes_its_place(corpus):
    def only_long(data):
        if len(data) < 20:
            raise leat.Skipped("short")
        return np.frombuffer(data, "<u2")

    with load(corpus, batch_size=4, ops=[Python(only_long, field="tokens", ragged=True)]) as loader:
        with pytest.raises(leat.Skipped, match="short.*another length; choose samples before, with leat.Dataset.filter"):
            list(loader)
