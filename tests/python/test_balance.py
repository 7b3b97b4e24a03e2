"""Rows and samples dealt to ranks by cost: steps keep what they have."""

from __future__ import annotations

import itertools
import json
import logging
import random

import numpy as np
import pytest

import leat
from small_datasets import write

EOS = 0
ROW = 512
USUAL = {"train": True, "fields": ("tokens",), "output": "numpy", "seed": 3}
WORLDS = (1, 2, 3, 4, 8)
BALANCES = {
    "attention": leat.Balance(),
    "tokens, two micro-batches": leat.Balance("tokens", micro_batches=2),
    "a function": leat.Balance(lambda lengths: lengths * (100 + lengths)),
}


def log_normal(count: int, seed: int) -> np.ndarray:
    """As bench/packing_bench.py draws them, 16 times shorter."""
    drawn = np.random.default_rng(seed).lognormal(np.log(600 / 16), 1.2, count)
    return np.clip(drawn, 2, ROW).astype(np.int64)


def bimodal(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    drawn = np.where(rng.random(count) < 0.7, rng.normal(200, 60, count), rng.normal(5000, 800, count))
    return np.clip(drawn / 16, 2, ROW).astype(np.int64)


def corpus_of(folder, lengths) -> leat.Dataset:
    rng = np.random.default_rng(5)
    tokens = [token for length in lengths for token in [*rng.integers(1, 9000, length - 1).tolist(), EOS]]
    write(folder / "a.bin", np.array(tokens, "<u2").tobytes())
    return leat.Dataset.tokens(folder, dtype="uint16", seq_len=4096, eos=EOS)


@pytest.fixture(scope="module", params=["log-normal", "bimodal"])
def drawn(request, tmp_path_factory):
    lengths = log_normal(6000, 1) if request.param == "log-normal" else bimodal(3000, 2)
    return corpus_of(tmp_path_factory.mktemp("drawn"), lengths)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_of(tmp_path_factory.mktemp("corpus"), log_normal(2000, 1))


def steps_of(make, world: int, steps: int, state=None) -> list[list[bytes]]:
    """The rows of each step, of all ranks, sorted."""
    found: list[list[bytes]] = [[] for _ in range(steps)]
    for rank in range(world):
        with make(rank=rank, world_size=world) as loader:
            if state is not None:
                loader.load_state_dict(state)
            batches = (batch for _ in itertools.count() for batch in loader)
            for number, batch in enumerate(itertools.islice(batches, steps)):
                found[number] += [b"".join(array.tobytes() for array in row) for row in zip(*batch)]
    return [sorted(step) for step in found]


@pytest.mark.parametrize("name", BALANCES)
def test_steps_keep_their_rows_at_any_number_of_ranks(corpus, name):
    def make(balance=BALANCES[name], **rank):
        pack = leat.Pack(ROW, adds=("segment_ids", "positions", "labels"), balance=balance)
        return leat.Loader(corpus, global_batch_size=48, sampler=pack, **USUAL, **rank)

    with make(rank=0, world_size=1) as loader:
        assert len(loader) >= 3
        count = len(loader) + 2
    plain = steps_of(lambda **rank: make(None, **rank), 1, count)
    assert all(len(step) == 48 for step in plain)
    for world in WORLDS:
        assert steps_of(make, world, count) == plain, world
    numbers = random.Random(name)
    for _ in range(4):
        before, after, stop = numbers.choice(WORLDS), numbers.choice(WORLDS), numbers.randrange(1, count)
        with make(rank=before - 1, world_size=before) as loader:
            batches = (batch for _ in itertools.count() for batch in loader)
            for _ in itertools.islice(batches, stop):
                pass
            state = json.loads(json.dumps(loader.state_dict()))
        assert steps_of(make, after, count - stop, state) == plain[stop:], (before, after, stop)


def measured(loaders, micro_batches: int, cost) -> list[float]:
    """The time of each step, from what was delivered."""
    found = []
    for batches in zip(*loaders):
        costs = np.array([
            [sum(cost(row) for row in part) for part in np.array_split(segment_ids, micro_batches)]
            for _, segment_ids, _ in batches
        ], float)  # fmt: skip
        found.append(costs.max(axis=0).sum() / costs.mean(axis=0).sum())
    return found


def squares(segment_ids: np.ndarray) -> int:
    return int((np.bincount(segment_ids)[1:] ** 2).sum())


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_ranks_wait_a_third_as_long_for_rows(drawn, micro_batches):
    def time_of(balance):
        loaders = [
            leat.Loader(drawn, batch_size=4 * micro_batches, sampler=leat.Pack(ROW, balance=balance), epochs=1,
                        rank=rank, world_size=8, **USUAL)
            for rank in range(8)
        ]  # fmt: skip
        times = measured(loaders, micro_batches, squares)
        stats = [loader.stats()[0].get("balance") for loader in loaders]
        for loader in loaders:
            loader.close()
        return float(np.mean(times)), stats

    balance = leat.Balance(micro_batches=micro_batches)
    unbalanced, none = time_of(None)
    balanced, stats = time_of(balance)
    assert none == [None] * 8
    assert balanced - 1 < (unbalanced - 1) / 3
    # stats() tells of the batches that were delivered, the same on all ranks.
    assert all(stat == stats[0] for stat in stats)
    assert stats[0]["balanced"] == pytest.approx(balanced) and stats[0]["unbalanced"] == pytest.approx(unbalanced)
    shadow, told = time_of(leat.Balance(micro_batches=micro_batches, mode="shadow"))
    assert shadow == unbalanced
    assert told[0] == {**stats[0], "mode": "shadow"}


@pytest.mark.parametrize("options", [{}, *({"padded": True, "buckets": count} for count in (2, 4, 16))], ids=str)
def test_ranks_wait_a_third_as_long_for_samples(drawn, options):
    def report(balance, rank):
        budget = leat.TokenBudget(8 * ROW, balance=balance, **options)
        with leat.Loader(drawn, batch_size=1, sampler=budget, epochs=1, rank=rank, world_size=8, **USUAL) as loader:
            costs = [(np.diff(tokens.offsets) ** 2).sum() for (tokens,) in loader]
            return np.array(costs, float), loader.stats()[0].get("balance")

    def time_of(balance):
        ranks, stats = zip(*(report(balance, rank) for rank in range(8)))
        costs = np.array(ranks)
        return float((costs.max(axis=0) / costs.mean(axis=0)).mean()), stats

    unbalanced, _ = time_of(None)
    balanced, stats = time_of(leat.Balance())
    assert balanced - 1 < (unbalanced - 1) / 3
    assert all(stat == stats[0] for stat in stats)
    assert stats[0]["balanced"] == pytest.approx(balanced) and stats[0]["unbalanced"] == pytest.approx(unbalanced)


def test_what_a_balance_brings_is_said_once(corpus, caplog):
    caplog.set_level(logging.INFO, "leat")
    for mode in ("on", "shadow"):
        pack = leat.Pack(ROW, balance=leat.Balance(mode=mode))
        with leat.Loader(corpus, batch_size=4, sampler=pack, rank=0, world_size=4, **USUAL) as loader:
            for _ in range(2):
                list(loader)
            assert [epoch["balance"]["mode"] for epoch in loader.stats()] == [mode] * 2
    lines = [record.getMessage() for record in caplog.records if "balance: " in record.getMessage()]
    assert len(lines) == 2
    assert "dealing rows by cost (attention) to 4 ranks" in lines[0] and "less time" in lines[0]
    assert 'mode="shadow" deals nothing; dealing rows' in lines[1]


def test_a_last_step_that_is_not_whole_is_dealt_to_all_ranks(corpus):
    def make(**rank):
        pack = leat.Pack(ROW, balance=leat.Balance(micro_batches=3))
        return leat.Loader(corpus, global_batch_size=60, sampler=pack, drop_last=False, **USUAL, **rank)

    with make(rank=0, world_size=1) as loader:
        count = len(loader)
    whole = steps_of(make, 1, count)
    assert 5 <= len(whole[-1]) < 60
    assert steps_of(make, 5, count) == whole
    with make(rank=4, world_size=5) as loader:
        assert len(list(loader)) == count


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cost": "flops"}, "cost='flops'; it is \"attention\", \"tokens\" or a function"),
        ({"micro_batches": 0}, "micro_batches=0"),
        ({"mode": "off"}, "mode='off'; it is \"on\" or \"shadow\""),
    ],
)
def test_wrong_arguments_are_named(options, said):
    with pytest.raises(leat.InvalidArgument, match=said):
        leat.Balance(**options)


