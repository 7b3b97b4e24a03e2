"""Decodes the chunks of arrays, and puts windows together from them.

`leat._formats._array._plan` says which chunks belong to which windows; a derived object has the windows of a
part of the catalogue one after the other, all fields of a sample together.
"""

from __future__ import annotations

import base64
import bz2
import json
import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from leat import _native
from leat.errors import Corrupt, InvalidArgument

Filter = list[Any]
"""The name of what was done to a chunk, and numbers that go with it."""

_CHECKSUM_BYTES = 4
_SLACK_BYTES = 1 << 20
_BLOSC_HEAD_BYTES = 16
_SAME_SIZE = ("shuffle",)
_CHECKSUMS = ("fletcher32", "crc32c")
_COMPRESSIONS = ("blosc", "bz2", "deflate", "gzip", "lz4", "lzf", "raw_deflate", "zlib", "zstd")
KNOWN = (*_SAME_SIZE, *_CHECKSUMS, *_COMPRESSIONS, "zip_crc", "skip")


def check_filters(filters: Sequence[Filter], name: str) -> None:
    """Raises `leat.InvalidArgument` if nothing here can undo one of these."""
    for kind, *_ in filters:
        if kind not in KNOWN:
            raise InvalidArgument(
                f"{name} is stored with {kind!r}, and Leat undoes "
                f"{', '.join(_COMPRESSIONS + _SAME_SIZE + _CHECKSUMS)}; "
                "write it anew with one of these"
            )
        if kind == "blosc":
            _numcodecs()
        if kind in ("zstd", "lz4"):
            _pyarrow(kind)


def undo(data: bytes, filters: Sequence[Filter], mask: int, size: int) -> bytes:
    """The bytes of a chunk as they were before `filters`. Bit i of `mask` says that the writer left out
    the i-th filter.

    Raises:
        leat.Corrupt: the bytes are damaged, or do not decode to `size` bytes.
    """
    applied = [each for number, each in enumerate(filters) if not mask >> number & 1]
    before = _sizes_before(applied, size)
    for (kind, *told), expected in zip(reversed(applied), reversed(before)):
        try:
            data = _undo_one(kind, told, data, expected, size)
        except Corrupt:
            raise
        except (OSError, EOFError, ValueError, RuntimeError, zlib.error) as error:
            raise Corrupt(f"{kind}: {error}") from None
    if len(data) != size:
        raise Corrupt(f"it stands for {len(data)} bytes, and its shape says {size}")
    return data


def _sizes_before(filters: Sequence[Filter], size: int) -> list[Union[int, None]]:
    """For each filter, how many bytes went in; None: unknown, as it is behind a compression."""
    sizes: list[Union[int, None]] = []
    known: Union[int, None] = size
    for kind, *told in filters:
        sizes.append(known)
        if kind in _COMPRESSIONS:
            known = None
        elif kind in _CHECKSUMS and known is not None:
            known += _CHECKSUM_BYTES
        elif kind == "skip" and known is not None:
            known += told[0]
    return sizes


def _undo_one(kind: str, told: list[Any], data: bytes, expected: Union[int, None], size: int) -> bytes:
    if kind == "shuffle":
        return _native.undo_shuffle(data, int(told[0])) if told[0] > 1 else data
    if kind == "fletcher32":
        return _native.undo_fletcher32(data)
    if kind == "crc32c":
        if len(data) < _CHECKSUM_BYTES:
            raise Corrupt("crc32c: no checksum is there")
        checked, stored = data[:-_CHECKSUM_BYTES], int.from_bytes(data[-_CHECKSUM_BYTES:], "little")
        if _native.crc32c(checked) != stored:
            raise Corrupt("crc32c: the checksum does not fit")
        return checked
    if kind == "zip_crc":
        if zlib.crc32(data) != told[0]:
            raise Corrupt("the CRC of the member does not fit")
        return data
    if kind == "skip":
        return data[told[0] :]
    made = _decompress(kind, data, 2 * size + _SLACK_BYTES if expected is None else expected)
    if expected is not None and len(made) != expected:
        raise Corrupt(f"{kind}: it stands for {'more' if len(made) > expected else len(made)} bytes, of {expected}")
    return made


