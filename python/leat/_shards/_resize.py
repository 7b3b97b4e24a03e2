"""Pictures made smaller on their way into shards."""

from __future__ import annotations

import io
from typing import Any

from leat._shards._row import kind_of
from leat.errors import InvalidArgument
from leat.ops import Chain, DecodeImage, Resize


class Resizer:
    """Makes a picture whose shorter side is above `side` as small as that, as a JPEG; leaves all else as it is.

    Raises:
        leat.InvalidArgument: a number that cannot be, or Pillow, which writes JPEG, is not installed.
    """

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
        if kind_of(data) not in ("jpg", "png", "tif", "webp"):
            return data
        pixels: Any = self._decode(data)
        if min(pixels.shape[:2]) <= self._side:
            return data
        out = io.BytesIO()
        self._image.fromarray(self._resize(pixels)).save(out, "JPEG", quality=self._quality)
        return out.getvalue()
