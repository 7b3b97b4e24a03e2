"""Weights that change between epochs: leat.WeightedSampler with a function, or with set_weights()."""

from __future__ import annotations

import itertools
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import leat

SIZE = 60
EPOCHS = 3


@pytest.fixture
def dataset(pictures):
    return leat.Dataset(pictures)


def of_epoch(epoch: int) -> np.ndarray:
    """Weights that leave out other samples in each epoch."""
    weights = np.ones(SIZE)
    weights[epoch * 10 : epoch * 10 + 10] = 0
    return weights


def loader_of(dataset, sampler, **options):
    return leat.Loader(dataset, sampler=sampler, **{"global_batch_size": 24, "fields": ("index",), "seed": 3, **options})


def changing(num_samples: int | None = 240) -> leat.WeightedSampler:
    return leat.WeightedSampler(of_epoch, num_samples)


def steps_of(dataset, world: int, skipped: int = 0, state=None, make=changing) -> list[list[int]]:
    """The samples of each step over all ranks, epoch after epoch."""
    found: list[list[int]] = []
    for rank in range(world):
        with loader_of(dataset, make(), rank=rank, world_size=world) as loader:
            if state is not None:
                loader.load_state_dict(state)
            steps = (index.tolist() for _ in range(EPOCHS) for (index,) in loader)
            for number, mine in enumerate(itertools.islice(steps, 10 * EPOCHS - skipped)):
                if rank == 0:
                    found.append([])
                found[number] += mine
    return found


def test_each_epoch_has_its_weights(dataset):
    with loader_of(dataset, changing(num_samples=2400)) as loader:
        for epoch in range(EPOCHS):
            drawn = np.bincount([i for (index,) in loader for i in index.tolist()], minlength=SIZE)
            assert (drawn[of_epoch(epoch) == 0] == 0).all()
            assert (drawn[of_epoch(epoch) > 0] > 10).all()  # 48 expected; a deviation of 5 sigma.


def test_weights_that_stay_have_the_order_of_fixed_ones(dataset):
    weights = np.arange(SIZE) % 7
    with loader_of(dataset, leat.WeightedSampler(weights)) as fixed:
        expected = [[i for (index,) in fixed for i in index.tolist()] for _ in range(EPOCHS)]
    with loader_of(dataset, leat.WeightedSampler(lambda epoch: weights)) as loader:
        assert len(loader) == 2
        assert [[i for (index,) in loader for i in index.tolist()] for _ in range(EPOCHS)] == expected


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_any_number_of_ranks_draws_the_same_and_resumes_it(dataset, world):
    whole = steps_of(dataset, 1)
    assert len(whole) == 10 * EPOCHS and steps_of(dataset, world) == whole
    for stop in (1, 10, 13, 29):
        with loader_of(dataset, changing(), rank=0, world_size=1) as loader:
            for _ in itertools.islice((batch for _ in range(EPOCHS) for batch in loader), stop):
                pass
            state = json.dumps(loader.state_dict())
        assert len(state) < 1000
        assert steps_of(dataset, world, stop, json.loads(state))[: 10 * EPOCHS - stop] == whole[stop:], stop


def test_an_epoch_under_way_keeps_the_weights_that_it_began_with(dataset):
    sampler = leat.WeightedSampler(of_epoch(0), 240, changes=True)
    with loader_of(dataset, leat.WeightedSampler(of_epoch(0), 240)) as fixed:
        expected = [index.tolist() for (index,) in fixed]
    with loader_of(dataset, sampler) as loader:
        found = []
        for (index,) in loader:
            found.append(index.tolist())
            sampler.set_weights(of_epoch(1))
        assert found == expected
        following = np.array([index.tolist() for (index,) in loader])
    assert set(range(10, 20)).isdisjoint(following.ravel().tolist())
    assert not set(range(10)).isdisjoint(following.ravel().tolist())


