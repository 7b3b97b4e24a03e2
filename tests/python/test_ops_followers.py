"""Masks, boxes and keypoints under the ops that move pixels, against torchvision v2's
tv_tensors at what was drawn: 200 draws of each op."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image

import leat
from leat.ops import (
    AugMix,
    AutoAugment,
    CenterCrop,
    Chain,
    DecodeImage,
    DecodeMask,
    FiveCrop,
    GaussianBlur,
    Letterbox,
    Pad,
    ParseBoxes,
    ParseKeypoints,
    RandAugment,
    RandomAffine,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
    TrivialAugmentWide,
)
from small_datasets import tar_of, write
from test_ops import encoded, picture
from torchvision_oracle import F, apply_drawn, differences, torch, tv_tensors, v2

N = 200
WIDTH, HEIGHT = 72, 60


def labels_of(number: int) -> Image.Image:
    rng = np.random.default_rng(number)
    blocks = rng.integers(0, 21, (HEIGHT // 6, WIDTH // 6), dtype=np.uint8)
    return Image.fromarray(blocks.repeat(6, 0).repeat(6, 1))


def rows_of(number: int) -> dict:
    rng = np.random.default_rng(1000 + number)
    left, top = rng.uniform(0, WIDTH - 20, 4), rng.uniform(0, HEIGHT - 20, 4)
    sides = rng.uniform(5, 20, (4, 2))
    boxes = np.stack([left, top, left + sides[:, 0], top + sides[:, 1]], 1)
    points = rng.uniform(0, 1, (5, 2)) * (WIDTH, HEIGHT)
    return {"boxes": boxes.tolist(), "points": points.tolist()}


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("followers")
    members = []
    for number in range(N):
        out = io.BytesIO()
        labels_of(number).save(out, "PNG")
        members += [
            (f"{number:03}.image", encoded(picture(WIDTH, HEIGHT, seed=number), "PNG")),
            (f"{number:03}.json", json.dumps(rows_of(number)).encode()),
            (f"{number:03}.mask", out.getvalue()),
        ]
    write(folder / "0.tar", tar_of(members))
    return str(folder)


READERS = (
    DecodeImage("image", layout="HWC"), DecodeMask(), ParseBoxes(path="boxes", field="json", min_size=0),
    ParseKeypoints(path="points", field="json"),
)  # fmt: skip


def load(shards, *ops, **options):
    options = {"global_batch_size": 8, "shuffle": False, "seed": 11, **options}
    return leat.Loader(shards, ops=[*READERS, *ops], **options)


def samples_of(shards, *ops):
    """Each sample: its image, its mask, its boxes, its keypoints, and the draws."""
    # The same ops at the same places, behind the image alone.
    fillers = [Pad(0)] * (len(READERS) - 1)
    chain = Chain([READERS[0], *fillers, *ops])
    with load(shards, *ops) as loader:
        number = 0
        for batch in loader:
            for row in range(len(batch["image"])):
                data = encoded(picture(WIDTH, HEIGHT, seed=number), "PNG")
                drawn = chain.drawn(data, seed=11, sample=number)
                np.testing.assert_array_equal(batch["image"][row], chain(data, seed=11, sample=number))
                yield number, drawn, {
                    name: np.asarray(batch[name][row]) for name in ("image", "mask", "boxes", "keypoints")
                }
                number += 1
    assert number == N


class Theirs:
    """A sample's fields as torchvision moves them."""

    def __init__(self, number: int) -> None:
        size = (HEIGHT, WIDTH)
        rows = rows_of(number)
        self.image = picture(WIDTH, HEIGHT, seed=number)
        self.mask = labels_of(number)
        self.boxes = tv_tensors.BoundingBoxes(torch.tensor(rows["boxes"]), format="XYXY", canvas_size=size)
        self.points = tv_tensors.KeyPoints(
            torch.tensor(rows["points"]), canvas_size=size, **({"clamping_mode": None} if CLAMPS else {})
        )

    def apply(self, make) -> None:
        """The mask as Pillow has it, with the nearest pixel's label."""
        self.mask = make(self.mask, fill=255)
        self.boxes = F.clamp_bounding_boxes(make(self.boxes))
        self.points = make(self.points)

    def check(self, got: dict, where: object, atol: float = 2e-3) -> None:
        np.testing.assert_array_equal(got["mask"], np.asarray(self.mask), err_msg=str(where))
        boxes = self.boxes.numpy()
        mine = got["boxes"]
        np.testing.assert_allclose(mine, boxes, atol=atol, err_msg=str(where))
        np.testing.assert_allclose(got["keypoints"][:, :2], self.points.numpy(), atol=atol, err_msg=str(where))


