"""leat.ops against Pillow: the same pixels."""

from __future__ import annotations

import concurrent.futures
import io
import pickle
import random
import struct
import zlib

import numpy as np
import PIL
import pytest
from PIL import Image, ImageOps

import leat
import pillow_chain
from leat import errors
from leat.ops import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Cast,
    CenterCrop,
    Chain,
    DecodeImage,
    Normalize,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
)


def picture(width: int, height: int, mode: str = "RGB", seed: int = 1) -> Image.Image:
    """Something with smooth parts, edges and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [
        110 + 80 * np.sin(x / 17 + c) * np.cos(y / 11 - c) + 40 * ((x // 31 + y // 23) % 2)
        for c in range(3)
    ]
    pixels = np.stack(waves, axis=-1) + rng.normal(0, 6, (height, width, 3))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).convert(mode)


def encoded(image: Image.Image, kind: str, **options) -> bytes:
    out = io.BytesIO()
    if kind == "PNG":
        options = {"compress_level": 1, **options}
    image.save(out, kind, **options)
    return out.getvalue()


def photographs() -> list[Image.Image]:
    """Real ones, from packages if they are there."""
    try:
        from sklearn.datasets import load_sample_images

        images = list(load_sample_images().images)
    except ImportError:
        return [picture(640, 427)]
    try:
        from skimage import data

        images.append(data.astronaut())
    except ImportError:
        pass
    return [Image.fromarray(image) for image in images]


def hwc(*ops, **decode):
    return Chain([DecodeImage(layout="HWC", **decode), *ops])


def pixels(image: Image.Image) -> np.ndarray:
    array = np.asarray(image)
    return array[:, :, None] if array.ndim == 2 else array


def resized(image: Image.Image, size: tuple[int, int], filter=Image.Resampling.BILINEAR):
    """Pillow's resize with its passes in the order of version 13, on any version."""
    width, height = size
    down_first = image.height - height > max(2 * (image.width - width), 0)
    between = (image.width, height) if down_first else (width, image.height)
    return image.resize(between, filter).resize(size, filter)


@pytest.mark.skipif(int(PIL.__version__.split(".")[0]) < 13, reason="another order")
def test_resized_is_pillows_own():
    rng = random.Random(4)
    for i in range(60):
        width, height, to_width, to_height = (rng.randint(1, 200) for _ in range(4))
        image = picture(width, height, seed=i)
        filter = list(pillow_chain.FILTERS.values())[i % 6]
        np.testing.assert_array_equal(
            pixels(resized(image, (to_width, to_height), filter)),
            pixels(image.resize((to_width, to_height), filter)),
        )


@pytest.mark.parametrize("interpolation", pillow_chain.FILTERS)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_resize_is_pillows(interpolation, mode):
    rng = random.Random(5)
    sizes = [(1, 1, 7, 5), (224, 224, 224, 224), (500, 375, 224, 224), (9, 300, 300, 9)]
    sizes += [tuple(rng.randint(1, 400) for _ in range(4)) for _ in range(40)]
    for width, height, to_width, to_height in sizes:
        image = picture(width, height, mode, seed=width)
        expected = resized(
            image, (to_width, to_height), pillow_chain.FILTERS[interpolation]
        )
        got = hwc(Resize((to_height, to_width), interpolation), mode=mode)(
            encoded(image, "PNG")
        )
        np.testing.assert_array_equal(
            got, pixels(expected), err_msg=f"{width}x{height} to {to_width}x{to_height}"
        )


@pytest.mark.parametrize("interpolation", ["box", "bilinear", "hamming"])
def test_resize_is_within_one_level_of_any_pillows(interpolation):
    """Holds for either order of its two passes: these filters cannot
    overshoot."""
    rng = random.Random(6)
    for _ in range(30):
        width, height, to_width, to_height = (rng.randint(1, 300) for _ in range(4))
        image = picture(width, height, seed=width)
        expected = image.resize(
            (to_width, to_height), pillow_chain.FILTERS[interpolation]
        )
        got = hwc(Resize((to_height, to_width), interpolation))(encoded(image, "PNG"))
        assert np.abs(got.astype(int) - pixels(expected)).max() <= 1


