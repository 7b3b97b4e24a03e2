"""Parquet files whose rows are samples, with the bytes of images and sounds in them.

A row group's column is the unit: Leat fetches it by range, and pyarrow decodes it once for
all its samples. Leat must know the place of each value in advance, so it reads each such
column once when the files are first opened.
"""

from __future__ import annotations

import functools
import io
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from leat import _native
from leat._formats._table._manifest import label_column, scalar_column
from leat.errors import Cancelled, Corrupt, InvalidArgument

_log = logging.getLogger("leat")

VERSION = 2
"""Counts up when kept catalogues are to be made anew."""
_MOST_UNIT_BYTES = 1 << 30
"""A row group's column is held whole, as it is stored and as it is read."""
_MOST_AT_ONCE_BYTES = 1 << 30
_MOST_FOOTER_BYTES = 64 << 20
_MOST_TABLE_BYTES = 4 << 30
"""Numbers and texts are kept in the catalogue, whole."""
_ROWS_AT_ONCE = 64
"""While it learns lengths, the reader drops values at once: a few bytes may stand for very many,
which would fill the memory."""
_MOST_THREADS = 16
_TAIL_BYTES = 64 << 10
_TELL_EVERY_SECONDS = 10.0
_MAGIC = b"PAR1"
_OLDEST_PYARROW = 16

Rows = tuple[int, list[str], list[tuple[str, str, Any, Any, Any, Any]], list[str]]
"""Rows, names, columns and classes, as `_native.Dataset.from_rows_made` takes them."""


def are_rows(native: Any) -> bool:
    """Whether all objects of a dataset are Parquet files."""
    if native.has_shards or not _is_named_so(native.key(0)):
        return False
    return all(_is_named_so(native.key(sample)) for sample in range(native.samples))


def may_be_shards(source: Any) -> bool:
    """Whether a stream may open it before anything is known of it: one place, whose name is not
    that of Parquet files."""
    return isinstance(source, (str, os.PathLike)) and not _is_named_so(os.fspath(source))


def check_no_rows(native: Any, url: str) -> None:
    """Raises `leat.InvalidArgument` if a stream of unknown things found Parquet files."""
    if native is not None and are_rows(native):
        raise InvalidArgument(
            f"{url} has Parquet files, whose rows are the samples; with shuffle=\"stream\" give them as "
            "leat.Dataset.parquet(url), or as a pattern such as \"…/*.parquet\""
        )


def _is_named_so(key: str) -> bool:
    return key.lower().endswith(".parquet")


def _pyarrow() -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        found = "is not installed"
    else:
        if int(pyarrow.__version__.partition(".")[0]) >= _OLDEST_PYARROW:
            return parquet
        found = f"is {pyarrow.__version__}"
    raise InvalidArgument(
        f"rows of Parquet files need pyarrow from {_OLDEST_PYARROW} on, which {found}; pip install "
        f"'pyarrow>={_OLDEST_PYARROW}', or read the files themselves: leat.Dataset(url, "
        'extensions="parquet")'
    )


def derive(part: str, notes_at: int, notes: bytes, at: int, data: bytes) -> np.ndarray:
    """The values of a column of a row group, one after the other: uint8.

    Args:
        part: the number of the row group, a slash, and the column.
        notes_at, notes: where the file's footer lies, and it.
        at, data: where the column's bytes lie, and they.
    """
    group, _, path = part.partition("/")
    values = [found for found, _ in _chunks(notes_at, notes, at, data, int(group), path, whole=True)]
    return values[0] if len(values) == 1 else np.concatenate([np.empty(0, np.uint8), *values])


@functools.lru_cache(maxsize=16)
def _metadata(notes: bytes) -> Any:
    return _pyarrow().read_metadata(io.BytesIO(notes))