try:
    tv_tensors.KeyPoints(torch.zeros(1, 2), canvas_size=(1, 1), clamping_mode=None)
    CLAMPS = True
except TypeError:
    CLAMPS = False


def moved(one: dict, **options):
    """torchvision's functional with these draws, for fields of any kind."""
    name = one["name"]
    values = {key: value for key, value in one.items() if key not in ("op", "name")}

    def make(value, fill=None):
        own = {**options, **({} if fill is None else {"fill": fill})}
        if name == "affine":
            values["translate"] = [int(pixels) for pixels in values["translate"]]
            return F.affine(value, **values, **own)
        if name == "rotate":
            return F.rotate(value, values["angle"], **own)
        return getattr(F, name)(value)

    return make


@pytest.mark.parametrize(
    ("ops", "options"),
    [
        ([RandomVerticalFlip(), RandomHorizontalFlip()], {}),
        ([RandomRotation(180)], {}),
        ([RandomRotation(60, "bilinear", center=(20, 30))], {"center": [20, 30]}),
        ([RandomAffine(40, (0.2, 0.3), (0.6, 1.6), (-15, 15, -10, 20), "bilinear")], {}),
        ([RandomVerticalFlip(), RandomRotation(30), RandomHorizontalFlip(), RandomAffine(30, (0.3, 0.1))], {}),
    ],
    ids=["flips", "rotation", "around", "affine", "four"],
)
def test_masks_boxes_and_keypoints_are_torchvisions(shards, ops, options):
    for number, drawn, got in samples_of(shards, *ops):
        theirs = Theirs(number)
        for one in drawn:
            theirs.apply(moved(one, **options))
        theirs.check(got, (number, drawn))


def padded(value, padding, kind):
    """Masks are padded with ignore_index, and pictures with the op's fill."""
    return F.pad(value, padding, fill={"image": 9, "mask": 255}.get(kind, 0))


def cropped(value, padding, one, kind):
    return F.crop(padded(value, padding, kind), **{key: int(one[key]) for key in ("top", "left", "height", "width")})


def resized(value, size, kind):
    nearest = {"interpolation": v2.InterpolationMode.NEAREST_EXACT} if kind == "mask" else {}
    return F.resize(value, size, **nearest)


CROPS_AND_SIZES = [
    (RandomCrop((40, 50)), lambda value, one, kind: cropped(value, [0], one, kind)),
    (RandomCrop((58, 70), padding=(6, 3, 2, 9), fill=9), lambda value, one, kind: cropped(value, [6, 3, 2, 9], one, kind)),
    # Too small by 6 rows and 8 columns, which come on both sides.
    (RandomCrop((66, 80), fill=9), lambda value, one, kind: cropped(value, [8, 6], one, kind)),
    (RandomResizedCrop((32, 44)), lambda value, one, kind: resized(cropped(value, [0], one, kind), [32, 44], kind)),
    (CenterCrop((41, 50)), lambda value, one, kind: F.center_crop(value, [41, 50])),
    (CenterCrop((40, 93)), lambda value, one, kind: F.center_crop(
        padded(value, [10, 0, 11, 0], kind) if kind == "mask" else value, [40, 93]
    )),
    (Pad((1, 2, 3, 4), fill=9), lambda value, one, kind: padded(value, [1, 2, 3, 4], kind)),
    (Resize((48, 80)), lambda value, one, kind: resized(value, [48, 80], kind)),
    (Resize(37), lambda value, one, kind: resized(value, [37], kind)),
]  # fmt: skip


