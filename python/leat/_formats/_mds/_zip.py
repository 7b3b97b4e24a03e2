"""Compressed shards of MosaicML Streaming: the file that one stands for, made of it whole."""

from __future__ import annotations

import bz2
import zlib
from typing import Any

from leat.errors import Corrupt, InvalidArgument

KINDS = ("br", "bz2", "gz", "snappy", "zstd")
_OF_PYARROW = {"br": "brotli", "zstd": "zstd"}
_MOST_PREFIX_BITS = 35
"""The length in front of what snappy compressed has no more."""


def check(kind: str, name: str) -> None:
    """Raises `leat.InvalidArgument` if nothing here can undo this compression."""
    if kind not in KINDS:
        raise InvalidArgument(
            f"{name}: its shards are compressed as {kind!r}, and Leat reads {', '.join(KINDS)}; decompress the "
            'files and set "zip_data" to null there'
        )
    if kind not in ("bz2", "gz"):
        _pyarrow(kind)


def derive(part: str, _notes_at: int, _notes: bytes, _at: int, data: bytes) -> bytes:
    """Decompresses a shard. `part` has the compression, and the size of the shard."""
    kind, _, size = part.partition(" ")
    return decompress(kind, data, int(size))


def decompress(kind: str, data: bytes, size: int) -> bytes:
    """All of `data`, which stands for `size` bytes. Never makes more.

    Raises:
        leat.Corrupt: it is damaged, or stands for more or less.
        leat.InvalidArgument: as `check`.
    """
    try:
        made = _at_most(kind, data, size + 1)
    except InvalidArgument:
        raise
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise Corrupt(f"{kind}: {error}") from None
    if len(made) != size:
        more = "more" if len(made) > size else f"{len(made)}"
        raise Corrupt(f"{kind}: it stands for {more} bytes, and index.json says {size}")
    return made


def _at_most(kind: str, data: bytes, most: int) -> bytes:
    if kind in ("bz2", "gz"):
        undoing: Any = zlib.decompressobj(31) if kind == "gz" else bz2.BZ2Decompressor()
        made = undoing.decompress(data, most)
        if len(made) < most and not undoing.eof:
            raise EOFError("it is cut short")
        return made
    arrow = _pyarrow(kind)
    if kind == "snappy":
        size = _snappy_size(data)
        return b"" if size >= most else arrow.Codec("snappy").decompress(data, decompressed_size=size, asbytes=True)
    return arrow.CompressedInputStream(arrow.BufferReader(data), _OF_PYARROW[kind]).read(most)


def _snappy_size(data: bytes) -> int:
    size, shift = 0, 0
    for byte in data[: _MOST_PREFIX_BITS // 7]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return size
    raise ValueError("its length is none")


def _pyarrow(kind: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        found = "is not installed"
    else:
        if pyarrow.Codec.is_available(_OF_PYARROW.get(kind, kind)):
            return pyarrow
        found = f"is built without it here ({pyarrow.__version__})"
    raise InvalidArgument(
        f"shards compressed as {kind} need pyarrow, which {found}; pip install pyarrow, or decompress the "
        'files and set "zip_data" to null in their index.json'
    )
