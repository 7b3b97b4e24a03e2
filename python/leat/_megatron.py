"""Corpora of Megatron-LM: tokens in a ``.bin``, and an index of them in an ``.idx``."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

from leat.errors import Corrupt

_MAGIC = b"MMIDIDX\x00\x00"
_HEADER = struct.Struct("<9sQBQQ")
_DTYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float64", 7: "float32", 8: "uint16"}
MOST_INDEX_BYTES = 64 << 30


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


def parse(data: bytes, name: str) -> Index:
    """An ``.idx`` of version 1, as megatron.core's `IndexedDatasetBuilder` writes it.

    A document is a run of sequences that lie side by side. Those without tokens are left out.

    Raises:
        leat.Corrupt: it is none, or it is damaged; the error names it.
    """

    def corrupt(why: str) -> Corrupt:
        return Corrupt(f"{name} is no index of Megatron's, or it is damaged: {why}")

    if len(data) < _HEADER.size:
        raise corrupt(f"it has {len(data)} bytes, and its head {_HEADER.size}")
    magic, version, code, sequences, documents = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise corrupt("it begins with other bytes")
    if version != 1 or code not in _DTYPES:
        raise corrupt(f"it is of version {version}, and its tokens have the type {code}")
    if len(data) < _HEADER.size + sequences * 12 + documents * 8 or documents == 0:
        raise corrupt(f"{len(data)} bytes are too few for {sequences} sequences in {documents - 1} documents")
    at = _HEADER.size
    sizes = np.frombuffer(data, "<i4", sequences, at)
    pointers = np.frombuffer(data, "<i8", sequences, at + 4 * sequences)
    ends = np.frombuffer(data, "<i8", documents, at + 12 * sequences)
    dtype = np.dtype(_DTYPES[code]).newbyteorder("<")
    if (sizes < 0).any() or (pointers < 0).any():
        raise corrupt("a sequence has a length or a place below 0")
    if ends[0] != 0 or ends[-1] != sequences or (np.diff(ends) < 0).any():
        raise corrupt("its documents do not follow one another from the first sequence to the last")
    lengths = sizes.astype(np.int64) * dtype.itemsize
    if sequences and not np.array_equal(pointers[1:], pointers[:-1] + lengths[:-1]):
        raise corrupt("its sequences do not lie side by side")
    begins = np.concatenate([pointers, [pointers[-1] + lengths[-1]] if sequences else [0]])
    first, last = begins[ends[:-1]], begins[ends[1:]]
    has_some = last > first
    return Index(dtype, first[has_some].astype(np.uint64), (last - first)[has_some].astype(np.uint64))
