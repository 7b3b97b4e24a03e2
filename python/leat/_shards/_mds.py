"""Shards of MosaicML Streaming (MDS)."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from leat._shards._row import Field, Row, kind_of
from leat.errors import InvalidArgument

_SIZES = {"int64": ("int", 8), "float64": ("float64", 8), "string": ("str", None), "bytes": ("bytes", None)}
_PICTURES = {"jpg": "jpeg", "png": "png"}


def check(fields: Sequence[Field]) -> None:
    """Raises `leat.InvalidArgument` if a column cannot hold the field."""
    for field in fields:
        if not field.has_all:
            raise InvalidArgument(
                f"the field {field.name!r} is missing in some samples, and each has a value in MDS; --fields leaves it out"
            )


def name_of(number: int) -> str:
    """The shard of that number."""
    return f"shard.{number:05d}.mds"


def _column(field: Field) -> tuple[str, int | None]:
    """Encoding, and the bytes of a value; None: each has its own."""
    if field.kind == "rows":
        shape = () if field.shape is None else field.shape  # Nobody said it of rows of tokens.
        kind = np.dtype(field.dtype)
        if field.shape == ():
            return kind.name, kind.itemsize
        if not shape:
            return f"ndarray:{kind.name}", None
        return f"ndarray:{kind.name}:{','.join(map(str, shape))}", kind.itemsize * int(np.prod(shape))
    if field.kind == "bytes" and field.content in _PICTURES:
        return _PICTURES[field.content], None
    return _SIZES[field.kind]


def settings_of(fields: Sequence[Field]) -> dict[str, Any]:
    """The settings that each shard has at its head."""
    ordered = sorted(fields, key=lambda field: field.name)
    return {
        "column_encodings": [_column(field)[0] for field in ordered],
        "column_names": [field.name for field in ordered],
        "column_sizes": [_column(field)[1] for field in ordered],
        "compression": None, "format": "mds", "hashes": ["sha1"], "size_limit": None, "version": 2,
    }  # fmt: skip


def shard_of(fields: Sequence[Field], first: int, rows: Iterable[Row]) -> bytes:
    """A shard of these samples: always the same bytes."""
    ordered = [(field, *_column(field)) for field in sorted(fields, key=lambda field: field.name)]
    bodies = []
    pictures = [field.name for field, encoding, _ in ordered if encoding in _PICTURES.values()]
    for number, row in enumerate(rows, first):
        for name in pictures:
            if kind_of(row[name]) not in ("jpg", "png", "webp", "tif"):
                raise InvalidArgument(
                    f"sample {number}: the field {name!r} is no picture, and that of the first sample is: Streaming "
                    "could not read such a column; leave the field out with --fields, or the sample out of the source"
                )
        values = [_bytes_of(row[field.name], encoding) for field, encoding, _ in ordered]
        sizes = [len(value) for value, (_, _, size) in zip(values, ordered) if size is None]
        bodies.append(struct.pack(f"<{len(sizes)}I", *sizes) + b"".join(values))
    settings = json.dumps(settings_of(fields), sort_keys=True).encode()
    begin = 4 * (len(bodies) + 2) + len(settings)
    offsets = np.cumsum([begin, *map(len, bodies)])
    if offsets[-1] >= 2**32:
        raise InvalidArgument(
            f"a shard of MDS would have {offsets[-1]:,} bytes, and has less than 4 GiB; give a smaller --shard-bytes"
        )
    return b"".join([struct.pack("<I", len(bodies)), offsets.astype("<u4").tobytes(), settings, *bodies])


def _bytes_of(value: Any, encoding: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if encoding.count(":") == 1:  # ndarray:dtype, each with its shape.
        shape = np.asarray(value).shape
        largest = max(shape, default=1)
        width = next(width for width in (1, 2, 4, 8) if largest < 256**width)
        return _head(shape, width) + np.ascontiguousarray(value).tobytes()
    if encoding.startswith("ndarray"):
        return np.ascontiguousarray(value).tobytes()
    return np.asarray(value, "<i8" if encoding == "int" else np.dtype(encoding).newbyteorder("<")).tobytes()


def _head(shape: Sequence[int], width: int) -> bytes:
    """The number of dimensions and the width of a side, in one byte; and the sides."""
    code = {1: 0, 2: 1, 4: 2, 8: 3}[width]
    return bytes([len(shape) << 2 | code]) + np.array(shape, f"<u{width}").tobytes()


def index_of(fields: Sequence[Field], shards: Sequence[dict[str, Any]], classes: Sequence[str]) -> tuple[str, bytes]:
    """The name and the content of the index."""
    listed = []
    for shard in shards:
        raw = {"basename": shard["name"], "bytes": shard["bytes"], "hashes": {"sha1": shard["sha1"]}}
        listed.append({**settings_of(fields), "samples": shard["samples"], "raw_data": raw, "zip_data": None})
    return "index.json", json.dumps({"shards": listed, "version": 2}, sort_keys=True).encode()
