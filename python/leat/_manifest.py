"""Reads manifests: tables of which a row is a sample."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import posixpath
import re
from collections.abc import Iterable, Sequence
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
"""What the ends of names mean."""

_WHOLE = re.compile(r"[+-]?[0-9]+\Z")
_INT64 = range(-(2**63), 2**63)


@dataclass
class Column:
    """A field of the samples, with a value for each row."""

    name: str
    kind: str
    """``bytes`` (the values are keys of objects), ``int64``, ``float64``, ``string``."""
    values: Values
    sizes: Union[Sequence[int], None] = None
    """Of the objects, where the manifest has them."""


def format_of(name: str) -> str:
    """Raises `leat.InvalidArgument` for a name whose end says nothing."""
    end = posixpath.splitext(name)[1].lower()
    if end in FORMATS:
        return FORMATS[end]
    raise InvalidArgument(
        f"{name}: a manifest is called {', '.join(FORMATS)}; format= says which it is otherwise"
    )


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


def _column(table: dict[str, Values], column: str, name: str) -> Values:
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


def _label_column(
    values: Values, classes: Union[Sequence[str], None], name: str
) -> tuple[Column, list[str]]:
    """Texts become the number of their class."""
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


def _relative(path: str, base: str) -> Union[str, None]:
    """The key below ``base``; None if it is elsewhere."""
    if "://" in path:
        inside = path.startswith(base.rstrip("/") + "/")
        return path[len(base.rstrip("/")) + 1 :] if inside else None
    if "://" in base and not base.startswith("file://"):
        return path.lstrip("/")
    folder = os.path.abspath(base[len("file://") :] if base.startswith("file://") else base)
    whole = os.path.normpath(os.path.join(folder, path))
    if os.path.commonpath([folder, whole]) != folder or whole == folder:
        return None
    return os.path.relpath(whole, folder)


def _bytes_column(
    field: str, paths: Values, sizes: Union[Values, None], base: str, name: str
) -> Column:
    keys = []
    for row, path in enumerate(paths, 1):
        key = _relative(path, base) if path else ""
        if key is None:
            raise InvalidArgument(
                f"{name}, row {row}: {path} does not lie below {base}; give base= a place "
                "that holds all of them"
            )
        keys.append(key)
    if sizes is not None:
        for row, size in enumerate(sizes, 1):
            if not isinstance(size, int) or size < 0:
                raise InvalidArgument(f"{name}, row {row}: {size!r} is no size in bytes")
    return Column(field, "bytes", keys, sizes)


def columns_of(
    table: dict[str, Values],
    *,
    fields: dict[str, str],
    columns: Union[dict[str, str], Iterable[str]],
    sizes: dict[str, str],
    classes: Union[Sequence[str], None],
    base: str,
    name: str,
) -> tuple[list[Column], list[str]]:
    """What `leat.Dataset.from_manifest` asks for, and the names of the classes."""
    made: list[Column] = []
    names: list[str] = list(classes or ())
    for field, column in fields.items():
        values = _column(table, column, name)
        is_text = all(value is None or isinstance(value, str) for value in values)
        if is_text and field == "label":
            labels, names = _label_column(values, classes, name)
            made.append(labels)
        elif is_text:
            known = _column(table, sizes[field], name) if field in sizes else None
            made.append(_bytes_column(field, values, known, base, name))
        else:
            made.append(scalar_column(field, values, name))
    renamed = columns if isinstance(columns, dict) else {column: column for column in columns}
    for field, column in renamed.items():
        made.append(scalar_column(field, _column(table, column, name), name))
    _check(made, sizes, name)
    return made, names


def _check(made: list[Column], sizes: dict[str, str], name: str) -> None:
    paths = [column.name for column in made if column.kind == "bytes"]
    if not paths:
        raise InvalidArgument(
            f"{name}: no field is a path of objects: the columns that fields= names hold numbers"
        )
    for field in sizes:
        if field not in paths:
            raise InvalidArgument(f"sizes= names {field!r}, which is no field of paths")
    for column in made:
        if column.kind == "float64" and column.name == "label" and any(map(math.isnan, column.values)):
            raise InvalidArgument(f"{name}: some labels are not a number")
