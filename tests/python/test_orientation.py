"""Pictures whose EXIF turns them, beside masks, boxes and points of the same sample."""

from __future__ import annotations

import io
import json
import logging

import numpy as np
import pytest
from PIL import Image

import leat
from leat.ops import DecodeImage, DecodeMask, ParseBoxes, ParseKeypoints, RandomCrop, RandomHorizontalFlip, Resize
from small_datasets import tar_of, write

FLIP_X, FLIP_Y = Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.FLIP_TOP_BOTTOM
STORED = {
    1: (), 2: (FLIP_X,), 3: (Image.Transpose.ROTATE_180,), 4: (FLIP_Y,), 5: (Image.Transpose.TRANSPOSE,),
    6: (Image.Transpose.ROTATE_90,), 7: (Image.Transpose.TRANSVERSE,), 8: (Image.Transpose.ROTATE_270,),
}  # fmt: skip
"""How Pillow makes the stored picture of the displayed one."""
TURNED = tuple(STORED)[1:]
BOX = (8, 20, 30, 34)  # Bright, and else nothing.


def png(image: Image.Image, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", **options)
    return out.getvalue()


def exif_of(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def members_of(key: str, orientation: int, annotated: str) -> list:
    """A picture of one bright box, and its mask, box and corner, of what is "displayed" or "stored"."""
    displayed = Image.new("L", (64, 48))
    displayed.paste(200, BOX)
    stored = displayed
    for transpose in STORED[orientation]:
        stored = stored.transpose(transpose)
    seen = displayed if annotated == "displayed" else stored
    box = seen.getbbox()
    rows = {"boxes": [box], "points": [[(box[0] + box[2]) / 2, (box[1] + box[3]) / 2]]}
    return [
        (f"{key}.image", png(stored.convert("RGB"), exif=exif_of(orientation))),
        (f"{key}.json", json.dumps(rows).encode()),
        (f"{key}.mask", png(seen.point(lambda value: value and 1))),
    ]


def load(folder, *ops, said=None, annotations=("mask", "boxes", "keypoints"), **options):
    readers = {
        "mask": DecodeMask(), "boxes": ParseBoxes(path="boxes", field="json", min_size=0),
        "keypoints": ParseKeypoints(path="points", field="json"),
    }  # fmt: skip
    decode = DecodeImage("image", layout="HWC", exif_orientation=said)
    options = {"global_batch_size": 1, "train": False, "batch": "dict", "output": "numpy", "seed": 3, **options}
    return leat.Loader(str(folder), ops=[decode, *(readers[name] for name in annotations), *ops], **options)


def samples_of(loader) -> list[dict]:
    with loader:
        return [{name: np.asarray(values[0]) for name, values in batch.items()} for batch in loader]


def overlap(sample: dict) -> float:
    bright, mask = sample["image"][..., 0] > 100, sample["mask"] == 1
    return (bright & mask).sum() / (bright | mask).sum()


def check(sample: dict) -> None:
    assert overlap(sample) > 0.8
    bright = sample["image"][..., 0] > 100
    rows, columns = np.flatnonzero(bright.any(1)), np.flatnonzero(bright.any(0))
    extent = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    np.testing.assert_allclose(sample["boxes"][0], extent, atol=1)
    middle = [(extent[0] + extent[2]) / 2, (extent[1] + extent[3]) / 2]
    np.testing.assert_allclose(sample["keypoints"][0], middle, atol=1)


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize(("annotated", "said"), [("displayed", True), ("stored", False)])
def test_annotations_lie_where_the_user_said(tmp_path, orientation, annotated, said):
    write(tmp_path / "0.tar", tar_of(members_of("a", orientation, annotated)))

    for ops in ([], [Resize((32, 32))], [Resize((40, 64)), RandomHorizontalFlip(1)]):
        (sample,) = samples_of(load(tmp_path, *ops, said=said))
        check(sample)


@pytest.mark.parametrize("orientation", TURNED)
@pytest.mark.parametrize("annotations", [("mask",), ("boxes",), ("keypoints",), ("mask", "boxes", "keypoints")], ids=str)
def test_a_turned_picture_is_a_bad_sample_where_nobody_said(tmp_path, orientation, annotations):
    write(tmp_path / "0.tar", tar_of(members_of("a", orientation, "stored")))

    named = " and ".join(f"'{name}'" for name in annotations)
    says = f'"a".*EXIF orientation is {orientation}.*{named}.*exif_orientation=False.*exif_orientation=True.*upright'
    with pytest.raises(leat.Corrupt, match=says):
        samples_of(load(tmp_path, Resize((32, 32)), annotations=annotations))


def test_upright_pictures_need_no_word(tmp_path):
    write(tmp_path / "0.tar", tar_of(members_of("a", 1, "stored")))

    (sample,) = samples_of(load(tmp_path, Resize((32, 32))))

    check(sample)


@pytest.mark.parametrize("orientation", TURNED)
def test_a_picture_alone_is_turned(tmp_path, orientation):
    write(tmp_path / "0.tar", tar_of(members_of("a", orientation, "displayed")))

    (unsaid,) = samples_of(load(tmp_path, annotations=()))
    (said,) = samples_of(load(tmp_path, annotations=(), said=True))

    np.testing.assert_array_equal(unsaid["image"], said["image"])
    assert unsaid["image"].shape == (48, 64, 3)


def test_a_substitute_comes_and_is_said(tmp_path, caplog):
    write(tmp_path / "0.tar", tar_of([*members_of("a", 1, "stored"), *members_of("b", 6, "stored")]))

    loader = load(tmp_path, Resize((32, 32)), on_error="substitute", global_batch_size=2)
    with loader, caplog.at_level(logging.WARNING, logger="leat"):
        (batch,) = list(loader)

    np.testing.assert_array_equal(batch["image"][0], batch["image"][1])
    assert "EXIF orientation is 6" in caplog.text


def test_boxes_without_their_picture_are_refused_too(tmp_path):
    write(tmp_path / "0.tar", tar_of(members_of("a", 6, "stored")))

    with pytest.raises(leat.Corrupt, match="EXIF orientation is 6"):
        samples_of(load(tmp_path, Resize((32, 32)), fields=["boxes"]))


@pytest.mark.parametrize("form", ["decoded", "encoded"])
@pytest.mark.parametrize("annotations", [("mask",), ("mask", "boxes", "keypoints")], ids=str)
def test_a_cache_changes_none_of_it(tmp_path, annotations, form):
    write(tmp_path / "data/0.tar", tar_of(members_of("a", 6, "stored")))

    def read(**options):
        cache = leat.Cache(disk=str(tmp_path / "cache"), form=form)
        return samples_of(load(tmp_path / "data", Resize((32, 32)), cache=cache, **options))

    # Its first records are those of the picture alone, turned.
    for _ in range(2):
        assert read(annotations=())[0]["image"].shape == (32, 32, 3)
    for _ in range(2):
        with pytest.raises(leat.Corrupt, match="EXIF orientation is 6"):
            read(annotations=annotations)
    for _ in range(2):
        (sample,) = read(annotations=annotations, said=False)
        assert overlap(sample) > 0.8


def test_a_mask_of_an_orientation_of_its_own_goes_by_its_picture(tmp_path):
    members = members_of("a", 6, "stored")
    mask = Image.open(io.BytesIO(dict(members)["a.mask"]))
    members[-1] = ("a.mask", png(mask, exif=exif_of(6)))
    write(tmp_path / "0.tar", tar_of(members))

    for said in (False, True):
        (sample,) = samples_of(load(tmp_path, RandomCrop(44), said=said, annotations=("mask",)))
        assert overlap(sample) > 0.8
    with pytest.raises(leat.Corrupt, match="EXIF orientation is 6"):
        samples_of(load(tmp_path, annotations=("mask",)))
