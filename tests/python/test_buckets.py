"""Steps of samples of like size."""

from __future__ import annotations

import numpy as np
import pytest

import leat
from leat._orders._buckets import BucketOrder, divide
from leat.ops import DecodeImage, PadTo
from small_datasets import encoded, pixels, write

COUNT = 203


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """PNGs of sizes of their own, and a table that knows them."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(4)
    rows = ["path,height,width,name"]
    for number in range(COUNT):
        height, width = rng.integers(4, 60, 2)
        write(folder / f"{number:03}.png", encoded(pixels(number, width, height)))
        rows.append(f"{number:03}.png,{height},{width},x")
    write(folder / "list.csv", "\n".join(rows).encode())
    return folder


def dataset_of(folder):
    return leat.Dataset.from_manifest(
        folder / "list.csv", fields={"image": "path"}, columns=["height", "width", "name"]
    )


def loader_of(folder, **options):
    usual = {
        "sampler": leat.SizeBuckets("height", "width"), "train": True, "global_batch_size": 8,
        "fields": ("index",), "output": "numpy",
    }  # fmt: skip
    return leat.Loader(dataset_of(folder), **{**usual, **options})


def steps_of(loader):
    return [index.tolist() for (index,) in loader]


def waste_of(sizes, steps):
    """The share of padding in the delivered arrays."""
    padded = sum(len(step) * sizes[step].max(axis=0).prod() for step in steps)
    return 1 - sum(sizes[step].prod(axis=1).sum() for step in steps) / padded


@pytest.fixture(scope="module")
def sizes(photos):
    of = dataset_of(photos)
    return np.stack([of.column("height"), of.column("width")], 1)


def test_steps_are_of_like_size(photos, sizes):
    steps = steps_of(loader_of(photos))
    apart = steps_of(loader_of(photos, sampler=None, train=True))

    assert len(steps) == len(apart) == COUNT // 8
    assert all(len(step) == 8 for step in steps)
    seen = [sample for step in steps for sample in step]
    assert len(set(seen)) == len(seen)
    assert waste_of(sizes, steps) < 0.55 * waste_of(sizes, apart)


def test_it_pads_each_step_to_its_own_size(photos, sizes):
    loader = loader_of(photos, fields=("image", "index"), ops=[DecodeImage(layout="HWC"), PadTo()])
    for images, index in loader:
        assert images.shape[1:3] == tuple(sizes[index].max(axis=0))
        height, width = sizes[index[0]]
        assert np.array_equal(images[0, :height, :width], pixels(int(index[0]), width, height))


def test_each_epoch_is_another_order_and_the_same_again(photos):
    first, again = loader_of(photos), loader_of(photos)
    epochs = [steps_of(first) for _ in range(2)]
    assert epochs == [steps_of(again) for _ in range(2)]
    assert epochs[0] != epochs[1]
    assert steps_of(loader_of(photos, seed=1)) != epochs[0]


def test_over_epochs_nothing_is_left_out_for_its_size(photos, sizes):
    loader = loader_of(photos)
    left_out = [set(range(COUNT)) - {s for step in steps_of(loader) for s in step} for _ in range(60)]
    assert {len(left) for left in left_out} == {COUNT % 8}
    areas = [sizes[list(left)].prod(axis=1).mean() for left in left_out]
    assert 0.5 * sizes.prod(axis=1).mean() < np.mean(areas) < 1.5 * sizes.prod(axis=1).mean()


def test_reading_comes_by_size_and_delivers_each(photos, sizes):
    steps = steps_of(loader_of(photos, train=False))
    seen = [sample for step in steps for sample in step]
    assert sorted(seen) == list(range(COUNT))
    areas = [sizes[step].max(axis=0).prod() for step in steps]
    assert np.mean(areas[:5]) < 0.5 * np.mean(areas[-5:])


@pytest.mark.parametrize("world", [2, 8])
def test_ranks_have_the_steps_of_one(photos, world):
    whole = steps_of(loader_of(photos, global_batch_size=16))
    ranks = [steps_of(loader_of(photos, global_batch_size=16, rank=r, world_size=world)) for r in range(world)]
    assert {len(steps) for steps in ranks} == {len(whole)}
    for number, step in enumerate(whole):
        assert sorted(step) == sorted(sample for steps in ranks for sample in steps[number])


@pytest.mark.parametrize("worlds", [(1, 1), (2, 2), (8, 8), (8, 2), (1, 8)])
def test_resume_goes_on_exactly_on_any_number_of_ranks(photos, worlds):
    before, after = worlds
    whole = loader_of(photos, global_batch_size=16)
    steps_of(whole)
    wanted = steps_of(whole)  # The epoch 1.
    loaders = [loader_of(photos, global_batch_size=16, rank=r, world_size=before) for r in range(before)]
    for loader in loaders:
        steps_of(loader)
        batches = iter(loader)
        for _ in range(5):
            next(batches)
    state = loaders[0].state_dict()
    later = [loader_of(photos, global_batch_size=16, rank=r, world_size=after) for r in range(after)]
    for loader in later:
        loader.load_state_dict(state)
    found = [steps_of(loader) for loader in later]
    for number, step in enumerate(wanted[5:]):
        assert sorted(step) == sorted(sample for steps in found for sample in steps[number])


def test_a_state_of_another_order_is_refused(photos):
    loader = loader_of(photos)
    next(iter(loader))
    other = loader_of(photos, sampler=leat.SizeBuckets("height"))
    other.load_state_dict(loader.state_dict())
    with pytest.raises(leat.InvalidArgument, match="another order"):
        next(iter(other))


@pytest.mark.parametrize("ends", [True, False], ids=["between epochs", "within an epoch"])
@pytest.mark.parametrize("worlds", [(2, 1), (1, 2), (8, 2)])
def test_steps_stay_those_of_the_state_where_a_ranks_batch_is_given(photos, ends, worlds):
    options = {"global_batch_size": None, "batch_size": 4}
    before, after = worlds
    with loader_of(photos, **options, rank=0, world_size=before) as loader:
        for number, _ in enumerate(loader):
            if number == 1 and not ends:
                break
        state = loader.state_dict()
    with loader_of(photos, global_batch_size=4 * before, rank=0, world_size=1) as whole:
        whole.load_state_dict(state)
        expected = steps_of(whole)

    found = [[] for _ in expected]
    for rank in range(after):
        with loader_of(photos, **options, rank=rank, world_size=after) as loader:
            loader.load_state_dict(state)
            assert loader.state_dict() == state
            steps = steps_of(loader)
            assert len(steps) == len(expected) == (len(loader) if ends else len(steps))
            for step, mine in zip(found, steps):
                step += mine
    assert [sorted(step) for step in found] == [sorted(step) for step in expected]


def test_a_state_that_is_refused_leaves_the_steps_as_they_were(photos):
    options = {"global_batch_size": None, "batch_size": 4, "rank": 0}
    with loader_of(photos, **options, world_size=2, seed=1) as loader:
        state = loader.state_dict()
    with loader_of(photos, **options, world_size=1) as loader, loader_of(photos, global_batch_size=4) as other:
        with pytest.raises(leat.InvalidArgument, match="seed"):
            loader.load_state_dict(state)
        assert steps_of(loader) == steps_of(other)


def test_an_array_of_lengths(photos):
    lengths = np.arange(1, COUNT + 1)
    steps = steps_of(loader_of(photos, sampler=leat.SizeBuckets(lengths, count=4)))
    spread = [max(step) - min(step) for step in steps]
    assert np.median(spread) < COUNT / 3


def test_buckets_are_what_spares_most():
    sizes = np.array([[10.0], [11.0], [10.0], [100.0], [101.0], [100.0], [11.0]])
    assert [part.tolist() for part in divide(sizes, 2, 2)] == [[0, 1, 2, 6], [3, 4, 5]]
    assert len(divide(sizes, 100, 4)) == 1
    assert [len(part) for part in divide(np.ones((9, 2)), 4, 1)] == [9]
    # Tall and wide ones, whose areas are alike.
    tall_or_wide = np.array([[10.0, 40.0], [40.0, 10.0]] * 10)
    assert [sorted(set(p % 2)) for p in divide(tall_or_wide, 8, 2)] == [[0], [1]]


def test_buckets_come_from_small_to_large(sizes):
    parts = divide(sizes, 16, 8)
    areas = [sizes[part].max(axis=0).prod() for part in parts]
    assert areas == sorted(areas) and len(parts) > 4
    assert min(map(len, parts)) >= 8


def test_the_order_is_fixed_for_good():
    order = BucketOrder(np.arange(1.0, 41.0)[:, None], 4, 4, seed=7, shuffles=True)
    order.set_epoch(2)
    assert sorted(order.order().tolist()) == list(range(40)) and order.length() == 40
    # Saved states depend on it: it never changes.
    assert order.order().tolist()[:8] == [6, 7, 8, 4, 32, 33, 30, 36]


def test_refusals(photos):
    for buckets, said in [
        (leat.SizeBuckets("depth"), "'depth' is no column of numbers; there are height, width"),
        (leat.SizeBuckets("name"), "'name' is no column of numbers"),
        (leat.SizeBuckets(np.ones(5)), r"shape \(5, 1\), and the dataset has 203"),
        (leat.SizeBuckets(np.zeros(COUNT)), "sample 0 has the size"),
        ("height", "it gives numbers of samples"),
    ]:
        with pytest.raises(leat.InvalidArgument, match=said):
            loader_of(photos, sampler=buckets)
    with pytest.raises(leat.InvalidArgument, match="both say the order"):
        loader_of(photos, train=None, shuffle="block")
    with pytest.raises(leat.InvalidArgument, match="count=0"):
        leat.SizeBuckets("height", count=0)
    with pytest.raises(leat.InvalidArgument, match="give names of columns"):
        leat.SizeBuckets()
