"""The common part of all ops."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn, Sequence, Union

import numpy as np

from leat._arguments import checks_names
from leat.errors import InvalidArgument

Size = Union[int, Sequence[int]]
Pixels = Union[int, Sequence[int]]
INTERPOLATIONS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
MOST_SIDE = 65535
WHOLE = (
    "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
REAL = ("float64", "float32")
FLOATS = ("float32", "float16", "bfloat16", "float64")
PIXELS = (
    "uint8", "float32", "float16", "bfloat16", "float64",
    "int16", "int32", "int64", "uint16", "uint32", "uint64",
)  # fmt: skip
_MODULES = ("torch.", "np.", "numpy.", "jnp.", "jax.numpy.", "ml_dtypes.")
_TORCHS_OTHER_NAMES = {
    "half": "float16", "float": "float32", "double": "float64",
    "short": "int16", "int": "int32", "long": "int64",
}  # fmt: skip


def _numpys_name(name: str) -> str:
    """As NumPy names the number that "half" or "<f4" means; any other text as it is."""
    if name in _TORCHS_OTHER_NAMES and name not in ("half", "double", "short"):
        return name  # "float" is 4 bytes to torch and 8 to NumPy.
    try:
        kind = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        return name
    return kind.name if kind.kind in "iuf" and kind == kind.newbyteorder("<") else name


def dtype_name(dtype: Any) -> str:
    """The name of a type that is NumPy's, torch's, jax's, ml_dtypes' or Python's
    own, or such a name; for anything else, a text for messages."""
    if isinstance(dtype, str):
        name = next((dtype[len(m) :] for m in _MODULES if dtype.startswith(m)), dtype)
        return _TORCHS_OTHER_NAMES.get(name, name) if dtype.startswith("torch.") else _numpys_name(name)
    if dtype is bool or dtype is str:
        return dtype.__name__
    if type(dtype).__module__ == "torch":  # torch.dtype; torch need not be imported.
        return str(dtype).rpartition(".")[2]
    try:
        kind = None if dtype is None else np.dtype(dtype)
    except TypeError:
        kind = None
    if kind is None or kind != kind.newbyteorder("<"):
        return repr(dtype)
    return kind.name


def independent_or_none(value: bool) -> bool | None:
    """As a parameter: left out where it says nothing."""
    return True if value else None


def fail(op: object, message: str) -> NoReturn:
    raise InvalidArgument(f"{type(op).__name__}: {message}")


class Op:
    """The base of all ops. Ops are values: they compare and print."""

    _name = ""
    _reads = False
    """Whether it makes a field of its own of stored bytes, rather than changes what is there."""
    _moves_pixels = False
    """Whether a pixel may lie elsewhere in a picture afterwards."""
    per = "sample"
    """Or "batch": it gets what the loader delivers."""

    def __init_subclass__(cls) -> None:
        if "__init__" in vars(cls):
            checks_names()(cls)

    def __init__(
        self, params: dict[str, Any], field: str | None, to: str | None
    ) -> None:
        self._params = params
        self._field = field
        self._to = to
        for name, value in (("field", field), ("to", to)):
            if value is not None and not (isinstance(value, str) and value):
                fail(self, f"{name}={value!r} must be the name of a field")

    def to_spec(self) -> dict[str, Any]:
        """The op as the engine reads it: a name and the values that are not
        None."""
        params = {**self._params, "field": self._field, "to": self._to}
        return {
            "name": self._name,
            "params": {k: v for k, v in params.items() if v is not None},
        }

    def __repr__(self) -> str:
        params = {**self._params, "field": self._field, "to": self._to}
        inside = ", ".join(f"{k}={v!r}" for k, v in params.items() if v is not None)
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Op):
            return NotImplemented
        return self.to_spec() == other.to_spec()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_spec(), sort_keys=True))

    def _size(self, size: Size) -> int | list[int]:
        sides: list[Any] = list(size) if isinstance(size, (list, tuple)) else [size]
        if len(sides) not in (1, 2) or any(
            isinstance(side, bool)
            or not isinstance(side, (int, np.integer))
            or not 1 <= side <= MOST_SIDE
            for side in sides
        ):
            fail(
                self,
                f"size={size!r} must be a side or (height, width) of "
                f"1 to {MOST_SIDE} pixels",
            )
        whole = [int(side) for side in sides]
        return whole[0] if len(whole) == 1 else whole

    def _pixels(
        self, name: str, value: Any, counts: Sequence[int], most: int
    ) -> int | list[int]:
        numbers = list(value) if isinstance(value, (list, tuple)) else [value]
        if len(numbers) not in counts or any(
            isinstance(number, bool)
            or not isinstance(number, (int, np.integer))
            or not 0 <= number <= most
            for number in numbers
        ):
            which = " or ".join(map(str, counts))
            fail(self, f"{name}={value!r} must be {which} numbers from 0 to {most}")
        numbers = [int(number) for number in numbers]
        return numbers[0] if len(numbers) == 1 else numbers

    def _choice(self, name: str, value: str, choices: Sequence[str]) -> str:
        if value not in choices:
            fail(self, f"{name}={value!r} must be one of {', '.join(choices)}")
        return value

    def _range(self, name: str, value: Sequence[float]) -> list[float]:
        numbers = [float(number) for number in value]
        if len(numbers) != 2 or not 0 < numbers[0] <= numbers[1] < math.inf:
            fail(self, f"{name}={value!r} must be (low, high), 0 < low <= high")
        return numbers

    def _probability(self, p: float) -> float:
        if not 0 <= p <= 1:
            fail(self, f"p={p!r} must be from 0 to 1")
        return float(p)

    def _number_list(
        self, name: str, value: Any, counts: Sequence[int]
    ) -> list[float] | None:
        """This many finite numbers; one alone needs no list. None stays None."""
        if value is None:
            return None
        numbers = list(value) if isinstance(value, (list, tuple)) else [value]
        if len(numbers) not in counts or any(
            isinstance(number, bool)
            or not isinstance(number, (int, float, np.number))
            or not math.isfinite(number)
            for number in numbers
        ):
            which = " or ".join(map(str, counts))
            fail(self, f"{name}={value!r} must be {which} numbers")
        return [float(number) for number in numbers]

    def _bounds(self, name: str, value: Any) -> list[float]:
        """A number a for -a to a, or (low, high)."""
        numbers = self._number_list(name, value, (1, 2)) or []
        if len(numbers) == 1:
            numbers = [-numbers[0], numbers[0]]
        if len(numbers) != 2 or numbers[0] > numbers[1]:
            fail(
                self,
                f"{name}={value!r} must be a number from 0 on, or (low, high), "
                f"low <= high",
            )
        return numbers


class _WithProbability(Op):
    """A change that applies to some of the pictures."""

    def __init__(
        self,
        p: float,
        params: dict[str, Any],
        independent: bool,
        field: str | None,
        to: str | None,
    ) -> None:
        own = {
            "p": self._probability(p),
            "independent": independent_or_none(independent),
        }
        super().__init__({**params, **own}, field, to)


class _OnlyProbability(_WithProbability):
    """A change that has no other parameter."""

    def __init__(
        self,
        p: float = 0.5,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        super().__init__(p, {}, independent, field, to)