def test_resize_clamps_as_pillow_does():
    stripes = np.zeros((60, 60, 3), np.uint8)
    stripes[::7] = 255
    stripes[:, ::5] = 255
    image = Image.fromarray(stripes)
    for interpolation in ("bicubic", "lanczos"):
        for size in (45, 77, 13):
            expected = resized(
                image, (size, size), pillow_chain.FILTERS[interpolation]
            )
            got = hwc(Resize((size, size), interpolation))(encoded(image, "PNG"))
            np.testing.assert_array_equal(got, pixels(expected))


def test_random_resized_crop_is_a_crop_then_a_resize_of_the_documented_draws():
    image = picture(317, 211)
    data = encoded(image, "PNG")
    chain = hwc(RandomResizedCrop(96), RandomHorizontalFlip())
    flipped = 0
    for sample in range(60):
        x, y, w, h = pillow_chain.draw_crop(
            317, 211, pillow_chain.Draws(11, 3, sample, 1)
        )
        expected = resized(image.crop((x, y, x + w, y + h)), (96, 96))
        if pillow_chain.Draws(11, 3, sample, 2).uniform() < 0.5:
            expected = ImageOps.mirror(expected)
            flipped += 1
        got = chain(data, seed=11, epoch=3, sample=sample)
        np.testing.assert_array_equal(got, pixels(expected), err_msg=str(sample))
    assert 15 < flipped < 45


def test_the_evaluation_chain_is_pillows():
    for width, height in ((500, 375), (300, 401), (256, 256), (230, 700)):
        image = picture(width, height)
        short = min(width, height)
        size = (256 * width // short, 256 * height // short)
        whole = resized(image, size)
        left = round((size[0] - 224) / 2)
        top = round((size[1] - 224) / 2)
        expected = whole.crop((left, top, left + 224, top + 224))
        got = hwc(Resize(256), CenterCrop(224))(encoded(image, "PNG"))
        np.testing.assert_array_equal(got, pixels(expected))


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize(
    "chain",
    [
        [],
        [RandomHorizontalFlip(0.5)],
        [leat.ops.RandomVerticalFlip(0.5)],
        [leat.ops.RandomCrop((5, 3), padding=2)],
        [leat.ops.Pad((1, 2, 3, 0), fill=9)],
        [Resize((7, 9)), RandomHorizontalFlip(0.5), CenterCrop(5)],
        [RandomResizedCrop(11), RandomHorizontalFlip(0.5), Normalize(0.5, 0.25)],
        [leat.ops.ColorJitter(0.4, 0.4, 0.4, 0.1), RandomHorizontalFlip(0.5), CenterCrop(2)],
        [leat.ops.RandomInvert(0.5), leat.ops.RandomSolarize(100, 0.5), CenterCrop((3, 1))],
        [leat.ops.RandomGrayscale(0.5), leat.ops.RandomRotation(30), Resize(6)],
        [leat.ops.TenCrop((2, 1))],
        [RandomHorizontalFlip(0.5), leat.ops.FiveCrop((2, 1)), Cast("float32")],
    ],
    ids=repr,
)
def test_pixels_that_are_there_are_as_decoded_ones(chain, mode, layout):
    made = Chain([DecodeImage(layout=layout, mode=mode), *chain])
    for size in ((3, 40), (17, 8), (1, 2), (33, 21)):
        image = picture(*size, mode)
        for sample in range(4):
            data, array = encoded(image, "PNG"), np.asarray(image)
            expected = made(data, seed=3, sample=sample)
            np.testing.assert_array_equal(made(array, seed=3, sample=sample), expected)
            assert made.drawn(array, 3, sample=sample) == made.drawn(data, 3, sample=sample)


def test_pixels_that_do_not_fit_raise():
    chain, grey = Chain([DecodeImage()]), Chain([DecodeImage(mode="L")])
    array = np.asarray(picture(8, 6))
    with pytest.raises(errors.InvalidArgument, match=r"a Chain got float32 of shape \(6, 8, 3\)"):
        chain(array.astype(np.float32))
    with pytest.raises(errors.InvalidArgument, match="work on uint8 images of 1 channel"):
        grey(array)
    with pytest.raises(errors.InvalidArgument, match="ascontiguousarray"):
        chain(array[:, ::-1])
    for op in (leat.ops.Python(lambda image: image), leat.ops.DecodeMask("mask")):
        other = Chain([DecodeImage(), op] if isinstance(op, leat.ops.Python) else [op])
        with pytest.raises(errors.InvalidArgument, match="give it bytes"):
            other(array)


def test_normalize_is_torchvisions_arithmetic():
    data = encoded(picture(300, 200), "PNG")
    chain = Chain(
        [
            DecodeImage(),
            RandomResizedCrop(64),
            RandomHorizontalFlip(),
            Normalize(IMAGENET_MEAN, IMAGENET_STD),
        ]
    )
    for sample in range(8):
        expected = pillow_chain.train_chain(
            data, 64, 9, 1, sample, IMAGENET_MEAN, IMAGENET_STD
        )
        got = chain(data, seed=9, epoch=1, sample=sample)
        assert got.dtype == np.float32 and got.flags.c_contiguous
        np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6)


