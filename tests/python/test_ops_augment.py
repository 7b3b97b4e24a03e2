"""RandomCrop, Pad and ColorJitter against Pillow; WebP as Pillow decodes it."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

import leat
import pillow_chain
from leat import errors
from leat.ops import (
    CenterCrop,
    Chain,
    ColorJitter,
    DecodeImage,
    FiveCrop,
    Grayscale,
    Normalize,
    Pad,
    RandomCrop,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
)
from small_datasets import write
from test_ops import encoded, hwc, photographs, picture, pixels, resized

# --- Pad and RandomCrop -------------------------------------------------------


def padded(image: Image.Image, left, top, right, bottom, fill=0) -> Image.Image:
    return ImageOps.expand(image, (left, top, right, bottom), fill)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_pad_is_pillows(mode):
    image = picture(31, 22, mode)
    data = encoded(image, "PNG")
    for padding, sides in ((3, (3, 3, 3, 3)), ((1, 4), (1, 4, 1, 4)), ((0, 1, 2, 3), (0, 1, 2, 3))):
        got = hwc(Pad(padding, fill=7), mode=mode)(data)
        np.testing.assert_array_equal(got, pixels(padded(image, *sides, fill=7 if mode == "L" else (7, 7, 7))))


def test_pad_in_colour_and_to_a_size():
    image = picture(31, 22)
    data = encoded(image, "PNG")
    got = hwc(Pad(2, fill=(1, 128, 255)))(data)
    np.testing.assert_array_equal(got, pixels(padded(image, 2, 2, 2, 2, (1, 128, 255))))
    got = hwc(Pad(size=(27, 40), fill=9))(data)  # The larger half right and below.
    np.testing.assert_array_equal(got, pixels(padded(image, 4, 2, 5, 3, (9, 9, 9))))
    np.testing.assert_array_equal(hwc(Pad(size=20))(data), pixels(image))
    np.testing.assert_array_equal(hwc(Pad(0))(data), pixels(image))


def torchvision_crop(image, size, sides, draws, fill=0) -> Image.Image:
    """RandomCrop(size, padding, pad_if_needed=True)."""
    image = padded(image, *sides, fill)
    more = max(0, size[1] - image.width), max(0, size[0] - image.height)
    image = padded(image, more[0], more[1], more[0], more[1], fill)
    top = draws.below(image.height - size[0] + 1)
    left = draws.below(image.width - size[1] + 1)
    return image.crop((left, top, left + size[1], top + size[0]))


@pytest.mark.parametrize(("width", "height"), [(32, 32), (50, 40), (20, 60), (9, 8)])
def test_random_crop_is_torchvisions_of_the_documented_draws(width, height):
    image = picture(width, height)
    data = encoded(image, "PNG")
    chain = hwc(RandomCrop((24, 32), padding=(4, 1, 2, 3), fill=(9, 8, 7)))
    places = set()
    for sample in range(40):
        draws = pillow_chain.Draws(5, 2, sample, 1)
        expected = torchvision_crop(image, (24, 32), (4, 1, 2, 3), draws, (9, 8, 7))
        got = chain(data, seed=5, epoch=2, sample=sample)
        np.testing.assert_array_equal(got, pixels(expected), err_msg=str(sample))
        places.add(got.tobytes())
    assert len(places) > 10


def test_random_crops_reach_every_place():
    data = encoded(picture(6, 5), "PNG")
    whole = hwc()(data)
    chain = hwc(RandomCrop(4))
    seen = {chain(data, sample=i).tobytes() for i in range(300)}
    assert seen == {whole[y:y + 4, x:x + 4].tobytes() for y in range(2) for x in range(3)}


def test_flips_before_and_after_padding_and_cropping():
    image = picture(40, 30)
    data = encoded(image, "PNG")
    chain = hwc(
        RandomHorizontalFlip(), Pad((5, 1, 2, 3), fill=50), RandomHorizontalFlip(), RandomCrop(28, 1)
    )
    for sample in range(30):
        flip = [pillow_chain.Draws(0, 0, sample, op).uniform() < 0.5 for op in (1, 3)]
        expected = ImageOps.mirror(image) if flip[0] else image
        expected = padded(expected, 5, 1, 2, 3, (50, 50, 50))
        expected = ImageOps.mirror(expected) if flip[1] else expected
        draws = pillow_chain.Draws(0, 0, sample, 4)
        expected = torchvision_crop(expected, (28, 28), (1, 1, 1, 1), draws)
        np.testing.assert_array_equal(chain(data, sample=sample), pixels(expected), err_msg=str(sample))


def test_resizes_after_padding_and_exif_before_it():
    exif = Image.Exif()
    exif[0x0112] = 6
    image = picture(50, 30)
    data = encoded(image, "PNG", exif=exif)
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    got = hwc(Pad((3, 4, 5, 6), fill=(10, 20, 30)), Resize((25, 19)))(data)
    expected = resized(padded(upright, 3, 4, 5, 6, (10, 20, 30)), (19, 25))
    np.testing.assert_array_equal(got, pixels(expected))


def test_shapes_are_known_beforehand_where_they_are_fixed(tmp_path):
    for i, size in enumerate(((40, 30), (10, 50), (33, 33))):
        write(tmp_path / f"{i}.png", encoded(picture(*size), "PNG"))
    for ops, shape in (
        ([RandomCrop(16)], (3, 3, 16, 16)),
        ([CenterCrop(16), Pad((1, 2, 3, 4))], (3, 3, 22, 20)),
        ([Resize((8, 8)), Pad(size=(12, 4))], (3, 3, 12, 8)),
    ):
        with leat.Loader(tmp_path, global_batch_size=3, shuffle=True, ops=[DecodeImage(), *ops]) as loader:
            assert next(iter(loader))["image"].shape == shape
    with leat.Loader(tmp_path, global_batch_size=3, shuffle=True, ops=[DecodeImage(), Pad(1)]) as loader:
        with pytest.raises(leat.InvalidArgument, match="its shape is"):
            next(iter(loader))


# --- ColorJitter --------------------------------------------------------------


def turned_hue(image: Image.Image, amount: float) -> Image.Image:
    """torchvision's adjust_hue of a Pillow image."""
    h, s, v = image.convert("HSV").split()
    turned = np.asarray(h) + np.int32(amount * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8), "L"), s, v)).convert("RGB")


