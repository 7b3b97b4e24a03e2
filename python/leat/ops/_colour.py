"""Ops that change colours."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from leat.ops._op import Op, fail, independent_or_none


class ColorJitter(Op):
    """Changes brightness, contrast, saturation and hue by random amounts, in an order
    that is random too, as torchvision's op of that name does to Pillow's images.

    Contrast is around the mean of the picture as it is at that place in the chain:
    what was cropped away before does not count, what is cropped away later does.
    A grey picture has neither saturation nor hue.

    Args:
        brightness, contrast, saturation: x draws a factor from max(0, 1 - x) to
            1 + x; (low, high) gives the bounds, 0 <= low <= high <= 1000.
        hue: x draws a turn from -x to x, as a share of the colour circle, x at most
            0.5; or (low, high), -0.5 <= low <= high <= 0.5.
        independent: draw for each image of a sample by itself; see `leat.ops`.
    """

    _name = "color_jitter"

    def __init__(
        self,
        brightness: float | Sequence[float] = 0,
        contrast: float | Sequence[float] = 0,
        saturation: float | Sequence[float] = 0,
        hue: float | Sequence[float] = 0,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {
            "brightness": self._jitter("brightness", brightness, 0, 1000),
            "contrast": self._jitter("contrast", contrast, 0, 1000),
            "saturation": self._jitter("saturation", saturation, 0, 1000),
            "hue": self._jitter("hue", hue, -0.5, 0.5),
            "independent": independent_or_none(independent),
        }
        super().__init__(params, field, to)

    def _jitter(
        self, name: str, value: Any, low: float, high: float
    ) -> float | list[float]:
        if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
            reach = float(value)
            # Around 1 for a factor, around 0 for the hue.
            if 0 <= reach <= (high if low < 0 else high - 1):
                return reach
        elif isinstance(value, (list, tuple)) and len(value) == 2:
            bounds = [float(number) for number in value]
            if low <= bounds[0] <= bounds[1] <= high:
                return bounds
        fail(
            self,
            f"{name}={value!r} must be a number from 0 on, or (low, high) within "
            f"{low} to {high}",
        )
