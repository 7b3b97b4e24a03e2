"""Ops that move pixels."""

from __future__ import annotations

from typing import Any, Sequence, Tuple

import numpy as np

from leat.ops._op import (
    INTERPOLATIONS,
    MOST_SIDE,
    _OnlyProbability,
    Op,
    Pixels,
    Size,
    fail,
    independent_or_none,
)


class Resize(Op):
    """Changes the size, with antialiasing; pixels equal Pillow's, byte for byte.

    Args:
        size: (height, width); or one number for the shorter side, the other
            following in proportion.
        interpolation: one of Pillow's filters: "nearest", "box", "bilinear",
            "hamming", "bicubic", "lanczos".
    """

    _name = "resize"
    _moves_pixels = True

    def __init__(
        self,
        size: Size,
        interpolation: str = "bilinear",
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {
            "size": self._size(size),
            "interpolation": self._choice(
                "interpolation", interpolation, INTERPOLATIONS
            ),
        }
        super().__init__(params, field, to)


class CenterCrop(Op):
    """Cuts out the middle; a picture that is too small is padded with black.

    Args:
        size: a side, or (height, width).
    """

    _name = "center_crop"
    _moves_pixels = True

    def __init__(
        self, size: Size, *, field: str | None = None, to: str | None = None
    ) -> None:
        super().__init__({"size": self._size(size)}, field, to)


class RandomResizedCrop(Op):
    """Cuts out a random part and resizes it.

    Args:
        size: a side, or (height, width), of the result.
        scale: bounds of the part's area, as a share of the picture's.
        ratio: bounds of the part's width to its height.
        interpolation: as for `Resize`.
        independent: draw for each field by itself; see `leat.ops`.
    """

    _name = "random_resized_crop"
    _moves_pixels = True

    def __init__(
        self,
        size: Size,
        scale: Tuple[float, float] = (0.08, 1.0),
        ratio: Tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params: dict[str, Any] = {
            "size": self._size(size),
            "scale": self._range("scale", scale),
            "ratio": self._range("ratio", ratio),
            "interpolation": self._choice(
                "interpolation", interpolation, INTERPOLATIONS
            ),
            "independent": independent_or_none(independent),
        }
        if params["scale"][1] > 1:
            fail(self, f"scale={scale!r} must not exceed 1")
        super().__init__(params, field, to)


class RandomHorizontalFlip(_OnlyProbability):
    """Mirrors some pictures, left to right.

    Args:
        p: the probability, from 0 to 1.
        independent: as for `RandomResizedCrop`.
    """

    _name = "random_horizontal_flip"
    _moves_pixels = True


class RandomCrop(Op):
    """Cuts out a random part, as torchvision's op of that name.

    If a picture is too small even with its padding, the op first pads both sides by the
    missing pixels, as torchvision does with ``pad_if_needed=True``.

    Args:
        size: a side, or (height, width), of the result.
        padding: pixels added before the crop: one number for every side, (left and
            right, top and bottom), or (left, top, right, bottom).
        fill: of the added pixels, 0 to 255: one number, or (red, green, blue).
        independent: as for `RandomResizedCrop`.
    """

    _name = "random_crop"
    _moves_pixels = True

    def __init__(
        self,
        size: Size,
        padding: Pixels = 0,
        *,
        fill: Pixels = 0,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {
            "size": self._size(size),
            "padding": self._pixels("padding", padding, (1, 2, 4), MOST_SIDE),
            "fill": self._pixels("fill", fill, (1, 3), 255),
            "independent": independent_or_none(independent),
        }
        super().__init__(params, field, to)


class Pad(Op):
    """Adds a border.

    Args:
        padding: pixels: one number for every side, (left and right, top and bottom),
            or (left, top, right, bottom).
        size: instead of `padding`: the smallest side, or (height, width), of the result,
            with the picture in the middle.
        fill: of the added pixels, 0 to 255: one number, or (red, green, blue).
    """

    _name = "pad"
    _moves_pixels = True

    def __init__(
        self,
        padding: Pixels = 0,
        *,
        size: Size | None = None,
        fill: Pixels = 0,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if size is not None and padding != 0:
            fail(self, "padding and size cannot both be given")
        params = {
            "padding": self._pixels("padding", padding, (1, 2, 4), MOST_SIDE),
            "size": None if size is None else self._size(size),
            "fill": self._pixels("fill", fill, (1, 3), 255),
        }
        super().__init__(params, field, to)


class PadTo(Op):
    """Pads the pictures of a batch to one size, below and on the right, so that they form
    one dense array. It must be the last op of its field.

        ops = [DecodeImage(), Normalize("imagenet"), PadTo(multiple=32)]

    The size is the batch's largest height and largest width, or the one given here. If the
    loader's ``fields=`` names ``image_size``, the batch also has that field (int64,
    ``(samples, 2)``): height and width of each picture without the padding.

    Args:
        size: None for the batch's largest (or "largest"); else a side, or (height,
            width): a larger picture raises.
        multiple: rounds the batch's largest up to a multiple of it.
        fill: the padding, a number of the array's own type: after `Normalize`, 0 is the
            mean.
    """

    _name = "pad_to"

    def __init__(
        self,
        size: Size | str | None = None,
        *,
        multiple: int = 1,
        fill: float = 0,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if isinstance(size, str) and size != "largest":
            fail(self, f'size={size!r} must be "largest", a side or (height, width)')
        given = None if isinstance(size, str) else size
        if (
            isinstance(multiple, bool)
            or not isinstance(multiple, (int, np.integer))
            or not 1 <= multiple <= MOST_SIDE
        ):
            fail(self, f"multiple={multiple!r} must be a number from 1 to {MOST_SIDE}")
        if given is not None and multiple != 1:
            fail(self, "size and multiple cannot both be given")
        if not isinstance(fill, (int, float, np.number)) or not abs(fill) <= 1e30:
            fail(self, f"fill={fill!r} must be a number")
        params = {
            "size": None if given is None else self._size(given),
            "multiple": int(multiple),
            "fill": float(fill),
        }
        super().__init__(params, field, to)


class RandomVerticalFlip(_OnlyProbability):
    """Mirrors some pictures, top to bottom.

    Args:
        p: the probability, from 0 to 1.
        independent: as for `RandomResizedCrop`.
    """

    _name = "random_vertical_flip"
    _moves_pixels = True


WARPS = ("nearest", "bilinear", "bicubic")


class RandomRotation(Op):
    """Turns by a random angle, as torchvision's op of that name does with Pillow's images.

    Args:
        degrees: counter-clockwise: from -degrees to degrees, or (low, high).
        interpolation: "nearest", "bilinear" or "bicubic".
        expand: enlarge the picture so that all of it fits. Its size is then random, so a
            `Resize` or a crop to a height and a width must follow.
        center: the fixed point, (x, y) in pixels; None for the middle.
        fill: of what comes from outside, 0 to 255: one number, or (red, green, blue).
        independent: as for `RandomResizedCrop`.
    """

    _name = "random_rotation"
    _moves_pixels = True

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: str = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Pixels = 0,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {
            "degrees": self._bounds("degrees", degrees),
            "interpolation": self._choice("interpolation", interpolation, WARPS),
            "expand": bool(expand),
            "center": self._number_list("center", center, (2,)),
            "fill": self._pixels("fill", fill, (1, 3), 255),
            "independent": independent_or_none(independent),
        }
        super().__init__(params, field, to)


class RandomAffine(Op):
    """Turns, moves, scales and shears by random amounts, as torchvision's op of that name
    does with Pillow's images.

    Args:
        degrees: clockwise: from -degrees to degrees, or (low, high).
        translate: (x, y): the largest move, as shares of the width and of the height, 0 to
            1.
        scale: (low, high), from 1e-6.
        shear: degrees below 90: one number s for -s to s along x, (low, high) along x,
            or (low, high, low, high) along x and along y.
        interpolation: "nearest", "bilinear" or "bicubic".
        fill: of what comes from outside, 0 to 255: one number, or (red, green, blue).
        center: the fixed point, (x, y) in pixels; None for the middle.
        independent: as for `RandomResizedCrop`.
    """

    _name = "random_affine"
    _moves_pixels = True

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: str = "nearest",
        fill: Pixels = 0,
        center: Sequence[float] | None = None,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params: dict[str, Any] = {
            "degrees": self._bounds("degrees", degrees),
            "translate": self._number_list("translate", translate, (2,)),
            "scale": self._number_list("scale", scale, (2,)),
            "shear": self._number_list("shear", shear, (1, 2, 4)),
            "interpolation": self._choice("interpolation", interpolation, WARPS),
            "fill": self._pixels("fill", fill, (1, 3), 255),
            "independent": independent_or_none(independent),
            "center": self._number_list("center", center, (2,)),
        }
        for share in params["translate"] or []:
            if not 0 <= share <= 1:
                fail(self, f"translate={translate!r} must be from 0 to 1")
        if params["scale"] and not 1e-6 <= params["scale"][0] <= params["scale"][1]:
            fail(self, f"scale={scale!r} must be (low, high), 1e-6 <= low <= high")
        super().__init__(params, field, to)


class Letterbox(Op):
    """Fits the picture into a size and keeps its proportions, in the middle of a border. If
    the rest is odd, the right and the lower borders are larger.

    Args:
        size: a side, or (height, width), of the result.
        fill: of the border, 0 to 255: one number, or (red, green, blue).
        interpolation: as for `Resize`.
    """

    _name = "letterbox"
    _moves_pixels = True

    def __init__(
        self,
        size: Size,
        fill: Pixels = 114,
        interpolation: str = "bilinear",
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params: dict[str, Any] = {
            "size": self._size(size),
            "fill": self._pixels("fill", fill, (1, 3), 255),
            "interpolation": self._choice(
                "interpolation", interpolation, INTERPOLATIONS
            ),
        }
        super().__init__(params, field, to)


class FiveCrop(Op):
    """Crops the four corners and the middle, in this order: the field gains a first
    dimension of 5. Only `Normalize` and `Cast` can follow it.

    Raises `leat.InvalidArgument` for a picture that is smaller than `size`, and if the
    sample has masks, boxes or keypoints.

    Args:
        size: a side, or (height, width), of each.
    """

    _name = "five_crop"
    _moves_pixels = True

    def __init__(
        self, size: Size, *, field: str | None = None, to: str | None = None
    ) -> None:
        super().__init__({"size": self._size(size)}, field, to)


class TenCrop(Op):
    """As `FiveCrop`, and then the same of the mirrored picture: a first dimension of 10.

    Args:
        size: a side, or (height, width), of each.
        vertical_flip: mirror top to bottom, not left to right.
    """

    _name = "ten_crop"
    _moves_pixels = True

    def __init__(
        self,
        size: Size,
        vertical_flip: bool = False,
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {"size": self._size(size), "vertical_flip": bool(vertical_flip)}
        super().__init__(params, field, to)
