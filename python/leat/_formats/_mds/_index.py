"""Shards of MosaicML Streaming (MDS): samples in ``.mds`` files, and an ``index.json`` of the files,
which this module reads. `leat._formats._mds._shards` reads the shards.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from leat._formats import _indexed
from leat._formats._indexed import MOST_PACKED_BYTES, Family, Wrong, file_name, text, whole, words
from leat._formats._mds import _zip
from leat.errors import Corrupt, InvalidArgument

VERSION = 1
"""Counts up when kept catalogues are to be made anew."""
_MOST_DIMENSIONS = 32
"""The bound of NumPy before version 2."""
_MOST_ZIPPED_BYTES = MOST_PACKED_BYTES
FAMILY = Family(
    re.compile(r"\.mds(\.(br|bz2|gz|snappy|zst|zstd))?$"), "shards of MDS", "leat.Dataset.mds", "mds",
    "Streaming's MDSWriter",
)  # fmt: skip
_SCALARS = {
    "int": "int64",
    **{
        name: name
        for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
                     "float16", "float32", "float64")
    },
}  # fmt: skip


class Column(NamedTuple):
    """A column of all shards."""

    name: str
    encoding: str
    size: Union[int, None]
    """In bytes; None: each sample has its own."""
    dtype: Union[str, None] = None
    """The type of its numbers; None: it is bytes."""
    shape: tuple[int, ...] = ()
    """That of a sample's numbers."""

    @property
    def stored_as(self) -> str:
        return self.encoding

    @property
    def is_pickled(self) -> bool:
        return self.encoding == "pkl"


class Zipped(NamedTuple):
    """The compressed file of a shard."""

    key: str
    size: int
    kind: str


class Shard(NamedTuple):
    """A file of samples."""

    key: str
    """Relative to the folder of the index."""
    size: int
    samples: int
    zipped: Union[Zipped, None] = None
    """The file that is stored in its place."""


class Index(NamedTuple):
    """The content of an ``index.json``."""

    name: str
    columns: list[Column]
    shards: list[Shard]

    @property
    def samples(self) -> int:
        return sum(shard.samples for shard in self.shards)

    @property
    def is_zipped(self) -> bool:
        return any(shard.zipped for shard in self.shards)


def parse(data: bytes, name: str) -> Index:
    """An ``index.json`` of version 2, as Streaming's `MDSWriter` writes it.

    Shards without samples are left out.

    Raises:
        leat.Corrupt: it is none, or it is damaged; the error names it.
        leat.InvalidArgument: its shards are of another format, or compressed as nothing
            here can undo; or it has no samples.
    """

    def corrupt(why: str) -> Corrupt:
        return Corrupt(f"{name} is no index of MDS shards, or it is damaged: {why}")

    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise corrupt(str(error)) from None
    if not isinstance(found, dict) or not isinstance(found.get("shards"), list):
        raise corrupt("it has no list of shards")
    if found.get("version") != 2:
        raise corrupt(f"it is of version {found.get('version')!r}, and 2 is known")
    columns: list[Column] = []
    shards: dict[str, Shard] = {}
    files: set[str] = set()
    for number, entry in enumerate(found["shards"]):
        try:
            _check_format(entry, name)
            shard = _shard_of(entry)
            _check_zipped(shard, name)
            theirs = columns_of(entry)
        except Wrong as error:
            raise corrupt(f"shard {number}: {error}") from None
        stored = shard.zipped.key if shard.zipped else shard.key
        if shard.key in shards or stored in files:
            raise corrupt(f"it names {shard.key} twice, so its samples would come twice")
        if columns and theirs != columns:
            raise InvalidArgument(
                f"{name}: {shard.key} has other columns than {next(iter(shards))}: {words(theirs)}, and "
                f"{words(columns)}; write them with the same columns, or into folders of their own"
            )
        columns = theirs
        shards[shard.key] = shard
        files.add(stored)
    index = Index(name, columns, [shard for shard in shards.values() if shard.samples])
    if not index.shards:
        raise InvalidArgument(f"{name} names no samples")
    return index


