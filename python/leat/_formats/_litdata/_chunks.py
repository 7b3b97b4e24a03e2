"""The places of values in LitData's chunks.

A chunk, all numbers little-endian::

    u32 samples
    u32 offsets[samples + 1]   from the file's start
    samples                    of each: u32 sizes of all its values, then the values
    an Arrow table             in some: see `leat._formats._litdata._packed`

So one value without a fixed size needs the offsets alone. If there are several, the sizes at the
head of each sample are read once. Tokens have no sizes: samples are nothing but numbers.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Union

import numpy as np

from leat import _native
from leat._formats._indexed import INDEX, MOST_PACKED_BYTES
from leat._formats._litdata import _packed
from leat._formats._litdata._index import Chunk, Index, Leaf
from leat._formats._mds._shards import Places, Rows, sizes_at_heads
from leat.errors import Cancelled, Corrupt, InvalidArgument

_log = logging.getLogger("leat")

_MOST_THREADS = 16
_MOST_AT_ONCE_BYTES = 2 << 30
_TELL_EVERY_SECONDS = 10.0
_TOLD_BYTES = 1 << 28
"""Reading more than this is said beforehand."""

Read = Callable[[int, int], bytes]


class _Chunks:
    """Finds the places of `fields` in all chunks. Threads: any for `scan`."""

    def __init__(
        self, folder: str, store: Any, index: Index, fields: Sequence[Leaf], block_size: Union[int, None],
        is_stopped: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._index, self._fields, self._block_size = index, fields, block_size
        self._is_stopped = is_stopped
        names = [chunk.key for chunk in index.chunks]
        self._files = _native.Dataset.from_rows(
            places=[folder],
            store=store,
            rows=len(names),
            names=names,
            columns=[("data", "bytes", names, None, None, None)],
            classes=[],
            description=f"files of {index.name}",
            refresh="always",
        )
        self._reader = _native.SampleReader(self._files)
        self.keys = names

    def scan(self, number: int) -> Places:
        chunk, range_of = self._index.chunks[number], self._files.range("data", number)
        size = 0 if range_of is None else int(range_of[2])
        kind = _packed.WHOLE if chunk.zipped else {"batch": _packed.FRAMES, "sample": _packed.SAMPLES}.get(
            self._index.level or ""
        )  # fmt: skip
        try:
            if size == 0 or (size != chunk.size and not chunk.zipped):
                raise Corrupt(f"it has {size} bytes, and {INDEX} says {chunk.size}")
            if kind is not None:
                return self._scan_packed(number, chunk, kind, size)
            read = _with_head(self._read_of(number), min(size, 4 * (chunk.samples + 2 + len(self._index.leaves))))
            if _is_arrow_alone(chunk, size, read):
                return self._scan_packed(number, chunk, _packed.ARROW, size)
            return self._places(chunk, size, read)
        except Corrupt as error:
            raise Corrupt(f"{chunk.key} is no chunk of LitData, or it is damaged: {error}") from None
        except InvalidArgument as error:
            raise InvalidArgument(f"{chunk.key}: {error}") from None

    def _scan_packed(self, number: int, chunk: Chunk, kind: str, size: int) -> Places:
        most = chunk.size if kind == _packed.WHOLE else MOST_PACKED_BYTES
        if max(size, chunk.size) > MOST_PACKED_BYTES:
            raise InvalidArgument(
                f"it has {max(size, chunk.size) / 2**30:.1f} GiB, and such a chunk is held whole; write it anew with a "
                "smaller chunk_bytes="
            )
        leaves = self._index.leaves
        named = frozenset(leaf.name for leaf in self._fields)
        data = _packed.unpack(kind, self._read_of(number)(0, size), most, leaves, named)
        if kind == _packed.WHOLE and len(data) != chunk.size:
            raise Corrupt(f"it stands for {len(data)} bytes, and {INDEX} says {chunk.size}")
        told = json.dumps([leaves, sorted(named)]).encode()
        self.keys[number] = _native.derived_key(
            source=chunk.key,
            etag=self._reader.etag(0, number),
            offset=0,
            length_bytes=size,
            notes_offset=0,
            notes_bytes=0,
            size_bytes=len(data),
            part=f"{kind} {len(data)} {hashlib.blake2b(told, digest_size=8).hexdigest()}",
        )
        return self._places(chunk, len(data), lambda at, length: data[at : at + length])

    def _read_of(self, number: int) -> Read:
        def read(at: int, length: int) -> bytes:
            if self._is_stopped():
                raise Cancelled("reading chunks of LitData was stopped")
            return self._reader.read_part(0, number, at, length)

        return read

    def _places(self, chunk: Chunk, size: int, read: Read) -> Places:
        if self._index.are_tokens:
            return tokens_of(chunk, size, self._index.leaves[0], self._block_size, read)
        return scan_chunk(chunk, size, self._index.leaves, self._fields, read)


def rows_of(
    folder: str,
    store: Any,
    index: Index,
    fields: Sequence[Leaf],
    block_size: Union[int, None],
    is_stopped: Callable[[], bool],
) -> Rows:
    """Reads the heads of chunks, and of samples where it must, for the place of each value.

    Raises:
        leat.Corrupt: a chunk is not what the index says, or it is damaged.
        leat.InvalidArgument: a sample lacks a field, or no chunk has a whole window.
        leat.NotFound: a chunk is not there.
    """
    chunks = _Chunks(folder, store, index, fields, block_size, is_stopped)
    found = list(_in_order(chunks.scan, index))
    counts = [len(of_chunk[0][0]) for of_chunk in found]
    if not sum(counts):
        raise InvalidArgument(f"{index.name}: no chunk has {block_size} tokens; give a smaller block_size=")
    columns = []
    objects = [key for key, count in zip(chunks.keys, counts) for key in [key] * count]
    for place, leaf in enumerate(fields):
        offsets = np.concatenate([of_chunk[place][0] for of_chunk in found])
        lengths = np.concatenate([of_chunk[place][1] for of_chunk in found])
        columns.append((leaf.name, "bytes", objects, None, offsets.astype(np.uint64), lengths.astype(np.uint64)))
    names = [f"{chunk.key}:{row}" for chunk, count in zip(index.chunks, counts) for row in range(count)]
    return sum(counts), names, columns, []


def _in_order(scan: Callable[[int], Places], index: Index) -> Iterator[Places]:
    chunks = index.chunks
    is_whole = index.level is not None or any(chunk.zipped for chunk in chunks)
    if is_whole or (not index.are_tokens and sum(leaf.size is None for leaf in index.leaves) > 1):
        total = sum(chunk.size for chunk in chunks)
        if total > _TOLD_BYTES:
            _log.info("%s: reads up to %.1f GB once, to learn where each value lies; that is kept",
                      index.name, total / 1e9)  # fmt: skip
    told, done = time.monotonic(), 0
    # A chunk may turn out to be one that is read whole, which takes several times its bytes.
    held = 4 * max(chunk.size for chunk in chunks)
    threads = max(1, min(_MOST_THREADS, _MOST_AT_ONCE_BYTES // max(held, 1)))
    with ThreadPoolExecutor(threads, "leat-litdata") as pool:
        try:
            for found in pool.map(scan, range(len(chunks))):
                done += 1
                if time.monotonic() - told > _TELL_EVERY_SECONDS:
                    told = time.monotonic()
                    _log.info("%s: indexed %d of %d chunks", index.name, done, len(chunks))
                yield found
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _with_head(read: Read, length: int) -> Read:
    """Reads the head of a file once."""
    head = read(0, length)
    return lambda at, size: head[at : at + size] if at + size <= length else read(at, size)


def _offsets(chunk: Chunk, size: int, more: int, read: Read) -> tuple[np.ndarray, bytes]:
    """The places where samples begin and where the last one ends (int64), and up to `more` bytes behind the table."""
    table = 4 * (chunk.samples + 2)
    if table > size:
        raise Corrupt(f"{size} bytes are too few for {chunk.samples} samples")
    head = read(0, min(size, table + more))
    samples = int.from_bytes(head[:4], "little")
    if samples != chunk.samples:
        raise Corrupt(f"it says {samples} samples, and {INDEX} {chunk.samples}")
    offsets = np.frombuffer(head, "<u4", chunk.samples + 1, 4).astype(np.int64)
    if offsets[0] != table or offsets[-1] > size or (np.diff(offsets) < 0).any():
        raise Corrupt("its samples do not follow one another from behind its head to its end")
    return offsets, head[table:]


def _is_arrow_alone(chunk: Chunk, size: int, read: Read) -> bool:
    """Whether all samples lie in an Arrow table: the file has no others, and more bytes."""
    if chunk.samples >= size // 4 - 2:
        return False
    count, first, last = (int.from_bytes(read(4 * place, 4), "little") for place in (0, 1, chunk.samples + 1))
    return count == chunk.samples and first == last < size


def _check_end(offsets: np.ndarray, size: int, read: Read) -> None:
    rest = size - int(offsets[-1])
    if rest == 0:
        return
    table = _packed.footer_size(read(size - _packed.FOOTER_BYTES, _packed.FOOTER_BYTES), rest) if rest > 12 else 0
    if table + _packed.FOOTER_BYTES != rest:
        raise Corrupt(f"{rest} bytes follow its samples, and no Arrow table of as many")


def scan_chunk(chunk: Chunk, size: int, leaves: Sequence[Leaf], fields: Sequence[Leaf], read: Read) -> Places:
    """The places of the fields' values.

    Args:
        size: the bytes of the file.
        read: gets bytes of it, from a place and of a length.

    Raises:
        leat.Corrupt: the chunk is not what the index says, or it is damaged.
    """
    head = 4 * len(leaves)
    offsets, first = _offsets(chunk, size, head, read)
    _check_end(offsets, size, read)
    fixed = np.array([-1 if leaf.size is None else leaf.size for leaf in leaves], np.int64)
    own = int((fixed < 0).sum())
    room = np.diff(offsets) - head
    if (room < 0).any():
        sample = int(np.argmax(room < 0))
        raise Corrupt(f"sample {sample} has {room[sample] + head} bytes, and the sizes of its values {head}")
    if own > 1:
        sizes = sizes_at_heads(offsets, len(leaves), read)
    else:
        sizes = np.tile(fixed, (chunk.samples, 1))
        sizes[:, fixed < 0] = (room - fixed[fixed >= 0].sum()).reshape(-1, 1)
        # LitData has written numbers as texts once, and sizes would then be others.
        if sizes[0].tolist() != np.frombuffer(first, "<u4", len(leaves)).tolist():
            raise Corrupt(f"the values of sample 0 have not the sizes that its {len(leaves)} formats want")
    _check_sizes(sizes, room, fixed, leaves)
    places: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    begins = offsets[:-1] + head
    for number, leaf in enumerate(leaves):
        places[leaf.name] = (begins, sizes[:, number])
        begins = begins + sizes[:, number]
    return [places[leaf.name] for leaf in fields]


def _check_sizes(sizes: np.ndarray, room: np.ndarray, fixed: np.ndarray, leaves: Sequence[Leaf]) -> None:
    wrong = (sizes.sum(axis=1) != room) | (sizes < 0).any(axis=1)
    wrong |= ((sizes != fixed) & (fixed >= 0)).any(axis=1)
    if wrong.any():
        sample = int(np.argmax(wrong))
        raise Corrupt(f"the values of sample {sample} have {sizes[sample].tolist()} bytes, and together there are "
                      f"{room[sample]}; their formats are {', '.join(leaf.format for leaf in leaves)}")  # fmt: skip
    for number, leaf in enumerate(leaves):
        if leaf.dtype is not None:
            _check_whole(sizes[:, number], leaf)


def _check_whole(sizes: np.ndarray, leaf: Leaf) -> None:
    broken = sizes % np.dtype(leaf.dtype).itemsize != 0
    if broken.any():
        sample = int(np.argmax(broken))
        raise Corrupt(
            f"sample {sample} has {sizes[sample]} bytes of {leaf.name!r}, and no whole number of {leaf.dtype}"
        )


def tokens_of(chunk: Chunk, size: int, leaf: Leaf, block_size: Union[int, None], read: Read) -> Places:
    """The places of samples of nothing but numbers; or of windows of `block_size`.

    Raises:
        leat.Corrupt: as `scan_chunk`.
    """
    offsets, _ = _offsets(chunk, size, 0, read)
    sizes = np.diff(offsets)
    _check_whole(sizes, leaf)
    token = np.dtype(leaf.dtype).itemsize
    tokens = int(offsets[-1] - offsets[0]) // token
    if offsets[-1] != size or tokens != chunk.tokens:
        raise Corrupt(f"it has {tokens} tokens in {size} bytes, and {INDEX} says {chunk.tokens}")
    if block_size is None:
        has_some = sizes > 0
        return [(offsets[:-1][has_some], sizes[has_some])]
    window = block_size * token
    begins = offsets[0] + window * np.arange(tokens // block_size, dtype=np.int64)
    return [(begins, np.full(len(begins), window, np.int64))]
