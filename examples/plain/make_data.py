"""Makes what the scripts beside it train on: FOLDER/plain, for `leat bucket FOLDER`.

    python make_data.py FOLDER [--samples 400]
"""

import argparse
import pathlib

import numpy as np
from PIL import Image


def make(folder, samples=400):
    """``samples`` pictures, as many windows of 128 tokens, and parts of 64 rows."""
    root = pathlib.Path(folder) / "plain"
    draw = np.random.default_rng(0)
    (root / "rows").mkdir(parents=True)
    for label in ("dark", "light"):
        (root / "images" / label).mkdir(parents=True)
    columns = ",".join([*(f"x{column}" for column in range(16)), "y"])
    for number in range(samples):
        label = ("dark", "light")[number % 2]
        pixels = draw.integers(128 * (number % 2), 128 * (number % 2) + 128, (96, 96, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / "images" / label / f"{number:04}.jpg")
        x = draw.normal(size=(64, 16))
        y = x[:, :1] * x[:, 1:2] + x[:, 2:3]
        np.savetxt(root / "rows" / f"{number:04}.csv", np.hstack([x, y]), "%.4f", ",", header=columns, comments="")
    steps = np.where(draw.random(128 * samples + 1) < 0.9, 3, 7)
    (root / "tokens.bin").write_bytes((np.cumsum(steps) % 256).astype("<u2").tobytes())
    return root


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--samples", type=int, default=400)
    args = parser.parse_args()
    print(make(args.folder, args.samples))