@pytest.mark.parametrize(
    ("balance", "said"),
    [
        (leat.Balance(lambda lengths: 1), "cost= returned shape \\(\\)"),
        (leat.Balance(lambda lengths: lengths - 1e9), "cost= returned -"),
        (leat.Balance(lambda lengths: lengths * np.nan), "cost= returned nan for a length of"),
    ],
)
def test_costs_that_are_none_are_named(corpus, balance, said):
    with leat.Loader(corpus, batch_size=4, sampler=leat.Pack(ROW, balance=balance), **USUAL) as loader:
        with pytest.raises(leat.InvalidArgument, match=said):
            iter(loader)


def test_what_cannot_be_meant_is_refused(corpus):
    with pytest.raises(leat.InvalidArgument, match="micro_batches=3, and a step has 4 rows for each of 2 ranks"):
        leat.Loader(corpus, batch_size=4, sampler=leat.Pack(ROW, balance=leat.Balance(micro_batches=3)), rank=0,
                    world_size=2, **USUAL)  # fmt: skip
    with pytest.raises(leat.InvalidArgument, match="it is a leat.Balance"):
        leat.Pack(ROW, balance=True)


@pytest.mark.parametrize("balance", [None, leat.Balance()], ids=["in runs", "balanced"])
def test_a_cache_of_a_node_keeps_what_its_ranks_read_in_the_next_epoch(serve, tmp_path, balance):
    """Two nodes of a rank each. Half of what a node reads comes to it again in the next epoch, and just that has room."""
    samples, epochs, record = 1200, 3, 4096 + 128  # As test_cache.py has a record's cost.
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "x.bin").write_bytes(b"x" * 3000)
    served = serve(tmp_path / "many", latency="0ms", repeat=f"many/x.bin:{samples}")
    budget = leat.TokenBudget(400, lengths=np.random.default_rng(3).integers(1, 100, samples), balance=balance)
    gets = again = 0
    for rank in range(2):
        read: list[set[int]] = []
        with served.loader(
            shuffle=None, train=True, sampler=budget, global_batch_size=8, ids=True, fields=("data", "index"), seed=5,
            memory="256KiB", max_in_flight=4, epochs=epochs, rank=rank, world_size=2,
            cache=leat.Cache(ram=samples // 4 * record),
        ) as loader:  # fmt: skip
            served.reset()
            for _ in range(epochs):
                read.append({int(number) for batch in loader for number in batch["index"]})
            gets += served.counters()["get"]
        again += sum(len(before & now) for before, now in zip(read, read[1:]))
    assert 1100 < again < 1300
    # A node that knows only its own epoch, or another deal, keeps half of these.
    assert epochs * samples - gets > 0.8 * again


@pytest.mark.parametrize("sampler", [
    leat.Pack(ROW, adds=("positions", "labels"), balance=leat.Balance(micro_batches=2)),
    leat.TokenBudget(4 * ROW, adds=("micro_batches",), balance=leat.Balance(micro_batches=2)),
], ids=["rows", "budget"])  # fmt: skip
def test_a_cache_that_is_told_the_next_epoch_changes_no_batch(corpus, sampler):
    def load(cache, state=None):
        loader = leat.Loader(corpus, global_batch_size=24, sampler=sampler, rank=1, world_size=3, epochs=4, cache=cache, **USUAL)
        if state is not None:
            loader.load_state_dict(state)
        return loader

    def read(loader, epochs) -> list[list[bytes]]:
        return [[b"".join(np.asarray(getattr(part, "values", part)).tobytes() for part in batch) for batch in loader]
                for _ in range(epochs)]  # fmt: skip

    plain = load(None)
    whole = read(plain, 4)
    with load(leat.Cache(ram="8MiB")) as loader:
        assert read(loader, 2) == whole[:2]
        running = iter(loader)
        assert len(list(itertools.islice(running, 2))) == 2
        state = json.loads(json.dumps(loader.state_dict()))
    with load(leat.Cache(ram="8MiB"), state) as loader:
        assert read(loader, 2) == [whole[2][2:], whole[3]]
        loader.set_epoch(1)
        assert read(loader, 1) == [whole[1]]
        loader.set_epoch(1)
        next(iter(loader))
        assert read(loader, 1) == [whole[2]]