@pytest.mark.parametrize(("op", "make"), CROPS_AND_SIZES, ids=[repr(op) for op, _ in CROPS_AND_SIZES])
def test_crops_pads_and_resizes_are_torchvisions(shards, op, make):
    seen = set()
    for number, drawn, got in samples_of(shards, op):
        theirs, one = Theirs(number), drawn[0] if drawn else None
        seen.add(str(one))
        theirs.image, theirs.mask = make(theirs.image, one, "image"), make(theirs.mask, one, "mask")
        theirs.boxes = F.clamp_bounding_boxes(make(theirs.boxes, one, "boxes"))
        theirs.points = make(theirs.points, one, "points")
        assert differences(got["image"], theirs.image).max() <= 1
        theirs.check(got, (number, drawn))
    assert len(seen) > N / 4 or not isinstance(op, (RandomCrop, RandomResizedCrop))


def test_an_expanded_rotation_then_a_resize(shards):
    for number, drawn, got in samples_of(shards, RandomRotation(90, expand=True), Resize((64, 64))):
        theirs = Theirs(number)
        theirs.apply(lambda value, fill=None, one=drawn[0]: F.rotate(
            value, one["angle"], expand=True, **({} if fill is None else {"fill": fill})
        ))  # fmt: skip
        size = theirs.boxes.canvas_size
        # torchvision's size for rows may be a pixel off that of its pictures.
        assert abs(theirs.mask.height - size[0]) <= 1 and abs(theirs.mask.width - size[1]) <= 1
        theirs.apply(lambda value, fill=None: F.resize(
            value, [64, 64], **({} if fill is None else {"interpolation": v2.InterpolationMode.NEAREST_EXACT})
        ))  # fmt: skip
        # torchvision moves the remaining part of a pixel to one side for rows, and to
        # both for pixels.
        theirs.check(got, (number, drawn), atol=2)


def test_a_letterbox_moves_all(shards):
    for number, _, got in samples_of(shards, Letterbox((50, 90))):
        inner = Image.fromarray(got["image"]).crop((15, 0, 75, 50))
        assert np.asarray(inner).min(axis=2).max() > 114  # Not all border.
        rows = rows_of(number)
        scale = 50 / HEIGHT
        np.testing.assert_allclose(got["boxes"], np.array(rows["boxes"]) * scale + [15, 0, 15, 0], atol=1e-3)
        expected = np.full((50, 90), 255, np.uint8)
        expected[:, 15:75] = np.asarray(labels_of(number).resize((60, 50), Image.Resampling.NEAREST))
        np.testing.assert_array_equal(got["mask"], expected)


@pytest.mark.parametrize("op", [RandAugment(3, 20), TrivialAugmentWide(), AutoAugment("svhn")], ids=repr)
def test_augmentations_move_all_and_change_the_colours_of_images_alone(shards, op):
    geometry = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate")
    seen = set()
    for number, drawn, got in samples_of(shards, op):
        theirs = Theirs(number)
        for one in drawn:
            seen.add(one["name"])
            if one["name"] in geometry:
                theirs.apply(lambda value, fill=None, one=one: apply_augment(value, one, fill))
        theirs.check(got, (number, drawn))
    assert seen & set(geometry) and seen - set(geometry)


def apply_augment(value, one: dict, fill):
    if isinstance(value, Image.Image):
        return apply_drawn(value, one, fill=fill)
    much = one["magnitude"]
    if one["name"] == "Rotate":
        return F.rotate(value, much)
    degrees = float(np.degrees(np.arctan(much)))
    how = {
        "ShearX": {"shear": [degrees, 0.0], "center": [0, 0]}, "ShearY": {"shear": [0.0, degrees], "center": [0, 0]},
        "TranslateX": {"translate": [int(much), 0]}, "TranslateY": {"translate": [0, int(much)]},
    }  # fmt: skip
    return F.affine(value, **{"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0], **how[one["name"]]})


def test_what_changes_colours_leaves_the_others_alone(shards):
    for number, _, got in samples_of(shards, GaussianBlur(5), RandomErasing(1, value=7)):
        Theirs(number).check(got, number)


@pytest.mark.parametrize("op", [AugMix(), FiveCrop(20)])
def test_what_nothing_can_follow_raises(shards, op):
    with pytest.raises(leat.InvalidArgument, match="makes several pictures of one, and '(mask|boxes)' cannot follow"):
        load(shards, op)
    with pytest.raises(leat.InvalidArgument):
        load(shards, RandomRotation(20, field="image"))