def test_a_crop_of_a_jpeg_is_cut_from_the_whole():
    """Decoding less must not change a pixel of it."""
    for options in (
        {"subsampling": 0},
        {"subsampling": 1},
        {"subsampling": 2},
        {"subsampling": 2, "progressive": True},
    ):
        data = encoded(picture(333, 222), "JPEG", quality=80, **options)
        whole = hwc()(data)
        for size in (1, 16, 33, 100, 199):
            top, left = round((222 - size) / 2), round((333 - size) / 2)
            got = hwc(CenterCrop(size))(data)
            np.testing.assert_array_equal(
                got, whole[top : top + size, left : left + size]
            )


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_decoded_jpegs_are_close_to_pillows(subsampling):
    """Its libjpeg may be another version: not all pixels need be equal."""
    image = picture(301, 199)
    data = encoded(image, "JPEG", quality=85, subsampling=subsampling)
    difference = np.abs(hwc()(data).astype(int) - pixels(pillow_chain.decode(data)))
    assert difference.max() <= 3
    assert difference.mean() < 0.05


@pytest.mark.parametrize("size", [32, 64, 100, 150, 200])
def test_scaled_decoding_is_within_two_levels_of_exact(size):
    """At most 3 on average was asked for."""
    for image in photographs():
        data = encoded(image, "JPEG", quality=90)
        for ops in (
            *([Resize((size, size), name)] for name in pillow_chain.FILTERS),
            [Resize(size), CenterCrop(size)],
            [RandomResizedCrop(size, scale=(0.6, 1))],
        ):
            fast = hwc(*ops)(data)
            exact = hwc(*ops, exact=True)(data)
            difference = np.abs(fast.astype(int) - exact)
            assert difference.mean() <= 2, (ops, difference.mean())


def test_exact_means_full_decoding_then_pillows_resize():
    data = encoded(photographs()[0], "JPEG", quality=90)
    whole = Image.fromarray(hwc()(data))
    expected = resized(whole, (64, 48))
    np.testing.assert_array_equal(
        hwc(Resize((48, 64)), exact=True)(data), pixels(expected)
    )
    assert (hwc(Resize((48, 64)))(data) != pixels(expected)).any()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_kind_of_png(mode):
    image = picture(41, 31)
    if mode == "RGBA":
        image.putalpha(picture(41, 31, "L", seed=2))
    elif mode == "LA":
        image = image.convert("L")
        image.putalpha(picture(41, 31, "L", seed=2))
    elif mode == "I;16":
        array = np.asarray(image.convert("L")).astype(np.uint16) * 257
        data = encoded(Image.fromarray(array), "PNG")
        expected = Image.fromarray((array >> 8).astype(np.uint8)).convert("RGB")
        np.testing.assert_array_equal(hwc(depth=8)(data), pixels(expected))
        return
    elif mode == "P":
        image = image.quantize(50)
    else:
        image = image.convert(mode)
    data = encoded(image, "PNG")
    expected = Image.open(io.BytesIO(data)).convert("RGB")
    np.testing.assert_array_equal(hwc()(data), pixels(expected))


