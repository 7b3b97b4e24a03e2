"""Arrays as small pictures: scaled, coloured and written as PNG."""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from typing import Any

import numpy as np

from leat.ops import Chain, DecodeImage, Resize

LONGEST_SIDE = 224
_MOST_SIDE = 65_535
"""The longest that `Resize` takes: from more rows or columns, each n-th is shown."""
COLORS = (
    (10, 92, 184), (196, 84, 0), (10, 122, 75), (138, 58, 176), (179, 38, 30), (120, 130, 0), (0, 130, 145),
    (140, 90, 55), (230, 90, 160), (90, 90, 220), (60, 170, 60), (220, 160, 0),
)  # fmt: skip
"""The colours of labels, by turns; the background, 0, has none."""
_OPACITY = 150  # A mask over its picture, out of 255.


def color_of(label: int) -> str:
    """As CSS writes it."""
    return "#{:02x}{:02x}{:02x}".format(*COLORS[(label - 1) % len(COLORS)])


def png(pixels: np.ndarray, palette: np.ndarray | None = None) -> bytes:
    """A PNG of uint8.

    Args:
        pixels: (H, W) of grey or of indices; (H, W, 3) or (H, W, 4) with an alpha.
        palette: (256, 4), red, green, blue and alpha of each index.
    """
    height, width = pixels.shape[:2]
    kind = {2: 0, 3: 2, 4: 6}[pixels.ndim if pixels.ndim == 2 else pixels.shape[2]]
    chunks = []
    if palette is not None:
        kind = 3
        levels = palette.astype(np.uint8)
        chunks = [(b"PLTE", levels[:, :3].tobytes()), (b"tRNS", levels[:, 3].tobytes())]
    rows = np.ascontiguousarray(pixels, np.uint8).reshape(height, -1)
    # Each row begins with the number of its filter: none.
    data = zlib.compress(np.pad(rows, ((0, 0), (1, 0))).tobytes(), 6)
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    made = [b"\x89PNG\r\n\x1a\n"]
    for name, body in [(b"IHDR", head), *chunks, (b"IDAT", data), (b"IEND", b"")]:
        made.append(struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)))
    return b"".join(made)


def fitted(height: int, width: int) -> tuple[int, int]:
    """The sides of a thumbnail."""
    scale = min(1.0, LONGEST_SIDE / max(height, width, 1))
    return max(1, round(height * scale)), max(1, round(width * scale))


def thumbnail(pixels: np.ndarray) -> np.ndarray:
    """(H, W, 3) of uint8, smaller if it is large."""
    sides = fitted(*pixels.shape[:2])
    if sides == pixels.shape[:2]:
        return pixels
    rows, columns = (-(-side // _MOST_SIDE) for side in pixels.shape[:2])
    return np.asarray(_resizer(sides)(np.ascontiguousarray(pixels[::rows, ::columns])))


@lru_cache(maxsize=64)
def _resizer(sides: tuple[int, int]) -> Chain:
    return Chain([DecodeImage(layout="HWC"), Resize(sides)])


def mask_png(labels: np.ndarray) -> bytes:
    """Labels (H, W) as colours that a picture shows through; 0 is clear, 255 is grey."""
    height, width = fitted(*labels.shape)
    rows = np.arange(height) * labels.shape[0] // height
    columns = np.arange(width) * labels.shape[1] // width
    palette = np.zeros((256, 4), np.uint8)
    palette[1:, :3] = [COLORS[index % len(COLORS)] for index in range(255)]
    palette[1:, 3] = _OPACITY
    palette[255] = (128, 128, 128, 110)
    small = np.clip(labels[np.ix_(rows, columns)], 0, 255).astype(np.uint8)
    return png(small, palette)


def bytes_of_levels(array: np.ndarray) -> tuple[np.ndarray, str]:
    """Any numbers as uint8, and how they were stretched ("" if they were not)."""
    if array.dtype == np.uint8:
        return array, ""
    if array.dtype == bool:
        return array.astype(np.uint8) * 255, ""
    if array.dtype == np.uint16:
        return (array >> 8).astype(np.uint8), "16 bits a level, of which 8 are shown"
    numbers = np.abs(array) if array.dtype.kind == "c" else array
    numbers = numbers.astype(np.float64)
    known = numbers[np.isfinite(numbers)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if array.dtype.kind == "f" and 0 <= low and high <= 1:
        low, high, note = 0.0, 1.0, ""
    else:
        note = f"levels stretched from {low:.4g} to {high:.4g}"
    span = high - low or 1.0
    scaled = np.nan_to_num((numbers - low) / span, nan=0.0, posinf=1.0, neginf=0.0)
    return np.rint(np.clip(scaled, 0, 1) * 255).astype(np.uint8), note


def undone(array: np.ndarray, mean: Any, std: Any) -> np.ndarray:
    """A picture (C, H, W) before Normalize, as uint8."""
    shape = (-1, 1, 1)
    levels = array.astype(np.float64) * np.reshape(std, shape) + np.reshape(mean, shape)
    return np.rint(np.clip(np.nan_to_num(levels), 0, 1) * 255).astype(np.uint8)
