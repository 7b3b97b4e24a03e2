"""Shared by the adapters of bench/landscape_way.py: the chain for pictures in Pillow, the slow function, and keys."""

from __future__ import annotations

import io
import pathlib
import random
import time
from typing import Any

import numpy as np

SIDE = 224
MEAN = np.array([0.485, 0.456, 0.406], np.float32) * 255
STD = np.array([0.229, 0.224, 0.225], np.float32) * 255
BUSY_SECONDS = 0.003
SHAPE = (SIDE, SIDE, 3)
SEED = 1


def number_of(key: str) -> int:
    return int(pathlib.PurePosixPath(key).stem)


def crop_of(width: int, height: int, draw: random.Random) -> tuple[int, int, int, int]:
    """RandomResizedCrop's box, by the rules that everybody has: 8 to 100 % of the area, 3:4 to 4:3."""
    for _ in range(10):
        area = width * height * draw.uniform(0.08, 1.0)
        ratio = 2.0 ** draw.uniform(-0.415, 0.415)
        wide, high = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < wide <= width and 0 < high <= height:
            left, top = draw.randint(0, width - wide), draw.randint(0, height - high)
            return left, top, left + wide, top + high
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return left, top, left + side, top + side


def chain(data: bytes) -> np.ndarray:
    """Decode, RandomResizedCrop, normalise: (3, 224, 224) in float32."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        pixels = image.convert("RGB").resize(
            (SIDE, SIDE), Image.Resampling.BILINEAR, crop_of(*image.size, random.Random())
        )
    values = (np.asarray(pixels, np.float32) - MEAN) / STD
    return np.ascontiguousarray(values.transpose(2, 0, 1))


class Busy:
    """Holds the GIL for `seconds` of CPU time, and makes an array of 150 KB."""

    def __init__(self, seconds: float = BUSY_SECONDS) -> None:
        self.seconds = seconds

    def __call__(self, data: Any) -> np.ndarray:
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        return np.full(SHAPE, np.frombuffer(data, np.uint8, 1)[0], np.uint8)


def finished(task: str, data: bytes) -> np.ndarray:
    """A sample as it is delivered, of the bytes that came."""
    if task == "pixels":
        return chain(data)
    if task == "function":
        return Busy()(data)
    return np.frombuffer(bytearray(data), np.uint8)  # Writable, as torch wants it.


def is_kept(number: int, keep: float) -> bool:
    return number % 100 < round(keep * 100)
