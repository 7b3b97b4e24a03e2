"""Ops that change colours."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from leat.ops._op import _OnlyProbability, Op, Pixels, _WithProbability, fail, independent_or_none


class ColorJitter(Op):
    """Changes brightness, contrast, saturation and hue by random amounts, in a random
    order, as torchvision's op of that name does to Pillow's images.

    Contrast changes around the mean of the picture at that place in the chain: pixels that
    an earlier op cropped away do not count, but pixels that a later op crops away do. A
    grey picture has neither saturation nor hue.

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


class Grayscale(Op):
    """Converts to grey, with Pillow's weights.

    Args:
        num_output_channels: 1, or 3 that are equal.
    """

    _name = "grayscale"

    def __init__(
        self,
        num_output_channels: int = 1,
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if num_output_channels not in (1, 3):
            fail(self, f"num_output_channels={num_output_channels!r} must be 1 or 3")
        super().__init__({"num_output_channels": int(num_output_channels)}, field, to)


class GaussianBlur(Op):
    """Blurs with a Gaussian bell of random width; the border is mirrored.

    Pixels are torchvision's to within one level. Raises `leat.InvalidArgument` for a
    picture that half the kernel reaches across.

    Args:
        kernel_size: pixels, odd, at most 1023: one number, or (width, height).
        sigma: the bell's, in pixels: one number, or (low, high) to draw from.
        independent: draw for each field by itself; see `leat.ops`.
    """

    _name = "gaussian_blur"

    def __init__(
        self,
        kernel_size: Pixels,
        sigma: float | Sequence[float] = (0.1, 2.0),
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {
            "kernel_size": self._pixels("kernel_size", kernel_size, (1, 2), 1023),
            "sigma": self._number_list("sigma", sigma, (1, 2)),
            "independent": independent_or_none(independent),
        }
        if any(int(side) % 2 == 0 for side in np.ravel(kernel_size)):
            fail(self, f"kernel_size={kernel_size!r} must be odd")
        bounds = params["sigma"]
        if not isinstance(bounds, list) or not 0 < bounds[0] <= bounds[-1]:
            fail(self, f"sigma={sigma!r} must be above 0, or (low, high)")
        super().__init__(params, field, to)


class RandomGrayscale(_WithProbability):
    """Turns some pictures grey; they keep their channels.

    Args:
        p: the probability, from 0 to 1.
        independent: draw for each field by itself; see `leat.ops`.
    """

    _name = "random_grayscale"

    def __init__(
        self,
        p: float = 0.1,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        super().__init__(p, {}, independent, field, to)


class RandomPosterize(_WithProbability):
    """Keeps only the highest bits of some pictures.

    Args:
        bits: the number of bits to keep, 0 to 8.
        p: the probability, from 0 to 1.
        independent: draw for each field by itself; see `leat.ops`.
    """

    _name = "random_posterize"

    def __init__(
        self,
        bits: int,
        p: float = 0.5,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if isinstance(bits, bool) or bits not in range(9):
            fail(self, f"bits={bits!r} must be a whole number from 0 to 8")
        super().__init__(p, {"bits": int(bits)}, independent, field, to)


class RandomSolarize(_WithProbability):
    """Inverts the bright pixels of some pictures.

    Args:
        threshold: the smallest value to invert, 0 to 255.
        p: the probability, from 0 to 1.
        independent: draw for each field by itself; see `leat.ops`.
    """

    _name = "random_solarize"

    def __init__(
        self,
        threshold: float,
        p: float = 0.5,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if not 0 <= threshold <= 255:
            fail(self, f"threshold={threshold!r} must be from 0 to 255")
        super().__init__(p, {"threshold": float(threshold)}, independent, field, to)


class RandomAdjustSharpness(_WithProbability):
    """Sharpens or smooths some pictures.

    Args:
        sharpness_factor: 0 smooths, 1 changes nothing, 2 sharpens; at most 1000.
        p: the probability, from 0 to 1.
        independent: draw for each field by itself; see `leat.ops`.
    """

    _name = "random_adjust_sharpness"

    def __init__(
        self,
        sharpness_factor: float,
        p: float = 0.5,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if not 0 <= sharpness_factor <= 1000:
            fail(self, f"sharpness_factor={sharpness_factor!r} must be 0 to 1000")
        super().__init__(p, {"sharpness_factor": float(sharpness_factor)}, independent, field, to)


class RandomInvert(_OnlyProbability):
    """Inverts the colours of some pictures.

    Args:
        p: the probability, from 0 to 1.
        independent: draw for each field by itself; see `leat.ops`.
    """

    _name = "random_invert"


class RandomEqualize(_OnlyProbability):
    """Makes the histogram of each channel flat, in some pictures.

    Args:
        p: the probability, from 0 to 1.
        independent: draw for each field by itself; see `leat.ops`.
    """

    _name = "random_equalize"


class RandomAutocontrast(_OnlyProbability):
    """Stretches each channel to 0 to 255, in some pictures.

    Args:
        p: the probability, from 0 to 1.
        independent: draw for each field by itself; see `leat.ops`.
    """

    _name = "random_autocontrast"
