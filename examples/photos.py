"""Makes the photographs' dataset: which photograph was this cut from?

The photographs that ship with scikit-learn and scikit-image, cut at random places
and sizes into 4,000 JPEGs of 500 x 375 pixels to train on and 320 held out:

    FOLDER/photos/train/astronaut/0000.jpg ...
    FOLDER/photos/test/astronaut/0000.jpg ...

    python examples/photos.py [FOLDER]
"""

from __future__ import annotations

import concurrent.futures
import pathlib
import random
import sys

import demo_data
import skimage
import sklearn
from PIL import Image

# All lie in the packages themselves: nothing is downloaded.
SOURCES = {
    "astronaut": (skimage, "data/astronaut.png"),
    "cat": (skimage, "data/chelsea.png"),
    "coffee": (skimage, "data/coffee.png"),
    "flower": (sklearn, "datasets/images/flower.jpg"),
    "galaxies": (skimage, "data/hubble_deep_field.jpg"),
    "motorcycle": (skimage, "data/motorcycle_left.png"),
    "rocket": (skimage, "data/rocket.jpg"),
    "temple": (sklearn, "datasets/images/china.jpg"),
}
SIZE = (500, 375)
SPLITS = {"train": 500, "test": 40}  # Crops of each photograph.


def make(folder: pathlib.Path = demo_data.FOLDER) -> pathlib.Path:
    """FOLDER/photos, made now if it is not there."""
    return demo_data.make_once(folder / "photos", _cut_all)


def _cut_all(folder: pathlib.Path) -> None:
    with concurrent.futures.ProcessPoolExecutor() as processes:
        jobs = [
            processes.submit(_cut, name, count, folder / split / name, f"{split}/{name}")
            for split, count in SPLITS.items()
            for name in SOURCES
        ]
        for job in jobs:
            job.result()


def _cut(name: str, count: int, folder: pathlib.Path, seed: str) -> None:
    photo = open_photo(name)
    draw = random.Random(seed)
    folder.mkdir(parents=True)
    for number in range(count):
        cut(photo, SIZE, draw).save(folder / f"{number:04}.jpg", quality=88)


def open_photo(name: str) -> Image.Image:
    package, path = SOURCES[name]
    return Image.open(pathlib.Path(package.__file__).parent / path).convert("RGB")


def cut(photo: Image.Image, size: tuple[int, int], draw: random.Random) -> Image.Image:
    """A part of it in that size: as large as fits, or down to a third of that, at any place."""
    scale = min(photo.width / size[0], photo.height / size[1]) * draw.uniform(0.33, 1)
    width, height = size[0] * scale, size[1] * scale
    left = draw.uniform(0, photo.width - width)
    top = draw.uniform(0, photo.height - height)
    return photo.resize(size, Image.BILINEAR, (left, top, left + width, top + height))


if __name__ == "__main__":
    print(make(*map(pathlib.Path, sys.argv[1:])))
