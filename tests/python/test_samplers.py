"""Orders by weights and by samplers: of leat.Loader, and of leat.torch.DataLoader over a leat.Dataset."""

from __future__ import annotations

import itertools
import json
import pathlib

import numpy as np
import pytest
import torch
import torch.utils.data as torchs

import leat
import leat.torch._sampled as sampled
from leat._orders import _samplers
from dropin_datasets import StatefulShuffle
from leat._orders._weights import without_replacement
from leat.torch import DataLoader

SIZE = 60
WEIGHTS = [0.0] * 10 + [1.0] * 20 + [3.0] * 30


@pytest.fixture
def dataset(pictures):
    return leat.Dataset(pictures)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


class Ids(torchs.Dataset):
    """The stand-in for the pictures that torch's own DataLoader is given: their
    numbers."""

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        return int(index) % SIZE


class Unequal(torchs.Sampler):
    """Batches of 1, 2, 3, … samples, drawn from torch's global generator."""

    def __iter__(self):
        left = torch.randperm(SIZE).tolist()
        for size in itertools.count(1):
            if not left:
                return
            yield left[:size]
            left = left[size:]

    def __len__(self):
        return 11


class Forever(torchs.Sampler):
    """Has no end, and no length."""

    def __iter__(self):
        generator = seeded(3)
        while True:
            yield from torch.randint(0, SIZE, (7,), generator=generator).tolist()


SAMPLERS = {
    "weighted": lambda: {"sampler": torchs.WeightedRandomSampler(WEIGHTS, 100)},
    "weighted, own generator": lambda: {
        "sampler": torchs.WeightedRandomSampler(WEIGHTS, 50, generator=seeded(5))
    },
    "subset": lambda: {"sampler": torchs.SubsetRandomSampler([3, 1, 4, 15, 9, 2, 6])},
    "random": lambda: {"sampler": torchs.RandomSampler(range(SIZE)), "drop_last": True},
    "random, the loader's generator": lambda: (lambda g: {
        "sampler": torchs.RandomSampler(range(SIZE), generator=g), "generator": g
    })(seeded(8)),
    "replacement": lambda: {"sampler": torchs.RandomSampler(range(SIZE), replacement=True, num_samples=77)},
    "in order": lambda: {"sampler": torchs.SequentialSampler(range(SIZE))},
    "list": lambda: {"sampler": [5, 5, 59, -1, 0]},
    "distributed": lambda: {"sampler": torchs.distributed.DistributedSampler(range(SIZE), 2, 1)},
    "stateful": lambda: {"sampler": StatefulShuffle(SIZE)},
    "batches": lambda: {
        "batch_sampler": torchs.BatchSampler(torchs.RandomSampler(range(SIZE)), 9, drop_last=False)
    },
    "unequal batches": lambda: {"batch_sampler": Unequal()},
}


def made(dataset, name, **more):
    arguments = SAMPLERS[name]()
    if "batch_sampler" not in arguments:
        arguments["batch_size"] = 8
    return DataLoader(dataset, **arguments, engine={"fields": ("index",), **more})


def torchs_own(name):
    arguments = SAMPLERS[name]()
    if "batch_sampler" not in arguments:
        arguments["batch_size"] = 8
    return torchs.DataLoader(Ids(), **arguments)


def ids(batches):
    """A list of each batch's numbers, of either loader."""
    found = []
    for batch in batches:
        if isinstance(batch, dict):
            batch = batch["index"]
        elif isinstance(batch, tuple):
            (batch,) = batch
        found.append(batch.tolist())
    return found


@pytest.mark.parametrize("name", SAMPLERS)
def test_batches_are_those_that_torchs_dataloader_gives(dataset, name):
    torch.manual_seed(4)
    reference = torchs_own(name)
    expected = [ids(reference) for _ in range(3)]
    drawn = torch.rand(2).tolist()
    torch.manual_seed(4)
    loader = made(dataset, name)

    assert [ids(loader) for _ in range(3)] == expected
    assert torch.rand(2).tolist() == drawn, "torch's generator has been drawn from as torch does"
    assert len(loader) == len(reference)


