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
