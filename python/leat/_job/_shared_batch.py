"""A batch in memory that processes share: sealed, so that nobody can change it or take it away.

The memory has the length of a header (8 bytes), the header in JSON, which names the fields and the
places of their arrays, and the arrays. Each reader maps it for itself alone: what one writes to its
arrays, the others do not see, and only a page that somebody writes to is copied.
"""

from __future__ import annotations

import fcntl
import json
import math
import mmap
import os
from typing import Any

import numpy as np

from leat._batches import _dtypes

Fields = list[tuple[str, Any]]
"""As the engine hands them over: an array; or values, offsets and shapes; or a list of texts."""

_ALIGNED = 64
_LENGTH = 8  # Bytes of the header's length.
_MOST_HEADER = 1 << 30


class Damaged(Exception):
    """Memory that came is no batch of ours."""


def can_be_made() -> bool:
    """Whether this system has such memory."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS")


def make(fields: Fields) -> tuple[int, int]:
    """Copies a batch into memory of its own; returns its descriptor, and its bytes.

    Raises:
        OSError: there is no memory, or no descriptor.
    """
    arrays: list[np.ndarray] = []
    described = [_described(name, value, arrays) for name, value in fields]
    # Places are counted from the end of the header, whose length they would change.
    places, end = [], 0
    for array in arrays:
        places.append(end)
        end = _aligned(end + array.nbytes)
    header = json.dumps({"fields": described, "places": places}).encode()
    begin = _aligned(_LENGTH + len(header))
    fd = os.memfd_create("leat-batch", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, begin + end)
        _write(fd, 0, memoryview(len(header).to_bytes(_LENGTH, "little") + header))
        for place, array in zip(places, arrays):
            if array.nbytes:
                _write(fd, begin + place, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(fd)
        raise
    return fd, begin + end


def take(fd: int) -> Fields:
    """The batch behind a descriptor, which this closes. Its arrays are writable.

    Raises:
        Damaged: it is none.
        OSError: it cannot be mapped.
    """
    try:
        if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _SEALS != _SEALS:
            raise Damaged("its memory is not sealed")
        size = os.fstat(fd).st_size
        memory = mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(fd)
    try:
        length = int.from_bytes(memory[:_LENGTH], "little")
        if length > min(size - _LENGTH, _MOST_HEADER):
            raise Damaged("its header is longer than it is")
        told = json.loads(memory[_LENGTH : _LENGTH + length])
        begin = _aligned(_LENGTH + length)
        parts = iter(told["places"])
        return [_read(field, memory, size, begin, parts) for field in told["fields"]]
    except (KeyError, TypeError, ValueError, StopIteration) as error:
        raise Damaged(f"its header cannot be read: {error!r}") from error


_SEALS = (
    fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    if hasattr(fcntl, "F_SEAL_WRITE")
    else 0
)


def _aligned(place: int) -> int:
    return -(-place // _ALIGNED) * _ALIGNED


def _described(name: str, value: Any, arrays: list[np.ndarray]) -> dict[str, Any]:
    if isinstance(value, list):
        return {"name": name, "texts": value}
    parts = value if isinstance(value, tuple) else (value,)
    arrays.extend(part for part in parts if part is not None)
    told = [None if part is None else [_dtypes.name_of(part.dtype), list(part.shape)] for part in parts]
    return {"name": name, "ragged": told} if isinstance(value, tuple) else {"name": name, "array": told[0]}


def _write(fd: int, place: int, data: memoryview) -> None:
    """Without a mapping: the kernel neither clears the pages before nor faults them in."""
    while data:
        written = os.pwrite(fd, data, place)
        data, place = data[written:], place + written


def _read(field: dict[str, Any], memory: mmap.mmap, size: int, begin: int, places: Any) -> tuple[str, Any]:
    if "texts" in field:
        return field["name"], field["texts"]
    if "array" in field:
        return field["name"], _array(field["array"], memory, size, begin + next(places))
    parts = [None if part is None else _array(part, memory, size, begin + next(places)) for part in field["ragged"]]
    return field["name"], tuple(parts)


def _array(told: list[Any], memory: mmap.mmap, size: int, place: int) -> np.ndarray:
    name, shape = told
    dtype = _dtypes.BITS if name == "bfloat16" else np.dtype(name)
    count = math.prod(shape)
    if dtype.hasobject or min(shape, default=0) < 0 or place < 0 or place + count * dtype.itemsize > size:
        raise Damaged("an array lies outside")
    if count == 0:
        return np.empty(shape, dtype)
    return np.frombuffer(memory, dtype, count, place).reshape(shape)