CHANGES = (
    lambda image, x: ImageEnhance.Brightness(image).enhance(x),
    lambda image, x: ImageEnhance.Contrast(image).enhance(x),
    lambda image, x: ImageEnhance.Color(image).enhance(x),
    turned_hue,
)


def jittered(image: Image.Image, bounds, draws) -> Image.Image:
    order = [0, 1, 2, 3]
    for i in (3, 2, 1):
        j = draws.below(i + 1)
        order[i], order[j] = order[j], order[i]
    amounts = [draws.uniform(*b) for b in bounds]
    for kind in order:
        if bounds[kind] != ((0, 0) if kind == 3 else (1, 1)):
            image = CHANGES[kind](image, amounts[kind])
    return image


def all_colours() -> Image.Image:
    """Every 5th value of each channel, and random ones: 200,000 pixels."""
    grid = np.stack(np.meshgrid(*[np.arange(0, 256, 5)] * 3), axis=-1).reshape(-1, 3)
    rng = np.random.default_rng(3)
    rest = rng.integers(0, 256, (200_000 - len(grid), 3))
    return Image.fromarray(np.concatenate([grid, rest]).reshape(400, 500, 3).astype(np.uint8))


@pytest.mark.parametrize("kind", range(4))
def test_each_change_is_pillows(kind):
    image = all_colours()
    data = encoded(image, "PNG")
    amounts = (0.0, 0.3, 0.999, 1.001, 1.7, 5.0) if kind < 3 else (-0.5, -0.1, 0.004, 0.03, 0.25, 0.5)
    for amount in amounts:
        bounds = [(1, 1), (1, 1), (1, 1), (0, 0)]
        bounds[kind] = (amount, amount)
        got = hwc(ColorJitter(*bounds))(data).astype(int)
        np.testing.assert_array_equal(got, pixels(CHANGES[kind](image, amount)), err_msg=str(amount))


