"""Ops that make numbers of another type."""

from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from leat.ops._op import FLOATS, PIXELS, Op, dtype_name, fail

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Normalize(Op):
    """Makes floats: (value / 255 - mean) / std, channel by channel.

    It needs no separate pass over the picture: the engine makes the values while it writes
    the picture into the batch.

    Args:
        mean: one number, or one for each channel, between 0 and 1; or "imagenet".
        std: the same; may be left out if mean is "imagenet".
        dtype: "float32", "float16", "bfloat16" or "float64", or NumPy's, torch's or jax's
            type of that name. None keeps floats that an earlier `Cast` made, and otherwise
            makes float32. Floats of 16 bits are rounded from float32 to the nearest (halves
            to even) once, at the end of the chain.
    """

    _name = "normalize"

    def __init__(
        self,
        mean: str | float | Sequence[float],
        std: str | float | Sequence[float] | None = None,
        *,
        dtype: Any = None,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if std is None and mean != "imagenet":
            fail(self, 'std must be given unless mean is "imagenet"')
        params = {
            "mean": self._numbers("mean", mean),
            "std": None if std is None else self._numbers("std", std),
            "dtype": None
            if dtype is None
            else self._choice("dtype", dtype_name(dtype), FLOATS),
        }
        if isinstance(params["std"], list) and 0.0 in params["std"]:
            fail(self, f"std={std!r} must not be 0")
        super().__init__(params, field, to)

    def _numbers(self, name: str, value: Any) -> str | list[float]:
        if isinstance(value, str):
            return self._choice(name, value, ("imagenet",))
        numbers = [float(x) for x in np.ravel(np.asarray(value, dtype=np.float64))]
        if len(numbers) not in (1, 3) or not all(map(math.isfinite, numbers)):
            fail(self, f"{name}={value!r} must be one number, or one per channel")
        return numbers


class Cast(Op):
    """Converts to another type.

    Args:
        dtype: "float32", "float16", "bfloat16", "float64", "uint8", or one of int16 to
            int64 and uint16 to uint64; or NumPy's, torch's or jax's type of that
            name. Floats of 16 bits are made of the float32, rounded to the nearest
            (halves to even) once, at the end of the chain. NumPy has no bfloat16 of
            its own: ``output="numpy"`` needs the package ml_dtypes for it.
        scale: from 0-255 to 0-1, if to floats. Whole numbers stay 0 to 255.
    """

    _name = "cast"

    def __init__(
        self,
        dtype: Any = "float32",
        scale: bool = True,
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {
            "dtype": self._choice("dtype", dtype_name(dtype), PIXELS),
            "scale": bool(scale),
        }
        super().__init__(params, field, to)
