"""Pictures made smaller on their way into shards."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from leat._shards._row import Field, Row, kind_of
from leat.errors import InvalidArgument
from leat.ops import Chain, DecodeImage, Resize

_PICTURES = ("jpg", "png", "tif", "webp")
_POSITIONS = re.compile(r"(.*[_.])?(b?box|b?boxes|keypoints?|landmarks?|polygons?)(\.(npy|json))?", re.IGNORECASE)
_WHILE_TRAINING = "or pack without --resize and resize while training (leat.ops.Resize)"


def pictures_of(fields: Sequence[Field], samples: Iterable[Row]) -> frozenset[str]:
    """The fields that hold pictures, by some samples.

    Raises:
        leat.InvalidArgument: what is in other fields would no longer fit the pictures.
    """
    kinds: dict[str, set[str]] = {}
    positions: set[str] = set()
    for sample in samples:
        for field in fields:
            value = sample[field.name]
            if field.kind == "bytes" and (kind := kind_of(value or b"")) in _PICTURES:
                kinds.setdefault(field.name, set()).add(kind)
            elif _POSITIONS.fullmatch(field.name) and _is_in_pixels(value):
                positions.add(field.name)
    if len(kinds) > 1 and set().union(*kinds.values()) != {"jpg"}:
        raise InvalidArgument(
            f"--resize: the fields {', '.join(map(repr, kinds))} hold pictures, and a mask among them would be another "
            f"as a JPEG; name one of them with --fields, {_WHILE_TRAINING}"
        )
    if kinds and positions:
        raise InvalidArgument(
            f"--resize: {', '.join(map(repr, sorted(positions)))} would no longer fit the smaller pictures; leave it "
            f"out with --fields, {_WHILE_TRAINING}, where boxes and keypoints follow their picture"
        )
    return frozenset(kinds)


def _is_in_pixels(value: Any) -> bool:
    """Whether positions, as far as they can be read, are other than parts of a side."""
    if value is None or not isinstance(value, np.ndarray):
        return value is not None
    return bool((np.abs(value) > 1).any())


class Resizer:
    """Makes a picture whose shorter side is above `side` as small as that, as a JPEG; leaves all else as it is.

    Raises:
        leat.InvalidArgument: a number that cannot be, or Pillow, which writes JPEG, is not installed.
    """

    fields: frozenset[str] = frozenset()
    """Those of a sample that hold pictures."""

    def __init__(self, side: int, quality: int) -> None:
        if not 1 <= side <= 65535 or not 1 <= quality <= 100:
            raise InvalidArgument(f"--resize {side} --quality {quality}: a side is 1 to 65535, a quality 1 to 100")
        try:
            from PIL import Image
        except ImportError as error:
            raise InvalidArgument("--resize writes JPEGs with Pillow: pip install pillow") from error
        self._image: Any = Image
        self._side = side
        self._quality = quality
        # The orientation would be lost with the EXIF, so the picture is turned first.
        self._decode = Chain([DecodeImage(layout="HWC", depth=8, exif_orientation=True)])
        self._resize = Chain([DecodeImage(layout="HWC"), Resize(side)])

    def __call__(self, data: bytes) -> bytes:
        """The picture, or the same bytes.

        Raises:
            leat.Corrupt: a picture that cannot be decoded.
        """
        if kind_of(data) not in _PICTURES:
            return data
        pixels: Any = self._decode(data)
        if min(pixels.shape[:2]) <= self._side:
            return data
        out = io.BytesIO()
        self._image.fromarray(self._resize(pixels)).save(out, "JPEG", quality=self._quality)
        return out.getvalue()
