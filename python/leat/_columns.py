"""The columns of a dataset, as a filter's function sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from leat.errors import InvalidArgument

if TYPE_CHECKING:
    from leat._dataset import Dataset


def bytes_are_no_column(name: str) -> InvalidArgument:
    return InvalidArgument(
        f"the field {name!r} is bytes that lie in objects, and is no column of numbers or "
        f"texts. parsed({name!r}, int) reads it of all samples and parses it; "
        f"lengths({name!r}) are its lengths in bytes, and has({name!r}) says which "
        "samples have it"
    )


class Columns(Mapping[str, Any]):
    """The columns of a dataset, made when asked for.

    ``of["width"]`` is a column; ``of.lengths("image")``, ``of.has("mask")`` and
    ``of.parsed("cls", int)`` are as `leat.Dataset` has them.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._parsed: dict[tuple[str, Any], np.ndarray] = {}

    def __getitem__(self, name: str) -> Any:
        if self._dataset.fields.get(name) == "bytes":
            return BytesColumn(name)
        values = self._dataset.column(name)
        return np.array(values, dtype=object) if isinstance(values, list) else values

    def __iter__(self) -> Iterator[str]:
        return iter(self._dataset.fields)

    def __len__(self) -> int:
        return len(self._dataset.fields)

    def lengths(self, name: str) -> np.ndarray:
        return self._dataset.lengths(name)

    def has(self, name: str) -> np.ndarray:
        return self._dataset.has(name)

    def parsed(self, name: str, parse: Callable[[bytes], Any]) -> np.ndarray:
        """Read once, however often it is asked for."""
        key = (name, parse)
        if key not in self._parsed:
            self._parsed[key] = self._dataset.parsed(name, parse)
        return self._parsed[key]


class BytesColumn:
    """A field of bytes in place of a column: any use of it raises."""

    __slots__ = ("_name",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<the bytes of {self._name!r}: no column>"

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # Python and NumPy ask what it can do.
            raise AttributeError(attribute)
        raise bytes_are_no_column(self._name)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise bytes_are_no_column(self._name)

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _refuse
    __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = __invert__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __array_ufunc__ = __array_function__ = _refuse
    __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = __array__ = _refuse


def parse_all(dataset: Dataset, name: str, parse: Callable[[bytes], Any]) -> np.ndarray:
    """As `leat.Dataset.parsed`."""
    from leat._loader import Loader

    if parse is str:
        parse = bytes.decode
    values: list[Any] = []
    # This process reads all of it, as any rank.
    with Loader(
        dataset, batch_size=min(len(dataset), 1024), shuffle=False, drop_last=False,
        fields=[name], batch="tuple", epochs=1, rank=0, world_size=1,
        output="numpy",
    ) as loader:  # fmt: skip
        for (field,) in loader:
            for data in field.tolist():
                try:
                    values.append(parse(data))
                except Exception as error:
                    is_long = isinstance(data, bytes) and len(data) > 40
                    shown = data[:40] + b"..." if is_long else data
                    raise InvalidArgument(
                        f"parsed({name!r}): sample {len(values)} "
                        f"({dataset.key(len(values))}) has {shown!r}: {error}"
                    ) from error
    if all(isinstance(value, (int, float, np.number, np.bool_)) for value in values):
        return np.array(values)
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made
