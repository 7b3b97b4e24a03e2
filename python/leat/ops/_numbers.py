"""Ops that make numbers of another type."""

from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from leat.ops._op import Op, fail

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Normalize(Op):
    """To float32: (value / 255 - mean) / std, channel by channel.

    Args:
        mean: one number, or one for each channel, between 0 and 1; or "imagenet".
        std: the same; may be left out if mean is "imagenet".
    """

    _name = "normalize"

    def __init__(
        self,
        mean: str | float | Sequence[float],
        std: str | float | Sequence[float] | None = None,
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if std is None and mean != "imagenet":
            fail(self, 'std must be given unless mean is "imagenet"')
        params = {
            "mean": self._numbers("mean", mean),
            "std": None if std is None else self._numbers("std", std),
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
    """To another type.

    Args:
        dtype: "uint8" or "float32", or NumPy's types of these names.
        scale: from 0-255 to 0-1, if to float32.
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
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        params = {
            "dtype": self._choice("dtype", name, ("uint8", "float32")),
            "scale": bool(scale),
        }
        super().__init__(params, field, to)
