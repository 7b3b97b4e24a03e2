"""Reads manifests: tables of which a row is a sample."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import posixpath
import re
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from leat.errors import Corrupt, InvalidArgument

Values = Sequence[Any]
"""A column of a manifest: str, int, float, bool or None a row."""

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
"""The kinds of values, by the ends of names."""

_MOST_PLACES = 64
"""Each is a store of its own, with threads and connections."""

_WHOLE = re.compile(r"[+-]?[0-9]+\Z")
_INT64 = range(-(2**63), 2**63)


@dataclass
class Column:
    """A field of the samples, with a value for each row."""

    name: str
    kind: str
    """``bytes`` (the values say which objects), ``int64``, ``float64``, ``string``."""
    values: Values
    sizes: Union[Sequence[int], None] = None
    """The sizes of the objects, if the manifest has them."""
    offsets: Union[Sequence[int], None] = None
    lengths: Union[Sequence[int], None] = None
    """The part of each object that is the value, if it is not all of it."""


def format_of(name: str) -> str:
    """Raises `leat.InvalidArgument` for a name whose end says nothing."""
    end = posixpath.splitext(name)[1].lower()
    if end in FORMATS:
        return FORMATS[end]
    raise InvalidArgument(
        f"{name}: a manifest is called {', '.join(FORMATS)}; format= says which it is otherwise"
    )


def base_of(url: Any) -> str:
    """The folder that paths are relative to where nobody says it.

    Raises:
        leat.InvalidArgument: the manifests lie in several folders.
    """
    names = [url] if isinstance(url, (str, os.PathLike)) else list(url)
    folders = {os.path.dirname(os.fspath(name)) or "." for name in names}
    if len(folders) != 1 or is_pattern(next(iter(folders))):
        raise InvalidArgument(
            "the manifests lie in several folders, so nobody knows what their paths are "
            "relative to; say it with base="
        )
    return folders.pop()


def is_pattern(url: str) -> bool:
    """Whether it may name several objects."""
    _, scheme, path = url.rpartition("://")
    wild = "*[{" if url.startswith("http") else "*?[{"
    is_there = not scheme and os.path.exists(url)
    return not is_there and any(char in path for char in wild)


def read_tables(tables: Iterable[tuple[str, bytes]], format: Union[str, None]) -> Mapping[str, Values]:
    """The columns of several manifests, one below the other.

    Raises:
        leat.InvalidArgument: their columns differ.
    """
    first = ""
    whole: dict[str, list[Any]] = {}
    for name, data in tables:
        table = read_table(data, format or format_of(name), name)
        if not whole:
            first, whole = name, {key: list(values) for key, values in table.items()}
        elif table.keys() != whole.keys():
            raise InvalidArgument(
                f"{name} has the columns {', '.join(table)}, and {first} has {', '.join(whole)}"
            )
        else:
            for key, values in table.items():
                whole[key].extend(values)
    return whole


def read_table(data: bytes, format: str, name: str) -> dict[str, Values]:
    """The columns of a manifest.

    Raises:
        leat.Corrupt: it cannot be read as what it is called; names the line.
        leat.InvalidArgument: no such format, or pyarrow is needed and missing.
    """
    if format in ("csv", "tsv"):
        table = _read_csv(data, name, "\t" if format == "tsv" else ",")
    elif format == "jsonl":
        table = _read_jsonl(data, name)
    elif format == "parquet":
        table = _read_parquet(data, name)
    else:
        raise InvalidArgument(
            f"format={format!r}; it is {', '.join(sorted(set(FORMATS.values())))}"
        )
    if not table or not len(next(iter(table.values()))):
        raise InvalidArgument(f"{name} has no rows")
    return table


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Corrupt(f"{name}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def _read_csv(data: bytes, name: str, delimiter: str) -> dict[str, Values]:
    reader = csv.reader(io.StringIO(_text(data, name), newline=""), delimiter=delimiter, strict=True)
    try:
        names = next(reader, [])
        if len(set(names)) != len(names):
            raise Corrupt(f"{name}: the first line names a column twice")
        columns: list[list[str]] = [[] for _ in names]
        for row in reader:
            if not row:
                continue
            if len(row) != len(names):
                raise Corrupt(
                    f"{name}, line {reader.line_num}: {len(row)} values, but the first "
                    f"line names {len(names)} columns"
                )
            for column, value in zip(columns, row):
                column.append(value)
    except csv.Error as error:
        raise Corrupt(f"{name}, line {reader.line_num}: {error}") from None
    return {key: _numbers_of(column) for key, column in zip(names, columns)}


def _numbers_of(texts: list[str]) -> Values:
    """As numbers if all of them are; a CSV has no types."""
    if all(_WHOLE.match(text) for text in texts):
        return [int(text) for text in texts]
    try:
        return [float(text) for text in texts]
    except ValueError:
        return texts


def _read_jsonl(data: bytes, name: str) -> dict[str, Values]:
    rows = []
    for number, line in enumerate(_text(data, name).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Corrupt(f"{name}, line {number}: {error}") from None
        if not isinstance(row, dict):
            raise Corrupt(f"{name}, line {number}: not an object {{...}}")
        rows.append(row)
    names = dict.fromkeys(key for row in rows for key in row)
    return {key: [row.get(key) for row in rows] for key in names}


def _read_parquet(data: bytes, name: str) -> dict[str, Values]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InvalidArgument(
            f"{name}: Parquet needs pyarrow; pip install pyarrow, or write it as CSV"
        ) from None
    try:
        table = parquet.read_table(io.BytesIO(data))
    except (ArrowException, OSError) as error:
        raise Corrupt(f"{name}: {error}") from None
    return {key: table.column(key).to_pylist() for key in table.column_names}


def _column(table: Mapping[str, Values], column: str, name: str) -> Values:
    if column in table:
        return table[column]
    raise InvalidArgument(f"{name} has no column {column!r}; it has {', '.join(table)}")


def _first_missing(values: Values) -> Union[int, None]:
    return next((row for row, value in enumerate(values, 1) if value is None or value == ""), None)


def scalar_column(field: str, values: Values, name: str) -> Column:
    """Numbers as int64 or float64, texts as they are.

    Raises:
        leat.InvalidArgument: rows without a value, or of several kinds.
    """
    row = _first_missing(values)
    kinds = {type(value) for value in values}
    if kinds <= {str}:
        return Column(field, "string", values)
    if row is not None:
        raise InvalidArgument(
            f"{name}, row {row}: no value for {field!r}; fill it in or leave the row out"
        )
    if kinds <= {int, bool}:
        if any(value not in _INT64 for value in values):
            raise InvalidArgument(f"{name}: {field!r} has numbers that do not fit into int64")
        return Column(field, "int64", [int(value) for value in values])
    if kinds <= {int, float, bool}:
        return Column(field, "float64", [float(value) for value in values])
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InvalidArgument(
        f"{name}: {field!r} is neither all numbers nor all texts, but {found}"
    )


def label_column(
    values: Values, classes: Union[Sequence[str], None], name: str
) -> tuple[Column, list[str]]:
    """Texts become the number of their class, of which there are these; None: as sorted."""
    if row := _first_missing(values):
        raise InvalidArgument(f"{name}, row {row}: no label; fill it in or leave the row out")
    names = list(classes) if classes is not None else sorted(set(values))
    numbers = {text: number for number, text in enumerate(names)}
    if len(numbers) != len(names):
        raise InvalidArgument("classes= names one twice")
    for row, text in enumerate(values, 1):
        if text not in numbers:
            raise InvalidArgument(f"{name}, row {row}: label {text!r} is not in classes=")
    return Column("label", "int64", [numbers[text] for text in values]), names


class Places:
    """The places of a manifest's objects: the folder that paths are relative to, and
    those that whole URLs name."""

    def __init__(self, base: str, name: str) -> None:
        self._base = base.rstrip("/") or "/"
        self._name = name
        self._is_table_local = is_local(name)
        self._numbers: dict[str, int] = {}

    def find(self, path: str, row: int) -> tuple[int, str]:
        """The number of a place, and the key in it.

        Raises:
            leat.InvalidArgument: it leads out of `base`; a URL that cannot be read;
                too many places.
        """
        place, key = self._place_of(path, row)
        number = self._numbers.setdefault(place, len(self._numbers))
        if number == _MOST_PLACES:
            raise InvalidArgument(
                f"{self._name}, row {row}: {path} lies in one more than {_MOST_PLACES} places "
                "(buckets and hosts); make a manifest of each part and join the datasets"
            )
        return number, key

    @property
    def urls(self) -> list[str]:
        return list(self._numbers)

    def _place_of(self, path: str, row: int) -> tuple[str, str]:
        base = self._base
        if "://" in path:
            if path.startswith(base + "/"):
                return base, path[len(base) + 1 :]
            if path.startswith("file://"):
                return self._local(path[len("file://") :], path, row)
            scheme, _, rest = path.partition("://")
            host, _, key = rest.partition("/")
            if not host or not key:
                raise self._bad(path, row, "names no object")
            if scheme in ("http", "https"):
                if "?" in key or "#" in key:
                    raise self._bad(path.partition("?")[0], row, "has a query or a fragment")
                key = urllib.parse.unquote(key)
            return f"{scheme}://{host}", key
        if not is_local(base):
            return base, path.lstrip("/")
        if os.path.isabs(path):
            return self._local(path, path, row)
        folder = local_folder(base)
        whole = os.path.normpath(os.path.join(folder, path))
        if os.path.commonpath([folder, whole]) != folder or whole == folder:
            raise self._bad(
                path, row, f"does not lie below {base}; give base= a place that holds all of them"
            )
        return base, os.path.relpath(whole, folder)

    def _local(self, path: str, shown: str, row: int) -> tuple[str, str]:
        whole = os.path.normpath(path)
        if is_local(self._base):
            folder = local_folder(self._base)
            if os.path.commonpath([folder, whole]) == folder and whole != folder:
                return self._base, os.path.relpath(whole, folder)
        if not self._is_table_local:
            raise self._bad(
                shown, row, "is a file of this machine, and the manifest comes from elsewhere; "
                "copy the manifest here if that is meant",
            )  # fmt: skip
        return "/", whole.lstrip("/")

    def _bad(self, path: str, row: int, why: str) -> InvalidArgument:
        return InvalidArgument(f"{self._name}, row {row}: {path} {why}")


def is_local(url: str) -> bool:
    return "://" not in url or url.startswith("file://")


def local_folder(base: str) -> str:
    return os.path.abspath(base[len("file://") :] if base.startswith("file://") else base)


def _bytes_column(
    field: str,
    paths: Values,
    numbers: list[Union[Values, None]],
    places: Places,
    name: str,
) -> Column:
    """`numbers` are sizes of objects, offsets and lengths of parts; each may be None."""
    found = [places.find(path, row) if path else None for row, path in enumerate(paths, 1)]
    for values in numbers:
        for row, value in enumerate(values or (), 1):
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**48:
                raise InvalidArgument(f"{name}, row {row}: {value!r} is no number of bytes")
    return Column(field, "bytes", found, *numbers)


def names_of(column: Column, several_places: bool) -> list[str]:
    """The names of samples, if the key of their first object does not tell them
    apart."""
    keys = ["" if each is None else each[1] for each in column.values]
    if column.offsets is not None:
        return [f"{key}:{offset}" for key, offset in zip(keys, column.offsets)]
    return keys if several_places else []


def keys_of(found: Values, places: Places) -> list[str]:
    """The engine's names of the objects that `Places.find` found: with several
    places, the number of the place comes first."""
    if len(places.urls) == 1:
        return ["" if each is None else each[1] for each in found]
    return ["" if each is None else f"{each[0]}/{each[1]}" for each in found]


def columns_of(
    table: Mapping[str, Values],
    *,
    fields: dict[str, str],
    columns: Union[dict[str, str], Iterable[str]],
    sizes: dict[str, str],
    ranges: dict[str, tuple[str, str]],
    classes: Union[Sequence[str], None],
    places: Places,
    name: str,
) -> tuple[list[Column], list[str]]:
    """The columns that `leat.Dataset.from_manifest` asks for, and the names of
    the classes.

    Columns of bytes have what `Places.find` found, None for no object.
    """
    made: list[Column] = []
    names: list[str] = list(classes or ())
    for field, column in fields.items():
        values = _column(table, column, name)
        is_text = all(value is None or isinstance(value, str) for value in values)
        if is_text and field == "label":
            labels, names = label_column(values, classes, name)
            made.append(labels)
        elif is_text:
            wanted = [sizes.get(field), *ranges.get(field, (None, None))]
            numbers = [each and _column(table, each, name) for each in wanted]
            made.append(_bytes_column(field, values, numbers, places, name))
        else:
            made.append(scalar_column(field, values, name))
    renamed = columns if isinstance(columns, dict) else {column: column for column in columns}
    for field, column in renamed.items():
        made.append(scalar_column(field, _column(table, column, name), name))
    _check(made, {"sizes": sizes, "ranges": ranges}, name)
    return made, names


def _check(made: list[Column], given: dict[str, Any], name: str) -> None:
    paths = [column.name for column in made if column.kind == "bytes"]
    if not paths:
        raise InvalidArgument(
            f"{name}: no field is a path of objects: the columns that fields= names hold numbers"
        )
    for option, fields in given.items():
        for field in fields:
            if field not in paths:
                raise InvalidArgument(f"{option}= names {field!r}, which is no field of paths")
    for column in made:
        if column.kind == "float64" and column.name == "label" and any(map(math.isnan, column.values)):
            raise InvalidArgument(f"{name}: some labels are not a number")
