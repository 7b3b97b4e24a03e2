"""The chain of ops in Pillow and NumPy, to compare leat.ops with.

Written from the documents (draws.h's formula, torchvision's RandomResizedCrop and
transforms), not from the engine's code. bench/decode_bench.py races against it.
"""

from __future__ import annotations

import io
import math

import numpy as np
from PIL import Image, ImageOps

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
XXH3_64_OF_IMAGE = 0x4F8CB17EAF664C63  # of b"image", the field's name

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


def mix64(x: int) -> int:
    x = (x + GOLDEN) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class Draws:
    """The draws of one op for one sample."""

    def __init__(self, seed: int, epoch: int, sample: int, op: int) -> None:
        key = mix64(mix64(mix64(mix64(seed) ^ epoch) ^ sample) ^ op)
        self._key = mix64(key ^ XXH3_64_OF_IMAGE)
        self._next = 0

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        draw = mix64((self._key + self._next * GOLDEN) & MASK)
        self._next += 1
        return low + (high - low) * ((draw >> 11) / 2.0**53)

    def below(self, count: int) -> int:
        return int(self.uniform() * count)


def draw_crop(
    width: int,
    height: int,
    draws: Draws,
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
) -> tuple[int, int, int, int]:
    """x, y, width, height, as torchvision draws them."""
    for _ in range(10):
        target = width * height * draws.uniform(*scale)
        aspect = math.exp(draws.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w = round(math.sqrt(target * aspect))
        h = round(math.sqrt(target / aspect))
        if 0 < w <= width and 0 < h <= height:
            y = draws.below(height - h + 1)
            return draws.below(width - w + 1), y, w, h
    w, h = width, height
    if width / height < ratio[0]:
        h = round(width / ratio[0])
    elif width / height > ratio[1]:
        w = round(height * ratio[1])
    return (width - w) // 2, (height - h) // 2, w, h


def decode(data: bytes, mode: str = "RGB") -> Image.Image:
    image = Image.open(io.BytesIO(data))
    return ImageOps.exif_transpose(image).convert(mode)


def train_chain(
    data: bytes, size: int, seed: int, epoch: int, sample: int, mean, std
) -> np.ndarray:
    """DecodeImage, RandomResizedCrop, RandomHorizontalFlip, Normalize, as
    torchvision's transforms do them one after another."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    x, y, w, h = draw_crop(*image.size, Draws(seed, epoch, sample, 1))
    image = image.crop((x, y, x + w, y + h))
    image = image.resize((size, size), Image.Resampling.BILINEAR)
    if Draws(seed, epoch, sample, 2).uniform() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    # ToTensor: CHW, then bytes to floats. Normalize: in place.
    array = np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))
    floats = array.astype(np.float32)
    floats /= np.float32(255)
    floats -= np.asarray(mean, np.float32)[:, None, None]
    floats /= np.asarray(std, np.float32)[:, None, None]
    return floats
