"""A resize behind a flip gets the mirrored picture: a filter may take one of two pixels that are equally near."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from leat.ops import Chain, DecodeImage, DecodeMask, RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip, Resize
from small_datasets import encoded

FLIPS = {
    "left": (RandomHorizontalFlip(1), lambda array: array[:, ::-1]),
    "down": (RandomVerticalFlip(1), lambda array: array[::-1]),
}
NUMBERS = np.arange(64, dtype=np.uint8).reshape(8, 8)


def as_pillow(array: np.ndarray, side: int, interpolation: str) -> np.ndarray:
    picture = Image.fromarray(np.ascontiguousarray(array))
    return np.asarray(picture.resize((side, side), Image.Resampling[interpolation.upper()]))


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize("interpolation", ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"])
@pytest.mark.parametrize(("size", "side"), [(8, 4), (9, 6)])
@pytest.mark.parametrize("crops", [False, True])
def test_an_image_is_pillows(flip, interpolation, size, side, crops):
    op, mirrored = FLIPS[flip]
    picture = np.random.default_rng(side).integers(0, 256, (size, size, 3), dtype=np.uint8)
    # The whole of it.
    part = RandomResizedCrop(side, scale=(1, 1), ratio=(1, 1), interpolation=interpolation)
    resize = part if crops else Resize((side, side), interpolation=interpolation)

    made = Chain([DecodeImage(layout="HWC"), op, resize])(encoded(picture))

    np.testing.assert_array_equal(made, as_pillow(mirrored(picture), side, interpolation))


@pytest.mark.parametrize("flip", FLIPS)
def test_a_mask_is_pillows(flip):
    op, mirrored = FLIPS[flip]

    made = Chain([DecodeMask(), op, Resize((4, 4))])(encoded(NUMBERS))

    np.testing.assert_array_equal(made, as_pillow(mirrored(NUMBERS), 4, "nearest"))


def test_a_flip_behind_the_resize_takes_it_back():
    flip, _ = FLIPS["left"]

    made = Chain([DecodeMask(), flip, Resize((4, 4)), flip])(encoded(NUMBERS))

    np.testing.assert_array_equal(made, as_pillow(NUMBERS[:, ::-1], 4, "nearest")[:, ::-1])


@pytest.mark.parametrize("flip", FLIPS)
def test_sixteen_bits_stay_together(flip):
    op, mirrored = FLIPS[flip]
    rng = np.random.default_rng(1)
    picture = rng.integers(0, 2**16, (40, 40), dtype=np.uint16)

    made = Chain([DecodeImage(mode="I;16", layout="HWC"), op, Resize((20, 20), interpolation="nearest")])(encoded(picture))

    np.testing.assert_array_equal(made[..., 0], mirrored(picture)[1::2, 1::2])
