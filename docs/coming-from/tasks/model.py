"""Stands for your model: it prints what it is given, a line for each sample.

Each photograph of these tasks is of one colour, which tells its number.
"""

from __future__ import annotations

import json
import os
import sys
import zlib

import numpy as np
import torch

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LEVELS = 6  # Each channel has these: 40, 80, … 240.
steps = 0


def colour_of(number: int) -> tuple[int, int, int]:
    """The colour of the photograph of that number, of 216."""
    return tuple(40 + 40 * (number // LEVELS**channel % LEVELS) for channel in range(3))


def pixels_of(image) -> np.ndarray:
    """(H, W, 3) from 0 to 255, of a (3, H, W) in bytes or normalised as ImageNet is."""
    array = np.asarray(image).transpose(1, 2, 0)
    return array if array.dtype == np.uint8 else (array * STD + MEAN) * 255


def photograph(image) -> dict:
    pixels = pixels_of(image)
    bright = pixels[pixels.sum(2) > 80]
    levels = np.rint((np.median(bright, 0) - 40) / 40).astype(int)
    return {"photo": int(levels @ [1, LEVELS, LEVELS**2]), "shape": list(image.shape), "dtype": str(image.dtype),
            "corner": int(pixels[0, 0].max().round())}  # fmt: skip


def told(value, image=None):
    """A number or a text as it is; of a mask, how much of the photograph it fits."""
    if isinstance(value, str) or getattr(value, "ndim", 0) == 0:
        return value if isinstance(value, str) else int(value)
    fits = (np.asarray(value).squeeze() > 0) == (pixels_of(image).sum(2) > 80)
    return {"fits": round(float(fits.mean()), 3), "classes": np.unique(value).tolist()}


def train(images, *others) -> None:
    """Trains on a batch: images, and labels, masks or captions."""
    global steps
    if steps == int(os.environ.get("PREEMPTED_AFTER_STEPS", -1)):
        sys.exit("preempted")
    for i, image in enumerate(images):
        print(json.dumps({"step": steps, **photograph(image), "with": [told(other[i], image) for other in others]}))
    steps += 1


def validate(images, labels) -> torch.Tensor:
    """Whether each is right: the model calls every photograph class 0."""
    train(images, labels)
    return torch.as_tensor(labels) == 0


def train_on_tokens(inputs, targets) -> None:
    """Trains on windows of tokens and what follows each of them."""
    for window, following in zip(inputs, targets):
        assert torch.equal(window[1:], following[:-1]) and window.dtype == torch.int64
        print(json.dumps({"first": int(window[0]), "tokens": len(window), "crc": zlib.crc32(np.asarray(following))}))
