"""Corpora of Megatron-LM: tokens in a ``.bin``, and an index of them in an ``.idx``."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from leat.errors import Corrupt, InvalidArgument

_MAGIC = b"MMIDIDX\x00\x00"
_HEADER = struct.Struct("<9sQBQQ")
_DTYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float64", 7: "float32", 8: "uint16"}
MOST_INDEX_BYTES = 64 << 30


class Sequences(NamedTuple):
    """The content of an ``.idx``. A document is a run of sequences that lie side by side."""

    dtype: np.dtype
    sizes: np.ndarray
    """The tokens of each: int32."""
    pointers: np.ndarray
    """The byte that each begins with: int64."""
    ends: np.ndarray
    """The number of sequences before each document, and of all: int64."""


class Index(NamedTuple):
    """The documents of a ``.bin``."""

    dtype: np.dtype
    offsets: np.ndarray
    """The byte that each document begins with: uint64, of shape ``(documents,)``."""
    lengths: np.ndarray
    """And the bytes that it takes; at least one token."""


def prefix_of(url: str) -> str:
    """The common part of the names of both files."""
    for ending in (".bin", ".idx"):
        if url.endswith(ending):
            return url[: -len(ending)]
    return url


def checked_documents(url: Any, order: Any, given: Mapping[str, Any]) -> str:
    """The path of a corpus whose samples are documents.

    Raises:
        leat.InvalidArgument: `order` is another word, or an argument belongs to Megatron's order.
    """
    if order != "leat":
        raise InvalidArgument(f'order={order!r}; it is "leat" or "megatron"')
    for name, value in given.items():
        if value is not None:
            raise InvalidArgument(
                f"{name}={value!r} cuts samples as Megatron does, and here they are documents; "
                'give order="megatron" as well'
            )
    if not isinstance(url, (str, os.PathLike)):
        raise InvalidArgument(
            f'{url!r} is a blend, which needs order="megatron"; or open each corpus by itself, and give all of them '
            "to leat.mix"
        )
    return os.fspath(url)


def parse(data: bytes, name: str) -> Index:
    """The documents of an ``.idx``. Those without tokens are left out.

    Raises:
        leat.Corrupt: it is none, or it is damaged; the error names it.
    """
    dtype, sizes, pointers, ends = sequences(data, name)
    last_end = pointers[-1:] + sizes[-1:].astype(np.int64) * dtype.itemsize if len(sizes) else [0]
    begins = np.concatenate([pointers, last_end])
    first, last = begins[ends[:-1]], begins[ends[1:]]
    has_some = last > first
    return Index(dtype, first[has_some].astype(np.uint64), (last - first)[has_some].astype(np.uint64))


def sequences(data: bytes, name: str) -> Sequences:
    """An ``.idx`` of version 1, as megatron.core's `IndexedDatasetBuilder` writes it.

    Raises:
        leat.Corrupt: it is none, or it is damaged; the error names it.
    """

    def corrupt(why: str) -> Corrupt:
        return Corrupt(f"{name} is no index of Megatron's, or it is damaged: {why}")

    if len(data) < _HEADER.size:
        raise corrupt(f"it has {len(data)} bytes, and its head {_HEADER.size}")
    magic, version, code, count, documents = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise corrupt("it begins with other bytes")
    if version != 1 or code not in _DTYPES:
        raise corrupt(f"it is of version {version}, and its tokens have the type {code}")
    if len(data) < _HEADER.size + count * 12 + documents * 8 or documents == 0:
        raise corrupt(f"{len(data)} bytes are too few for {count} sequences in {documents - 1} documents")
    at = _HEADER.size
    sizes = np.frombuffer(data, "<i4", count, at)
    pointers = np.frombuffer(data, "<i8", count, at + 4 * count)
    ends = np.frombuffer(data, "<i8", documents, at + 12 * count)
    dtype = np.dtype(_DTYPES[code]).newbyteorder("<")
    if (sizes < 0).any() or (pointers < 0).any():
        raise corrupt("a sequence has a length or a place below 0")
    if ends[0] != 0 or ends[-1] != count or (np.diff(ends) < 0).any():
        raise corrupt("its documents do not follow one another from the first sequence to the last")
    lengths = sizes.astype(np.int64) * dtype.itemsize
    if count and not np.array_equal(pointers[1:], pointers[:-1] + lengths[:-1]):
        raise corrupt("its sequences do not lie side by side")
    return Sequences(dtype, sizes, pointers, ends)
