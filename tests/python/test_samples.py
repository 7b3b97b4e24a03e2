"""Ops see a sample: an op that moves the pixels of one of its fields moves those
of all."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image

import leat
from leat.ops import (
    CenterCrop,
    ColorJitter,
    DecodeImage,
    DecodeMask,
    Normalize,
    Pad,
    ParseBoxes,
    ParseInt,
    ParseKeypoints,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
)
from small_datasets import encoded, pixels, tar_of, write

N = 24
SIZES = ((40, 30), (33, 47), (29, 29))  # Width and height.


def size_of(number: int) -> tuple[int, int]:
    return SIZES[number % len(SIZES)]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Shards of an image and its equal: image.png, twin.png."""
    folder = tmp_path_factory.mktemp("pairs")
    for shard in range(2):
        members = []
        for number in range(shard * N // 2, (shard + 1) * N // 2):
            data = encoded(pixels(number, *size_of(number)))
            members += [(f"{number:03}.image", data), (f"{number:03}.twin", data),
                        (f"{number:03}.cls", str(number).encode())]  # fmt: skip
        write(folder / f"{shard}.tar", tar_of(members))
    return str(folder)


def load(url: str, ops, **options):
    always = {"global_batch_size": 4, "train": True, "seed": 5, "batch": "dict", "output": "numpy"}
    return leat.Loader(url, **{**always, "ops": ops, **options})


def samples_of(loader, epochs: int = 1) -> list[dict]:
    """Every sample of this many epochs, as a dict of arrays."""
    with loader:
        return [
            {name: values[row] for name, values in batch.items()}
            for _ in range(epochs) for batch in loader for row in range(len(next(iter(batch.values()))))
        ]  # fmt: skip


BOTH = (DecodeImage("image"), DecodeImage("twin", to="twin"), ParseInt("cls"))


def drawn_chain(rng: np.random.Generator) -> list:
    """Ops that move pixels, drawn; the last one makes all of one size."""
    side = lambda: int(rng.integers(9, 50))  # noqa: E731
    kinds = [
        lambda: Resize(side()),
        lambda: Resize((side(), side())),
        lambda: CenterCrop((side(), side())),
        lambda: RandomCrop((side(), side()), padding=int(rng.integers(0, 5)), fill=255),
        lambda: RandomResizedCrop((side(), side()), scale=(0.2, 1)),
        lambda: RandomHorizontalFlip(),
        lambda: Pad(int(rng.integers(0, 4)), fill=7),
        lambda: ColorJitter(0.3, 0.3, 0.3, 0.1),
    ]
    chain = [kinds[rng.integers(len(kinds))]() for _ in range(rng.integers(1, 6))]
    return [*chain, RandomCrop(8)]


@pytest.mark.parametrize("seed", range(12))
def test_equal_images_stay_equal_through_every_chain(pairs, seed):
    chain = drawn_chain(np.random.default_rng(seed))
    seen = samples_of(load(pairs, [*BOTH, *chain], seed=seed, epochs=2), epochs=2)
    assert len(seen) == 2 * N
    for sample in seen:
        np.testing.assert_array_equal(sample["image"], sample["twin"], err_msg=str(chain))


def test_one_image_draws_what_it_draws_alone(pairs):
    chain = [RandomResizedCrop(16), RandomHorizontalFlip(), ColorJitter(0.4), Normalize("imagenet")]
    # Ops are named by their place in the list: chains of one length.
    alone = samples_of(load(pairs, [DecodeImage("image"), ParseInt("cls"), *chain]))
    both = samples_of(load(pairs, [DecodeImage("image"), DecodeImage("twin", to="twin"), *chain]))
    for one, other in zip(alone, both, strict=True):
        np.testing.assert_array_equal(one["image"], other["image"])


def test_two_ranks_and_a_resumed_run_see_the_same(pairs):
    ops = [*BOTH, RandomResizedCrop(12), RandomHorizontalFlip()]
    whole = {int(s["cls"]): s["image"] for s in samples_of(load(pairs, ops))}
    for rank in range(2):
        seen = samples_of(load(pairs, ops, rank=rank, world_size=2))
        for sample in seen:
            np.testing.assert_array_equal(sample["twin"], whole[int(sample["cls"])])
    with load(pairs, ops) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with load(pairs, ops) as loader:
        loader.load_state_dict(state)
        for batch in loader:
            for row, number in enumerate(batch["cls"]):
                np.testing.assert_array_equal(batch["twin"][row], whole[int(number)])
                np.testing.assert_array_equal(batch["image"][row], whole[int(number)])


def test_a_cache_of_decoded_pictures_changes_nothing(pairs):
    ops = [*BOTH, Resize((24, 20)), CenterCrop(18), RandomCrop(12), RandomHorizontalFlip()]
    plain = samples_of(load(pairs, ops, epochs=3), epochs=3)
    cached = samples_of(load(pairs, ops, epochs=3, cache=leat.Cache(ram="16MiB", form="decoded")), epochs=3)
    for one, other in zip(plain, cached, strict=True):
        for name in ("image", "twin", "cls"):
            np.testing.assert_array_equal(one[name], other[name])
        np.testing.assert_array_equal(other["image"], other["twin"])


def test_unequal_sizes_are_a_bad_sample_that_names_both(tmp_path):
    members = []
    for number in range(4):
        width = 20 if number == 2 else 24
        members += [(f"{number}.image", encoded(pixels(number, 24, 16))),
                    (f"{number}.twin", encoded(pixels(number, width, 16)))]  # fmt: skip
    write(tmp_path / "0.tar", tar_of(members))
    ops = [DecodeImage("image"), DecodeImage("twin", to="twin"), RandomCrop(8)]
    with load(str(tmp_path), ops) as loader, pytest.raises(leat.Corrupt) as raised:
        list(loader)
    message = str(raised.value)
    for part in ('"2"', '"image" has 24 x 16', '"twin" 20 x 16', "random_crop (op 2)"):
        assert part in message
    # A resize to one size before it makes them equal.
    with load(str(tmp_path), [*ops[:2], Resize((12, 12)), RandomCrop(8)]) as loader:
        assert len(list(loader)) == 1
    with load(str(tmp_path), ops, on_error="substitute") as loader:
        (batch,) = loader
        np.testing.assert_array_equal(batch["image"], batch["twin"])


@pytest.mark.parametrize("ops", [
    # The lines that cropped apart without a word.
    [DecodeImage("image"), RandomCrop(8), DecodeImage("twin", to="mask", mode="L"), RandomCrop(8)],
    [DecodeImage("image"), RandomCrop(8), DecodeImage("twin", to="mask", mode="L")],
    [*BOTH, RandomCrop(8, field="image"), RandomCrop(8, field="twin")],
    [*BOTH, RandomHorizontalFlip(field="twin")],
])  # fmt: skip
def test_what_would_be_drawn_apart_raises(pairs, ops):
    with pytest.raises(leat.InvalidArgument, match="decode all fields first"):
        load(pairs, ops)


@pytest.mark.parametrize("make", [
    lambda **of: ColorJitter(0.5, **of),
    lambda **of: leat.ops.GaussianBlur(3, **of),
    lambda **of: leat.ops.RandomGrayscale(**of),
    lambda **of: leat.ops.RandomErasing(**of),
    lambda **of: leat.ops.RandomSolarize(128, **of),
    lambda **of: leat.ops.RandomEqualize(**of),
])  # fmt: skip
def test_one_random_op_for_each_of_two_images_raises(pairs, make):
    """Their pixels would be drawn apart. Once for both, or for one alone, it is what was meant."""
    apart = [make(field="image"), make(field="twin")]
    with pytest.raises(leat.InvalidArgument, match=r"draws for 'image'.*for 'twin'.*once behind them, without field="):
        load(pairs, [*BOTH, *apart])
    with pytest.raises(leat.InvalidArgument, match="independent=True"):
        load(pairs, [BOTH[0], apart[0], BOTH[1], apart[1]])
    for told in ([make()], apart[:1], [make(field="image", independent=True), make(field="twin", independent=True)]):
        load(pairs, [*BOTH, *told]).close()


def mirror(image, rng):
    return image[:, ::-1] if rng.random() < 0.5 else image


@pytest.mark.parametrize(("made", "is_told"), [
    (lambda: leat.ops.Python(mirror, field="image"), False),
    (lambda: leat.ops.Python(lambda image: image, field="image", global_rng=True), False),
    (lambda: leat.ops.Python(mirror, field="image", independent=True), True),
    (lambda: leat.ops.Python(lambda image: image, field="image"), True),
])
def test_functions_that_draw_for_one_field_each_raise(pairs, made, is_told):
    ops = [DecodeImage("image"), DecodeImage("twin", to="twin"), made(), leat.ops.Python(mirror, field="twin")]
    if is_told:
        load(pairs, ops).close()
        return
    with pytest.raises(leat.InvalidArgument, match=r'python \(op 2\) draws for .image.*fields=\("image", "twin"\)'):
        load(pairs, ops)


def test_functions_of_batches_that_draw_for_one_field_each_raise(pairs):
    def ops(**said):
        return [DecodeImage("image"), DecodeImage("twin", to="twin"),
                leat.ops.Python(mirror, per="batch", field="image", **said), leat.ops.Python(mirror, per="batch", field="twin")]

    with pytest.raises(leat.InvalidArgument, match="draws for 'image', and .* for 'twin' of the same samples.*leave out field="):
        load(pairs, ops())
    load(pairs, ops(independent=True)).close()
    load(pairs, [*ops()[:3], leat.ops.Python(mirror, per="batch", field="cls")]).close()


@pytest.mark.parametrize("mix", [
    leat.ops.MixUp(num_classes=30), leat.ops.RandomChoice([leat.ops.CutMix(num_classes=30)]),
])
@pytest.mark.parametrize("follower", [DecodeMask("twin"), ParseBoxes("cls")])
def test_pictures_are_not_mixed_beside_what_would_stay(pairs, mix, follower):
    with pytest.raises(leat.InvalidArgument, match="leave one of the two out"):
        load(pairs, [DecodeImage("image"), follower, mix])


def test_independent_ops_draw_apart(pairs):
    views = [DecodeImage("image", to="one"), DecodeImage("image", to="two"), ParseInt("cls")]
    apart = samples_of(load(pairs, [*views, RandomResizedCrop(12, independent=True)], fields=["one", "two", "cls"]))
    assert not any(np.array_equal(sample["one"], sample["two"]) for sample in apart)
    alike = samples_of(load(pairs, [*views, RandomResizedCrop(12)], fields=["one", "two", "cls"]))
    assert all(np.array_equal(sample["one"], sample["two"]) for sample in alike)


# Masks.


def palette_png(labels: np.ndarray, bits: int = 8) -> bytes:
    """As Pascal VOC's: indices into colours that say nothing of them."""
    picture = Image.fromarray(labels, "P")
    picture.putpalette(np.random.default_rng(3).integers(0, 256, 768, dtype=np.uint8).tobytes())
    out = io.BytesIO()
    picture.save(out, "PNG", bits=bits)
    return out.getvalue()


def labels_of(number: int, width: int, height: int, classes: int = 21) -> np.ndarray:
    return np.random.default_rng(number + 100).integers(0, classes, (height, width), dtype=np.uint8)


@pytest.fixture(scope="module")
def segmented(tmp_path_factory):
    """A grey picture, and a mask with the same numbers as indices of a palette."""
    folder = tmp_path_factory.mktemp("segmented")
    members = []
    for number in range(N):
        labels = labels_of(number, *size_of(number))
        members += [(f"{number:03}.image", encoded(labels)), (f"{number:03}.mask", palette_png(labels)),
                    (f"{number:03}.cls", str(number).encode())]  # fmt: skip
    write(folder / "0.tar", tar_of(members))
    return str(folder)


def without_blending(ops: list) -> list:
    """The image that a mask always gets."""
    for op in ops:
        if "interpolation" in op._params:
            op._params["interpolation"] = "nearest"
        if "fill" in op._params:
            op._params["fill"] = 255
    return [op for op in ops if not isinstance(op, (ColorJitter, CenterCrop))]


@pytest.mark.parametrize("seed", range(12))
def test_a_mask_goes_with_its_image_pixel_by_pixel(segmented, seed):
    chain = without_blending(drawn_chain(np.random.default_rng(seed)))
    ops = [DecodeImage("image", mode="L"), DecodeMask(), ParseInt("cls"), *chain]
    seen = samples_of(load(segmented, ops, seed=seed, epochs=2), epochs=2)
    assert len(seen) == 2 * N
    for sample in seen:
        np.testing.assert_array_equal(sample["image"][0], sample["mask"], err_msg=str(chain))


@pytest.mark.parametrize("dtype", ["uint8", "int64"])
def test_a_mask_is_what_is_stored(segmented, dtype):
    ops = [DecodeMask(dtype=dtype), ParseInt("cls")]
    for sample in samples_of(load(segmented, [*ops, CenterCrop(29)], fields=["mask", "cls"])):
        number = int(sample["cls"])
        labels = labels_of(number, *size_of(number))
        assert sample["mask"].dtype == dtype and sample["mask"].shape == (29, 29)
        top, left = (round((side - 29) / 2) for side in labels.shape)
        np.testing.assert_array_equal(sample["mask"], labels[top : top + 29, left : left + 29])


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_indices_of_every_depth_stay(bits):
    labels = labels_of(1, 13, 7, classes=2**min(bits, 7))
    chain = leat.ops.Chain([DecodeMask()])
    np.testing.assert_array_equal(chain(palette_png(labels, bits)), labels)
    if bits == 1:
        np.testing.assert_array_equal(chain(encoded(labels.astype(bool))), labels)
    np.testing.assert_array_equal(chain(encoded(labels)), labels)
    np.testing.assert_array_equal(leat.ops.Chain([DecodeMask(dtype=np.int64)])(palette_png(labels, bits)), labels)


def test_what_is_beyond_the_picture_is_ignored():
    labels = labels_of(2, 10, 6)
    for ops, index in [([Pad(2)], 255), ([CenterCrop((10, 14))], 9), ([RandomCrop((10, 14))], 9)]:
        made = leat.ops.Chain([DecodeMask(ignore_index=index), *ops])(palette_png(labels))
        assert (made == index).sum() >= made.size - labels.size
    assert (leat.ops.Chain([DecodeMask(), Pad(2)])(palette_png(labels))[2:-2, 2:-2] == labels).all()


@pytest.mark.parametrize("data, says", [
    (encoded(pixels(0)), "holds colours and no labels"),
    (encoded(pixels(0), "JPEG"), "JPEG holds colours"),
    (encoded(np.arange(12, dtype=np.uint16).reshape(3, 4) * 1000), "16 bits"),
])  # fmt: skip
def test_what_holds_no_labels_is_a_bad_sample(data, says):
    with pytest.raises(leat.Corrupt, match=says):
        leat.ops.Chain([DecodeMask()])(data)


def test_a_palette_is_not_read_as_brightness(segmented):
    ops = [DecodeImage("image"), DecodeImage("mask", to="mask", mode="L")]
    with load(segmented, ops, on_error="substitute") as loader, pytest.raises(leat.InvalidArgument, match="DecodeMask keeps"):
        next(iter(loader))


def test_masks_keep_out_of_colours_and_numbers(segmented):
    ops = [DecodeImage("image"), DecodeMask(), ParseInt("cls"), RandomCrop(8), ColorJitter(0.5), Normalize("imagenet")]
    (sample, *_) = samples_of(load(segmented, ops))
    assert sample["image"].dtype == np.float32 and sample["mask"].dtype == np.uint8
    with pytest.raises(leat.InvalidArgument, match="works on images, and 'mask' is what decode_mask made"):
        load(segmented, [DecodeMask(), Normalize(0.5, 0.5, field="mask")])


def test_masks_are_kept_decoded(segmented):
    ops = [DecodeImage("image"), DecodeMask(dtype="int64"), ParseInt("cls"), Resize((24, 20)), CenterCrop((18, 40)),
           RandomHorizontalFlip()]  # fmt: skip
    plain = samples_of(load(segmented, ops, epochs=3), epochs=3)
    with load(segmented, ops, epochs=3, cache=leat.Cache(ram="16MiB", form="decoded")) as loader:
        came = [{name: values[row] for name, values in batch.items()}
                for _ in range(3) for batch in loader for row in range(4)]  # fmt: skip
        assert loader.stats()[2]["cache"]["decoded_hits"] > 0
    for one, other in zip(plain, came, strict=True):
        for name in ("image", "mask"):
            np.testing.assert_array_equal(one[name], other[name])


# Boxes and keypoints.


def box_picture(number: int, width: int = 64, height: int = 48) -> tuple[np.ndarray, list[list[int]]]:
    """Black, with up to three rectangles of one value each, and where they are."""
    rng = np.random.default_rng(number)
    picture = np.zeros((height, width), np.uint8)
    boxes = []
    for value in range(rng.integers(0, 4)):
        x, y = int(rng.integers(0, width - 12)), int(rng.integers(0, height - 12))
        w, h = (int(side) for side in rng.integers(4, 12, 2))
        picture[y : y + h, x : x + w] = value + 1
        boxes.append([x, y, w, h])
    return picture, boxes


@pytest.fixture(scope="module")
def detected(tmp_path_factory):
    """COCO's way: a document with a list of objects beside each picture."""
    folder = tmp_path_factory.mktemp("detected")
    members = []
    for number in range(N):
        picture, boxes = box_picture(number)
        found = {"annotations": [{"category_id": 10 * i + number, "bbox": box} for i, box in enumerate(boxes)],
                 "points": [[x, y, 2] for x, y, _, _ in boxes]}  # fmt: skip
        members += [(f"{number:03}.jpg", encoded(picture)), (f"{number:03}.mask", encoded(picture)),
                    (f"{number:03}.json", json.dumps(found).encode()), (f"{number:03}.cls", str(number).encode())]  # fmt: skip
    write(folder / "0.tar", tar_of(members))
    return str(folder)


DETECT = (
    DecodeImage("jpg", mode="L", layout="HWC"),
    ParseBoxes("json", path="annotations[*].bbox", format="xywh", labels="annotations[*].category_id"),
    ParseKeypoints("json", path="points"),
    ParseInt("cls"),
)


def test_boxes_are_read_as_they_are_written(detected):
    for sample in samples_of(load(detected, DETECT)):
        _, boxes = box_picture(int(sample["cls"]))
        expected = np.array([[x, y, x + w, y + h] for x, y, w, h in boxes], np.float32).reshape(-1, 4)
        np.testing.assert_array_equal(sample["boxes"], expected)
        assert sample["boxes"].dtype == np.float32 and sample["labels"].dtype == np.int64
        np.testing.assert_array_equal(sample["labels"], [10 * i + int(sample["cls"]) for i in range(len(boxes))])
        np.testing.assert_array_equal(sample["keypoints"].reshape(-1, 3)[:, 2], np.full(len(boxes), 2.0))


@pytest.mark.parametrize("ops", [
    [RandomCrop((30, 40)), RandomHorizontalFlip()],
    [RandomHorizontalFlip(), RandomCrop((40, 50), padding=9), CenterCrop((60, 30))],
    [Pad((3, 1, 7, 5)), RandomCrop((33, 20)), RandomHorizontalFlip(), RandomCrop((20, 18))],
])  # fmt: skip
def test_a_box_stays_around_its_pixels(detected, ops):
    # Without overlaps only: the first of the boxes may be hidden behind others.
    checked = 0
    for sample in samples_of(load(detected, [*DETECT, *ops], epochs=3), epochs=3):
        picture = sample["image"][..., 0]
        number = int(sample["cls"])
        for box, label in zip(sample["boxes"], sample["labels"], strict=True):
            value = (int(label) - number) // 10 + 1
            left, top, right, bottom = box.astype(int)
            assert 0 <= left < right <= picture.shape[1] and 0 <= top < bottom <= picture.shape[0]
            outside = picture.copy()
            outside[top:bottom, left:right] = 0
            assert not (outside == value).any()
            if value == len(box_picture(number)[1]):  # The one in front.
                assert (picture[top:bottom, left:right] == value).all()
                checked += 1
        # Those that were dropped are not to be seen.
        kept = {(int(label) - number) // 10 + 1 for label in sample["labels"]}
        assert set(np.unique(picture)) - {0} <= kept
    assert checked > 10


def test_boxes_of_a_resized_picture(detected):
    for sample in samples_of(load(detected, [*DETECT, Resize((96, 32)), RandomHorizontalFlip(p=1)])):
        _, boxes = box_picture(int(sample["cls"]))
        expected = [[32 - (x + w) / 2, 2 * y, 32 - x / 2, 2 * (y + h)] for x, y, w, h in boxes]
        np.testing.assert_allclose(sample["boxes"], np.reshape(expected, (-1, 4)), atol=1e-4)
        points = np.reshape([[31 - x / 2, 2 * y, 2] for x, y, _, _ in boxes], (-1, 3))
        np.testing.assert_allclose(sample["keypoints"].reshape(-1, 3), points, atol=1e-4)


@pytest.mark.parametrize("ops", [[], [RandomHorizontalFlip(p=1)], [CenterCrop((20, 24)), RandomHorizontalFlip(p=1)]], ids=len)
def test_a_point_is_seen_if_its_pixel_is_in_the_picture(tmp_path, ops):
    places = [(x, y) for x in range(-1, 42) for y in (-1, 0, 4, 5, 14, 24, 25, 29, 30)]
    points = json.dumps([[x, y, 2] for x, y in places]).encode()
    write(tmp_path / "0.tar", tar_of([("0.png", encoded(pixels(0, 40, 30))), ("0.json", points)]))
    (sample,) = samples_of(load(str(tmp_path), [DecodeImage("png"), ParseKeypoints("json"), *ops], global_batch_size=1))
    height, width = sample["image"].shape[1:]
    x, y, seen = sample["keypoints"].T
    is_inside = (0 <= x) & (x < width) & (0 <= y) & (y < height)
    np.testing.assert_array_equal(seen == 2, is_inside)
    assert is_inside.any() and not is_inside.all()


def test_boxes_with_a_cache_a_resume_and_without_their_image(detected):
    ops = [*DETECT, Resize(40), RandomCrop(32), RandomHorizontalFlip()]
    names = ("boxes", "labels", "keypoints")
    plain = samples_of(load(detected, ops, epochs=3), epochs=3)
    cached = samples_of(load(detected, ops, epochs=3, cache=leat.Cache(ram="16MiB", form="decoded")), epochs=3)
    alone = samples_of(load(detected, ops, epochs=3, fields=["cls", *names]), epochs=3)
    for one, other, third in zip(plain, cached, alone, strict=True):
        np.testing.assert_array_equal(one["image"], other["image"])
        assert "image" not in third
        for name in names:
            np.testing.assert_array_equal(one[name], other[name])
            np.testing.assert_array_equal(one[name], third[name])
    with load(detected, ops) as loader:
        next(iter(loader))
        state = loader.state_dict()
    by_number = {int(sample["cls"]): sample["boxes"] for sample in plain[:N]}
    with load(detected, ops) as loader:
        loader.load_state_dict(state)
        for batch in loader:
            for row, number in enumerate(batch["cls"]):
                np.testing.assert_array_equal(batch["boxes"][row], by_number[int(number)])


# Functions of several fields.


def test_a_function_sees_the_fields_of_one_sample(detected):
    calls = []

    def paste(image, mask, boxes, rng):
        calls.append(1)
        np.testing.assert_array_equal(image[..., 0], mask)
        at = int(rng.integers(0, 8))
        image = np.roll(image, at, axis=1)
        return image, np.roll(mask, at, axis=1), boxes + np.float32([at, 0, at, 0])

    ops = [*DETECT, DecodeMask(), leat.ops.Python(paste, fields=("image", "mask", "boxes"))]
    first = samples_of(load(detected, ops, epochs=1))
    assert len(calls) == N
    for sample, again in zip(first, samples_of(load(detected, ops)), strict=True):
        np.testing.assert_array_equal(sample["image"][..., 0], sample["mask"])
        for name in ("image", "mask", "boxes"):
            np.testing.assert_array_equal(sample[name], again[name])


def test_image_and_mask_move_together_behind_a_function(detected):
    ops = [DETECT[0], DecodeMask(), ParseInt("cls"),
           leat.ops.Python(lambda image, mask: (image[4:], mask[4:]), fields=("image", "mask")),
           RandomCrop((30, 30)), RandomHorizontalFlip()]  # fmt: skip
    for sample in samples_of(load(detected, ops, fields=["image", "mask", "cls"])):
        np.testing.assert_array_equal(sample["image"][..., 0], sample["mask"])
    ops[3] = leat.ops.Python(lambda image, mask: (image[4:], mask), fields=("image", "mask"))
    with load(detected, ops, fields=["image", "mask"]) as loader, pytest.raises(leat.Corrupt, match="64 x 44"):
        list(loader)


def test_a_function_gives_back_as_many(detected):
    ops = [DETECT[0], DecodeMask(), leat.ops.Python(lambda image, mask: image, fields=("image", "mask"))]
    with load(detected, ops) as loader, pytest.raises(leat.InvalidArgument, match="a tuple of 2"):
        list(loader)
    with pytest.raises(leat.InvalidArgument, match="two fields or more"):
        leat.ops.Python(print, fields=("image",))


# --- masks in .npy -----------------------------------------------------------


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.fixture
def arrays(tmp_path):
    """Makes shards of an image, grey.png, and the same grey as an array of this type."""

    def make(dtype) -> str:
        members = []
        for number in range(8):
            grey = pixels(number, 50, 40)[..., 0]
            members += [(f"{number}.png", encoded(grey)), (f"{number}.npy", npy(grey.astype(dtype)))]
        write(tmp_path / "0.tar", tar_of(members))
        return str(tmp_path)

    return make


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_a_mask_in_npy_moves_with_its_picture(arrays, dtype):
    ops = [DecodeImage("png", mode="L"), DecodeMask("npy", to="mask"), Pad(3), RandomCrop(20), RandomHorizontalFlip()]
    for sample in samples_of(load(arrays(dtype), ops, epochs=2), epochs=2):
        inside = sample["mask"] != 255  # Beyond the picture, or 255 in it.
        assert sample["mask"].shape == (20, 20) and inside.any()
        assert np.array_equal(sample["image"][0][inside], sample["mask"][inside])


def test_a_number_that_is_no_label_is_a_bad_sample(tmp_path):
    array = np.zeros((40, 50), np.int64)
    array[3, 7] = -1
    write(tmp_path / "0.tar", tar_of([("0.png", encoded(pixels(0, 50, 40))), ("0.npy", npy(array))]))
    with pytest.raises(leat.Corrupt, match=r"-1 at row 3, column 7 is no label of a mask.*LoadNpy"):
        samples_of(load(str(tmp_path), [DecodeImage("png"), DecodeMask("npy")], global_batch_size=1))
    write(tmp_path / "0.tar", tar_of([("0.png", encoded(pixels(0, 50, 40))), ("0.npy", npy(array.astype(np.float32)))]))
    with pytest.raises(leat.InvalidArgument, match="labels are whole numbers"):
        samples_of(load(str(tmp_path), [DecodeImage("png"), DecodeMask("npy")], global_batch_size=1))


def test_an_array_is_no_picture(arrays):
    with pytest.raises(leat.Corrupt, match="DecodeMask reads it as a mask, and LoadNpy as an array"):
        samples_of(load(arrays("uint8"), [DecodeImage("npy")]))