def _chunks(
    notes_at: int, notes: bytes, at: int, data: bytes, group: int, path: str, *, whole: bool
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some values of a column, one after the other, and the length of each: uint8 and int64.
    All at once if `whole`.

    Raises:
        leat.Corrupt: the bytes are not what the footer says.
        leat.InvalidArgument: a row has no value.
    """
    import pyarrow as pa

    stream = io.BufferedReader(_Parts([(at, data), (notes_at, notes)]), 1 << 20)
    rows = 0
    try:
        file = _pyarrow().ParquetFile(
            stream, metadata=_metadata(notes), page_checksum_verification=True
        )
        if whole:
            tables = [file.read_row_group(group, columns=[path], use_threads=False)]
        else:
            tables = file.iter_batches(
                _ROWS_AT_ONCE, row_groups=[group], columns=[path], use_threads=False
            )
        for table in tables:
            if table.num_columns != 1:
                raise InvalidArgument(f"{table.num_columns} columns are called {path!r}")
            column = table.column(0)
            for chunk in column.chunks if whole else [column]:
                yield _split(chunk, rows, group, path)
                rows += len(chunk)
    except (pa.ArrowException, OSError, IndexError, UnicodeDecodeError) as error:
        raise Corrupt(f"row group {group}, column {path}: {error}") from None


def _split(chunk: Any, first_row: int, group: int, path: str) -> tuple[np.ndarray, np.ndarray]:
    import pyarrow as pa
    from pyarrow.compute import struct_field

    if pa.types.is_struct(chunk.type):
        chunk = struct_field(chunk, "bytes")
    if chunk.null_count:
        row = first_row + int(np.argmax(chunk.is_null().to_numpy(zero_copy_only=False)))
        raise InvalidArgument(
            f"row {row} of row group {group} has no {path!r} (null); leave such rows out when "
            "the files are written, or name only fields= that all rows have"
        )
    chunk = chunk.cast(pa.large_binary())
    _, places, found = chunk.buffers()
    if found is None or not len(chunk):
        return np.empty(0, np.uint8), np.zeros(len(chunk), np.int64)
    ends = np.frombuffer(places, np.int64)[chunk.offset :][: len(chunk) + 1]
    return np.frombuffer(found, np.uint8)[ends[0] : ends[-1]], np.diff(ends)


class _Outside(OSError):
    """A reader asked for bytes that are not present."""


class _Parts(io.RawIOBase):
    """A file of which only some parts are present. Reading another part raises
    `_Outside`."""

    def __init__(self, parts: Sequence[tuple[int, bytes]]) -> None:
        self._parts = [(at, memoryview(data)) for at, data in parts]
        self._size = max(at + len(data) for at, data in parts)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, into: Any) -> int:
        if self._at >= self._size:
            return 0
        for at, data in self._parts:
            if at <= self._at < at + len(data):
                found = data[self._at - at :][: len(into)]
                into[: len(found)] = found
                self._at += len(found)
                return len(found)
        raise _Outside(f"byte {self._at} lies outside of what the footer says of the column")


class _Remote(io.RawIOBase):
    """A file in a store, read by range."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self._size = size
        self._at = 0

    readable = seekable = lambda self: True  # noqa: E731
    seek = _Parts.seek
    tell = _Parts.tell

    def readinto(self, into: Any) -> int:
        size = max(0, min(len(into), self._size - self._at))
        if size:
            into[:size] = self._read(self._at, size)
            self._at += size
        return size


@dataclass
class _File:
    """One of the files, by its footer."""

    key: str
    stored: str
    """The key that the engine reads it by: before `key` stands the number of its place, if there are several."""
    size: int
    etag: bytes
    notes_at: int
    notes: bytes
    metadata: Any
    schema: Any
    read: Callable[[int, int], bytes]

    def units(self, path: str) -> Iterator[_Unit]:
        for group in range(self.metadata.num_row_groups):
            if self.metadata.row_group(group).num_rows:
                yield self._unit(group, path, self.column(group, path))

    def column(self, group: int, path: str) -> Any:
        count = self.paths.count(path)
        if count > 1:
            raise InvalidArgument(f"{self.key}: {count} columns are called {path!r}")
        if not count:
            raise Corrupt(f"{self.key}: row group {group} has no column {path}")
        self._check_column(group, path)
        return self.metadata.row_group(group).column(self.paths.index(path))

    @functools.cached_property
    def paths(self) -> list[str]:
        schema = self.metadata.schema
        return [schema.column(number).path for number in range(len(schema))]

    def _check_column(self, group: int, path: str) -> None:
        """A damaged footer makes pyarrow's ``row_group().column()`` end the process, and its reader
        raise. Begins to read, of no more than the footer."""
        import pyarrow as pa

        try:
            _pyarrow().ParquetFile(
                _Parts([(self.notes_at, self.notes)]), metadata=self.metadata, pre_buffer=False
            ).read_row_group(group, columns=[path], use_threads=False)
        except _Outside:
            pass
        except (pa.ArrowException, OSError, IndexError, UnicodeDecodeError) as error:
            raise Corrupt(f"{self.key}: row group {group}, column {path}: {error}") from None

    def rows(self) -> int:
        """As many as all row groups have."""
        counts = [self.metadata.row_group(group).num_rows for group in range(self.metadata.num_row_groups)]
        if min(counts, default=0) < 0 or sum(counts) != self.metadata.num_rows:
            raise Corrupt(f"{self.key}: {self.metadata.num_rows} rows, in row groups of {counts[:20]}")
        return sum(counts)

    def _unit(self, group: int, path: str, column: Any) -> _Unit:
        begins = [at for at in (column.dictionary_page_offset, column.data_page_offset) if at]
        at, length = min(begins, default=0), column.total_compressed_size
        if column.file_path or at <= 0 or length <= 0 or at + length > self.notes_at or (
            column.total_uncompressed_size < 0
        ):
            raise Corrupt(
                f"{self.key}: row group {group}, column {path}: no bytes [{at}, {at + length}) in a "
                f"file of {self.size}"
            )
        for bytes_of in (length, column.total_uncompressed_size):
            if bytes_of > _MOST_UNIT_BYTES:
                raise InvalidArgument(f"{self.key}: {_too_large(group, path, bytes_of)}")
        return _Unit(self, group, path, at, length, length + column.total_uncompressed_size)


def _too_large(group: int, path: str, size: int) -> str:
    return (
        f"row group {group} has {size / 2**30:.1f} GiB of {path!r} or more, and one is held whole while its "
        "samples are read; write the file with smaller row groups, such as row_group_size=100"
    )


@dataclass
class _Unit:
    """A column of a row group."""

    file: _File
    group: int
    path: str
    at: int
    length: int
    cost: int

    def lengths(self) -> np.ndarray:
        """Reads it. The length of each value: int64."""
        file, found, size = self.file, [np.empty(0, np.int64)], 0
        data = file.read(self.at, self.length)
        try:
            for _, some in _chunks(
                file.notes_at, file.notes, self.at, data, self.group, self.path, whole=False
            ):
                found.append(some)
                size += int(some.sum())
                if size > _MOST_UNIT_BYTES:
                    raise InvalidArgument(_too_large(self.group, self.path, size))
        except (Corrupt, InvalidArgument) as error:
            raise type(error)(f"{file.key}: {error}") from None
        return np.concatenate(found)

    def key(self, size: int) -> str:
        return _native.derived_key(
            source=self.file.stored,
            etag=self.file.etag,
            offset=self.at,
            length_bytes=self.length,
            notes_offset=self.file.notes_at,
            notes_bytes=len(self.file.notes),
            size_bytes=size,
            part=f"{self.group}/{self.path}",
        )


def _open_file(native: Any, reader: Any, sample: int) -> _File:
    parquet = _pyarrow()
    import pyarrow as pa

    key = native.key(sample)
    stored, _, size = native.range("data", sample)
    read = functools.partial(reader.read_part, 0, sample)
    tail = min(size, _TAIL_BYTES)
    notes = read(size - tail, tail)
    if size < 12 or notes[-4:] != _MAGIC:
        raise Corrupt(f"{key}: no Parquet file: it does not end in {_MAGIC.decode()}, or is encrypted")
    wanted = int.from_bytes(notes[-8:-4], "little") + 8
    if wanted > size - 4:
        raise Corrupt(f"{key}: cut short: its footer says {wanted} bytes, and the file has {size}")
    if wanted > _MOST_FOOTER_BYTES:
        raise InvalidArgument(
            f"{key}: a footer of {wanted >> 20} MiB, and at most {_MOST_FOOTER_BYTES >> 20} are read; write "
            "several files, or fewer row groups in one"
        )
    notes = notes[-wanted:] if wanted <= tail else read(size - wanted, wanted)
    try:
        metadata = parquet.read_metadata(io.BytesIO(notes))
        schema = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise Corrupt(f"{key}: its footer cannot be read: {error}") from None
    return _File(key, stored, size, reader.etag(0, sample), size - wanted, notes, metadata, schema, read)


def _kind(column: Any) -> tuple[str, str]:
    """How a column becomes a field: ``bytes``, ``scalar`` or ``""`` (it does not), and what of it."""
    from pyarrow import types

    def holds_bytes(kind: Any) -> bool:
        return types.is_binary(kind) or types.is_large_binary(kind)

    kind = column.type
    if holds_bytes(kind):
        return "bytes", column.name
    if types.is_struct(kind):
        inner = kind.get_field_index("bytes")
        if inner >= 0 and holds_bytes(kind.field(inner).type):
            return "bytes", f"{column.name}.bytes"
        return "", ""
    if types.is_dictionary(kind):
        kind = kind.value_type
    is_scalar = (
        types.is_integer(kind) or types.is_boolean(kind) or types.is_floating(kind)
        or types.is_string(kind) or types.is_large_string(kind)
    )  # fmt: skip
    return ("scalar", column.name) if is_scalar else ("", "")


def choose(
    native: Any, fields: Union[list[str], None] = None, wanted: Union[frozenset[str], None] = None
) -> list[str]:
    """The columns that are fields: `fields`; or those of `wanted`, where that has bytes; or all
    that can be.

    Raises:
        leat.Corrupt: the first file is none, or damaged.
        leat.InvalidArgument: one that is not there or cannot be; none of them holds bytes.
    """
    url = native.url
    schema = _open_file(native, _native.SampleReader(native), 0).schema
    kinds = {column.name: _kind(column) for column in schema}
    passed = [name for name, (kind, _) in kinds.items() if not kind]
    if fields is None and wanted is not None:
        fields = [name for name in kinds if name in wanted]
        if not any(kinds[name][0] == "bytes" for name in fields):
            fields = None
    if fields is None:
        if passed:
            _log.info("%s: columns that are no fields, as they are neither bytes, numbers nor texts: %s",
                      url, ", ".join(passed))  # fmt: skip
        fields = [name for name in kinds if name not in passed]
    for name in fields:
        if name not in kinds:
            raise InvalidArgument(f"{url} has no column {name!r}; it has {', '.join(kinds)}")
        if name in passed:
            raise InvalidArgument(
                f"{url}: the column {name!r} is {schema.field(name).type}; a field is bytes, an image "
                "as the Hugging Face Hub keeps it (struct of bytes and path), a number or a text"
            )
    if not any(kinds[name][0] == "bytes" for name in fields):
        raise InvalidArgument(
            f"{url}: none of the columns {', '.join(fields) or '(none)'} holds bytes, such as images; a "
            "table of paths is a manifest: leat.Dataset.from_manifest(…, fields={\"image\": …})"
        )
    return fields


def _class_names(schema: Any) -> Union[list[str], None]:
    """The names that ``label`` counts through, as the library datasets notes them."""
    try:
        told = json.loads((schema.metadata or {})[b"huggingface"])
        names = told["info"]["features"]["label"]["names"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def _names_of_all(files: Sequence[_File]) -> Union[list[str], None]:
    """The names that the labels of every file count through.

    Raises:
        leat.InvalidArgument: two files have others, so that one number means two classes, or one has none; names both.
    """
    first = _class_names(files[0].schema)
    for file in files:
        named = _class_names(file.schema)
        if named == first:
            continue
        told = f"{file.stored} names the classes of its labels {_said(named)}, and {files[0].stored} {_said(first)}"
        if named is None or first is None:
            bare = file if named is None else files[0]
            raise InvalidArgument(
                f"{told}: nobody knows which classes the numbers in {bare.stored} mean; write the names into it, as "
                "the library datasets does (ClassLabel(names=…)), or leave the column out: fields="
            )
        raise InvalidArgument(
            f"{told}: one number would mean two classes; open each with leat.Dataset.parquet, and join them with "
            "leat.Dataset.concat, which goes by the names"
        )
    return first


def _said(names: Union[list[str], None]) -> str:
    if names is None:
        return "(not at all)"
    return f"[{', '.join(names[:20])}{', …' if len(names) > 20 else ''}]"


def rows_of(
    native: Any, fields: Sequence[str], is_stopped: Callable[[], bool]
) -> Rows:
    """Reads footers, columns of numbers and texts, and how long the values of bytes are.

    Raises:
        leat.Corrupt: a file that is no Parquet file, or damaged.
        leat.InvalidArgument: columns that differ from file to file, or are no fields; a
            row without a value.
    """
    reader, url = _native.SampleReader(native), native.url
    with ThreadPoolExecutor(_MOST_THREADS, "leat-parquet") as pool:
        open_one = functools.partial(_open_file, native, reader)
        files = [file for file in pool.map(open_one, range(native.samples)) if file.rows()]
    if not files:
        raise InvalidArgument(f"{url} has no rows")
    rows = sum(file.rows() for file in files)
    theirs = {column.name: _kind(column) for column in files[0].schema}
    chosen = {name: theirs.get(name, ("", "")) for name in fields}
    for file in files:
        theirs = {column.name: _kind(column) for column in file.schema}
        if {name: theirs.get(name) for name in chosen} != chosen or ("", "") in chosen.values():
            raise InvalidArgument(
                f"{file.key} has other columns than {files[0].key}: {', '.join(file.schema.names)}"
            )
    columns: list[tuple[str, str, Any, Any, Any, Any]] = []
    classes: list[str] = []
    for name, (kind, path) in chosen.items():
        if kind == "bytes":
            columns.append((name, "bytes", *_bytes_columns(files, path, url, is_stopped)))
            continue
        _check_table(files, path, url)
        values = [value for file in files for value in _scalars(file, path)]
        column = scalar_column(name, values, url)
        if name == "label" and column.kind == "string":
            column, classes = label_column(values, None, url)
        elif name == "label" and (named := _names_of_all(files)) is not None:
            _check_labels(column.values, named, url)
            classes = named
        columns.append((name, column.kind, column.values, None, None, None))
    # The footers' numbers are true: this many values were found in each column.
    names = [f"{file.key}:{row}" for file in files for row in range(file.rows())]
    return rows, names, columns, classes


def _check_table(files: Sequence[_File], path: str, url: str) -> None:
    size = sum(
        file.column(group, path).total_uncompressed_size
        for file in files
        for group in range(file.metadata.num_row_groups)
    )
    if size > _MOST_TABLE_BYTES:
        raise InvalidArgument(
            f"{url}: the column {path!r} takes {size / 2**30:.1f} GiB, and numbers and texts are kept in "
            "memory; name the other fields=, or write it as binary"
        )


def _check_labels(values: Sequence[Any], names: list[str], url: str) -> None:
    for row, value in enumerate(values):
        if not 0 <= value < len(names):
            raise InvalidArgument(
                f"{url}, row {row}: label {value}, and the files name {len(names)} classes; an unlabelled "
                "split is read without the label: name the other fields="
            )


def _scalars(file: _File, path: str) -> list[Any]:
    import pyarrow as pa

    remote = io.BufferedReader(_Remote(file.read, file.size), 1 << 20)
    try:
        opened = _pyarrow().ParquetFile(remote, metadata=file.metadata)
        table = opened.read(columns=[path], use_threads=False)
        if table.num_columns != 1:
            raise InvalidArgument(f"{file.key}: {table.num_columns} columns are called {path!r}")
        values = table.column(0).to_pylist()
    except (pa.ArrowException, OSError, IndexError, UnicodeDecodeError) as error:
        raise Corrupt(f"{file.key}: column {path}: {error}") from None
    if len(values) != file.rows():
        raise Corrupt(f"{file.key}: {len(values)} values of {path} in {file.rows()} rows")
    return values


def _bytes_columns(
    files: Sequence[_File], path: str, url: str, is_stopped: Callable[[], bool]
) -> tuple[list[str], list[int], list[int], list[int]]:
    """For each row: the object that is made of its row group, how large that is, where the value lies
    in it and how long that is."""
    units = [unit for file in files for unit in file.units(path)]
    total = sum(unit.length for unit in units)
    if total > 1 << 28:
        _log.info("%s: reads %.1f GB of %r once, to learn where each value lies; that is kept",
                  url, total / 1e9, path)  # fmt: skip
    keys: list[str] = []
    sizes: list[int] = []
    offsets: list[int] = []
    lengths: list[int] = []
    threads = max(1, min(_MOST_THREADS, _MOST_AT_ONCE_BYTES // max(unit.cost for unit in units)))
    for unit, found in zip(units, _in_order(units, threads, url, is_stopped)):
        ends = np.cumsum(found)
        size = int(ends[-1]) if len(ends) else 0
        if len(found) != unit.file.metadata.row_group(unit.group).num_rows:
            raise Corrupt(f"{unit.file.key}: row group {unit.group} has {len(found)} values of {path}")
        keys += [unit.key(size)] * len(found)
        sizes += [size] * len(found)
        offsets += (ends - found).tolist()
        lengths += found.tolist()
    return keys, sizes, offsets, lengths


def _in_order(
    units: Sequence[_Unit], threads: int, url: str, is_stopped: Callable[[], bool]
) -> Iterable[np.ndarray]:
    told, done = time.monotonic(), 0
    with ThreadPoolExecutor(threads, "leat-parquet") as pool:

        def one(unit: _Unit) -> np.ndarray:
            if is_stopped():
                raise Cancelled("reading Parquet files was stopped")
            return unit.lengths()

        try:
            for unit, found in zip(units, pool.map(one, units)):
                done += unit.length
                if time.monotonic() - told > _TELL_EVERY_SECONDS:
                    told = time.monotonic()
                    _log.info("%s: read %.1f GB of %r", url, done / 1e9, unit.path)
                yield found
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
