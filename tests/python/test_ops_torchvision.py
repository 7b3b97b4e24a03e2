"""Each op against torchvision v2, at 200 drawn parameters, and how the draws are spread.

If torchvision's backends differ, Pillow's is meant: torchvision gets Pillow images.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image

import leat
from leat.ops import (
    AugMix,
    AutoAugment,
    Chain,
    ColorJitter,
    DecodeImage,
    FiveCrop,
    GaussianBlur,
    Grayscale,
    Letterbox,
    Normalize,
    RandAugment,
    RandomAdjustSharpness,
    RandomAffine,
    RandomAutocontrast,
    RandomCrop,
    RandomEqualize,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomInvert,
    RandomPosterize,
    RandomResizedCrop,
    RandomRotation,
    RandomSolarize,
    RandomVerticalFlip,
    Resize,
    TenCrop,
    TrivialAugmentWide,
)
from test_ops import encoded, hwc, picture
from torchvision_oracle import F, apply_drawn, differences, torch, v2

DRAWS = 200
SIZES = ((61, 44), (32, 57), (48, 48))
MODES = {name: getattr(v2.InterpolationMode, name.upper()) for name in ("nearest", "bilinear", "bicubic")}


def cases(mode: str = "RGB"):
    """A picture for each of the draws."""
    pictures = [picture(*size, mode, seed) for seed, size in enumerate(SIZES)]
    files = [encoded(image, "PNG") for image in pictures]
    for sample in range(DRAWS):
        yield sample, pictures[sample % len(SIZES)], files[sample % len(SIZES)]


def compare(ops, most: int = 0, mode: str = "RGB", share: float = 0.0, **options) -> list[dict]:
    """Every picture through the ops and, at what they drew, through torchvision: no byte
    more than `most` levels away, and at most a share of them at all. Returns the draws."""
    chain = hwc(*ops, mode=mode)
    all_drawn = []
    different = total = 0
    for sample, image, data in cases(mode):
        drawn = chain.drawn(data, sample=sample)
        expected = image
        for one in drawn:
            expected = apply_drawn(expected, one, **options)
        distance = differences(chain(data, sample=sample), expected)
        assert distance.max() <= most, (sample, drawn)
        different += np.count_nonzero(distance)
        total += distance.size
        all_drawn += drawn
    assert most == 0 or different <= share * total, different / total
    return all_drawn


def spread(values, low: float, high: float) -> None:
    """Values that are uniform between two bounds: mean, ends and quarters."""
    values = np.asarray(values)
    assert low <= values.min() and values.max() <= high
    width = high - low
    error = width / math.sqrt(12 * len(values))
    assert abs(values.mean() - (low + high) / 2) < 5 * error
    quarters = np.histogram(values, 4, (low, high))[0] / len(values)
    assert abs(quarters - 0.25).max() < 5 * math.sqrt(0.25 * 0.75 / len(values))


def share_is(count: int, of: int, p: float) -> None:
    assert abs(count - of * p) < 5 * math.sqrt(of * p * (1 - p)) + 1


# --- What moves pixels --------------------------------------------------------


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_flips_are_torchvisions(mode):
    drawn = compare([RandomVerticalFlip(), RandomHorizontalFlip()], mode=mode)
    for name in ("vertical_flip", "horizontal_flip"):
        share_is(sum(one["name"] == name for one in drawn), DRAWS, 0.5)


def test_vertical_flips_among_crops_and_pads():
    ops = [RandomVerticalFlip(), RandomCrop((25, 30)), RandomHorizontalFlip(), RandomVerticalFlip(0.7)]
    assert {one["name"] for one in compare(ops)} == {"vertical_flip", "horizontal_flip", "crop"}
    chain = hwc(RandomVerticalFlip(1), leat.ops.Pad((1, 2, 3, 4), fill=9), RandomVerticalFlip(1))
    image = picture(20, 12)
    expected = F.vertical_flip(F.pad(F.vertical_flip(image), [1, 2, 3, 4], fill=9))
    assert not differences(chain(encoded(image, "PNG")), expected).any()


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_rotations_are_torchvisions(interpolation, mode):
    fill = (7, 90, 200) if mode == "RGB" else 7
    drawn = compare(
        [RandomRotation(180, interpolation, fill=fill)], mode=mode, interpolation=MODES[interpolation], fill=fill
    )
    spread([one["angle"] for one in drawn], -180, 180)


@pytest.mark.parametrize("degrees", [0, 90, 180, 270, -90, 45])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_quarter_turns_are_exact(degrees, interpolation):
    chain = hwc(RandomRotation((degrees, degrees), interpolation))
    image = picture(48, 48)
    expected = F.rotate(image, degrees, MODES[interpolation])
    assert not differences(chain(encoded(image, "PNG")), expected).any()


def test_rotations_around_a_point_and_expanded():
    compare([RandomRotation((-40, 70), center=(3, 50.5))], center=[3, 50.5])
    # Its size depends on the angle: a crop from the middle of it does not.
    chain = hwc(RandomRotation(90, "bilinear", expand=True, fill=40), leat.ops.CenterCrop(70))
    for sample, image, data in cases():
        angle = chain.drawn(data, sample=sample)[0]["angle"]
        turned = F.rotate(image, angle, MODES["bilinear"], expand=True, fill=40)
        expected = F.center_crop(turned, [70, 70])
        assert not differences(chain(data, sample=sample), expected).any(), angle
    for degrees in (0, 90, 180, 270):
        for size in SIZES:
            image = picture(*size)
            turned = F.rotate(image, degrees, expand=True)
            chain = hwc(RandomRotation((degrees, degrees), expand=True), leat.ops.CenterCrop((turned.height, turned.width)))
            assert not differences(chain(encoded(image, "PNG")), turned).any()
    with pytest.raises(leat.InvalidArgument, match="random sizes: put a resize or a crop"):
        hwc(RandomRotation(90, expand=True), RandomHorizontalFlip())


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_affines_are_torchvisions(interpolation, mode):
    op = RandomAffine(
        (-30, 60), translate=(0.2, 0.4), scale=(0.5, 1.8), shear=(-20, 10, 5, 30),
        interpolation=interpolation, fill=77,
    )
    drawn = compare([op], mode=mode, interpolation=MODES[interpolation], fill=77)
    spread([one["angle"] for one in drawn], -30, 60)
    spread([one["scale"] for one in drawn], 0.5, 1.8)
    spread([one["shear"][0] for one in drawn], -20, 10)
    spread([one["shear"][1] for one in drawn], 5, 30)
    # The pictures have one size.
    moved = [one["translate"] for one in drawn[::3]]
    assert all(x == int(x) and y == int(y) for x, y in moved)
    spread([x for x, _ in moved], -12.7, 12.7)
    spread([y for _, y in moved], -18.1, 18.1)


def test_affines_of_one_kind_draw_nothing_else():
    image = encoded(picture(40, 30), "PNG")
    drawn = hwc(RandomAffine(0, shear=5)).drawn(image)
    assert drawn[0]["angle"] == 0 and drawn[0]["scale"] == 1 and drawn[0]["translate"] == [0, 0]
    assert drawn[0]["shear"][1] == 0 and 0 < abs(drawn[0]["shear"][0]) <= 5


def test_letterbox_keeps_proportions():
    for size, to in (((60, 30), (40, 40)), ((31, 77), (40, 50)), ((10, 11), (64, 32))):
        image = picture(*size)
        got = hwc(Letterbox(to, fill=(1, 2, 3)))(encoded(image, "PNG"))
        scale = min(to[1] / size[0], to[0] / size[1])
        inner = max(1, round(size[1] * scale)), max(1, round(size[0] * scale))
        fitted = F.resize(image, list(inner), antialias=True)
        more = to[1] - inner[1], to[0] - inner[0]
        sides = [more[0] // 2, more[1] // 2, more[0] - more[0] // 2, more[1] - more[1] // 2]
        assert not differences(got, F.pad(fitted, sides, fill=(1, 2, 3))).any()


@pytest.mark.parametrize("size", [(40, 30), (31, 31)])
def test_five_and_ten_crops_are_torchvisions(size):
    image = picture(*size)
    data = encoded(image, "PNG")

    def arrays(images):
        return np.stack([np.asarray(one) for one in images])

    five, ten = F.five_crop(image, [17, 24]), F.ten_crop(image, [17, 24])
    upside_down = F.ten_crop(image, [17, 24], vertical_flip=True)
    np.testing.assert_array_equal(hwc(FiveCrop((17, 24)))(data), arrays(five))
    np.testing.assert_array_equal(hwc(TenCrop((17, 24)))(data), arrays(ten))
    np.testing.assert_array_equal(hwc(TenCrop((17, 24), True))(data), arrays(upside_down))
    mirrored = F.five_crop(F.hflip(image), [17, 24])
    np.testing.assert_array_equal(hwc(RandomHorizontalFlip(1), FiveCrop((17, 24)))(data), arrays(mirrored))
    floats = Chain([DecodeImage(), Grayscale(), FiveCrop((17, 24)), Normalize(0.5, 0.25)])(data)
    grey = arrays(F.five_crop(F.rgb_to_grayscale(image), [17, 24]))[:, None]
    np.testing.assert_allclose(floats, (grey / 255 - 0.5) / 0.25, atol=1e-5)


def test_many_crops_that_cannot_be():
    data = encoded(picture(20, 30), "PNG")
    with pytest.raises(leat.InvalidArgument, match="24 x 24 pixels do not fit into a picture of 20 x 30"):
        hwc(FiveCrop(24))(data)
    with pytest.raises(leat.InvalidArgument, match="only normalize and cast can"):
        hwc(FiveCrop(8), RandomHorizontalFlip())
    with pytest.raises(leat.InvalidArgument, match="works on bytes: put it before normalize"):
        hwc(Normalize(0.5, 0.5), TenCrop(8))


def test_many_crops_in_batches_with_a_cache_and_without(tmp_path):
    for i in range(4):
        (tmp_path / f"{i}.png").write_bytes(encoded(picture(30 + i, 26), "PNG"))
    ops = [DecodeImage(), Resize(24), FiveCrop(16), Normalize(0.5, 0.5)]
    batches = []
    for cache in (None, leat.Cache(ram="64MiB", form="decoded")):
        with leat.Loader(tmp_path, global_batch_size=4, shuffle=False, ops=ops, cache=cache, output="numpy") as loader:
            batches += [next(iter(loader))["image"].copy() for _ in range(2)]
    assert batches[0].shape == (4, 5, 3, 16, 16)
    for batch in batches[1:]:
        np.testing.assert_array_equal(batch, batches[0])


def test_resized_crops_are_torchvisions():
    chain = hwc(RandomResizedCrop((24, 30)), exact=True)
    for sample, image, data in cases():
        part = chain.drawn(data, sample=sample)[0]
        where = [int(part[key]) for key in ("top", "left", "height", "width")]
        expected = F.resized_crop(image, *where, size=[24, 30], antialias=True)
        assert differences(chain(data, sample=sample), expected).max() <= 1


# --- What changes colours -----------------------------------------------------


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize(
    "op",
    [
        RandomPosterize(3), RandomSolarize(100.5), RandomEqualize(), RandomAutocontrast(),
        RandomInvert(), RandomAdjustSharpness(0), RandomAdjustSharpness(2.7), RandomAdjustSharpness(0.4),
    ],
    ids=repr,
)  # fmt: skip
def test_changes_of_colour_are_torchvisions(op, mode):
    share_is(len(compare([op], mode=mode)), DRAWS, 0.5)


def test_grey_is_torchvisions():
    share_is(len(compare([RandomGrayscale(0.3)])), DRAWS, 0.3)
    image = picture(40, 30)
    data = encoded(image, "PNG")
    assert not differences(hwc(Grayscale())(data), F.rgb_to_grayscale(image)).any()
    three = hwc(Grayscale(3))(data)
    assert not differences(three, F.rgb_to_grayscale(image, num_output_channels=3)).any()
    # One channel all the way: as floats, mirrored, in CHW.
    array = Chain([DecodeImage(), Grayscale(), RandomHorizontalFlip(1), Normalize(0.25, 0.5)])(data)
    expected = (np.asarray(image.convert("L"), np.float32)[None, :, ::-1] / 255 - 0.25) / 0.5
    assert array.shape == (1, 30, 40)
    np.testing.assert_allclose(array, expected, atol=1e-6)


def test_jitter_and_the_rest_in_one_chain():
    ops = [
        ColorJitter(0.4, 0.4, 0.4, 0.1), RandomAdjustSharpness(2), RandomEqualize(), RandomSolarize(128),
        RandomHorizontalFlip(), RandomAutocontrast(), RandomVerticalFlip(), RandomInvert(),
    ]  # fmt: skip
    assert len({one["name"] for one in compare(ops)}) == 11


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("kernel", [3, 9, (5, 23), (1, 7)])
def test_blurs_are_torchvisions(kernel, mode):
    size = list(kernel) if isinstance(kernel, tuple) else [kernel, kernel]
    drawn = compare([GaussianBlur(kernel, (0.3, 3))], most=1, share=0.4, mode=mode, kernel_size=size)
    spread([one["sigma"] for one in drawn], 0.3, 3)


def test_a_kernel_beyond_the_picture_raises():
    data = encoded(picture(40, 5), "PNG")
    hwc(GaussianBlur((79, 9)))(data)
    with pytest.raises(leat.InvalidArgument, match="a kernel of 3 x 11 pixels reaches beyond a picture of 40 x 5"):
        hwc(GaussianBlur((3, 11)))(data)


# --- RandomErasing ------------------------------------------------------------


def erased(image: Image.Image, drawn: list[dict], value) -> torch.Tensor:
    tensor = F.pil_to_tensor(image)
    for one in drawn:
        part = [int(one[key]) for key in ("top", "left", "height", "width")]
        tensor = F.erase(tensor, *part, v=torch.tensor(value)[:, None, None])
    return tensor


def test_erasing_of_bytes_is_torchvisions():
    chain = Chain([DecodeImage(), RandomErasing(value=(1, 2, 250))])
    count = 0
    for sample, image, data in cases():
        drawn = chain.drawn(data, sample=sample)
        count += len(drawn)
        np.testing.assert_array_equal(chain(data, sample=sample), erased(image, drawn, [1, 2, 250]).numpy())
    share_is(count, DRAWS, 0.5)


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_erasing_behind_normalize_puts_its_value_there(dtype, layout):
    plain = Chain([DecodeImage(layout=layout), Normalize(0.5, 0.25, dtype=dtype)])
    chain = Chain([DecodeImage(layout=layout), Normalize(0.5, 0.25, dtype=dtype), RandomErasing(1, value=(0.5, -2, 3))])
    for sample, _, data in list(cases())[:30]:
        expected = plain(data)
        planes = expected if layout == "CHW" else np.moveaxis(expected, 2, 0)
        for one in chain.drawn(data, sample=sample):
            top, left, height, width = (int(one[key]) for key in ("top", "left", "height", "width"))
            part = planes[:, top:top + height, left:left + width]
            part[:] = np.array([0.5, -2, 3])[:, None, None]
        np.testing.assert_array_equal(chain(data, sample=sample), expected)


def test_erasing_is_mirrored_by_what_comes_behind_it():
    data = encoded(picture(50, 40), "PNG")
    before = Chain([DecodeImage(), Normalize(0.5, 0.5), RandomErasing(1)])
    behind = Chain([DecodeImage(), Normalize(0.5, 0.5), RandomErasing(1), RandomHorizontalFlip(1), RandomVerticalFlip(1)])
    np.testing.assert_array_equal(behind(data), before(data)[:, ::-1, ::-1])


def test_erased_parts_are_spread_as_torchvisions():
    chain = hwc(RandomErasing(1, (0.1, 0.3), (0.5, 2)))
    data = encoded(picture(200, 160), "PNG")
    parts = [chain.drawn(data, sample=sample)[0] for sample in range(2000)]
    spread([one["height"] * one["width"] / 32000 for one in parts], 0.095, 0.305)
    spread([math.log(one["height"] / one["width"]) for one in parts], math.log(0.48), math.log(2.1))
    ours = np.array([[one["top"], one["left"]] for one in parts])
    torch.manual_seed(1)
    theirs = v2.RandomErasing(1, (0.1, 0.3), (0.5, 2))
    tensor = torch.zeros(3, 160, 200)
    their = [theirs.make_params([tensor]) for _ in range(2000)]
    for mine, name in zip(ours.T, "ij"):
        values = np.array([one[name] for one in their])
        error = math.sqrt(mine.var() / len(mine) + values.var() / len(values))
        assert abs(mine.mean() - values.mean()) < 5 * error


def test_noise_is_normal_and_of_bytes_is_refused():
    data = encoded(picture(200, 160), "PNG")
    chain = Chain([DecodeImage(), Normalize(0.5, 0.5), RandomErasing(1, (0.3, 0.33), (1, 1), "random")])
    one = chain.drawn(data)[0]
    top, left, height, width = (int(one[key]) for key in ("top", "left", "height", "width"))
    noise = chain(data)[:, top:top + height, left:left + width]
    assert noise.size > 25_000
    assert abs(noise.mean()) < 0.04 and abs(noise.std() - 1) < 0.03
    assert abs((np.abs(noise) < 1).mean() - 0.6827) < 0.02
    assert not np.array_equal(noise, chain(data, sample=1)[:, top:top + height, left:left + width])
    with pytest.raises(leat.InvalidArgument, match="put it behind normalize"):
        hwc(RandomErasing(value="random"))
    with pytest.raises(leat.InvalidArgument, match="put it before that"):
        hwc(leat.ops.Cast("float32"), RandomErasing(), Normalize(0.5, 0.5))


# --- RandAugment and its kin --------------------------------------------------


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize(
    "make",
    [
        lambda **style: TrivialAugmentWide(**style),
        lambda **style: AutoAugment("cifar10", **style),
        lambda **style: RandAugment(3, 14, **style),
        lambda **style: AutoAugment("imagenet", **style),
        lambda **style: AutoAugment("svhn", **style),
    ],
    ids=["trivial", "cifar10", "rand", "imagenet", "svhn"],
)
def test_augmentations_are_torchvisions(make, interpolation, mode):
    compare([make(interpolation=interpolation, fill=50)], mode=mode, interpolation=MODES[interpolation], fill=50)


def counted(op, samples: int = 3000) -> tuple[dict[str, list[float]], int]:
    chain = hwc(op)
    data = encoded(picture(331, 200), "PNG")
    magnitudes: dict[str, list[float]] = {}
    for sample in range(samples):
        for one in chain.drawn(data, sample=sample):
            magnitudes.setdefault(one["name"], []).append(one["magnitude"])
    return magnitudes, samples


def space_of(theirs, bins: int, name: str) -> list[float]:
    make, signed = theirs._AUGMENTATION_SPACE[name]
    values = make(bins, 200, 331)
    return [0.0] if values is None else [float(value) for value in values]


def test_rand_augment_draws_torchvisions_space():
    theirs = v2.RandAugment()
    magnitudes, samples = counted(RandAugment(2, 9))
    assert set(magnitudes) == set(theirs._AUGMENTATION_SPACE)
    for name, values in magnitudes.items():
        share_is(len(values), 2 * samples, 1 / 14)
        magnitude = space_of(theirs, 31, name)[9 if len(space_of(theirs, 31, name)) > 1 else 0]
        np.testing.assert_allclose(np.abs(values), magnitude, rtol=1e-6)
        if theirs._AUGMENTATION_SPACE[name][1]:
            share_is(sum(value < 0 for value in values), len(values), 0.5)


def test_trivial_augment_draws_torchvisions_space():
    theirs = v2.TrivialAugmentWide()
    magnitudes, samples = counted(TrivialAugmentWide(), 6000)
    assert set(magnitudes) == set(theirs._AUGMENTATION_SPACE)
    for name, values in magnitudes.items():
        share_is(len(values), samples, 1 / 14)
        space = np.unique(np.round(space_of(theirs, 31, name), 5))
        np.testing.assert_allclose(np.unique(np.round(np.abs(values), 5)), space, atol=2e-5)


@pytest.mark.parametrize("policy", ["imagenet", "cifar10", "svhn"])
def test_auto_augment_draws_torchvisions_policies(policy):
    theirs = v2.AutoAugment(v2.AutoAugmentPolicy(policy))
    magnitudes, samples = counted(AutoAugment(policy))
    expected: dict[str, float] = {}
    allowed: dict[str, set] = {}
    for pair in theirs._policies:
        for name, p, which in pair:
            expected[name] = expected.get(name, 0) + p / 25
            space = space_of(theirs, 10, name)
            allowed.setdefault(name, set()).add(round(space[which or 0], 4))
    for name, p in expected.items():
        values = magnitudes.get(name, [])
        assert abs(len(values) - samples * p) < 6 * math.sqrt(samples * p) + 1, name
        assert {round(abs(value), 4) for value in values} <= allowed[name]


def test_aug_mix_is_the_weighted_sum_of_its_chains():
    """At what was drawn, out of Pillow's parts: torchvision's AugMix works on tensors."""
    chain = hwc(AugMix(severity=6, interpolation="nearest"))
    depths = []
    for sample, image, data in cases():
        mix, *steps = chain.drawn(data, sample=sample)
        weights = np.ravel(mix["weights"])
        assert len(weights) == 3 and abs(mix["weight"] + weights.sum() - 1) < 1e-9
        expected = mix["weight"] * np.asarray(image, np.float64)
        for i, weight in enumerate(weights):
            own = [one for one in steps if one["chain"] == i]
            depths.append(len(own))
            made = image
            for one in own:
                made = apply_drawn(made, one, interpolation=MODES["nearest"])
            expected += weight * np.asarray(made, np.float64)
        distance = np.abs(chain(data, sample=sample) - np.floor(expected))
        assert distance.max() <= 1
    assert set(depths) == {1, 2, 3}


def test_aug_mix_draws_its_weights_from_beta_and_dirichlet():
    chain = hwc(AugMix(alpha=0.5, mixture_width=2))
    data = encoded(picture(20, 20), "PNG")
    first = [chain.drawn(data, sample=sample)[0] for sample in range(3000)]
    kept = np.array([one["weight"] for one in first])
    share = np.array([one["weights"][0] / (1 - one["weight"]) for one in first])
    for values in (kept, share):  # Beta(0.5, 0.5): mean 1/2, variance 1/8.
        assert abs(values.mean() - 0.5) < 5 * math.sqrt(0.125 / 3000)
        assert abs(values.var() - 0.125) < 0.01


# --- All of them --------------------------------------------------------------


def test_draws_depend_on_the_sample_alone_and_not_on_neighbours():
    """An op's draws stay the same when others stand before it."""
    data = encoded(picture(64, 64), "PNG")
    for op in (RandomRotation(30), RandAugment(), RandomErasing(1), GaussianBlur(5)):
        chain = hwc(Resize((64, 64)), op)
        other = hwc(RandomInvert(1), op)
        for sample in range(5):
            assert chain.drawn(data, 7, 2, sample) == [
                one for one in other.drawn(data, 7, 2, sample) if one["op"] == 2
            ]
            np.testing.assert_array_equal(chain(data, 7, 2, sample), chain(data, 7, 2, sample))