def test_jitter_is_torchvisions_of_the_documented_draws():
    image = picture(60, 50)
    data = encoded(image, "PNG")
    chain = hwc(ColorJitter(0.4, 0.4, 0.4, 0.1))
    bounds = [(0.6, 1.4)] * 3 + [(-0.1, 0.1)]
    for sample in range(60):
        expected = jittered(image, bounds, pillow_chain.Draws(7, 1, sample, 1))
        got = chain(data, seed=7, epoch=1, sample=sample).astype(int)
        np.testing.assert_array_equal(got, pixels(expected), err_msg=str(sample))


def test_a_factor_never_goes_below_nothing():
    image = picture(20, 20)
    data = encoded(image, "PNG")
    for sample in range(20):
        draws = pillow_chain.Draws(0, 0, sample, 1)
        expected = jittered(image, [(0, 3.0), (1, 1), (1, 1), (0, 0)], draws)
        got = hwc(ColorJitter(2))(data, sample=sample)
        np.testing.assert_array_equal(got, pixels(expected))


def test_grey_has_brightness_and_contrast_alone():
    image = picture(40, 30, "L")
    data = encoded(image, "PNG")
    got = hwc(ColorJitter((1.5, 1.5)), mode="L")(data)
    np.testing.assert_array_equal(got, pixels(CHANGES[0](image, 1.5)))
    got = hwc(ColorJitter(0, (0.5, 0.5)), mode="L")(data)
    np.testing.assert_array_equal(got, pixels(CHANGES[1](image, 0.5)))
    got = hwc(ColorJitter(0, 0, (2, 2), (0.3, 0.3)), mode="L")(data)
    np.testing.assert_array_equal(got, pixels(image))


def test_the_mean_is_of_the_picture_at_that_place():
    """After a crop of it; and of all of it where a crop follows."""
    image = picture(90, 70)
    data = encoded(image, "PNG")
    contrast = ColorJitter(0, (1.8, 1.8))
    part = image.crop((29, 19, 61, 51))
    np.testing.assert_array_equal(
        hwc(CenterCrop(32), contrast)(data), pixels(CHANGES[1](part, 1.8))
    )
    np.testing.assert_array_equal(
        hwc(contrast, CenterCrop(32))(data),
        pixels(CHANGES[1](image, 1.8).crop((29, 19, 61, 51))),
    )


def test_a_usual_training_chain():
    image = picture(210, 160)
    data = encoded(image, "PNG")
    chain = Chain(
        [DecodeImage(), RandomResizedCrop(48), RandomHorizontalFlip(), ColorJitter(0.4, 0.4, 0.4, 0.1),
         RandomCrop(40, padding=2), Resize((32, 36)), Normalize(0.5, 0.25)]
    )  # fmt: skip
    bounds = [(0.6, 1.4)] * 3 + [(-0.1, 0.1)]
    for sample in range(25):
        draws = [pillow_chain.Draws(3, 4, sample, op) for op in range(6)]
        x, y, w, h = pillow_chain.draw_crop(210, 160, draws[1])
        expected = resized(image.crop((x, y, x + w, y + h)), (48, 48))
        if draws[2].uniform() < 0.5:
            expected = ImageOps.mirror(expected)
        expected = jittered(expected, bounds, draws[3])
        expected = torchvision_crop(expected, (40, 40), (2, 2, 2, 2), draws[4])
        expected = resized(expected, (36, 32))
        floats = (pixels(expected).transpose(2, 0, 1) / 255 - 0.5) / 0.25
        got = chain(data, seed=3, epoch=4, sample=sample)
        np.testing.assert_allclose(got, floats, rtol=0, atol=2e-6, err_msg=str(sample))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomCrop(0), "size=0 must be"),
        (lambda: RandomCrop(8, padding=-1), "padding=-1 must be 1 or 2 or 4 numbers"),
        (lambda: Pad((1, 2, 3)), "padding"),
        (lambda: Pad(1, size=8), "cannot both"),
        (lambda: Pad(1, fill=256), "fill=256"),
        (lambda: ColorJitter(-0.1), "brightness=-0.1"),
        (lambda: ColorJitter(hue=0.6), "hue=0.6"),
        (lambda: ColorJitter(hue=(-0.6, 0)), "hue="),
        (lambda: ColorJitter(contrast=(2, 1)), "contrast="),
        (lambda: Chain([DecodeImage(), Normalize("imagenet"), ColorJitter(1)]), "before"),
    ],
)
def test_what_makes_no_sense_is_refused_early(make, message):
    with pytest.raises(errors.InvalidArgument, match=message):
        make()