def _decompress(kind: str, data: bytes, most: int) -> bytes:
    """At most one byte more than `most`."""
    if kind in ("deflate", "zlib", "gzip", "raw_deflate"):
        undoing: Any = zlib.decompressobj({"gzip": 31, "raw_deflate": -15}.get(kind, 15))
        made = undoing.decompress(data, most + 1)
        if len(made) <= most and not undoing.eof:
            raise EOFError("it is cut short")
        return made
    if kind == "bz2":
        undoing = bz2.BZ2Decompressor()
        made = undoing.decompress(data, most + 1)
        if len(made) <= most and not undoing.eof:
            raise EOFError("it is cut short")
        return made
    if kind == "lzf":
        return _native.undo_lzf(data, most)
    if kind == "blosc":
        return _blosc(data, most)
    arrow = _pyarrow(kind)
    if kind == "zstd":
        return arrow.CompressedInputStream(arrow.BufferReader(data), "zstd").read(most + 1)
    # numcodecs puts the size in front of a block.
    size = int.from_bytes(data[:4], "little")
    if len(data) < 4 or size > most:
        raise Corrupt("lz4: it stands for more")
    return arrow.Codec("lz4_raw").decompress(data[4:], decompressed_size=size, asbytes=True)


def _blosc(data: bytes, most: int) -> bytes:
    # The header's bytes 4 to 7 are the size of what comes out, 12 to 15 that of what is there.
    if len(data) < _BLOSC_HEAD_BYTES or int.from_bytes(data[12:16], "little") != len(data):
        raise Corrupt("blosc: it is cut short")
    if int.from_bytes(data[4:8], "little") > most:
        raise Corrupt("blosc: it stands for more")
    return bytes(_numcodecs().decompress(data))


def _numcodecs() -> Any:
    try:
        from numcodecs import blosc
    except ImportError:
        raise InvalidArgument(
            "chunks compressed by blosc need numcodecs, which is not installed: pip install numcodecs"
        ) from None
    return blosc


