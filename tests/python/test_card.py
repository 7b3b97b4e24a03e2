"""Batches on a real card, which other tests stand a fake in for: the same values, while the card is behind."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

import leat
import leat.torch
from leat._job._lateness import OwnWork
from leat.ops import DecodeImage, Normalize, RandomResizedCrop

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")

OPS = [DecodeImage(), RandomResizedCrop(64), Normalize(mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.2))]
EPOCHS = 6


def load(folder, **options):
    return leat.Loader(folder, **{"global_batch_size": 8, "train": True, "seed": 3, "ops": OPS, "batch": "dict",
                                  "fields": ("image", "label"), "epochs": EPOCHS, "output": "torch", **options})  # fmt: skip


def weights(image: torch.Tensor) -> torch.Tensor:
    return torch.arange(image[0].numel(), device=image.device, dtype=torch.float64).view(image[0].shape) % 251


def sums(batch) -> torch.Tensor:
    """One number for each sample, which depends on each of its values and on their places."""
    image = batch["image"]
    return (image.to(torch.float64) * weights(image)).sum((1, 2, 3)) + batch["label"]


@pytest.fixture(scope="module")
def behind():
    """Gives the card work for some milliseconds, and returns at once."""
    matrix = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)

    def more():
        other = matrix
        for _ in range(20):
            other = matrix @ other
        return other

    return more


def test_batches_are_right_on_a_card_that_is_far_behind(pictures, behind):
    with load(pictures) as here:
        expected = [sums(batch) for _ in range(EPOCHS) for batch in here]

    with load(pictures, device="cuda") as there:
        seen = []
        for _ in range(EPOCHS):
            for batch in there:
                behind()
                seen.append(sums(batch))
                del batch  # Its memory is free for the next one, and the card has not read it yet.
        torch.cuda.synchronize()

    assert len(seen) == len(expected)
    for one, other in zip(seen, expected):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-12, atol=1e-9)


def test_pinned_batches_are_right_after_their_slots_are_used_again(pictures, behind):
    with load(pictures) as here:
        expected = [sums(batch) for _ in range(EPOCHS) for batch in here]

    with load(pictures, pin_memory=True) as there:
        seen = []
        for _ in range(EPOCHS):
            for batch in there:
                assert all(value.is_pinned() for value in batch.values())
                behind()
                seen.append(sums({name: value.to("cuda", non_blocking=True) for name, value in batch.items()}))
                del batch

    for one, other in zip(seen, expected):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-12, atol=1e-9)


def test_ragged_fields_go_to_the_card(pictures):
    with load(pictures, ops=(), fields=("data", "key")) as here, load(
        pictures, ops=(), fields=("data", "key"), device="cuda"
    ) as there:
        for expected, batch in zip(here, there):
            assert batch["data"].values.is_cuda and batch["key"] == expected["key"]
            assert torch.equal(batch["data"].values.cpu(), expected["data"].values)
            assert torch.equal(batch["data"].offsets.cpu(), expected["data"].offsets)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((16,), float(index)), index


@pytest.mark.parametrize("num_workers", [0, 2])
def test_torchs_loader_with_leat_pins_as_torchs_does(num_workers):
    options = {"batch_size": 8, "num_workers": num_workers, "pin_memory": True}

    ours = list(leat.torch.DataLoader(Numbers(), **options))
    torchs = list(torch.utils.data.DataLoader(Numbers(), **options))

    for (values, indices), (right, right_indices) in zip(ours, torchs, strict=True):
        assert values.is_pinned() and indices.is_pinned()
        assert torch.equal(values, right) and torch.equal(indices, right_indices)


def test_own_work_is_measured_by_the_card(behind):
    network = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
    work = OwnWork(network)
    try:
        seconds = []
        for busy in (False, False, True):
            work.begin()
            if busy:
                behind()
            network(torch.randn(32, 256, device="cuda")).sum().backward()
            told = work.end()
            assert told is not None
            torch.cuda.synchronize()
            assert told.is_known()
            seconds.append(told.seconds())
    finally:
        work.remove()

    assert all(each > 0 for each in seconds) and seconds[2] > seconds[1]


def test_the_ledger_has_the_energy_of_the_card(pictures, behind):
    with load(pictures, device="cuda") as loader:
        for _ in loader:
            behind()
        torch.cuda.synchronize()
        ledger = loader.ledger()

    # A card that works takes between 30 and 1,500 W.
    assert 30 * 0.5 < ledger["accelerator_joules"] / ledger["seconds"] < 1500 * torch.cuda.device_count(), ledger


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed: pip install jax")
def test_jax_takes_batches_on_the_card(pictures):
    import jax

    with load(pictures, output="numpy", epochs=1) as here, load(pictures, output="jax", epochs=1) as there:
        for expected, batch in zip(here, there):
            on_card = jax.device_put(batch["image"], jax.devices()[0])
            assert on_card.devices() == {jax.devices()[0]}
            np.testing.assert_array_equal(np.asarray(on_card), expected["image"])