def test_set_epoch_of_a_distributed_sampler_says_the_order(dataset):
    sampler = torchs.distributed.DistributedSampler(range(SIZE), 2, 0, seed=1)
    reference = torchs.DataLoader(Ids(), 8, sampler=sampler)
    loader = DataLoader(dataset, 8, sampler=sampler, engine={"fields": ("index",)})
    found = []
    for epoch in (0, 5, 2):
        sampler.set_epoch(epoch)
        found.append(ids(loader))
        assert found[-1] == ids(reference)

    assert found[0] != found[1] != found[2]


@pytest.mark.parametrize("taken", [0, 1, 5])
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_saved_epoch_goes_on_at_the_next_batch(dataset, name, taken):
    torch.manual_seed(1)
    loader = made(dataset, name)
    taken = min(taken, len(loader) - 1)  # Past the last one, the epoch is over.
    ids(loader)  # The second epoch is saved.
    batches = iter(loader)
    ids(itertools.islice(batches, taken))
    state = json.loads(json.dumps(loader.state_dict()))
    generator = torch.get_rng_state()
    expected = [ids(batches), ids(loader)]

    again = made(dataset, name)
    torch.manual_seed(99)
    again.load_state_dict(state)
    torch.set_rng_state(generator)

    assert [ids(again), ids(again)] == expected


def flips(dataset, **arguments):
    ops = [leat.ops.DecodeImage(), leat.ops.RandomHorizontalFlip()]
    return DataLoader(dataset, 4, engine={"ops": ops, "fields": ("image", "index")}, **arguments)


def rows(batches):
    found = []
    for batch in batches:
        image, index = batch if isinstance(batch, (tuple, list)) else (batch["image"], batch["index"])
        found += [(int(i), one.numpy().tobytes()) for i, one in zip(index, image)]
    return found


def test_a_sample_that_comes_twice_is_augmented_anew_and_a_resume_repeats_that(dataset):
    sampler = [7] * 40
    loader = flips(dataset, sampler=sampler)
    first, second = rows(loader), rows(loader)
    assert 1 < len({image for _, image in first}) == 2, "flipped and not"
    assert first != second

    again = flips(dataset, sampler=sampler)
    assert rows(again) == first
    batches = iter(again)
    rows(itertools.islice(batches, 3))
    state = json.loads(json.dumps(again.state_dict()))
    resumed = flips(dataset, sampler=sampler)
    resumed.load_state_dict(state)
    assert rows(resumed) == second[12:]


@pytest.mark.parametrize("taken", [0, 3, 4, 5, 9])
def test_an_endless_sampler_is_drawn_in_windows_and_resumed_exactly(dataset, monkeypatch, taken):
    monkeypatch.setattr(sampled, "WINDOW", 4)
    expected = ids(itertools.islice(torchs.DataLoader(Ids(), 8, sampler=Forever()), 23))

    def start():
        ops = [leat.ops.DecodeImage(), leat.ops.RandomHorizontalFlip()]
        return DataLoader(dataset, 8, sampler=Forever(),
                          engine={"ops": ops, "fields": ("image", "index")})  # fmt: skip

    loader = start()
    batches = iter(loader)
    rows(itertools.islice(batches, taken))
    state = json.loads(json.dumps(loader.state_dict()))
    rest = rows(itertools.islice(batches, 23 - taken))
    assert [i for i, _ in rest] == sum(expected[taken:], [])
    again = start()
    again.load_state_dict(state)
    assert rows(itertools.islice(iter(again), 23 - taken)) == rest


def test_collate_fn_gets_the_samples_one_by_one(dataset):
    def collate(samples):
        assert isinstance(samples, list)
        assert all(sample["image"].shape == (3, 10, 12) for sample in samples)
        return [int(sample["index"]) for sample in samples]

    engine = {"ops": [leat.ops.DecodeImage()], "fields": ("image", "index"), "batch": "dict"}
    loader = DataLoader(dataset, 7, collate_fn=collate, engine=engine)
    by_sampler = DataLoader(dataset, 2, sampler=[4, 8, 1], collate_fn=collate, engine=engine)

    assert sum(list(loader), []) == list(range(SIZE))
    assert list(by_sampler) == [[4, 8], [1]]


