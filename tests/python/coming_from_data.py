"""Small datasets in one bucket, s3://data, for the scripts of docs/coming-from/tasks.

Each photograph is of one colour, which tells its number: docs/coming-from/tasks/model.py.
"""

from __future__ import annotations

import io
import json
import pathlib
import sys

import numpy as np
from PIL import Image

from small_datasets import CLASSES, encoded, write

TASKS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "coming-from" / "tasks"
sys.path.append(str(TASKS))

from model import colour_of  # noqa: E402

PHOTOS, NIGHT, WILD, PAIRS, VAL = 80, 60, 40, 40, 31
NIGHT_FROM = 100
"""The number of the first photograph of the night."""
RARE = (4, 26, 30)
"""Photographs of each class."""
SIDE = (40, 48)
WINDOWS, TOKENS = 100, 65


def photograph(number: int, size: tuple[int, int] = SIDE) -> np.ndarray:
    return np.full((*size, 3), colour_of(number), np.uint8)


def size_in_the_wild(number: int) -> tuple[int, int]:
    return SIDE[0] + number % 7, SIDE[1] + number % 5


def make(folder: pathlib.Path) -> None:
    """Makes all of them below ``folder``, which is to be served as the bucket."""

    def put(key: str, number: int, size: tuple[int, int] = SIDE) -> None:
        write(folder / f"{key}/{number:04}.jpg", encoded(photograph(number, size), "JPEG", quality=95))

    for number in range(PHOTOS):
        put(f"photos/{CLASSES[number % 3]}", number)
    for number in range(NIGHT_FROM, NIGHT_FROM + NIGHT):
        put(f"night/{('cat', 'dog')[number % 2]}", number)
    for number in range(WILD):
        put(f"wild/{CLASSES[number % 3]}", number, size_in_the_wild(number))
    for number in range(VAL):
        put(f"val/{CLASSES[number % 3]}", number)
    for number in range(sum(RARE)):
        put(f"rare/{CLASSES[int(np.searchsorted(np.cumsum(RARE), number, side='right'))]}", number)
    make_masks(folder / "voc")
    rows = [{"path": f"photos/{CLASSES[i % 3]}/{i:04}.jpg", "caption": caption_of(i)} for i in range(PHOTOS)]
    (folder / "captions.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    write(folder / "corpus" / "train.bin", tokens().astype("<u2").tobytes())


def caption_of(number: int) -> str:
    return f"a photograph of a {CLASSES[number % 3]}, the {number}th"


def tokens() -> np.ndarray:
    """Whole windows, and a rest that fills none."""
    return np.random.default_rng(0).integers(0, 50_000, WINDOWS * TOKENS + 20)


def make_masks(folder: pathlib.Path) -> None:
    """Photographs that are black but for a part, which their mask calls 1, 2 or 3: indices of a palette."""
    rows = ["image,mask"]
    for number in range(PAIRS):
        labels = np.zeros(SIDE, np.uint8)
        labels[8:, 12 + number % 12 :] = 1 + number % 3
        pixels = np.where(labels[..., None] > 0, photograph(number), 0).astype(np.uint8)
        write(folder / "images" / f"{number:04}.jpg", encoded(pixels, "JPEG", quality=95))
        mask = Image.fromarray(labels, "P")
        mask.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0] + [0] * (256 * 3 - 12))
        out = io.BytesIO()
        mask.save(out, "PNG")
        write(folder / "masks" / f"{number:04}.png", out.getvalue())
        rows.append(f"images/{number:04}.jpg,masks/{number:04}.png")
    (folder / "pairs.csv").write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))