def test_palettes_with_transparency_lose_it():
    image = picture(40, 30).quantize(16)
    data = encoded(image, "PNG", transparency=3, bits=4)
    expected = Image.open(io.BytesIO(data)).convert("RGB")
    np.testing.assert_array_equal(hwc()(data), pixels(expected))


def test_grey_and_cmyk_jpegs():
    grey = encoded(picture(90, 70, "L"), "JPEG", quality=95)
    cmyk = encoded(picture(90, 70, "CMYK"), "JPEG", quality=95)
    for data in (grey, cmyk):
        expected = pixels(Image.open(io.BytesIO(data)).convert("RGB"))
        difference = np.abs(hwc()(data).astype(int) - expected)
        assert difference.max() <= 2
    luma = pixels(Image.open(io.BytesIO(grey)))
    assert np.abs(hwc(mode="L")(grey).astype(int) - luma).max() <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_pillows(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(picture(64, 40), "PNG", exif=exif)
    image = Image.open(io.BytesIO(data))
    upright = ImageOps.exif_transpose(image)
    np.testing.assert_array_equal(hwc()(data), pixels(upright))
    np.testing.assert_array_equal(hwc(exif_orientation=False)(data), pixels(image))
    np.testing.assert_array_equal(
        hwc(Resize((31, 23)))(data),
        pixels(resized(upright, (23, 31))),
    )


@pytest.mark.parametrize("orientation", range(1, 9))
def test_scaled_decoding_knows_orientations(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(picture(641, 427), "JPEG", quality=92, exif=exif)
    chains = [hwc(RandomResizedCrop(50), exact=exact) for exact in (False, True)]
    for sample in range(10):
        fast, exact = (chain(data, sample=sample).astype(int) for chain in chains)
        assert np.abs(fast - exact).mean() <= 3


def test_a_truncated_jpeg_is_corrupt_wherever_it_is_cut():
    data = encoded(picture(200, 150), "JPEG")
    chain = hwc(CenterCrop(10))
    for size in (0, 1, 2, 3, 20, 200, len(data) // 2, len(data) - 2, len(data) - 1):
        with pytest.raises(errors.Corrupt):
            chain(data[:size])


def test_a_truncated_png_is_corrupt_wherever_it_is_cut():
    data = encoded(picture(200, 150), "PNG")
    for size in (8, 20, 33, 50, len(data) // 2, len(data) - 1):
        with pytest.raises(errors.Corrupt, match="cut short|header"):
            hwc(CenterCrop(10))(data[:size])


def test_damage_within_a_jpeg_is_passed_over_as_pillow_does():
    data = bytearray(encoded(picture(300, 200), "JPEG", restart_marker_rows=1))
    middle = len(data) // 2
    data[middle : middle + 30] = b"\x55" * 30
    Image.open(io.BytesIO(data)).load()  # Pillow does not mind.
    assert hwc()(bytes(data)).shape == (200, 300, 3)


def png_that_claims(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc)

    body = zlib.compress(b"\0" * 100_000)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", body)
        + chunk(b"IEND", b"")
    )


def test_a_png_that_claims_60000_by_60000_is_refused_before_memory_is_taken():
    with pytest.raises(errors.Corrupt, match="60000 x 60000 pixels.*max_pixels"):
        Chain([DecodeImage(), Resize(224)])(png_that_claims(60_000, 60_000))
    with pytest.raises(errors.Corrupt, match="can hold"):
        Chain([DecodeImage(max_pixels=1 << 40)])(png_that_claims(60_000, 60_000))


def test_limits_can_be_lowered():
    data = encoded(picture(100, 100), "JPEG")
    with pytest.raises(errors.Corrupt, match="more than the limit of 9999"):
        Chain([DecodeImage(max_pixels=9_999)])(data)
    Chain([DecodeImage(max_pixels=10_000)])(data)


def test_draws_depend_on_seed_epoch_and_sample_alone():
    data = encoded(picture(320, 240), "JPEG")
    ops = [DecodeImage(), RandomResizedCrop(64), RandomHorizontalFlip()]
    chain = Chain(ops)
    alone = [chain(data, seed=1, epoch=2, sample=i) for i in range(64)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        order = list(range(64))
        random.Random(1).shuffle(order)
        futures = {i: pool.submit(chain, data, 1, 2, i) for i in order}
    for i in range(64):
        np.testing.assert_array_equal(alone[i], futures[i].result())
    assert len({array.tobytes() for array in alone}) == 64
    assert (chain(data, 1, 3, 0) != alone[0]).any()
    assert (chain(data, 2, 2, 0) != alone[0]).any()


def test_layouts_and_types():
    data = encoded(picture(32, 20), "PNG")
    assert Chain([DecodeImage()])(data).shape == (3, 20, 32)
    assert Chain([DecodeImage(mode="L")])(data).shape == (1, 20, 32)
    assert hwc()(data).dtype == np.uint8
    scaled = hwc(Cast("float32"))(data)
    np.testing.assert_allclose(scaled, hwc()(data) / np.float32(255), atol=1e-7)
    plain = hwc(Cast(np.float32, scale=False))(data)
    np.testing.assert_array_equal(plain, hwc()(data))


def test_data_may_be_anything_like_bytes():
    data = encoded(picture(32, 20), "PNG")
    expected = hwc()(data)
    for other in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        np.testing.assert_array_equal(hwc()(other), expected)


def test_ops_are_values():
    assert Resize(224) == Resize(224)
    assert Resize(224) != Resize(225)
    assert Resize(224) != CenterCrop(224)
    assert len({Resize(8), Resize(8), Resize((8, 8))}) == 2
    assert repr(CenterCrop((3, 4), field="x")) == "CenterCrop(size=[3, 4], field='x')"
    assert eval(repr(RandomResizedCrop(9))) == RandomResizedCrop(9)
    assert Cast(np.uint8).to_spec() == {
        "name": "cast",
        "params": {"dtype": "uint8", "scale": True},
    }
    chain = pickle.loads(pickle.dumps(Chain([DecodeImage(), Resize((4, 4))])))
    assert chain.ops == (DecodeImage(), Resize((4, 4)))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Resize(0), "size=0"),
        (lambda: Resize((1, 2, 3)), "height, width"),
        (lambda: Resize(2.5), "size=2.5"),
        (lambda: Resize(8, "cubic"), "bilinear"),
        (lambda: RandomResizedCrop(8, scale=(0.5, 0.1)), "scale"),
        (lambda: RandomResizedCrop(8, scale=(0.5, 2)), "must not exceed 1"),
        (lambda: RandomHorizontalFlip(2), "from 0 to 1"),
        (lambda: Normalize(0.5), "std must be given"),
        (lambda: Normalize((1, 2), 1), "one per channel"),
        (lambda: Normalize(0, 0), "must not be 0"),
        (lambda: Cast("int8"), "uint8, float32"),
        (lambda: DecodeImage(mode="BGR"), "RGB, L, I;16"),
        (lambda: DecodeImage(field=""), "name of a field"),
        (lambda: Chain([Resize(8)]), "put decode_image before"),
        (lambda: Chain([DecodeImage(), Normalize("imagenet"), Resize(8)]), "before"),
        (lambda: Chain([DecodeImage(mode="L"), Normalize("imagenet")]), "1 channel"),
        (
            lambda: Chain([DecodeImage(), Normalize("imagenet"), Cast("float16"), Normalize(0.5, 0.5)]),
            r"normalize \(op 3\) would .*behind normalize \(op 1\): leave one",
        ),
        (lambda: Chain([]), "exactly one op that reads bytes"),
        (lambda: Chain(["resize"]), "is no op"),
        (lambda: Chain("resize"), "is a text; write a list of leat.ops"),
    ],
)
def test_what_makes_no_sense_is_refused_early(make, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        make()