def _pyarrow(kind: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise InvalidArgument(
            f"chunks compressed as {kind} need pyarrow, which is not installed: pip install pyarrow"
        ) from None
    return pyarrow


class Window(NamedTuple):
    """The windows of a grid, in C order, and the part of them that is meant."""

    shape: list[int]
    """A window's sides, along the first dimensions of an array; the others are whole."""
    stride: list[int]
    counts: list[int]
    """Windows along each of these dimensions."""
    first: int
    samples: int
    is_index: bool
    """A window is one index of the first dimension, which it then lacks."""

    def begin(self, number: int) -> list[int]:
        """The place of a window, by its number among all."""
        places = []
        for count, stride in zip(reversed(self.counts), reversed(self.stride)):
            number, place = divmod(number, count)
            places.append(place * stride)
        return places[::-1]


class Part(NamedTuple):
    """A field of a derived object."""

    dtype: str
    shape: list[int]
    chunk: list[int]
    axes: Union[list[int], None]
    """A chunk's axes as they are stored; None: in order."""
    is_clipped: bool
    """Chunks at the edge have only what lies in the array."""
    filters: list[Filter]
    fill: str
    """The value of what was never stored: an item's bytes, in hex."""
    ids: list[int]
    """The chunks that are there, numbered in C order of the grid."""
    places: list[int]
    """The begin of each one's bytes, in those that were read."""
    lengths: list[int]
    masks: list[int]


def said(window: Window, parts: Sequence[Part]) -> str:
    """The text from which `derive` makes the object."""
    told = json.dumps([window, list(parts)], separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(told, 6)).decode()


def derive(part: str, _notes_at: int, _notes: bytes, _at: int, data: bytes) -> np.ndarray:
    """The windows that `said` tells of, one after the other: uint8. The first line of `part` is for errors."""
    told = json.loads(zlib.decompress(base64.b64decode(part.partition("\n")[2])))
    window, parts = Window(*told[0]), [Part(*each) for each in told[1]]
    return assemble(window, parts, data).view(np.uint8).reshape(-1)


def assemble(window: Window, parts: Sequence[Part], data: bytes) -> np.ndarray:
    """The windows: an array of records with a field for each part.

    Raises:
        leat.Corrupt: a chunk is damaged.
    """
    made = np.empty(window.samples, record_of(window, [(np.dtype(part.dtype), part.shape) for part in parts]))
    for name, part in zip(made.dtype.names or (), parts):
        into = made[name]
        _fill(into[:, None] if window.is_index else into, window, part, data)
    return made


def record_of(window: Window, fields: Sequence[tuple[np.dtype[Any], Sequence[int]]]) -> np.dtype[Any]:
    """A sample's type: packed, little-endian."""
    return np.dtype(
        [
            (f"f{number}", dtype.newbyteorder("<"), sample_shape(window, shape))
            for number, (dtype, shape) in enumerate(fields)
        ]
    )


def sample_shape(window: Window, shape: Sequence[int]) -> tuple[int, ...]:
    """That of a window's values, of an array of this shape."""
    return tuple(shape[1:]) if window.is_index else (*window.shape, *shape[len(window.shape) :])


def _fill(into: np.ndarray, window: Window, part: Part, data: bytes) -> None:
    dtype = np.dtype(part.dtype)
    grid = [-(-side // chunk) for side, chunk in zip(part.shape, part.chunk)]
    wanted = math.prod(part.chunk) * dtype.itemsize
    if not _is_covered(window, part, grid):
        into[...] = np.frombuffer(bytes.fromhex(part.fill), dtype)[0]
    for number, at, length, mask in zip(part.ids, part.places, part.lengths, part.masks):
        where = np.unravel_index(number, grid) if grid else ()
        low = [int(place) * side for place, side in zip(where, part.chunk)]
        shape = list(part.chunk)
        if part.is_clipped:
            shape = [min(side, end - begin) for side, end, begin in zip(shape, part.shape, low)]
        size = math.prod(shape) * dtype.itemsize if part.is_clipped else wanted
        try:
            found = undo(data[at : at + length], part.filters, mask, size)
        except Corrupt as error:
            raise Corrupt(f"chunk {tuple(int(place) for place in where)}: {error}") from None
        values = np.frombuffer(found, dtype)
        if part.axes is not None:
            values = values.reshape([shape[axis] for axis in part.axes]).transpose(np.argsort(part.axes))
        _paste(into, window, values.reshape(shape), low, part.shape)


def _is_covered(window: Window, part: Part, grid: list[int]) -> bool:
    """Whether all chunks of the windows are there."""
    return len(part.ids) == len(chunks_of(window, part.shape, part.chunk, grid))


def chunks_of(window: Window, shape: Sequence[int], chunk: Sequence[int], grid: Sequence[int]) -> np.ndarray:
    """The numbers of the chunks that windows touch, each once: int64."""
    if len(window.counts) == 1:
        return _rows_of_chunks(window, shape, chunk, grid)
    found = [
        _box(
            [begin // side for begin, side in zip(low, chunk)],
            [(high - 1) // side for high, side in zip(high, chunk)],
            grid,
        )
        for low, high in (_bounds(window, shape, window.first + number) for number in range(window.samples))
    ]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def _rows_of_chunks(window: Window, shape: Sequence[int], chunk: Sequence[int], grid: Sequence[int]) -> np.ndarray:
    begins = (window.first + np.arange(window.samples, dtype=np.int64)) * window.stride[0]
    lows, highs = begins // chunk[0], (begins + window.shape[0] - 1) // chunk[0]
    rows = np.unique(
        np.concatenate([np.minimum(lows + more, highs) for more in range(int((highs - lows).max()) + 1)])
    )
    behind = math.prod(grid[1:])
    return (rows[:, None] * behind + np.arange(behind, dtype=np.int64)).reshape(-1)


def _box(low: Sequence[int], high: Sequence[int], grid: Sequence[int]) -> np.ndarray:
    found = np.zeros(1, np.int64)
    for first, last, count in zip(low, high, grid):
        found = (found[:, None] * count + np.arange(first, last + 1, dtype=np.int64)).reshape(-1)
    return found


def _bounds(window: Window, shape: Sequence[int], number: int) -> tuple[list[int], list[int]]:
    """The begin and the end of a window, in all dimensions."""
    begin = window.begin(number)
    low = [*begin, *[0] * (len(shape) - len(begin))]
    high = [place + side for place, side in zip(begin, window.shape)] + list(shape[len(begin) :])
    return low, high


def _paste(into: np.ndarray, window: Window, values: np.ndarray, low: list[int], shape: Sequence[int]) -> None:
    """Puts a chunk's values, which begin at `low`, where windows have them."""
    ends = [min(begin + side, end) for begin, side, end in zip(low, values.shape, shape)]
    values = values[tuple(slice(0, end - begin) for begin, end in zip(low, ends))]
    if len(window.counts) == 1:
        _paste_rows(into, window, values, low, ends)
        return
    for number in range(window.samples):
        begins, highs = _bounds(window, shape, window.first + number)
        first = [max(a, b) for a, b in zip(begins, low)]
        last = [min(a, b) for a, b in zip(highs, ends)]
        if all(a < b for a, b in zip(first, last)):
            there = tuple(slice(a - o, b - o) for a, b, o in zip(first, last, begins))
            here = tuple(slice(a - o, b - o) for a, b, o in zip(first, last, low))
            into[number][there] = values[here]


def _paste_rows(into: np.ndarray, window: Window, values: np.ndarray, low: list[int], ends: list[int]) -> None:
    """All windows at once, for each row within a window."""
    stride = window.stride[0]
    every = tuple(slice(a, b) for a, b in zip([0, *low[1:]], [len(into), *ends[1:]]))
    for row in range(window.shape[0]):
        # Windows k with low <= k * stride + row < end, of those that are meant.
        first = max(-(-(low[0] - row) // stride), window.first)
        last = min((ends[0] - 1 - row) // stride, window.first + window.samples - 1)
        if first <= last:
            begin = first * stride + row - low[0]
            end = last * stride + row - low[0] + 1
            rows = into[first - window.first : last + 1 - window.first, row]
            rows[every] = values[begin:end:stride]