# --- WebP ---------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"quality": 30}, {"quality": 90}, {"lossless": True}])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_webp_is_pillows(options, mode):
    for size in ((64, 48), (33, 17), (1, 1), (2, 301)):
        image = picture(*size, "RGB")
        if mode == "RGBA":
            image.putalpha(picture(*size, "L", seed=2))
        data = encoded(image, "WEBP", **options)
        decoded = Image.open(io.BytesIO(data)).convert("RGB")
        if mode == "L":
            decoded = decoded.convert("L")
        got = hwc(mode="L" if mode == "L" else "RGB")(data)
        difference = np.abs(got.astype(int) - pixels(decoded))
        assert difference.max() <= 2 and difference.mean() < 0.05


def test_a_crop_of_a_webp_is_cut_from_the_whole():
    for options in ({"quality": 50}, {"lossless": True}):
        data = encoded(picture(111, 77), "WEBP", **options)
        whole = hwc()(data)
        chain = hwc(RandomCrop((30, 41)))
        for sample in range(20):
            draws = pillow_chain.Draws(0, 0, sample, 1)
            y = draws.below(77 - 30 + 1)
            x = draws.below(111 - 41 + 1)
            np.testing.assert_array_equal(
                chain(data, sample=sample), whole[y:y + 30, x:x + 41]
            )


def test_webp_of_photographs_resized_is_close_to_pillows():
    for image in photographs():
        data = encoded(image, "WEBP", quality=85)
        expected = resized(Image.open(io.BytesIO(data)).convert("RGB"), (100, 80))
        difference = np.abs(hwc(Resize((80, 100)))(data).astype(int) - pixels(expected))
        assert difference.max() <= 2


