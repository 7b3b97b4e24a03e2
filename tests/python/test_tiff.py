"""TIFF as Pillow decodes it, and refused where it would be read wrongly."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import leat
import pillow_chain
from leat import errors
from leat.ops import Chain, DecodeImage, DecodeMask, RandomCrop
from small_datasets import write
from test_ops import encoded, hwc, picture, pixels

COMPRESSIONS = [None, "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits"]


def tiff(image: Image.Image | np.ndarray, compression: str | None = None, **options: object) -> bytes:
    return encoded(image if isinstance(image, Image.Image) else Image.fromarray(image), "TIFF",
                   compression=compression, **options)  # fmt: skip


def deep(height: int = 29, width: int = 37) -> np.ndarray:
    return np.random.default_rng(4).integers(0, 2**16, (height, width), dtype=np.uint16)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_tiff_is_pillows(compression, mode):
    for size in ((64, 48), (33, 17), (1, 1), (2, 301)):
        image = picture(*size, "L" if mode == "L" else "RGB")
        if mode == "RGBA":
            image.putalpha(picture(*size, "L", seed=2))
        data = tiff(image, compression)
        for decoded in ("RGB", "L"):
            expected = image.convert("RGB").convert(decoded) if mode == "RGBA" else image.convert(decoded)
            np.testing.assert_array_equal(hwc(mode=decoded)(data), pixels(expected))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_sixteen_bits_of_grey_are_kept(compression):
    depths = deep()
    made = Chain([DecodeImage(mode="I;16")])(tiff(depths, compression))
    assert made.dtype == np.uint16
    np.testing.assert_array_equal(made[0], depths)
    upper = Chain([DecodeImage(mode="L", depth=8)])(tiff(depths, compression))
    np.testing.assert_array_equal(upper[0], depths >> 8)


def test_sixteen_bits_never_become_eight_unless_that_was_said():
    with pytest.raises(errors.InvalidArgument, match='TIFF has 16 bits a channel.*mode="I;16".*depth=8'):
        Chain([DecodeImage()])(tiff(deep()))


@pytest.mark.parametrize("compression", [None, "tiff_lzw"])
def test_a_crop_is_cut_from_the_whole(compression):
    data = tiff(picture(111, 77), compression)
    whole = hwc()(data)
    chain = hwc(RandomCrop((30, 41)))
    for sample in range(20):
        draws = pillow_chain.Draws(0, 0, sample, 1)
        y = draws.below(77 - 30 + 1)
        x = draws.below(111 - 41 + 1)
        np.testing.assert_array_equal(chain(data, sample=sample), whole[y : y + 30, x : x + 41])


@pytest.mark.parametrize("orientation, turned", [(1, lambda a: a), (3, lambda a: np.rot90(a, 2)), (6, lambda a: np.rot90(a, -1))])
def test_it_is_turned_upright(orientation, turned):
    image = picture(40, 30)
    data = tiff(image, tiffinfo={274: orientation})
    np.testing.assert_array_equal(hwc()(data), turned(pixels(image)))
    np.testing.assert_array_equal(hwc(exif_orientation=False)(data), pixels(image))


def test_labels_are_kept():
    labels = np.random.default_rng(1).integers(0, 21, (13, 17), dtype=np.uint8)
    np.testing.assert_array_equal(Chain([DecodeMask()])(tiff(labels, "tiff_lzw")), labels)
    with pytest.raises(errors.Corrupt, match="TIFF holds colours and no labels"):
        Chain([DecodeMask()])(tiff(picture(9, 9)))
    with pytest.raises(errors.Corrupt, match="16 bits a pixel"):
        Chain([DecodeMask()])(tiff(deep()))


@pytest.mark.parametrize("image, options, says", [
    (picture(9, 9).convert("P"), {}, "photometric 3"),
    (picture(9, 9).convert("1"), {}, "1 channel.s. of 1 bits"),
    (picture(9, 9).convert("CMYK"), {}, "photometric 5"),
    (Image.fromarray(np.ones((9, 9), np.float32)), {}, "sample format 3"),
    (Image.fromarray(np.ones((9, 9), np.int32)), {}, "1 channel.s. of 32 bits"),
    (picture(9, 9), {"save_all": True, "append_images": [picture(9, 9)]}, "several pictures"),
    (picture(9, 9), {"compression": "jpeg"}, "photometric 6|compression 7"),
    (picture(9, 9, "L"), {"compression": "lzma"}, "compression 34925"),
])  # fmt: skip
def test_other_kinds_are_refused_by_name(image, options, says):
    with pytest.raises(errors.Corrupt, match=says):
        hwc()(tiff(image, **options))


def test_what_is_cut_or_too_large_is_refused():
    for compression in (None, "tiff_lzw"):
        data = tiff(picture(60, 50), compression)
        for size in (4, 8, 9, len(data) // 2, len(data) - 1):
            with pytest.raises(errors.Corrupt):
                hwc()(data[:size])
    with pytest.raises(errors.Corrupt, match="60 x 50 pixels, more than the limit of 2999"):
        hwc(max_pixels=2_999)(data)


def test_it_comes_through_a_loader_under_its_own_name(tmp_path):
    depths = deep()
    for i in range(3):
        write(tmp_path / f"{i}.tif", tiff(depths + i))
    with leat.Loader(tmp_path, batch_size=3, shuffle=False, ops=[DecodeImage(mode="I;16")], output="numpy") as loader:
        (batch,) = loader
    np.testing.assert_array_equal(batch["image"][:, 0], np.stack([depths + i for i in range(3)]))
