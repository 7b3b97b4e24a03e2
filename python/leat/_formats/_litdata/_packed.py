"""Chunks of LitData that cannot be read by ranges of their samples: what each stands for, made of it whole.

That is a chunk as LitData writes it uncompressed (see `leat._formats._litdata._chunks`), whichever of these it
was made of: a file that zstd compressed; one in which zstd compressed each sample, or some at a time
in frames; or an Arrow table, in which LitData keeps dicts of plain values.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from leat._formats._indexed import MOST_PACKED_BYTES
from leat._formats._litdata._index import Leaf, Path
from leat.errors import Corrupt, InvalidArgument

WHOLE, FRAMES, SAMPLES, ARROW = "zstd", "frames", "samples", "arrow"
FOOTER = b"LDARW01\0"
"""The end of a file with an Arrow table, after the table's bytes and their number."""
FOOTER_BYTES = 12
_FRAMES_MAGIC = b"LDFZ01\0\0"
_FRAMES_HEAD = struct.Struct("<8sHHIII")
_FRAME = np.dtype([("first", "<u4"), ("count", "<u4"), ("at", "<u8"), ("packed", "<u4"), ("size", "<u4")])


def deriver(leaves: Sequence[Leaf], fields: Sequence[Leaf]) -> Callable[[str, int, bytes, int, bytes], bytes]:
    """Makes chunks in the engine: see `_native.StoreOptions.derive_with`."""
    names = frozenset(leaf.name for leaf in fields)

    def derive(part: str, _notes_at: int, _notes: bytes, _at: int, data: bytes) -> bytes:
        kind, size = part.split(" ")[:2]
        return unpack(kind, data, int(size), leaves, names)

    return derive


def unpack(kind: str, data: bytes, most: int, leaves: Sequence[Leaf], fields: frozenset[str]) -> bytes:
    """The chunk that `data` stands for, of at most `most` bytes. `fields`: the values that every sample has to have.

    Raises:
        leat.Corrupt: it is damaged, or stands for more.
        leat.InvalidArgument: a sample lacks one of `fields`; or pyarrow is missing.
    """
    if kind == WHOLE:
        return _inflate(data, most)
    if kind == FRAMES:
        return _joined(list(_of_frames(data, most)), most)
    if kind == SAMPLES:
        return _joined(list(_of_samples(data, most)), most)
    return _joined(list(_of_arrow(data, leaves, fields)), most)


def offsets_of(data: bytes) -> np.ndarray:
    """The places of samples in a chunk whose head was not checked: int64."""
    samples = int.from_bytes(data[:4], "little")
    if len(data) < 4 * (samples + 2):
        raise Corrupt(f"{len(data)} bytes are too few for {samples} samples")
    offsets = np.frombuffer(data, "<u4", samples + 1, 4).astype(np.int64)
    if offsets[0] != 4 * (samples + 2) or (np.diff(offsets) < 0).any() or offsets[-1] > len(data):
        raise Corrupt("its samples do not follow one another from behind its head to its end")
    return offsets


def _joined(samples: Sequence[bytes], most: int) -> bytes:
    begin = 4 * (len(samples) + 2)
    offsets = np.cumsum([begin, *map(len, samples)])
    if offsets[-1] > most:
        raise Corrupt(f"it stands for more than {most} bytes")
    return b"".join([struct.pack("<I", len(samples)), offsets.astype("<u4").tobytes(), *samples])


def _of_frames(data: bytes, most: int) -> Iterator[bytes]:
    if len(data) < _FRAMES_HEAD.size:
        raise Corrupt("cut short: the head of its frames is not whole")
    magic, version, _, samples, _, count = _FRAMES_HEAD.unpack_from(data)
    if magic != _FRAMES_MAGIC or version != 1:
        raise Corrupt(f"it has no frames of version 1, as its index says: {magic[:6]!r}, {version}")
    table = _FRAMES_HEAD.size + 4 * (samples + 1)
    if len(data) < table + _FRAME.itemsize * count:
        raise Corrupt(f"{len(data)} bytes are too few for {samples} samples in {count} frames")
    offsets = np.frombuffer(data, "<u4", samples + 1, _FRAMES_HEAD.size).astype(np.int64)
    frames = np.frombuffer(data, _FRAME, count, table)
    if offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] > most:
        raise Corrupt("its samples do not follow one another")
    done = 0
    for first, of_frame, at, packed, size in frames.tolist():
        if first != done or of_frame > samples - done or at + packed > len(data):
            raise Corrupt("its frames do not follow one another, or lie beyond its end")
        here = offsets[first : first + of_frame + 1]
        if size != here[-1] - here[0]:
            raise Corrupt(f"the frame of sample {first} says {size} bytes, and its samples {here[-1] - here[0]}")
        made = _inflate(data[at : at + packed], size)
        if len(made) != size:
            raise Corrupt(f"the frame of sample {first} stands for {len(made)} bytes, and says {size}")
        for begin, end in zip((here[:-1] - here[0]).tolist(), (here[1:] - here[0]).tolist()):
            yield made[begin:end]
        done += of_frame
    if done != samples:
        raise Corrupt(f"its frames have {done} samples, and its head says {samples}")