@pytest.mark.parametrize("orientation", range(1, 9))
def test_webp_is_turned_upright(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(picture(40, 30), "WEBP", lossless=True, exif=exif)
    image = Image.open(io.BytesIO(data))
    np.testing.assert_array_equal(hwc()(data), pixels(ImageOps.exif_transpose(image)))
    np.testing.assert_array_equal(hwc(exif_orientation=False)(data), pixels(image))


@pytest.mark.parametrize("options", [{"lossless": True}, {"quality": 60}], ids=["lossless", "lossy"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_of_an_animated_webp_the_first_picture_as_in_pillow(mode, options):
    frames = [picture(41, 30, seed=seed) for seed in (1, 2, 3)]
    if mode == "RGBA":
        for frame in frames:
            frame.putalpha(picture(41, 30, "L", seed=4))
    data = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:], **options)
    decoded = Image.open(io.BytesIO(data))
    assert decoded.n_frames == 3

    difference = np.abs(hwc()(data).astype(int) - pixels(decoded.convert("RGB")))

    assert difference.max() <= 2 and difference.mean() < 0.05


def test_webp_that_is_cut_or_too_large():
    data = encoded(picture(200, 150), "WEBP")
    for size in (4, 12, 15, 30, len(data) // 2, len(data) - 1):
        with pytest.raises(errors.Corrupt):
            hwc()(data[:size])
    with pytest.raises(errors.Corrupt, match="200 x 150 pixels, more than the limit of 29999"):
        hwc(max_pixels=29_999)(data)


def test_webp_comes_through_a_loader_whatever_it_is_called(tmp_path):
    image = picture(20, 16)
    for i, (name, kind) in enumerate((("a.webp", "WEBP"), ("b.jpg", "WEBP"), ("c.webp", "PNG"))):
        write(tmp_path / name, encoded(image, kind, **({"lossless": True} if kind == "WEBP" else {})))
    with leat.Loader(tmp_path, global_batch_size=3, shuffle=True, ops=[DecodeImage()]) as loader:
        (batch,) = loader
    for row in batch["image"]:
        np.testing.assert_array_equal(row, pixels(image).transpose(2, 0, 1))


def test_amounts_of_random_ops_are_those_of_any_thread(tmp_path):
    for i in range(40):
        write(tmp_path / f"{i:02}.png", encoded(picture(30, 20, seed=i), "PNG"))
    ops = [DecodeImage(), RandomCrop(16, 3), ColorJitter(0.5, 0.5, 0.5, 0.2)]
    hashes = set()
    for threads, batch in ((1, 4), (3, 7)):
        with leat.Loader(tmp_path, global_batch_size=batch, shuffle=True, ops=ops, threads=threads,
                         drop_last=False, seed=random.Random(1).randint(0, 99)) as loader:  # fmt: skip
            for _ in loader:
                pass
            hashes.add(loader.stats()[0]["content_hash"])
    assert len(hashes) == 1


# --- Grayscale ----------------------------------------------------------------


@pytest.mark.parametrize("before", [[], [Grayscale(1)], [Resize((9, 14))]])
def test_three_equal_planes_of_one(before):
    image = picture(31, 22, "L")
    data = encoded(image, "PNG")
    plane = hwc(*before, mode="L")(data)
    three = np.repeat(plane, 3, axis=2)

    np.testing.assert_array_equal(hwc(*before, Grayscale(3), mode="L")(data), three)
    # Ops behind it work on three channels.
    mirrored = Chain([DecodeImage(mode="L"), *before, Grayscale(3), RandomHorizontalFlip(1)])(data)
    np.testing.assert_array_equal(mirrored, three[:, ::-1].transpose(2, 0, 1))
    bordered = hwc(*before, Grayscale(3), Pad(1, fill=(1, 2, 3)), mode="L")(data)
    assert bordered[0, 0].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(bordered[1:-1, 1:-1], three)
    floats = hwc(*before, Grayscale(3), Normalize((0.1, 0.2, 0.3), 0.5), mode="L")(data)
    np.testing.assert_allclose(floats, (three.astype(np.float32) / 255 - (0.1, 0.2, 0.3)) / 0.5, atol=1e-6)


def test_three_equal_planes_of_colours_that_were_one():
    image = picture(31, 22)
    data = encoded(image, "PNG")
    three = np.repeat(np.asarray(image.convert("L"))[..., None], 3, axis=2)
    np.testing.assert_array_equal(hwc(Grayscale(1), Grayscale(3))(data), three)
    crops = Chain([DecodeImage(mode="L"), Grayscale(3), FiveCrop((8, 8))])(encoded(image.convert("L"), "PNG"))
    np.testing.assert_array_equal(crops[0], three[:8, :8].transpose(2, 0, 1))
    # As many channels as there are.
    assert Chain([DecodeImage(mode="L"), RandomGrayscale(1)])(encoded(image.convert("L"), "PNG")).shape == (1, 22, 31)
    # Pixels that are there already.
    grey = np.asarray(image.convert("L"))[..., None].copy()
    np.testing.assert_array_equal(hwc(Grayscale(3), mode="L")(grey), three)
