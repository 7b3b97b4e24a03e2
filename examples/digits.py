"""Makes the digits' dataset: scikit-learn's 1,797 handwritten digits, 8 x 8 pixels.

    FOLDER/digits/train/0/0000.png ...   four of five
    FOLDER/digits/test/0/0004.png ...    every fifth

    python examples/digits.py [FOLDER]
"""

from __future__ import annotations

import pathlib
import sys

import demo_data
import numpy as np
import sklearn.datasets
from PIL import Image


def make(folder: pathlib.Path = demo_data.FOLDER) -> pathlib.Path:
    """FOLDER/digits, made now if it is not there."""
    return demo_data.make_once(folder / "digits", _write)


def _write(folder: pathlib.Path) -> None:
    digits = sklearn.datasets.load_digits()
    for number, (pixels, label) in enumerate(zip(digits.images, digits.target)):
        split = "test" if number % 5 == 4 else "train"
        path = folder / split / str(label) / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((pixels * (255 / 16)).astype(np.uint8)).save(path)


if __name__ == "__main__":
    print(make(*map(pathlib.Path, sys.argv[1:])))
