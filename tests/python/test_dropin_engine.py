"""A leat.Dataset in leat.torch.DataLoader is served by the engine."""

from __future__ import annotations

import json

import pytest
import torch

import leat
from leat.torch import DataLoader

DECODE = {"ops": [leat.ops.DecodeImage()], "ids": True}


@pytest.fixture
def dataset(pictures):
    return leat.Dataset(pictures)


def test_the_engine_delivers_its_batches(dataset):
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, engine=DECODE,
                        generator=torch.Generator().manual_seed(4))  # fmt: skip
    with leat.Loader(dataset, batch_size=8, shuffle=True, seed=4, drop_last=False, output="torch",
                     **DECODE) as reference:  # fmt: skip
        expected = [[batch["index"].tolist() for batch in reference] for _ in range(2)]

    batches = [list(loader) for _ in range(2)]

    assert [[batch["index"].tolist() for batch in epoch] for epoch in batches] == expected
    assert batches[0][0]["image"].shape == (8, 3, 10, 12)
    assert isinstance(batches[0][0]["image"], torch.Tensor)
    assert len(loader) == 8
    assert isinstance(loader, torch.utils.data.DataLoader)


def test_without_shuffle_the_order_is_the_keys_and_drop_last_is_torchs(dataset):
    loader = DataLoader(dataset, batch_size=7, engine=DECODE)
    whole = DataLoader(dataset, batch_size=7, drop_last=True, engine=DECODE)

    assert torch.cat([batch["index"] for batch in loader]).tolist() == list(range(60))
    assert [len(batch["index"]) for batch in whole] == [7] * 8


def test_a_state_goes_on_at_the_next_batch(dataset):
    loader = DataLoader(dataset, batch_size=8, shuffle=True, engine=DECODE)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    rest = [batch["index"].tolist() for batch in batches]
    again = DataLoader(dataset, batch_size=8, shuffle=True, engine=DECODE)
    again.load_state_dict(state)

    assert [batch["index"].tolist() for batch in again] == rest


@pytest.mark.parametrize(("arguments", "says"), [
    ({"worker_init_fn": print}, "worker_init_fn="),
    ({"num_workers": 1, "multiprocessing_context": "fork"}, "multiprocessing_context="),
    ({"num_workers": 1, "prefetch_factor": 3}, "prefetch_factor=.*memory"),
    ({"num_workers": 1, "timeout": 3}, "timeout="),
    ({"threads": 3}, "threads=.*max_in_flight"),
    ({"batch_size": None}, "batch_size=None.*batch_size=1"),
])
def test_what_the_engine_cannot_honour_is_refused_with_a_remedy(dataset, arguments, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        DataLoader(dataset, **arguments)


def test_options_of_the_engine_are_for_its_own_datasets(dataset):
    with pytest.raises(leat.InvalidArgument, match="engine= is for a leat.Dataset"):
        DataLoader([1, 2], engine={"ids": True})
    with pytest.raises(TypeError, match="none_such"):
        DataLoader(dataset, engine={"none_such": 1})


def test_weights_of_ours_are_drawn_by_the_engine(dataset):
    sampler = leat.WeightedSampler([0.0] * 59 + [1.0], num_samples=20)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler, engine=DECODE)

    assert torch.cat([batch["index"] for batch in loader]).tolist() == [59] * 20


@pytest.mark.parametrize(("options", "says"), [
    ({"shuffle": True}, "says the order"),
    ({"engine": {"sampler": [1, 2]}}, "says the order"),
    ({"dataset": [1, 2, 3]}, "is for a leat.Dataset and this is a list"),
])
def test_weights_of_ours_beside_another_order_are_refused(dataset, options, says):
    given = {"dataset": dataset, "sampler": leat.WeightedSampler([1.0] * 60), **options}
    with pytest.raises(leat.InvalidArgument, match=says):
        DataLoader(given.pop("dataset"), **given)


def test_unequal_ranks_are_told_where_a_dataloader_takes_the_remedy(dataset):
    options = {**DECODE, "rank": 0, "world_size": 2}
    with pytest.raises(leat.InvalidArgument, match=r'takes "pad" and "join" in engine=\{"drop_last": …\}$'):
        DataLoader(dataset.take(59), batch_size=29, engine=options)
    assert len(DataLoader(dataset.take(59), batch_size=29, engine={**options, "drop_last": "pad"})) == 2


def drawn(data, rng):
    return rng.random()


def of_rank(dataset, rank, place="sampler", ranks=2, seed=3):
    """A loader of one rank; a batch has its samples' indices, and what they drew."""
    sampler = torch.utils.data.DistributedSampler(range(60), ranks, rank, seed=1)
    order = {"sampler": sampler, "batch_size": 5}
    if place == "batch_sampler":
        order = {"batch_sampler": torch.utils.data.BatchSampler(sampler, 5, False)}
    engine = {"ops": [leat.ops.Python(drawn, field="data")], "fields": ("data",), "ids": True, "batch": "dict"}
    return DataLoader(dataset, **order, generator=torch.Generator().manual_seed(seed), engine=engine)


def rows(batches):
    return [(int(i), float(x)) for batch in batches for i, x in zip(batch["index"], batch["data"])]


@pytest.mark.parametrize("place", ["sampler", "batch_sampler"])
def test_ranks_of_a_sampler_draw_differently(dataset, place):
    ranks = [rows(of_rank(dataset, rank, place)) for rank in (0, 1)]
    assert sorted(index for rank in ranks for index, _ in rank) == list(range(60))
    assert len({x for rank in ranks for _, x in rank}) == 60
    assert rows(of_rank(dataset, 1, place)) == ranks[1]
    assert rows(of_rank(dataset, 1, place, seed=4)) != ranks[1]


@pytest.mark.parametrize("saved_by", [0, 1])
def test_a_rank_goes_on_as_itself_whichever_rank_saved(dataset, saved_by):
    batches = {rank: (loader := of_rank(dataset, rank), iter(loader)) for rank in (0, 1)}
    for _, steps in batches.values():
        next(steps), next(steps)
    state = json.loads(json.dumps(batches[saved_by][0].state_dict()))
    rest = rows(batches[1][1])
    again = of_rank(dataset, 1)
    again.load_state_dict(state)
    assert rows(again) == rest
    other = of_rank(dataset, 1, seed=4)
    with pytest.raises(leat.InvalidArgument, match="seed=3"):
        other.load_state_dict(state)