def test_a_collate_fn_that_fails_loses_its_batch_alone(dataset):
    def collate(samples):
        found = [int(sample["index"]) for sample in samples]
        if 2 in found:
            raise ValueError("as asked")
        return found

    loader = DataLoader(dataset, 2, sampler=[0, 1, 2, 3, 4, 5], collate_fn=collate,
                        engine={"fields": ("index",), "batch": "dict"})  # fmt: skip
    batches = iter(loader)
    assert next(batches) == [0, 1]
    with pytest.raises(ValueError, match="as asked"):
        next(batches)
    assert loader.state_dict()["delivered"] == 2
    assert list(batches) == [[4, 5]]


def test_a_collate_fn_that_fails_on_the_engines_order_loses_its_batch_alone(dataset):
    def collate(samples):
        if samples[0]["index"] == 2:
            raise ValueError("as asked")
        return [int(sample["index"]) for sample in samples]

    batches = iter(DataLoader(dataset, 2, collate_fn=collate, engine={"fields": ("index",), "batch": "dict"}))
    assert next(batches) == [0, 1]
    with pytest.raises(ValueError, match="as asked"):
        next(batches)
    assert next(batches) == [4, 5]


@pytest.mark.parametrize(("arguments", "says"), [
    ({"sampler": [1, 60]}, "sample 60 at position 1, and the dataset has 60"),
    ({"sampler": [1, -61]}, "sample -61 at position 1, and the dataset has 60"),
    ({"sampler": [1, 2.5]}, "gave 2.5 at position 1"),
    ({"sampler": [[1], [2]]}, r"gave \[1\].*batch_sampler"),
    ({"batch_sampler": [[1], []]}, "batch 1 has no samples"),
])
def test_what_is_no_sample_is_named(dataset, arguments, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        list(DataLoader(dataset, **arguments, engine={"fields": ("index",)}))


def test_two_words_on_the_order_are_refused(dataset):
    with pytest.raises(ValueError, match="mutually exclusive"):
        DataLoader(dataset, shuffle=True, sampler=[1])
    with pytest.raises(leat.InvalidArgument, match="engine=.*rank.*sampler"):
        DataLoader(dataset, sampler=[1], engine={"rank": 0, "world_size": 2})


def test_accelerate_is_told_that_it_would_leave_the_engine_out(dataset):
    sampled = DataLoader(dataset, 4, sampler=[1, 2])

    with pytest.raises(leat.InvalidArgument, match="Accelerate.*DistributedSampler"):
        getattr(sampled, "_is_accelerate_prepared", False)  # As its prepare() asks.
    assert DataLoader(dataset, 4)._is_accelerate_prepared


def test_a_state_of_other_data_is_refused(dataset, tmp_path):
    loader = DataLoader(dataset, 8, sampler=list(range(SIZE)), engine={"fields": ("index",)})
    state = loader.state_dict()
    other = DataLoader(dataset.select(list(range(SIZE))[::-1]), 8, sampler=list(range(SIZE)))

    with pytest.raises(leat.InvalidArgument, match="catalogue"):
        other.load_state_dict(state)


@pytest.mark.parametrize("place", [
    "s3://bucket/photos", pathlib.Path("/data/photos"), "/data/photos", b"/data/photos",
])
def test_a_place_is_no_dataset(place):
    with pytest.raises(leat.InvalidArgument, match=r"leat\.Dataset\('.*photos'\).*leat\.Loader\("):
        DataLoader(place, batch_size=8)


def test_a_places_credentials_are_not_told():
    with pytest.raises(leat.InvalidArgument) as raised:
        DataLoader("https://user:secret@host/photos?X-Amz-Signature=secret")
    assert "secret" not in str(raised.value) and "host/photos" in str(raised.value)


def loader_of(dataset, **options):
    return leat.Loader(dataset, **{"global_batch_size": 10, "ids": True, "batch": "dict", **options})


def flat(loader):
    return [int(i) for batch in loader for i in batch["index"]]


def test_weights_draw_each_as_often_as_they_say(dataset):
    loader = loader_of(dataset, sampler=leat.WeightedSampler(WEIGHTS, num_samples=20_000))
    counts = np.bincount(flat(loader), minlength=SIZE)

    expected = np.array(WEIGHTS) / sum(WEIGHTS) * 20_000
    drawn = expected > 0
    assert counts[~drawn].sum() == 0
    # 49 degrees of freedom: 1 in 1,000 is past 85.4; the seed never changes.
    assert ((counts - expected)[drawn] ** 2 / expected[drawn]).sum() < 85.4
    assert counts.sum() == 20_000 and len(loader) == 2_000


def test_weights_are_a_function_of_seed_and_epoch(dataset):
    loader = loader_of(dataset, sampler=leat.WeightedSampler(WEIGHTS), seed=3)
    first, second = flat(loader), flat(loader)

    assert len(first) == SIZE and first != second
    assert flat(loader_of(dataset, sampler=leat.WeightedSampler(np.array(WEIGHTS)), seed=3, threads=1)) == first
    assert flat(loader_of(dataset, sampler=leat.WeightedSampler(torch.tensor(WEIGHTS)), seed=4)) != first
    ranks = [loader_of(dataset, sampler=leat.WeightedSampler(WEIGHTS), seed=3, rank=r, world_size=2) for r in range(2)]
    parts = [list(rank) for rank in ranks]
    assert [int(i) for step in zip(*parts) for part in step for i in part["index"]] == first


def test_weights_may_be_a_column(dataset):
    """For labels 0, 1 and 2: 0 is never drawn, and 2 twice as often as 1."""
    labels = dataset.column("label")
    drawn = labels[flat(loader_of(dataset, sampler=leat.WeightedSampler("label", num_samples=3000)))]

    assert set(drawn.tolist()) == {1, 2}
    assert flat(loader_of(dataset, sampler=leat.WeightedSampler("label"))) == flat(loader_of(dataset, sampler=leat.WeightedSampler(labels)))


def test_weights_go_on_from_a_state_at_any_world_size(dataset):
    loader = loader_of(dataset, sampler=leat.WeightedSampler(WEIGHTS, num_samples=200))
    batches = iter(loader)
    next(batches), next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = flat(batches)
    ranks = []
    for rank in range(4):
        ranks.append(loader_of(dataset, sampler=leat.WeightedSampler(WEIGHTS, num_samples=200), global_batch_size=20,
                               rank=rank, world_size=4))  # fmt: skip
        ranks[-1].load_state_dict(state)

    assert ranks[0].remaining == 9
    parts = [list(rank) for rank in ranks]
    assert [int(i) for step in zip(*parts) for part in step for i in part["index"]] == rest


def test_without_replacement_each_comes_once_and_draws_go_by_what_is_left(dataset):
    weights = np.array([1.0, 2.0, 3.0, 0.0, 6.0])
    orders = np.array([without_replacement(weights, seed=5, epoch=epoch, size=4) for epoch in range(6000)])
    assert all(sorted(order) == [0, 1, 2, 4] for order in orders.tolist())
    for first in (0, 4):
        rest = np.where(np.arange(5) == first, 0, weights)
        seconds = np.bincount(orders[orders[:, 0] == first, 1].astype(np.int64), minlength=5)
        for of, chance in ((np.bincount(orders[:, 0].astype(np.int64)), weights), (seconds, rest)):
            expected, drawn = chance / chance.sum() * of.sum(), chance > 0
            assert of[~drawn].sum() == 0
            # At most 3 degrees of freedom: 1 in 1,000 is past 16.3; the seed never changes.
            assert ((of - expected)[drawn] ** 2 / expected[drawn]).sum() < 16.3
    steep = 2.0 ** -np.arange(1000.0)
    assert sorted(without_replacement(steep, 0, 0, 1000).tolist()) == list(range(1000))


def test_draws_without_replacement_are_one_stream_for_any_number_of_ranks(dataset):
    def load(rank=0, world_size=1, state=None):
        sampler = leat.WeightedSampler(WEIGHTS, num_samples=40, replacement=False)
        loader = loader_of(dataset, sampler=sampler, rank=rank, world_size=world_size)
        if state is not None:
            loader.load_state_dict(state)
        return loader

    loader = load()
    running = iter(loader)
    whole = next(running)["index"].tolist()
    state = json.loads(json.dumps(loader.state_dict()))
    whole += flat(running)
    assert len(set(whole)) == 40 and all(WEIGHTS[sample] > 0 for sample in whole) and flat(loader) != whole
    parts = zip(*(load(rank, 5, state) for rank in range(5)))
    assert [int(i) for step in parts for part in step for i in part["index"]] == whole[10:]


def test_each_class_comes_equally_often(dataset):
    uneven = dataset.select([*range(0, SIZE, 12), *range(1, SIZE, 2)])
    labels = uneven.column("label")
    assert len(set(np.bincount(labels).tolist())) > 1
    loader = loader_of(uneven, sampler=leat.WeightedSampler(balance="label", num_samples=6000))
    counts = np.bincount(labels[flat(loader)])
    # 2 degrees of freedom: 1 in 1,000 is past 13.8.
    assert len(counts) == 3 and ((counts - 2000) ** 2 / 2000).sum() < 13.8


def test_a_state_of_other_weights_is_refused(dataset):
    state = loader_of(dataset, sampler=leat.WeightedSampler(WEIGHTS)).state_dict()

    with pytest.raises(leat.InvalidArgument, match="same weights="):
        loader_of(dataset, sampler=leat.WeightedSampler([1.0] * SIZE)).load_state_dict(state)
    with pytest.raises(leat.InvalidArgument, match="samples_per_epoch"):
        loader_of(dataset, sampler=leat.WeightedSampler(WEIGHTS, num_samples=61)).load_state_dict(state)
    with pytest.raises(leat.InvalidArgument, match="weights"):
        loader_of(dataset, shuffle=True).load_state_dict(state)


@pytest.mark.parametrize(("options", "says"), [
    ({"sampler": leat.WeightedSampler([1.0] * 59)}, r"shape \(59,\).*60 samples"),
    ({"sampler": leat.WeightedSampler([1.0] * 59 + [-2.0])}, "weight 59 is -2"),
    ({"sampler": leat.WeightedSampler([1.0, float("nan")] + [1.0] * 58)}, "weight 1 is nan"),
    ({"sampler": leat.WeightedSampler([float("inf")] + [1.0] * 59)}, "weight 0 is inf"),
    ({"sampler": leat.WeightedSampler([0.0] * 60)}, "none of the 60 weights is above 0"),
    ({"sampler": leat.WeightedSampler(["a"] * 60)}, "no array of numbers"),
    ({"sampler": leat.WeightedSampler("none_such")}, "no such field.*label"),
    ({"sampler": leat.WeightedSampler("data")}, "is of bytes"),
    ({"sampler": leat.WeightedSampler([1.0] * 60), "shuffle": True}, "shuffle= and sampler="),
    ({"sampler": [1], "shuffle": False}, "shuffle= and sampler="),
    ({"sampler": leat.WeightedSampler([1.0] * 60, num_samples=0)}, "num_samples=0"),
    ({"sampler": leat.WeightedSampler([0.0] + [1.0] * 59, replacement=False)}, "59 have a weight.*num_samples=59"),
    ({"sampler": leat.WeightedSampler(balance="none_such")}, "balance='none_such'.*label"),
    ({"sampler": iter([1, 2])}, "iterator.*one epoch"),
    ({"sampler": 3}, "sampler=3"),
    ({"sampler": torchs.distributed.DistributedSampler(range(60), 2, 0)}, "2 ranks.*once more"),
    ({"sampler": [1], "cache": leat.Cache(ram="1MiB", first_within=4)}, "first_within="),
    ({"sampler": leat.WeightedSampler([1.0] * 60), "rank": 0, "world_size": 2,
      "cache": leat.Cache(ram="1MiB", locality="sticky")}, "locality="),
])
def test_what_cannot_be_is_refused_with_a_remedy(dataset, options, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        loader_of(dataset, **options)


@pytest.mark.parametrize(("options", "says"), [
    ({}, "give weights=, or balance="),
    ({"weights": [1.0], "balance": "label"}, "give weights=, or balance="),
    ({"balance": 3}, "balance=3"),
    ({"balance": "label", "changes": True}, "balance= says the weights"),
    ({"weights": [1.0], "replacement": "no"}, "replacement='no'"),
])
def test_a_weighted_sampler_that_cannot_be_meant_is_refused(options, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        leat.WeightedSampler(**options)


def test_one_weight_above_zero_is_all_that_comes(dataset):
    weights = [0.0] * SIZE
    weights[42] = 1e-300

    assert flat(loader_of(dataset, sampler=leat.WeightedSampler(weights))) == [42] * SIZE


def test_a_sampler_of_all_ranks_is_dealt_as_steps_are(dataset):
    order = torch.randperm(SIZE, generator=seeded(2)).tolist()[:25]
    alone = loader_of(dataset, sampler=order)
    ranks = [loader_of(dataset, sampler=order, rank=r, world_size=5) for r in range(5)]

    assert flat(alone) == order and len(alone) == 3
    parts = [list(rank) for rank in ranks]
    assert [int(i) for step in zip(*parts) for part in step for i in part["index"]] == order


class ByEpoch:
    """An order that set_epoch() says; its length is known."""

    def __init__(self, seed=0):
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter(np.random.default_rng([self.seed, self.epoch]).permutation(SIZE)[:30])

    def __len__(self):
        return 30


def test_a_sampler_is_told_the_epoch_and_goes_on_from_a_state(dataset):
    loader = loader_of(dataset, sampler=ByEpoch())
    assert len(loader) == 3
    first = flat(loader)
    batches = iter(loader)
    next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = flat(batches)
    third = flat(loader)

    def told(epoch):
        return list(np.random.default_rng([0, epoch]).permutation(SIZE)[:30])

    assert (first, rest, third) == (told(0), told(1)[10:], told(2))
    again = loader_of(dataset, sampler=ByEpoch())
    again.load_state_dict(state)
    assert (len(again), again.remaining) == (3, 2)
    assert (flat(again), flat(again)) == (rest, third)


@pytest.mark.parametrize("sampler", [list(range(40)), leat.SizeBuckets(np.arange(1, 61)), torch.utils.data.RandomSampler(range(60))],
                         ids=["list", "buckets", "torch"])
def test_the_next_batch_can_be_seen_before_an_iteration_begins(dataset, sampler):
    options = {"batch_size": 8, "sampler": sampler, "fields": ("index",), "output": "numpy"}
    with leat.Loader(dataset, train=True, **options) if isinstance(sampler, leat.SizeBuckets) else leat.Loader(dataset, **options) as loader:
        for _ in range(2):
            peeked = loader.peek()
            assert np.array_equal(loader.peek()[0], peeked[0])
            batches = [index for (index,) in loader]
            assert np.array_equal(peeked[0], batches[0])
        iterator = iter(loader)
        first, state = next(iterator)[0], loader.state_dict()
        second = next(iterator)[0]
        if not isinstance(sampler, torch.utils.data.RandomSampler):
            loader.load_state_dict(state)
            assert np.array_equal(loader.peek()[0], second)
            assert np.array_equal(next(iter(loader))[0], second)
            assert not np.array_equal(first, second)


def test_a_sampler_that_gives_another_order_than_the_states_is_refused(dataset):
    loader = loader_of(dataset, sampler=ByEpoch())
    next(iter(loader))
    other = loader_of(dataset, sampler=ByEpoch(seed=1))
    other.load_state_dict(loader.state_dict())

    with pytest.raises(leat.InvalidArgument, match="another order.*seed its generator"):
        next(iter(other))
    other.set_epoch(4)  # Another epoch: nothing is gone on with.
    assert len(flat(other)) == 30


class Store:
    """As torch.distributed's: keeps what came first."""

    def __init__(self):
        self.kept = {}

    def compare_set(self, key, expected, value):
        assert expected == ""
        return self.kept.setdefault(key, value).encode()


def test_ranks_whose_samplers_differ_are_told(dataset):
    met = (Store(), "1/photos")
    ranks = [
        loader_of(dataset, sampler=ByEpoch(seed), rank=rank, world_size=3, global_batch_size=9)
        for rank, seed in enumerate((0, 0, 1))
    ]
    for rank in ranks:
        rank._among.met = met

    assert [len(flat(rank)) for rank in ranks[:2]] == [10, 10]
    with pytest.raises(leat.InvalidArgument, match="another order than another rank"):
        iter(ranks[2])


def test_ranks_of_unequal_steps_are_refused_when_the_sampler_says_so(dataset):
    ranks = {"rank": 0, "world_size": 3, "global_batch_size": 9}

    with pytest.raises(leat.InvalidArgument, match="1 of 3 ranks would get"):
        iter(loader_of(dataset, sampler=range(28), **ranks))
    assert len(flat(loader_of(dataset, sampler=range(28), **ranks, drop_last=True))) == 9
    assert len(flat(loader_of(dataset, sampler=range(28), **ranks, drop_last="join"))) == 10


def test_a_sampler_without_an_end_is_told_where_it_is_served(dataset, monkeypatch):
    monkeypatch.setattr(_samplers, "_MOST_EPOCH", 1000)

    with pytest.raises(leat.InvalidArgument, match="goes on.*leat.torch.DataLoader"):
        iter(loader_of(dataset, sampler=Forever()))


def test_shards_are_read_in_a_samplers_order(small):
    dataset = leat.Dataset(small)
    order = torch.randperm(len(dataset), generator=seeded(2)).tolist()

    assert flat(loader_of(dataset, sampler=order, fields=["index"])) == order
    keys = [key for batch in loader_of(dataset, sampler=order[:30], ids=True) for key in batch["key"]]
    assert keys == [dataset.key(i) for i in order[:30]]


def test_a_cache_knows_what_a_sampler_reads_next(serve, pictures):
    """Each sample twice in an epoch: the second time it is kept, and so in the next."""
    served = serve(pictures)
    order = list(range(SIZE)) + list(range(SIZE))
    loader = leat.Loader(served.url, **served.options, sampler=order, global_batch_size=10, ids=True,
                         batch="dict", cache=leat.Cache(ram="64MiB"))  # fmt: skip
    served.reset()
    assert flat(loader) == order
    first = served.counters()["get"]
    assert flat(loader) == order

    # A sample that is read again before it has come is asked for twice, at
    # most.
    assert SIZE <= first <= 2 * SIZE
    assert served.counters()["get"] - first < SIZE


def test_weights_and_a_cache(serve, pictures):
    served = serve(pictures)
    loader = leat.Loader(served.url, **served.options, sampler=leat.WeightedSampler(WEIGHTS, num_samples=600),
                         global_batch_size=10, ids=True, batch="dict",
                         cache=leat.Cache(ram="64MiB"))  # fmt: skip
    with leat.Loader(served.url, **served.options, sampler=leat.WeightedSampler(WEIGHTS, num_samples=600),
                     global_batch_size=10, ids=True, batch="dict") as plain:  # fmt: skip
        expected = [flat(plain), flat(plain)]
    assert [flat(loader), flat(loader)] == expected
    served.reset()
    assert len(flat(loader)) == 600
    assert served.counters()["get"] == 0, "all that is drawn was kept"


def test_ranks_tell_each_other_by_which_weights_they_deal(dataset):
    """The facts that `compare_ranks` compares as loaders are made."""
    def dealing(**options):
        return loader_of(dataset, **options)._native.dealing

    assert dealing(sampler=leat.WeightedSampler(WEIGHTS)) == dealing(sampler=leat.WeightedSampler(np.array(WEIGHTS)))
    assert dealing(sampler=leat.WeightedSampler(WEIGHTS)) != dealing(sampler=leat.WeightedSampler([1.0] * SIZE))
    assert dealing(sampler=leat.WeightedSampler(WEIGHTS)) != dealing(sampler=leat.WeightedSampler(WEIGHTS, num_samples=61))
    assert dealing(sampler=leat.WeightedSampler(WEIGHTS)) != dealing(shuffle=True)
