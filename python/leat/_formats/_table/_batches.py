"""Reads tables in batches: CSV and TSV, JSON lines, Parquet."""

from __future__ import annotations

import codecs
import csv
import functools
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Union

import numpy as np

from leat._formats._table._files import PIECE_BYTES, TableFile
from leat._formats._table._manifest import FORMATS, format_of
from leat.errors import Corrupt, InvalidArgument

ROWS_AT_ONCE = 1 << 16
_MOST_LINE_CHARS = 64 << 20
_COLUMN_BYTES = 8 << 20
"""As much of a Parquet file is read at once of each column."""
_TEXT_BYTES = 4 << 20

_WHOLE = re.compile(r"[+-]?[0-9]{1,300}\Z")
_NUMBER = re.compile(
    r"(?![ \t]*[+-]?[0-9]{301})"
    r"[ \t]*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|NaN|inf|Inf|Infinity)[ \t]*\Z"
)
"""As programs write numbers into a CSV. float() takes more for one: 12_34, digits of other scripts, the name Nan.
More digits than float64 can hold are a text."""


class Again(Exception):
    """The types of a column turned out to be others than in the rows before: the table has to be
    read once more, now that this is known."""


class Values:
    """Some values of a column, as Python has them."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, row: int) -> Any:
        return self._values[row]

    @functools.cached_property
    def types(self) -> frozenset[type]:
        return frozenset(map(type, self._values))

    def first_missing(self) -> Union[int, None]:
        """The first row that is None or empty."""
        return next((row for row, value in enumerate(self._values) if value is None or value == ""), None)

    def texts(self) -> Any:
        """As `_native.RowCollector` takes them, None as "". REQUIRES: str and None alone."""
        if type(None) not in self.types:
            return self._values
        return ["" if value is None else value for value in self._values]

    def integers(self) -> Union[np.ndarray, None]:
        """int64; None if some do not fit. REQUIRES: int and bool alone."""
        try:
            return np.array(self._values, np.int64)
        except OverflowError:
            return None

    def floats(self) -> np.ndarray:
        """float64. REQUIRES: int, bool and float alone."""
        return np.array([float(value) for value in self._values], np.float64)

    def coded(self) -> tuple[list[str], np.ndarray]:
        """The texts that there are, each once, and the number of each row's. REQUIRES: str alone."""
        numbers: dict[str, int] = {}
        codes = [numbers.setdefault(text, len(numbers)) for text in self._values]
        return list(numbers), np.array(codes, np.int64)


class ArrowValues(Values):
    """The same of an Arrow array of texts or numbers."""

    def __init__(self, array: Any, kind: type) -> None:
        self._array = array
        self._kind = kind

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, row: int) -> Any:
        return self._array[row].as_py()

    @functools.cached_property
    def types(self) -> frozenset[type]:
        nulls = self._array.null_count
        kinds = [self._kind] if nulls < len(self) else []
        return frozenset([*kinds, type(None)] if nulls else kinds)

    def first_missing(self) -> Union[int, None]:
        from pyarrow import compute

        missing = compute.is_null(self._array)
        if self._kind is str:
            missing = compute.or_(missing, compute.equal(compute.fill_null(self._array, ""), ""))
        row = compute.index(missing, True).as_py()
        return None if row < 0 else row

    def texts(self) -> Any:
        import pyarrow as pa
        from pyarrow import compute

        filled = compute.fill_null(self._array, "").cast(pa.large_string())
        _, places, found = filled.buffers()
        if not len(filled):
            return []
        ends = np.frombuffer(places, np.int64)[filled.offset :][: len(filled) + 1]
        data = np.empty(0, np.uint8) if found is None else np.frombuffer(found, np.uint8)
        return ends, data

    def integers(self) -> Union[np.ndarray, None]:
        import pyarrow as pa

        try:
            return self._array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return None

    def floats(self) -> np.ndarray:
        return self._array.to_numpy(zero_copy_only=False).astype(np.float64)

    def coded(self) -> tuple[list[str], np.ndarray]:
        found = self._array.dictionary_encode()
        return found.dictionary.to_pylist(), found.indices.to_numpy(zero_copy_only=False).astype(np.int64)


