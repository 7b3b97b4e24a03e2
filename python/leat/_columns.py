"""The columns of a dataset, as a filter's function sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
        array = np.array(values, dtype=object) if isinstance(values, list) else values
        return self._column(array, name, self._dataset.classes if name == "label" else ())

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
            self._parsed[key] = self._column(self._dataset.parsed(name, parse), name)
        return self._parsed[key]

    def _column(self, values: np.ndarray, name: str, classes: Sequence[str] = ()) -> np.ndarray:
        column = values.view(_Column)
        column.name, column.classes = name, classes
        return column


class _Column(np.ndarray):
    """A column that refuses to be compared with what its values can never be.

    NumPy says of a number and a text that they differ, so ``of["label"] != "ant"`` would keep every sample.
    """

    name: str
    classes: Sequence[str]

    def __array_finalize__(self, source: Any) -> None:
        self.name = getattr(source, "name", "")
        self.classes = getattr(source, "classes", ())

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc in _COMPARING:
            self._check(inputs)
        if "out" in options:
            options["out"] = tuple(map(_plain, options["out"]))
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function.__name__ in ("isin", "in1d"):
            self._check(args[:2])
        return super().__array_function__(function, types, args, options)

    def _check(self, compared: Sequence[Any]) -> None:
        of_texts = _holds_texts(self)
        for other in compared:
            if of_texts is None or _holds_texts(other) in (None, of_texts):
                continue
            given = np.ravel(np.asarray(_listed(other), dtype=object))[0]
            says = f"the column {self.name!r} has {'texts' if of_texts else 'numbers'}, and {given!r} is none"
            if given in self.classes:
                says += f"; the number of that class is {self.classes.index(given)}, dataset.classes.index({given!r})"
            raise InvalidArgument(says)


_COMPARING = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
_LOOKED_AT = 1000


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, _Column) else value


def _listed(values: Any) -> Any:
    return list(values) if isinstance(values, (set, frozenset)) else _plain(values)


def _holds_texts(values: Any) -> bool | None:
    """Whether values are texts (True) or numbers (False), as far as they are looked at; None if neither or both."""
    array = np.asarray(_listed(values))
    if array.dtype.kind in "US":
        return True
    if array.dtype.kind in "biuf":
        return False if array.size else None
    kinds = {isinstance(value, (str, bytes)) for value in array.ravel()[:_LOOKED_AT] if value is not None}
    return kinds.pop() if len(kinds) == 1 else None


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
