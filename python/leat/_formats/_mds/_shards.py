"""The places of values in shards of MosaicML Streaming (MDS).

A shard, all numbers little-endian::

    u32 samples
    u32 offsets[samples + 1]   from the file's start; the last one is its end
    the writer's settings      JSON, up to the first sample
    samples                    of each: u32 sizes of the columns without a fixed size, then the columns

So one column without a fixed size needs the offsets alone. If there are several, the sizes at the
head of each sample are read once.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from leat import _native
from leat._formats._indexed import INDEX, Wrong, words
from leat._formats._mds._index import Column, Index, Shard, Zipped, columns_of
from leat._formats._mds._zip import decompress
from leat.errors import Cancelled, Corrupt

_log = logging.getLogger("leat")

_MOST_SETTINGS_BYTES = 16 << 20
_USUAL_SETTINGS_BYTES = 16 << 10
_WINDOW_BYTES = 8 << 20
_GAP_BYTES = 1 << 20
"""A request costs as much as some bytes: fewer than these between two heads are read too."""
_MOST_THREADS = 16
_MOST_AT_ONCE_BYTES = 1 << 30
_TELL_EVERY_SECONDS = 10.0
_TOLD_BYTES = 1 << 28
"""Reading more than this is said beforehand."""

Places = list[tuple[np.ndarray, np.ndarray]]
"""For each field, where the value of each sample begins, and its length: int64."""
Rows = tuple[int, list[str], list[tuple[str, str, Any, Any, Any, Any]], list[str]]
"""Rows, names, columns and classes, as `_native.Dataset.from_rows_made` takes them."""


def rows_of(
    folder: str, store: Any, index: Index, fields: Sequence[Column], is_stopped: Callable[[], bool]
) -> Rows:
    """Reads the heads of shards, and of samples where it must, for the place of each value.

    Raises:
        leat.Corrupt: a shard is not what the index says, or it is damaged.
        leat.NotFound: a shard is not there.
    """
    keys = [shard.key if shard.zipped is None else shard.zipped.key for shard in index.shards]
    files = _native.Dataset.from_rows(
        places=[folder],
        store=store,
        rows=len(keys),
        names=keys,
        columns=[("data", "bytes", keys, None, None, None)],
        classes=[],
        description=f"files of {index.name}",
        refresh="always",
    )
    reader = _native.SampleReader(files)

    def scan(number: int) -> Places:
        def read(at: int, length: int) -> bytes:
            if is_stopped():
                raise Cancelled("reading shards of MDS was stopped")
            return reader.read_part(0, number, at, length)

        shard, range_of = index.shards[number], files.range("data", number)
        size = 0 if range_of is None else int(range_of[2])
        if shard.zipped is None:
            return scan_shard(shard, size, index.columns, fields, read)
        data = _unzipped(shard, shard.zipped, size, read)
        keys[number] = _made_key(shard, shard.zipped, reader.etag(0, number))
        return scan_shard(shard, len(data), index.columns, fields, lambda at, length: data[at : at + length])

    found = list(_in_order(scan, index))
    columns = []
    objects = [key for key, shard in zip(keys, index.shards) for key in [key] * shard.samples]
    for place, column in enumerate(fields):
        offsets = np.concatenate([of_shard[place][0] for of_shard in found])
        lengths = np.concatenate([of_shard[place][1] for of_shard in found])
        columns.append((column.name, "bytes", objects, None, offsets.astype(np.uint64), lengths.astype(np.uint64)))
    names = [f"{shard.key}:{row}" for shard in index.shards for row in range(shard.samples)]
    return index.samples, names, columns, []


def _unzipped(shard: Shard, zipped: Zipped, size: int, read: Callable[[int, int], bytes]) -> bytes:
    if size != zipped.size or size == 0:
        raise _corrupt(zipped.key, f"it has {size} bytes, and {INDEX} says {zipped.size}")
    try:
        return decompress(zipped.kind, read(0, size), shard.size)
    except Corrupt as error:
        raise _corrupt(zipped.key, str(error)) from None


def _made_key(shard: Shard, zipped: Zipped, etag: bytes) -> str:
    """The name of the object that is made of a compressed shard."""
    return _native.derived_key(
        source=zipped.key,
        etag=etag,
        offset=0,
        length_bytes=zipped.size,
        notes_offset=0,
        notes_bytes=0,
        size_bytes=shard.size,
        part=f"{zipped.kind} {shard.size}",
    )


def _in_order(scan: Callable[[int], Places], index: Index) -> Iterator[Places]:
    read_through = index.shards
    if not _is_read_through(index.columns):
        read_through = [shard for shard in index.shards if shard.zipped]
    if read_through:
        total = sum(shard.zipped.size if shard.zipped else shard.size for shard in read_through)
        if total > _TOLD_BYTES:
            _log.info("%s: reads up to %.1f GB once, to learn where each value lies; that is kept",
                      index.name, total / 1e9)  # fmt: skip
    told, done = time.monotonic(), 0
    held = max((shard.zipped.size + shard.size for shard in index.shards if shard.zipped), default=1)
    threads = max(1, min(_MOST_THREADS, _MOST_AT_ONCE_BYTES // max(held, 1)))
    with ThreadPoolExecutor(threads, "leat-mds") as pool:
        try:
            for shard, found in zip(index.shards, pool.map(scan, range(len(index.shards)))):
                done += 1
                if time.monotonic() - told > _TELL_EVERY_SECONDS:
                    told = time.monotonic()
                    _log.info("%s: indexed %d of %d shards", index.name, done, len(index.shards))
                yield found
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _is_read_through(columns: Sequence[Column]) -> bool:
    return sum(column.size is None for column in columns) > 1


def scan_shard(
    shard: Shard,
    size: int,
    columns: Sequence[Column],
    fields: Sequence[Column],
    read: Callable[[int, int], bytes],
) -> Places:
    """The places of the fields' values.

    Args:
        size: the bytes of the file.
        read: gets bytes of it, from a place and of a length.

    Raises:
        leat.Corrupt: the shard is not what the index says, or it is damaged.
    """
    offsets = _offsets(shard, size, columns, read)
    own = sum(column.size is None for column in columns)
    fixed = sum(column.size or 0 for column in columns)
    room = np.diff(offsets) - (4 * own + fixed)
    unfit = room < 0 if own else room != 0
    if unfit.any():
        sample = int(np.argmax(unfit))
        raise _corrupt(shard.key, f"sample {sample} has {offsets[sample + 1] - offsets[sample]} bytes, and its columns "
                       f"take {4 * own + fixed}{' or more' if own else ''}")  # fmt: skip
    if own > 1:
        sizes = sizes_at_heads(offsets, own, read)
        wrong = sizes.sum(axis=1) != room
        if wrong.any():
            sample = int(np.argmax(wrong))
            raise _corrupt(shard.key, f"the columns of sample {sample} have {sizes[sample].tolist()} bytes, and together "
                           f"there are {room[sample]}")  # fmt: skip
    else:
        sizes = room.reshape(-1, 1)
    return _places(offsets[:-1] + 4 * own, sizes, columns, fields)


def _corrupt(key: str, why: str) -> Corrupt:
    return Corrupt(f"{key} is no shard of MDS, or it is damaged: {why}")


def _places(
    begins: np.ndarray, sizes: np.ndarray, columns: Sequence[Column], fields: Sequence[Column]
) -> Places:
    places: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    number = 0
    for column in columns:
        if column.size is None:
            lengths = sizes[:, number]
            number += 1
        else:
            lengths = np.full(len(begins), column.size, np.int64)
        places[column.name] = (begins, lengths)
        begins = begins + lengths
    return [places[column.name] for column in fields]


def _offsets(
    shard: Shard, size: int, columns: Sequence[Column], read: Callable[[int, int], bytes]
) -> np.ndarray:
    """The places where samples begin, and where the last one ends: int64."""
    if size != shard.size:
        raise _corrupt(shard.key, f"it has {size} bytes, and {INDEX} says {shard.size}")
    table = 4 * (shard.samples + 2)
    if table > size:
        raise _corrupt(shard.key, f"{size} bytes are too few for {shard.samples} samples")
    head = read(0, min(size, table + _USUAL_SETTINGS_BYTES))
    samples = int.from_bytes(head[:4], "little")
    if samples != shard.samples:
        raise _corrupt(shard.key, f"it says {samples} samples, and {INDEX} {shard.samples}")
    offsets = np.frombuffer(head, "<u4", shard.samples + 1, 4).astype(np.int64)
    if not table <= offsets[0] <= size or offsets[-1] != size or (np.diff(offsets) < 0).any():
        raise _corrupt(shard.key, "its samples do not follow one another from behind its head to its end")
    length = int(offsets[0]) - table
    if length > _MOST_SETTINGS_BYTES:
        raise _corrupt(shard.key, f"{length} bytes of settings, and at most {_MOST_SETTINGS_BYTES} are read")
    settings = head[table : table + length]
    if len(settings) < length:
        settings += read(table + len(settings), length - len(settings))
    _check_settings(shard, settings, columns)
    return offsets


def _check_settings(shard: Shard, settings: bytes, columns: Sequence[Column]) -> None:
    """A shard of other columns, or of a damaged head, is read as nothing else."""
    try:
        found = columns_of(json.loads(settings))
    except (ValueError, RecursionError, AttributeError, Wrong) as error:
        raise _corrupt(shard.key, f"its settings cannot be read: {error}") from None
    if found != list(columns):
        raise _corrupt(shard.key, f"its columns are {words(found)}, and {INDEX} says {words(columns)}")


def sizes_at_heads(offsets: np.ndarray, own: int, read: Callable[[int, int], bytes]) -> np.ndarray:
    """The sizes at the head of each sample: int64, of shape (samples, `own`)."""
    begins, samples = offsets[:-1], len(offsets) - 1
    sizes = np.empty((samples, own), np.int64)
    within = np.arange(4 * own)
    far = np.flatnonzero(np.diff(begins) > _GAP_BYTES) + 1
    first = 0
    while first < samples:
        last = int(np.searchsorted(begins, begins[first] + _WINDOW_BYTES - 4 * own, "right"))
        next_far = int(np.searchsorted(far, first, "right"))
        if next_far < len(far):
            last = min(last, int(far[next_far]))
        last = max(last, first + 1)
        at = int(begins[first])
        data = np.frombuffer(read(at, int(begins[last - 1]) + 4 * own - at), np.uint8)
        heads = data[(begins[first:last, None] - at) + within]
        sizes[first:last] = np.ascontiguousarray(heads).view("<u4")
        first = last
    return sizes