Batch = tuple[int, dict[str, Values]]
"""Rows, and of each column that is wanted their values."""


class Tables:
    """Tables of the same columns, one below the other."""

    def __init__(self, files: Sequence[TableFile], format: Union[str, None], wanted: Iterable[str]) -> None:
        self._files = files
        self._formats = [format or format_of(file.name) for file in files]
        for each in self._formats:
            if each not in FORMATS.values():
                raise InvalidArgument(f"format={each!r}; it is {', '.join(sorted(set(FORMATS.values())))}")
        self._wanted = list(dict.fromkeys(wanted))
        self._csv_types: dict[str, type] = {}
        """The types of CSV's texts, as far as is known: int, then float, then str."""
        self._names: list[str] = []
        self._first: Union[tuple[str, list[str]], None] = None

    def batches(self) -> Iterator[Batch]:
        """All rows. After `Again`, all of them once more.

        Raises:
            leat.Corrupt: a file that cannot be read as what it is called; names the line.
            leat.InvalidArgument: a column that is not there; tables of other columns.
            Again: see there.
        """
        self._first = None
        for file, format in zip(self._files, self._formats):
            rows = 0
            for batch in self._read(file, format):
                rows += batch[0]
                yield batch
            if not rows:
                raise InvalidArgument(f"{file.name} has no rows")
            self._first = self._first or (file.name, self._names)

    def _read(self, file: TableFile, format: str) -> Iterator[Batch]:
        if format == "parquet":
            return self._read_parquet(file)
        if format == "jsonl":
            return self._read_jsonl(file)
        return self._read_csv(file, "\t" if format == "tsv" else ",")

    def _check_names(self, name: str) -> None:
        if self._first is not None and set(self._names) != set(self._first[1]):
            raise InvalidArgument(
                f"{name} has the columns {', '.join(self._names)}, and {self._first[0]} has "
                f"{', '.join(self._first[1])}"
            )
        for column in self._wanted:
            if column not in self._names:
                raise InvalidArgument(f"{name} has no column {column!r}; it has {', '.join(self._names)}")

    def _read_csv(self, file: TableFile, delimiter: str) -> Iterator[Batch]:
        reader = csv.reader(_lines(file), delimiter=delimiter, strict=True)
        try:
            names = self._names = next(reader, [])
            if len(set(names)) != len(names):
                raise Corrupt(f"{file.name}: the first line names a column twice")
            rows: list[list[str]] = []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(names):
                    raise Corrupt(
                        f"{file.name}, line {reader.line_num}: {len(row)} values, but the first "
                        f"line names {len(names)} columns"
                    )
                rows.append(row)
                if len(rows) == ROWS_AT_ONCE:
                    yield self._csv_batch(file, rows)
                    rows = []
            if rows:
                yield self._csv_batch(file, rows)
        except csv.Error as error:
            raise Corrupt(f"{file.name}, line {reader.line_num}: {error}") from None

    def _csv_batch(self, file: TableFile, rows: list[list[str]]) -> Batch:
        self._check_names(file.name)
        return len(rows), {
            name: self._numbers_of(name, [row[at] for row in rows])
            for at, name in enumerate(self._names)
            if name in self._wanted
        }

    def _numbers_of(self, name: str, texts: list[str]) -> Values:
        """As numbers if all of the column are; a CSV has no types."""
        known = self._csv_types.get(name)
        if known is str:
            return Values(texts)
        values: list[Any] = texts
        if known is not float and all(map(_WHOLE.match, texts)):
            found: type = int
            values = [int(text) for text in texts]
        elif all(map(_NUMBER.match, texts)):
            found, values = float, [float(text) for text in texts]
        else:
            found = str
        self._csv_types[name] = found
        if known not in (None, found):
            raise Again
        return Values(values)

    def _read_jsonl(self, file: TableFile) -> Iterator[Batch]:
        seen: dict[str, None] = {}
        rows: list[dict[str, Any]] = []

        def batch() -> Batch:
            return len(rows), {name: Values([row.get(name) for row in rows]) for name in self._wanted}

        for number, line in enumerate(_lines(file, only_newlines=True), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise Corrupt(f"{file.name}, line {number}: {error}") from None
            if not isinstance(row, dict):
                raise Corrupt(f"{file.name}, line {number}: not an object {{...}}")
            seen.update(dict.fromkeys(row))
            rows.append(row)
            if len(rows) == ROWS_AT_ONCE:
                yield batch()
                rows = []
        self._names = list(seen)
        # A row may lack a column, so that only all of them tell.
        if seen or rows:
            self._check_names(file.name)
        if rows:
            yield batch()

    def _read_parquet(self, file: TableFile) -> Iterator[Batch]:
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError:
            raise InvalidArgument(
                f"{file.name}: Parquet needs pyarrow; pip install pyarrow, or write it as CSV"
            ) from None
        try:
            whole = io.BytesIO(file.read(0, file.size)) if file.size <= PIECE_BYTES else None
            opened = parquet.ParquetFile(
                whole or io.BufferedReader(file.open(), _COLUMN_BYTES),
                buffer_size=0 if whole else _COLUMN_BYTES,
            )
            self._names = opened.schema_arrow.names
            self._check_names(file.name)
            for name in self._wanted:
                if self._names.count(name) > 1:
                    raise Corrupt(f"{file.name}: several columns are called {name!r}")
            for batch in opened.iter_batches(ROWS_AT_ONCE, columns=self._wanted, use_threads=False):
                yield batch.num_rows, {name: _of_arrow(batch.column(name)) for name in self._wanted}
        except (pa.ArrowException, OSError, IndexError, UnicodeDecodeError) as error:
            raise Corrupt(f"{file.name}: {error}") from None


def _of_arrow(array: Any) -> Values:
    from pyarrow import types

    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    array.validate(full=True)
    kind = array.type
    if types.is_string(kind) or types.is_large_string(kind):
        return ArrowValues(array, str)
    if types.is_boolean(kind):
        return ArrowValues(array, bool)
    if types.is_integer(kind):
        return ArrowValues(array, int)
    if types.is_float32(kind) or types.is_float64(kind):
        return ArrowValues(array, float)
    return Values(array.to_pylist())


def _texts(file: TableFile) -> Iterator[str]:
    """Its pieces, decoded."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for begin in range(0, file.size, PIECE_BYTES):
        piece = file.read(begin, min(PIECE_BYTES, file.size - begin))
        for at in range(begin, begin + len(piece), _TEXT_BYTES):
            part = piece[at - begin :][:_TEXT_BYTES]
            skipped = 3 if at == 0 and part.startswith(codecs.BOM_UTF8) else 0
            pending = len(decoder.getstate()[0])
            try:
                yield decoder.decode(part[skipped:], final=at + len(part) == file.size)
            except UnicodeDecodeError as error:
                byte = at + skipped - pending + error.start
                raise Corrupt(f"{file.name}: not UTF-8 at byte {byte}; save it as UTF-8") from None


def _lines(file: TableFile, only_newlines: bool = False) -> Iterator[str]:
    r"""Its lines, with their ends: \n, and unless `only_newlines`, \r and \r\n.

    Raises:
        leat.Corrupt: a line that is too long to be one.
    """
    newline = "\n" if only_newlines else ""
    rest = ""
    for text in _texts(file):
        text = rest + text
        # A carriage return at the end may be the first half of a line's end.
        cut = max(text.rfind("\n"), -1 if only_newlines else text.rfind("\r", 0, len(text) - 1)) + 1
        rest = text[cut:]
        if len(rest) > _MOST_LINE_CHARS:
            raise Corrupt(f"{file.name}: a line of more than {_MOST_LINE_CHARS >> 20} MiB; is it such a table?")
        yield from io.StringIO(text[:cut], newline=newline)
    yield from io.StringIO(rest, newline=newline)
