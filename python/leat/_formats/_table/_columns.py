"""Makes fields of a table's columns, batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from leat import _native
from leat._formats._table._batches import Again, Tables, Values
from leat._formats._table._files import TableFile
from leat._formats._table._manifest import Places
from leat.errors import Cancelled, Corrupt, InvalidArgument

_MOST_BYTES = 2**48
_MOST_FLOAT = sys.float_info.max
_NONE = type(None)


@dataclass(frozen=True)
class Plan:
    """Which columns become which fields: the arguments of `leat.Dataset.from_manifest`."""

    fields: Mapping[str, str]
    columns: Mapping[str, str]
    sizes: Mapping[str, str]
    ranges: Mapping[str, tuple[str, str]]
    classes: Union[Sequence[str], None]

    def wanted(self) -> list[str]:
        """The columns of the table that are read."""
        parts = [each for both in self.ranges.values() for each in both]
        return [*self.fields.values(), *self.columns.values(), *self.sizes.values(), *parts]


@dataclass
class _Field:
    """One field, and what is known of its values so far."""

    name: str
    column: str
    may_be_path: bool
    """Whether texts name objects, or classes if the field is `label`."""
    table: str
    types: set[type] = field(default_factory=set)
    missing: Union[int, None] = None
    """The first row without a value, from 1."""
    is_float: bool = False
    """Some row was no integer, or none of int64."""

    def kind(self) -> str:
        """``bytes``, ``label``, ``string``, ``int64`` or ``float64``.

        Raises:
            leat.InvalidArgument: none of them.
        """
        if self.may_be_path and self.types <= {str, _NONE}:
            if self.name != "label":
                return "bytes"
            if self.missing:
                raise InvalidArgument(f"{self.table}, row {self.missing}: no label; fill it in or leave the row out")
            return "label"
        if self.types <= {str}:
            return "string"
        if self.missing:
            raise InvalidArgument(
                f"{self.table}, row {self.missing}: no value for {self.name!r}; fill it in or leave the row out"
            )
        if self.types <= {int, float, bool}:
            return "float64" if self.is_float else "int64"
        found = ", ".join(sorted(kind.__name__ for kind in self.types))
        raise InvalidArgument(f"{self.table}: {self.name!r} is neither all numbers nor all texts, but {found}")

    def take(self, values: Values, row: int) -> None:
        """Learns of more values, the first of which is in this row."""
        self.types |= values.types
        if self.missing is None:
            first = values.first_missing()
            self.missing = None if first is None else row + first
        self.is_float |= float in values.types


class TableReader:
    """Reads a table into a `_native.RowCollector`.

    The kinds of fields are decided by the first batch. If a later one shows that one of them was
    wrong, such as a number in a CSV that is none, the table is read once more, with that known.
    """

    def __init__(
        self, files: Sequence[TableFile], format: Union[str, None], plan: Plan, base: str, name: str
    ) -> None:
        self._tables = Tables(files, format, plan.wanted())
        self._plan = plan
        self._base = base
        self._name = name
        self._floats: set[str] = set()
        """Fields of numbers of which some are no int64."""

    def read(self, is_stopped: Callable[[], bool]) -> tuple[Any, list[str]]:
        """The rows, and the places of their objects.

        Raises:
            leat.InvalidArgument, leat.Corrupt: see `leat.Dataset.from_manifest`.
        """
        while True:
            try:
                return self._read_once(is_stopped)
            except Again:
                continue

    def _read_once(self, is_stopped: Callable[[], bool]) -> tuple[Any, list[str]]:
        filling = _Filling(self._plan, Places(self._base, self._name), self._name, self._floats)
        for rows, values in self._tables.batches():
            if is_stopped():
                raise Cancelled(f"reading {self._name} was stopped")
            filling.add(rows, values)
        return filling.finish(), filling.places.urls or [self._base]


class _Filling:
    """One pass over the table."""

    def __init__(self, plan: Plan, places: Places, table: str, floats: set[str]) -> None:
        self.places = places
        self._plan = plan
        self._table = table
        self._floats = floats
        self._fields = [_Field(name, column, True, table) for name, column in plan.fields.items()]
        self._fields += [_Field(name, column, False, table) for name, column in plan.columns.items()]
        for each in self._fields:
            each.is_float = each.name in floats
        self._kinds: list[str] = []
        self._collector: Any = None
        self._rows = 0
        self._labels: dict[str, int] = {}
        if plan.classes is not None:
            self._labels = {text: number for number, text in enumerate(plan.classes)}

    def add(self, rows: int, values: Mapping[str, Values]) -> None:
        for each in self._fields:
            each.take(values[each.column], self._rows + 1)
        kinds = [each.kind() for each in self._fields]
        if self._collector is None:
            self._begin(kinds)
        elif kinds != self._kinds:
            self._check_kinds(kinds)
        self._collector.add(rows, [self._values(each, kind, values) for each, kind in zip(self._fields, kinds)])
        self._rows += rows

    def finish(self) -> Any:
        for each, kind in zip(self._fields, self._kinds):
            if kind == "float64" and float not in each.types:
                raise InvalidArgument(f"{self._table}: {each.name!r} has numbers that do not fit into int64")
        self._check_paths()
        classes = list(self._plan.classes or ())
        if "label" in self._kinds and self._plan.classes is None:
            classes = sorted(self._labels)
            ranks = {text: rank for rank, text in enumerate(classes)}
            self._collector.renumber(self._kinds.index("label"), [ranks[text] for text in self._labels])
        self._collector.set_classes(classes)
        return self._collector

    def _begin(self, kinds: list[str]) -> None:
        self._kinds = kinds
        if "label" in kinds and len(self._labels) != len(self._plan.classes or ()):
            raise InvalidArgument("classes= names one twice")
        self._collector = _native.RowCollector(
            fields=[
                (each.name, "int64" if kind == "label" else kind,
                 each.name in self._plan.sizes, kind == "bytes" and each.name in self._plan.ranges)
                for each, kind in zip(self._fields, kinds)
            ],
            ask=self.places.find,
            unknown=self.places.special_prefixes,
        )  # fmt: skip

    def _check_kinds(self, kinds: list[str]) -> None:
        """Has the table read again if numbers turned out to be floats. No other kinds go together."""
        for each, before, now in zip(self._fields, self._kinds, kinds):
            if before != now and (before, now) != ("int64", "float64"):
                raise InvalidArgument(
                    f"{self._table}, row {self._rows + 1}: {each.name!r} is {now} from here on, and was {before}"
                )
        self._floats.update(each.name for each, kind in zip(self._fields, kinds) if kind == "float64")
        raise Again

    def _check_paths(self) -> None:
        paths = [each.name for each, kind in zip(self._fields, self._kinds) if kind == "bytes"]
        if not paths:
            raise InvalidArgument(
                f"{self._table}: no field is a path of objects: the columns that fields= names hold numbers"
            )
        for option, fields in (("sizes", self._plan.sizes), ("ranges", self._plan.ranges)):
            for name in fields:
                if name not in paths:
                    raise InvalidArgument(f"{option}= names {name!r}, which is no field of paths")

    def _values(self, each: _Field, kind: str, batch: Mapping[str, Values]) -> Any:
        values = batch[each.column]
        if kind == "bytes":
            at, length = self._plan.ranges.get(each.name, (None, None))
            numbers = [self._plan.sizes.get(each.name), at, length]
            told = [column and self._numbers_of_bytes(batch[column]) for column in numbers]
            return (self._texts(each, values), *told)
        if kind == "label":
            self._texts(each, values)
            return self._numbered(values)
        if kind == "string":
            return self._texts(each, values)
        if kind == "int64":
            found = values.integers()
            if found is not None:
                return self._labels_in_classes(each, found)
            self._floats.add(each.name)
            raise Again
        floats = self._labels_in_classes(each, self._float64s(each, values))
        if each.may_be_path and each.name == "label" and np.isnan(floats).any():
            raise InvalidArgument(f"{self._table}: some labels are not a number")
        return floats

    def _texts(self, each: _Field, values: Values) -> Any:
        texts = values.texts()
        if isinstance(texts, tuple):  # Arrow's are UTF-8.
            return texts
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            row = next(row for row, text in enumerate(texts) if any("\ud800" <= one <= "\udfff" for one in text))
            raise Corrupt(
                f"{self._table}, row {self._rows + row + 1}: {each.name!r} is {texts[row]!r}, which has half of a "
                "character (a lone surrogate) and is no text; write it anew"
            ) from None
        return texts

    def _float64s(self, each: _Field, values: Values) -> np.ndarray:
        try:
            return values.floats()
        except OverflowError:
            row = next(row for row in range(len(values)) if type(values[row]) is int and abs(values[row]) > _MOST_FLOAT)
            raise InvalidArgument(
                f"{self._table}, row {self._rows + row + 1}: {each.name!r} has a number that is too large for float64"
            ) from None

    def _labels_in_classes(self, each: _Field, found: np.ndarray) -> np.ndarray:
        """The same numbers. Raises `leat.InvalidArgument` if they are labels that classes= does not name."""
        classes = self._plan.classes
        if each.name != "label" or classes is None or ((found >= 0) & (found < len(classes))).all():
            return found
        row = int(np.argmin((found >= 0) & (found < len(classes))))
        raise InvalidArgument(
            f"{self._table}, row {self._rows + row + 1}: label {found[row]}, and classes= names {len(classes)}; name "
            "all of them, or leave the row out"
        )

    def _numbers_of_bytes(self, values: Values) -> np.ndarray:
        found = values.integers() if values.types <= {int} else None
        if found is not None and ((found >= 0) & (found < _MOST_BYTES)).all():
            return found
        for row in range(len(values)):
            value = values[row]
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST_BYTES:
                raise InvalidArgument(f"{self._table}, row {self._rows + row + 1}: {value!r} is no number of bytes")
        raise AssertionError("a number of bytes was wrong, and none is")

    def _numbered(self, values: Values) -> np.ndarray:
        texts, codes = values.coded()
        if self._plan.classes is None:
            numbers = [self._labels.setdefault(text, len(self._labels)) for text in texts]
        else:
            numbers = [self._labels.get(text, -1) for text in texts]
        found = np.array(numbers, np.int64)[codes]
        if self._plan.classes is not None and (found < 0).any():
            row = int(np.argmax(found < 0))
            raise InvalidArgument(
                f"{self._table}, row {self._rows + row + 1}: label {texts[codes[row]]!r} is not in classes="
            )
        return found


def columns_said(columns: Union[Mapping[str, str], Iterable[str]]) -> dict[str, str]:
    """columns= as from fields to columns."""
    return dict(columns) if isinstance(columns, Mapping) else {column: column for column in columns}
