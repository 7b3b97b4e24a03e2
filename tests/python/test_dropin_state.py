"""leat.torch.DataLoader goes on at exactly the next batch."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
import torch
import torch.utils.data as torchs

from dropin_datasets import Broken, Counting, Slow, StatefulShuffle
from leat.errors import InvalidArgument
from leat.torch import DataLoader
from test_dropin import Eager, Telling

SIZE = 45


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def through_json(state):
    return json.loads(json.dumps(state))


def indices(batches):
    return [batch[1].tolist() for batch in batches]


SAMPLERS = {
    "in order": lambda: {},
    "shuffle": lambda: {"shuffle": True},
    "generator": lambda: {"shuffle": True, "generator": seeded(7)},
    "own generator": lambda: {
        "sampler": torchs.RandomSampler(range(SIZE), replacement=True, generator=seeded(5))
    },
    "replacement": lambda: {"sampler": torchs.RandomSampler(range(SIZE), replacement=True)},
    "weights": lambda: {"sampler": torchs.WeightedRandomSampler([1.0] * SIZE, SIZE)},
    "eager": lambda: {"sampler": Eager(SIZE)},
    "distributed": lambda: {"sampler": torchs.distributed.DistributedSampler(range(SIZE), 2, 1)},
    "stateful": lambda: {"sampler": StatefulShuffle(SIZE)},
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 5])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_saved_epoch_goes_on_at_the_next_batch(sampler, taken, workers):
    def make():
        return DataLoader(Slow(SIZE, 0), batch_size=4, num_workers=workers, **SAMPLERS[sampler]())

    torch.manual_seed(1)
    loader = make()
    batches = iter(loader)
    for _ in range(taken):
        next(batches)
    state = loader.state_dict()
    rest = indices(batches)
    following = indices(loader)

    torch.manual_seed(2)  # Another life.
    before = torch.get_rng_state()
    again = make()
    again.load_state_dict(through_json(state))
    resumed = iter(again)
    first = next(resumed)
    assert torch.equal(torch.get_rng_state(), before)
    assert indices([first, *resumed]) == rest
    if sampler in ("in order", "generator", "own generator", "distributed", "stateful"):
        assert indices(again) == following  # The others draw from torch's global one.
    assert len(again) == len(loader)


class Pairs(torchs.Sampler):
    """Two neighbours at a time, of a sampler that it holds."""

    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        order = list(self.inner)
        return iter([order[i : i + 2] for i in range(0, len(order), 2)])


def random_order():
    return torchs.RandomSampler(range(SIZE), generator=seeded(5))


class First(torchs.Sampler):
    """The first 30 of another's order."""

    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        return iter(list(self.inner)[:30])


class Noted(torchs.Sampler):
    """Draws an order from a generator of its own."""

    def __init__(self):
        self.draws = seeded(6)

    def __iter__(self):
        return iter(torch.randperm(SIZE, generator=self.draws).tolist())


NESTED = {
    "batches": lambda: torchs.BatchSampler(random_order(), 4, False),
    "batches of torch's loader": lambda: torchs.DataLoader(
        range(SIZE), 4, sampler=random_order()
    ).batch_sampler,
    "two deep": lambda: Pairs(torchs.SubsetRandomSampler(range(SIZE), generator=seeded(8))),
    "three deep": lambda: torchs.BatchSampler(First(random_order()), 4, False),
    "by another name": lambda: torchs.BatchSampler(Noted(), 4, False),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 5])
@pytest.mark.parametrize("order", NESTED)
def test_the_generator_of_a_sampler_within_another_goes_on_too(order, taken, workers):
    def make():
        return DataLoader(Slow(SIZE, 0), batch_sampler=NESTED[order](), num_workers=workers)

    loader = make()
    indices(loader)
    batches = iter(loader)
    for _ in range(taken):
        next(batches)
    state = through_json(loader.state_dict())
    rest, following = indices(batches), indices(loader)

    again = make()
    again.load_state_dict(state)
    assert indices(again) == rest
    assert indices(again) == following


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_like_torchs_goes_on_in_the_order_of_its_sampler(workers):
    def make():
        theirs = torchs.DataLoader(Slow(SIZE, 0), 4, num_workers=workers, sampler=random_order())
        return DataLoader.like(theirs)

    loader = make()
    indices(loader)
    batches = iter(loader)
    next(batches)
    state = through_json(loader.state_dict())
    rest = indices(batches)
    again = make()
    again.load_state_dict(state)
    assert indices(again) == rest


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_between_epochs_starts_the_next_one(workers):
    def make():
        return DataLoader(Slow(SIZE, 0), batch_size=4, num_workers=workers, shuffle=True,
                          generator=seeded(3))  # fmt: skip

    loader = make()
    indices(loader)
    state = loader.state_dict()
    second = indices(loader)
    again = make()
    again.load_state_dict(through_json(state))
    assert indices(again) == second
    fresh = make()
    untouched = make()
    fresh.load_state_dict(through_json(untouched.state_dict()))
    assert indices(fresh) == indices(untouched)


