"""A row whose sample is passed over is the next sample's alone: nothing stays of the first."""

from __future__ import annotations

import numpy as np
import pytest

import leat
from leat.ops import DecodeImage, DecodeMask, Filter, ParseInt, ParseText, Python, RandomCrop
from small_datasets import encoded, tar_of, write

N = 8
PASSED_OVER = 2


def plane(number: int, side: int = 32) -> bytes:
    """A picture all of whose pixels are its number."""
    return encoded(np.full((side, side, 3), number, np.uint8))


def shard(folder, members_of) -> str:
    """A shard of N samples, each with these members."""
    members = [(f"{number:03}.{name}", data) for number in range(N) for name, data in members_of(number).items()]
    write(folder / "0.tar", tar_of(members))
    return str(folder)


def load(url: str, ops, **options) -> leat.Loader:
    always = {"batch_size": N, "shuffle": False, "drop_last": False, "ids": True, "batch": "dict", "output": "numpy"}
    return leat.Loader(url, **{**always, "ops": ops, **options})


@pytest.mark.parametrize("how", ["substitute", "skip"])
def test_fields_that_a_function_makes_together_are_of_one_sample(tmp_path, how):
    def members(number):
        is_bad = number == PASSED_OVER and how == "substitute"
        return {"cap": f"text {number}".encode(), "cls": b"bad" if is_bad else str(number).encode(), "png": plane(number)}

    url = shard(tmp_path, members)
    filters = [Filter(lambda number: int(number) != PASSED_OVER, field="cls")] if how == "skip" else []
    # The label comes last: by then both others have been made of the sample that is passed over.
    ops = [ParseText("cap"), DecodeImage("png"), Python(lambda text, image: (text, image), fields=("cap", "image")),
           ParseInt("cls"), *filters]  # fmt: skip
    with load(url, ops, on_error="substitute", fields=["cap", "image", "cls"]) as loader:
        (batch,) = loader

    assert PASSED_OVER not in batch["cls"]
    assert batch["image"][:, 0, 0, 0].tolist() == batch["cls"].tolist() == batch["index"].tolist()
    assert list(batch["cap"]) == [f"text {number}" for number in batch["cls"]]


@pytest.mark.parametrize("how", ["substitute", "skip"])
def test_the_size_of_a_sample_that_is_passed_over_is_not_asked_of_the_next(tmp_path, how):
    """An op that moves an image and its mask alike compares the sizes of one sample's."""

    def members(number):
        is_odd = number == PASSED_OVER
        side = 20 if is_odd else 32
        label = b"bad" if is_odd and how == "substitute" else str(number).encode()
        mask = encoded(np.full((side, side), number, np.uint8))
        return {"image": plane(number, side), "mask": mask, "txt": label}

    url = shard(tmp_path, members)
    filters = [Filter(lambda number: int(number) != PASSED_OVER, field="txt")] if how == "skip" else []
    ops = [DecodeImage("image"), DecodeMask("mask"), ParseInt("txt"), *filters, RandomCrop(16)]
    with load(url, ops, on_error="substitute") as loader:
        (batch,) = loader
        stats = loader.stats()[0]

    assert (stats["substituted"], stats["skipped"]) == ((1, 0) if how == "substitute" else (0, 1))
    assert batch["index"].tolist() == batch["txt"].tolist()
    assert batch["image"][:, 0, 0, 0].tolist() == batch["mask"][:, 0, 0].tolist() == batch["txt"].tolist()


def torn(number: int, side: int) -> bytes:
    """A picture whose header is whole, and whose pixels are not."""
    noise = np.random.default_rng(number).integers(0, 256, (side, side, 3), dtype=np.uint8)
    data = bytearray(encoded(noise))
    data[len(data) // 2] ^= 0xFF
    return bytes(data)


@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize("how", ["filter", "label", "pixels"])
def test_a_sample_that_is_passed_over_tells_no_shape(tmp_path, how, first):
    """The first samples are small; all that are delivered have one size."""

    def members(number):
        if number >= first:
            return {"png": plane(number), "txt": b"large", "cls": str(number).encode()}
        picture = torn(number, 20) if how == "pixels" else plane(number, 20)
        return {"png": picture, "txt": b"small", "cls": b"bad" if how == "label" else str(number).encode()}

    url = shard(tmp_path, members)
    filters = [Filter(lambda text: text == "large", field="txt")] if how == "filter" else []
    ops = [DecodeImage("png"), ParseText("txt"), *filters, ParseInt("cls")]
    with load(url, ops, on_error="substitute", batch_size=4) as loader:
        batches = list(loader)
        stats = loader.stats()[0]

    assert [batch["image"].shape for batch in batches] == [(4, 3, 32, 32)] * 2
    for batch in batches:
        assert batch["image"][:, 0, 0, 0].tolist() == batch["cls"].tolist() == batch["index"].tolist()
    assert stats["skipped" if how == "filter" else "substituted"] == first


def test_a_function_that_skips_the_first_sample_raises_nothing_by_default(tmp_path):
    url = shard(tmp_path, lambda number: {"png": plane(number, 32 if number else 20), "cls": str(number).encode()})
    ops = [DecodeImage("png"), ParseInt("cls"), Filter(lambda number: number > 0, field="cls")]
    with load(url, ops) as loader:
        (batch,) = loader
    assert batch["image"].shape == (N, 3, 32, 32) and batch["image"][:, 0, 0, 0].tolist() == batch["cls"].tolist()