def _of_samples(data: bytes, most: int) -> Iterator[bytes]:
    offsets = offsets_of(data)
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        made = _inflate(data[begin:end], most)
        most -= len(made)
        yield made


def _inflate(data: bytes, most: int) -> bytes:
    """Undoes zstd. Never makes more than `most` bytes, and one."""
    arrow = pyarrow()
    try:
        made = arrow.CompressedInputStream(arrow.BufferReader(data), "zstd").read(most + 1)
    except (OSError, EOFError, ValueError) as error:
        raise Corrupt(f"zstd: {error}") from None
    if len(made) > most:
        raise Corrupt(f"zstd: it stands for more than {most} bytes")
    return made


def pyarrow() -> Any:
    """Raises `leat.InvalidArgument` if it is not there."""
    try:
        import pyarrow as arrow
        import pyarrow.ipc
    except ImportError:
        raise InvalidArgument(
            "LitData's chunks of zstd or of Arrow tables need pyarrow, which is not installed; pip install pyarrow"
        ) from None
    return arrow


def footer_size(data: bytes, size: int) -> int:
    """The bytes of the Arrow table in front of a file's last bytes, `data`, of `size` in the file.

    Raises:
        leat.Corrupt: there is none.
    """
    table = int.from_bytes(data[:4], "little")
    if len(data) != FOOTER_BYTES or data[4:] != FOOTER or not 0 < table <= size - FOOTER_BYTES:
        raise Corrupt("behind its samples are bytes that are no Arrow table of LitData's")
    return table


def _of_arrow(data: bytes, leaves: Sequence[Leaf], fields: frozenset[str]) -> Iterator[bytes]:
    begin = len(data) - FOOTER_BYTES - footer_size(data[-FOOTER_BYTES:], len(data))
    row = 0
    for batch in _batches(data[begin : len(data) - FOOTER_BYTES]):
        values = [_column(batch, leaf, row, leaf.name in fields) for leaf in leaves]
        sizes = np.array([[len(value) for value in of_leaf] for of_leaf in values], "<u4").T
        heads = np.ascontiguousarray(sizes)
        for number, of_row in enumerate(zip(*values)):
            yield heads[number].tobytes() + b"".join(of_row)
        row += batch.num_rows


def _batches(table: bytes) -> Iterator[Any]:
    arrow = pyarrow()
    held = 0
    try:
        is_file = table[:6] == b"ARROW1"
        reader = (arrow.ipc.open_file if is_file else arrow.ipc.open_stream)(arrow.py_buffer(table))
        count = reader.num_record_batches if is_file else None
        number = 0
        while count is None or number < count:
            try:
                batch = reader.get_batch(number) if is_file else reader.read_next_batch()
            except StopIteration:
                return
            batch.validate(full=True)
            held += batch.nbytes
            if held > MOST_PACKED_BYTES:
                raise InvalidArgument(
                    f"its Arrow table has more than {MOST_PACKED_BYTES >> 30} GiB, and such a chunk is held whole; write "
                    "it anew with a smaller chunk_bytes="
                )
            yield batch
            number += 1
    except InvalidArgument:
        raise  # It is a ValueError too.
    except (arrow.ArrowException, OSError, ValueError, MemoryError) as error:
        raise Corrupt(f"its Arrow table cannot be read: {error}") from None


def _column(batch: Any, leaf: Leaf, row: int, is_field: bool) -> list[bytes]:
    """The values of a leaf as LitData stores them elsewhere."""
    try:
        top = batch.column(batch.schema.names.index(leaf.path[0])).to_pylist()
    except (ValueError, IndexError):
        top = [None] * batch.num_rows
    found = []
    for number, whole in enumerate(top):
        try:
            value = _at(whole, leaf.path[1:])
            found.append(bytes(leaf.size or 0) if value is None else _stored(value, leaf))
        except (TypeError, ValueError, struct.error):
            raise InvalidArgument(
                f"sample {row + number} has a {leaf.name!r} that is no {leaf.format}, which the first one's was; write "
                "values of one type"
            ) from None
        if value is None and is_field:
            raise InvalidArgument(
                f"sample {row + number} has no {leaf.name!r} (null); choose other fields=, or write a value"
            )
    return found


def _at(value: Any, path: Path) -> Any:
    for key in path:
        if value is None:
            return None
        value = value.get(key) if isinstance(value, dict) else value[key]
    return value


def _stored(value: Any, leaf: Leaf) -> bytes:
    is_whole = isinstance(value, int)
    if leaf.format == "bool" and isinstance(value, bool):
        return b"\1" if value else b"\0"
    if leaf.format == "int" and is_whole:
        return struct.pack("<q", value)
    if leaf.format == "float" and (is_whole or isinstance(value, float)):
        return struct.pack("<d", value)
    if leaf.format in ("str", "text") and isinstance(value, str):
        return value.encode()
    if leaf.format == "bytes" and isinstance(value, bytes):
        return value
    if leaf.format == "json":
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    raise TypeError
