"""Photographs of the sizes that datasets of photographs have, in pixels and in bytes.

The demo's are smooth, and so their files are small. Sensors leave grain, which no encoder
can leave out: with a little of it files are as long as those of ImageNet or Open Images.
"""

from __future__ import annotations

import concurrent.futures
import pathlib
import random
import sys
from typing import NamedTuple

import numpy as np
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples"))
import photos


class Shape(NamedTuple):
    """Shared by all photographs of a dataset: their size, and how they
    become as many bytes."""

    size: tuple[int, int]
    quality: int
    grain: float  # Standard deviation, of 255.
    count: int  # That benches take, as a rule.

    @property
    def pixel_bytes(self) -> int:
        return self.size[0] * self.size[1] * 3


# Means of the real ones: 110 KB (ILSVRC 2012, train) and 315 KB (Open Images V7). Smooth
# ones are those of the demo: 37 KB.
SHAPES = {
    "smooth": Shape((500, 375), quality=90, grain=0, count=512),
    "imagenet": Shape((500, 375), quality=96, grain=6, count=1024),
    "openimages": Shape((1024, 768), quality=94, grain=5, count=512),
}


def make(folder: pathlib.Path, shape: Shape, count: int) -> None:
    """FOLDER/NAME/00000.jpg ...: `count` in all, always the same."""
    names = sorted(photos.SOURCES)
    with concurrent.futures.ProcessPoolExecutor() as processes:
        made = [
            processes.submit(_make, folder / name, name, range(first, count, len(names)), shape)
            for first, name in enumerate(names)
        ]
        for one in made:
            one.result()


def _make(folder: pathlib.Path, name: str, numbers: range, shape: Shape) -> None:
    photo = photos.open_photo(name)
    folder.mkdir(parents=True)
    for number in numbers:
        pixels = np.asarray(photos.cut(photo, shape.size, random.Random(number)), np.float32)
        if shape.grain:
            grain = np.random.default_rng(number).normal(0, shape.grain, pixels.shape[:2])
            pixels = pixels + grain[..., None]
        pixels = np.clip(pixels, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:05}.jpg", quality=shape.quality)