def test_a_loader_delivers_what_the_chain_makes(tmp_path):
    ops = [
        DecodeImage(), RandomVerticalFlip(), RandomAffine(20, (0.1, 0.1)), GaussianBlur(5), RandAugment(),
        Resize((32, 40)), Normalize(0.5, 0.5), RandomErasing(1),
    ]  # fmt: skip
    files = [encoded(picture(50 + i, 40), "PNG") for i in range(6)]
    for i, data in enumerate(files):
        (tmp_path / f"{i}.png").write_bytes(data)
    chain = Chain(ops)
    with leat.Loader(tmp_path, global_batch_size=6, shuffle=False, seed=3, ops=ops) as loader:
        batch = next(iter(loader))["image"]
    for i, data in enumerate(files):
        np.testing.assert_array_equal(batch[i], chain(data, seed=3, sample=i))


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_a_shear_out_of_all_measure_is_fill(interpolation):
    data = encoded(picture(40, 30), "PNG")
    steep = 90 - 1e-13
    made = hwc(RandomAffine(0, shear=(steep, steep), fill=7, interpolation=interpolation))(data)
    assert (made == 7).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomRotation(-3), "low <= high"),
        (lambda: RandomRotation(3, "lanczos"), "must be one of nearest, bilinear, bicubic"),
        (lambda: RandomAffine(3, (0, 2)), "from 0 to 1"),
        (lambda: RandomAffine(3, scale=(0, 2)), "1e-6 <= low"),
        (lambda: RandomAffine(10, scale=(1e-16, 1e-16)), "1e-6 <= low"),
        (lambda: hwc(RandomAffine(3, shear=90)), "between -90 and 90"),
        (lambda: GaussianBlur(4), "must be odd"),
        (lambda: GaussianBlur(3, 0), "above 0"),
        (lambda: RandomErasing(value="noise"), "must be one of random"),
        (lambda: RandomErasing(scale=(0.1, 2)), "must not exceed 1"),
        (lambda: RandomPosterize(9), "0 to 8"),
        (lambda: RandAugment(magnitude=31), "from 0 to 30"),
        (lambda: AutoAugment("mnist"), "imagenet, cifar10, svhn"),
        (lambda: Grayscale(2), "1 or 3"),
        (lambda: AugMix(severity=0), "from 1 to 10"),
    ],
)
def test_bad_parameters_raise(make, message):
    with pytest.raises(leat.InvalidArgument, match=message):
        make()