def test_a_state_goes_on_by_the_weights_of_its_epoch_alone(dataset):
    sampler = leat.WeightedSampler(of_epoch(0), 240, changes=True)
    with loader_of(dataset, sampler) as loader:
        list(loader)
        sampler.set_weights(of_epoch(1))
        batches = iter(loader)
        next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
        rest = [index.tolist() for (index,) in batches]
    assert len(state["weights"]) == 32 and state["epoch"] == 1
    with loader_of(dataset, leat.WeightedSampler(of_epoch(0), 240, changes=True)) as other:
        with pytest.raises(leat.InvalidArgument, match=rf"{state['weights']}.*set_weights\(\)"):
            other.load_state_dict(state)
    with loader_of(dataset, leat.WeightedSampler(of_epoch(1), 240, changes=True)) as again:
        again.load_state_dict(state)
        assert [index.tolist() for (index,) in again] == rest
    with loader_of(dataset, leat.WeightedSampler(lambda epoch: of_epoch(2), 240)) as other:
        with pytest.raises(leat.InvalidArgument, match="epoch 1 .*Let the function"):
            other.load_state_dict(state)


def test_a_state_between_epochs_takes_any_weights(dataset):
    """The next epoch has not begun, so no weights are its own."""
    with loader_of(dataset, changing()) as loader:
        list(loader)
        state = loader.state_dict()
    assert "weights" not in state
    with loader_of(dataset, leat.WeightedSampler(of_epoch(5), 240, changes=True)) as loader:
        loader.load_state_dict(state)
        assert len(list(loader)) == 10


def test_what_cannot_be_is_refused_with_a_remedy(dataset):
    with pytest.raises(leat.InvalidArgument, match="changes=True is for set_weights"):
        leat.WeightedSampler(of_epoch, changes=True)
    with pytest.raises(leat.InvalidArgument, match="stay; make it with changes=True"):
        leat.WeightedSampler([1.0] * SIZE).set_weights([1.0] * SIZE)
    with pytest.raises(leat.InvalidArgument, match="come from a function"):
        changing().set_weights([1.0] * SIZE)
    with pytest.raises(leat.InvalidArgument, match=r"shape \(59,\).*60 samples"):
        loader_of(dataset, leat.WeightedSampler([1.0] * 59, changes=True))
    with loader_of(dataset, leat.WeightedSampler(lambda epoch: [1.0] * 59)) as loader:
        with pytest.raises(leat.InvalidArgument, match=r"shape \(59,\).*60 samples"):
            iter(loader)
    sampler = leat.WeightedSampler([1.0] * SIZE, changes=True)
    with loader_of(dataset, sampler) as loader:
        sampler.set_weights([-1.0] * SIZE)
        with pytest.raises(leat.InvalidArgument, match="weight 0 is -1"):
            iter(loader)


RANKS_THAT_DISAGREE = """
import sys
import torch.distributed as dist
import leat
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=int(sys.argv[2]), world_size=2)
weights = {"same": [1.0] * 60, "other": [1.0] * 59 + [1.0 + int(sys.argv[2])]}[sys.argv[4]]
loader = leat.Loader(sys.argv[3], sampler=leat.WeightedSampler(lambda epoch: weights), global_batch_size=4,
                     fields=("index",))
print(len(list(loader)))
dist.barrier()
"""


@pytest.mark.parametrize("weights", ["same", "other"])
def test_ranks_that_disagree_are_told(pictures, tmp_path, weights):
    script = tmp_path / "rank.py"
    script.write_text(RANKS_THAT_DISAGREE)
    command = [sys.executable, str(script), str(tmp_path / "store")]
    ranks = [
        subprocess.Popen([*command, str(rank), str(pathlib.Path(pictures)), weights], stdout=-1, stderr=-1, text=True)
        for rank in range(2)
    ]
    ended = [rank.communicate(timeout=120) for rank in ranks]
    if weights == "same":
        assert [rank.returncode for rank in ranks] == [0, 0] and [out for out, _ in ended] == ["15\n"] * 2, ended
        return
    assert any("others than those of another rank" in errors for _, errors in ended), ended