def test_a_state_can_be_asked_of_a_loader_that_was_just_given_one():
    loader = DataLoader(Slow(SIZE, 0), batch_size=4, shuffle=True)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    again = DataLoader(Slow(SIZE, 0), batch_size=4, shuffle=True)
    again.load_state_dict(state)
    assert again.state_dict() == state
    resumed = iter(again)
    assert again.state_dict() == state
    expected = next(batches)[1].tolist()
    assert next(resumed)[1].tolist() == expected
    assert again.state_dict() == loader.state_dict() != state


def test_a_loader_can_go_back_to_a_state_of_its_own():
    loader = DataLoader(Slow(SIZE, 0), batch_size=4, shuffle=True, num_workers=2,
                        persistent_workers=True)  # fmt: skip
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    rest = indices(batches)
    for _ in range(2):
        loader.load_state_dict(state)
        assert indices(loader) == rest
    assert len(indices(loader)) == 12  # And then a whole epoch.


def test_what_is_fetched_ahead_is_not_in_the_state():
    data = Slow(SIZE, 0)
    loader = DataLoader(data, batch_size=4, num_workers=4, sampler=StatefulShuffle(SIZE))
    batches = iter(loader)
    next(batches)
    assert loader.state_dict()["delivered"] == 1
    assert loader.state_dict()["sampler"] == {"seed": 3, "at": 4}


def test_a_batch_that_failed_was_delivered():
    loader = DataLoader(Slow(20, 0, fails=[5]), batch_size=4, num_workers=2)
    batches = iter(loader)
    next(batches)
    with pytest.raises(Broken):
        next(batches)
    again = DataLoader(Slow(20, 0), batch_size=4)
    again.load_state_dict(loader.state_dict())
    assert indices(again) == [[8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19]]


def test_out_of_order_delivers_each_batch_once():
    go_on = threading.Event()
    loader = DataLoader(Slow(40, 0, stalls={0: go_on}), batch_size=4, num_workers=2,
                        in_order=False)  # fmt: skip
    batches = iter(loader)
    seen = indices(next(batches) for _ in range(3))
    state = through_json(loader.state_dict())
    go_on.set()
    again = DataLoader(Slow(40, 0), batch_size=4, num_workers=2, in_order=False)
    again.load_state_dict(state)
    rest = indices(again)
    assert sorted(i for batch in seen + rest for i in batch) == list(range(40))


@pytest.mark.parametrize("workers", [1, 2])
def test_worker_processes_go_on_too(workers):
    arguments = {"batch_size": 4, "shuffle": True, "num_workers": workers,
                 "multiprocessing_context": "fork"}  # fmt: skip
    loader = DataLoader(Slow(SIZE, 0), **arguments)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    rest = indices(batches)
    again = DataLoader(Slow(SIZE, 0), **arguments)
    again.load_state_dict(through_json(state))
    assert indices(again) == rest
    unordered = DataLoader(Slow(SIZE, 0), **arguments, in_order=False)
    with pytest.raises(InvalidArgument, match="in_order"):
        unordered.state_dict()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterable_dataset_is_read_again_up_to_there(workers):
    loader = DataLoader(Counting(30), batch_size=4, num_workers=workers)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    rest = [batch.tolist() for batch in batches]
    again = DataLoader(Counting(30), batch_size=4, num_workers=workers)
    again.load_state_dict(through_json(state))
    assert [batch.tolist() for batch in again] == rest


def test_a_dataset_that_offers_a_state_is_asked():
    class Remembering(Slow):
        seen = 0

        def __getitem__(self, index):
            self.seen += 1
            return super().__getitem__(index)

        def state_dict(self):
            return {"seen": self.seen}

        def load_state_dict(self, state):
            self.seen = state["seen"]

    loader = DataLoader(Remembering(20, 0), batch_size=4)
    next(iter(loader))
    state = through_json(loader.state_dict())
    assert state["dataset"] == {"seen": 4}
    data = Remembering(20, 0)
    again = DataLoader(data, batch_size=4)
    again.load_state_dict(state)
    assert data.seen == 4
    list(again)
    assert data.seen == 20


@pytest.mark.parametrize(("changes", "says"), [
    ({"leat_dataloader": 9}, "version 9"),
    ({"batch_size": 5}, "batch_size=5"),
    ({"samples": 3}, "samples=3"),
    ({"drop_last": True}, "drop_last"),
])
def test_a_state_that_does_not_fit_is_refused(changes, says):
    loader = DataLoader(Slow(20, 0), batch_size=4)
    state = loader.state_dict()
    with pytest.raises(InvalidArgument, match=says):
        loader.load_state_dict({**state, **changes})
    for nothing in ({}, None, []):
        with pytest.raises(InvalidArgument, match="version None"):
            loader.load_state_dict(nothing)
    assert len(indices(loader)) == 5