def _check_format(entry: Any, name: str) -> None:
    if not isinstance(entry, dict):
        raise Wrong("it is no object")
    if entry.get("version") != 2 or not isinstance(entry.get("format"), str):
        raise Wrong(f"it is of version {entry.get('version')!r} and format {entry.get('format')!r}")
    if entry["format"] != "mds":
        raise InvalidArgument(
            f"{name}: its shards are of the format {entry['format']!r}, and Leat reads MDS; tables of "
            "paths and numbers are read by leat.Dataset.from_manifest"
        )


def _shard_of(entry: dict[str, Any]) -> Shard:
    key, size = _file_of(entry, "raw_data")
    samples = whole(entry.get("samples"), "samples")
    if entry.get("zip_data") is None:
        return Shard(key, size, samples)
    kind = text(entry.get("compression"), "its compression").partition(":")[0]
    return Shard(key, size, samples, Zipped(*_file_of(entry, "zip_data"), kind))


def _file_of(entry: dict[str, Any], what: str) -> tuple[str, int]:
    """The name and the bytes of a file."""
    file = entry.get(what)
    if not isinstance(file, dict):
        raise Wrong(f"it has no {what}")
    return file_name(file.get("basename")), whole(file.get("bytes"), "bytes")


def _check_zipped(shard: Shard, name: str) -> None:
    if shard.zipped is None:
        return
    _zip.check(shard.zipped.kind, name)
    if max(shard.size, shard.zipped.size) > _MOST_ZIPPED_BYTES:
        raise InvalidArgument(
            f"{name}: {shard.key} has {shard.size / 2**30:.1f} GiB and is compressed, and such a shard is held whole; "
            "write it anew with a smaller size_limit=, or without compression="
        )


def columns_of(entry: dict[str, Any]) -> list[Column]:
    """The columns that a shard's entry, or its settings, tells; raises `Wrong`."""
    found = [entry.get(name) for name in ("column_names", "column_encodings", "column_sizes")]
    lists = [each for each in found if isinstance(each, list) and each]
    if len(lists) != 3 or len({len(each) for each in lists}) != 1:
        raise Wrong("column_names, column_encodings and column_sizes are no lists of one length")
    columns = [_column(*each) for each in zip(*lists)]
    if len({column.name for column in columns}) != len(columns):
        raise Wrong("two columns have one name")
    return columns


def _column(name: Any, encoding: Any, size: Any) -> Column:
    name, encoding = text(name, "a column's name"), text(encoding, "a column's encoding")
    if size is not None and not whole(size, f"bytes of column {name!r}"):
        size = None  # Streaming reads 0 so.
    dtype = _SCALARS.get(encoding)
    shape: tuple[int, ...] = ()
    if encoding.startswith("ndarray:") and encoding.count(":") == 2:
        dtype, shape = _array(encoding)
    if dtype is None:
        return Column(name, encoding, size)
    wanted = math.prod(shape) * np.dtype(dtype).itemsize
    if size != wanted:
        raise Wrong(f"a value of column {name!r}, {encoding}, has {wanted} bytes, and not {size}")
    return Column(name, encoding, size, dtype, shape)


def _array(encoding: str) -> tuple[str, tuple[int, ...]]:
    """The type and shape of "ndarray:uint16:3,4"."""
    _, dtype, lengths = encoding.split(":")
    sides = lengths.split(",")
    if dtype == "int" or dtype not in _SCALARS or len(sides) > _MOST_DIMENSIONS or not all(
        re.fullmatch(r"[0-9]{1,10}", side) and int(side) for side in sides
    ):
        raise Wrong(f"the encoding {encoding!r} is none")
    return dtype, tuple(map(int, sides))


def choose(
    index: Index, fields: Union[Sequence[str], None] = None, wanted: Union[frozenset[str], None] = None
) -> list[Column]:
    """The columns that are fields: as `leat._formats._indexed.choose`."""
    return _indexed.choose(index.name, "column", index.columns, fields, wanted)
