"""How an array is stored, whatever the format: chunks of a grid, in objects."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

import numpy as np

from leat import _native
from leat._formats._array._chunks import Filter
from leat.errors import Corrupt, InvalidArgument

_MOST_GRID = 1 << 24
_PLAIN_BYTES = 256 << 10
"""An array that is not stored in chunks is taken as such."""


class Object(NamedTuple):
    """One that holds arrays, or chunks."""

    key: str
    size: int
    etag: bytes
    read: Callable[[int, int], bytes]
    place: str = ""
    """Stands before `key` in the key that the engine reads it by: "1/" in the second of several places."""

    @property
    def stored(self) -> str:
        """The key that the engine reads it by."""
        return self.place + self.key


def objects_of(native: Any) -> list[Object]:
    """Those of a dataset of the engine's, each a sample."""
    reader, are_several = _native.SampleReader(native), len(native.places) > 1
    found = []
    for number in range(native.samples):
        stored, _, size = native.range("data", number)
        at, _, below = stored.partition("/")
        place, key = (f"{at}/", below) if are_several else ("", stored)
        read = functools.partial(reader.read_part, 0, number)
        found.append(Object(key, size, reader.etag(0, number), read, place))
    return found


def digest_of(objects: Sequence[Object]) -> str:
    """Another one if any was written anew."""
    told = repr([(each.stored, each.size, each.etag) for each in objects])
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


@dataclass
class Stored:
    """How an array is stored: as chunks of a grid, numbered in C order."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: tuple[int, ...]
    filters: list[Filter]
    fill: bytes
    objects: list[Object]
    """Those that hold chunks; the first holds any other byte, if there are none."""
    object_of: np.ndarray
    """For each chunk, which of them; -1: it was never stored, and all values are `fill`."""
    offsets: np.ndarray
    lengths: np.ndarray
    masks: Union[np.ndarray, None] = None
    is_clipped: bool = False
    axes: Union[list[int], None] = None
    plain_at: Union[int, None] = None
    """Its first byte, if all of it lies in C order in the first object."""
    values: Union[np.ndarray, None] = None
    """If it lies in no chunk of its own."""

    @property
    def grid(self) -> list[int]:
        return [-(-side // chunk) for side, chunk in zip(self.shape, self.chunk)]

    def check(self) -> None:
        """Raises `leat.Corrupt` if a chunk lies outside of its object, or is there and has no bytes."""
        for number, each in enumerate(self.objects):
            here = self.object_of == number
            ends = self.offsets[here] + self.lengths[here]
            if (self.offsets[here] < 0).any() or (self.lengths[here] < 0).any() or (ends > each.size).any():
                raise Corrupt(
                    f"{each.key}: a chunk of {self.name} lies outside of its {each.size} bytes: it is cut short"
                )
            # A chunk of fill values is not stored at all.
            if math.prod(self.shape) and not self.lengths[here].all():
                raise Corrupt(
                    f"{each.key}: a chunk of {self.name} has no bytes: it was not written to its end; write it again"
                )


def plain(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], object: Object, at: int, fill: bytes = b""
) -> Stored:
    """An array that lies in C order from a byte on, taken as chunks."""
    chunk = _plain_chunk(shape, dtype.itemsize)
    grid = [-(-side // part) for side, part in zip(shape, chunk)]
    check_grid(name, grid)
    extents = [np.minimum(part, side - part * np.arange(count)) for part, side, count in zip(chunk, shape, grid)]
    lengths, offsets, behind = (
        np.full(1, dtype.itemsize, np.int64),
        np.full(1, at, np.int64),
        dtype.itemsize * math.prod(shape),
    )
    for side, part, count, extent in zip(shape, chunk, grid, extents):
        behind //= max(side, 1)
        offsets = (offsets[:, None] + np.arange(count, dtype=np.int64) * part * behind).reshape(-1)
        lengths = (lengths[:, None] * extent.astype(np.int64)).reshape(-1)
    return Stored(
        name=name, shape=shape, dtype=dtype, chunk=chunk, filters=[], fill=fill or bytes(dtype.itemsize),
        objects=[object], object_of=np.zeros(len(offsets), np.int32), offsets=offsets, lengths=lengths,
        is_clipped=True, plain_at=at,
    )  # fmt: skip


def _plain_chunk(shape: Sequence[int], item: int) -> tuple[int, ...]:
    """Whole trailing dimensions, as many as fit, then a part of the next; 1 in those before."""
    chunk, size = [1] * len(shape), item
    for axis in range(len(shape) - 1, -1, -1):
        fits = max(1, min(shape[axis], _PLAIN_BYTES // size))
        chunk[axis] = fits
        size *= fits
        if fits < shape[axis]:
            break
    return tuple(chunk)


def check_grid(name: str, grid: Sequence[int]) -> None:
    """Raises `leat.InvalidArgument` if there are too many chunks."""
    if math.prod(grid) > _MOST_GRID:
        raise InvalidArgument(
            f"{name} has {math.prod(grid)} chunks, and at most {_MOST_GRID} are indexed; write larger ones"
        )


def number_type(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Raises `leat.InvalidArgument` if the items are no numbers."""
    if dtype.kind not in "biufc" or dtype.itemsize > 16 or (dtype.kind == "f" and dtype.itemsize > 8):
        raise InvalidArgument(f"{name} is of type {dtype}; Leat reads numbers, and neither texts nor records")
    return np.dtype(dtype.str)