def test_random_stops_resume_at_the_next_batch():
    rng = np.random.default_rng(77)
    for _ in range(30):
        size, batch_size = int(rng.integers(1, 70)), int(rng.integers(1, 9))
        workers = int(rng.integers(0, 4))
        arguments = {"batch_size": batch_size, "num_workers": workers, "shuffle": True,
                     "drop_last": bool(rng.integers(2))}  # fmt: skip
        torch.manual_seed(int(rng.integers(1000)))
        loader = DataLoader(Slow(size, 0), **arguments)
        taken = int(rng.integers(0, len(loader) + 1))
        batches = iter(loader)
        for _ in range(taken):
            next(batches)
        state = through_json(loader.state_dict())
        rest = indices(batches)
        again = DataLoader(Slow(size, 0), **{**arguments, "num_workers": int(rng.integers(0, 4))})
        again.load_state_dict(state)
        assert indices(again) == rest, arguments


@pytest.mark.parametrize("persistent", [False, True])
def test_the_second_epoch_resumes_in_any_other_loader(persistent):
    def make(workers, persistent):
        return DataLoader(Slow(SIZE, 0), batch_size=4, sampler=Eager(SIZE), num_workers=workers,
                          persistent_workers=persistent)  # fmt: skip

    loader = make(2, persistent)
    list(loader)
    batches = iter(loader)
    next(batches)
    state = through_json(loader.state_dict())
    rest = indices(batches)
    for again in (make(0, False), make(3, False), make(2, True)):
        again.load_state_dict(state)
        assert indices(again) == rest


def told(batches):
    """The worker of each item, its seed, and the numbers that the item drew from its own generators."""
    return [[part.tolist() for part in batch] for batch in batches]


@pytest.mark.parametrize("taken", [1, 3])
def test_items_draw_after_a_resume_what_they_would_have_drawn(taken):
    torch.manual_seed(1)
    loader = DataLoader(Telling(), batch_size=4, num_workers=2)
    batches = iter(loader)
    for _ in range(taken):
        next(batches)
    state = through_json(loader.state_dict())
    rest = told(batches)

    torch.manual_seed(2)
    again = DataLoader(Telling(), batch_size=4, num_workers=2)
    again.load_state_dict(state)
    assert told(again) == rest


@pytest.mark.parametrize("persistent", [False, True])
def test_each_epoch_has_draws_of_its_own_and_goes_on_with_them(persistent):
    def make():
        return DataLoader(Telling(), batch_size=4, num_workers=2, persistent_workers=persistent)

    loader = make()
    first = told(loader)
    batches = iter(loader)
    next(batches), next(batches)
    state = through_json(loader.state_dict())
    rest = told(batches)
    third = told(loader)
    numbers = [number for epoch in (first, rest, third) for batch in epoch for number in batch[3]]
    assert len(set(numbers)) == len(numbers) == 24 + 16 + 24

    again = make()
    again.load_state_dict(state)
    assert told(again) == rest
    if persistent:  # The others' seeds are of torch's global generator.
        assert told(again) == third
    again.load_state_dict(state)
    assert told(again) == rest


@pytest.mark.parametrize("context", [None, "fork"])
@pytest.mark.parametrize("sampler", ["shuffle", "generator", "own generator", "eager", "stateful"])
def test_a_state_between_epochs_of_workers_that_stay_goes_on(sampler, context):
    def make(workers=2, persistent=True):
        return DataLoader(Slow(SIZE, 0), batch_size=4, num_workers=workers, persistent_workers=persistent,
                          multiprocessing_context=context if workers else None, **SAMPLERS[sampler]())  # fmt: skip

    torch.manual_seed(1)
    loader = make()
    list(loader), list(loader)
    state, of_torch = through_json(loader.state_dict()), torch.get_rng_state()
    third, fourth = indices(loader), indices(loader)

    for again in (make(), make(persistent=False), make(workers=0, persistent=False)):
        torch.set_rng_state(of_torch)
        again.load_state_dict(state)
        assert indices(again) == third
    torch.set_rng_state(of_torch)
    again = make()
    again.load_state_dict(state)
    assert (indices(again), indices(again)) == (third, fourth)


@pytest.mark.parametrize("method", ["threads", "processes"])
def test_items_of_workers_that_stay_draw_after_a_resume_between_epochs_what_they_would_have_drawn(method):
    def make():
        return DataLoader(Telling(), batch_size=4, num_workers=2, persistent_workers=True, workers=method)

    loader = make()
    list(loader), list(loader)
    state = through_json(loader.state_dict())
    third, fourth = [batch[3] for batch in told(loader)], [batch[3] for batch in told(loader)]

    again = make()
    again.load_state_dict(state)
    assert ([batch[3] for batch in told(again)], [batch[3] for batch in told(again)]) == (third, fourth)


def test_a_state_from_before_epochs_were_counted_goes_on():
    loader = DataLoader(Slow(20, 0), batch_size=4, num_workers=2)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    del state["iterated"]
    rest = indices(batches)
    again = DataLoader(Slow(20, 0), batch_size=4, num_workers=2)
    again.load_state_dict(state)
    assert again.state_dict()["delivered"] == 1
    assert indices(again) == rest
