"""Which bytes of arrays the samples need, and how they are read: the rows of a catalogue.

The windows of a file are cut into runs of about 8 MiB as they are stored. A run is a derived
object. It is made of the chunks that its windows touch; those that lie close to each other are
read at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Union

import numpy as np

from leat import _native
from leat._formats._array._chunks import Part, Window, assemble, chunks_of, record_of, said, sample_shape
from leat._formats._array._stored import Object, Stored
from leat.errors import Corrupt, InvalidArgument

GAP_BYTES = 1 << 20
"""A request costs as much as some bytes: 20 ms at 50 MB/s, as a connection has them."""
MOST_IN_VAIN = 0.25
"""A bound on the gaps that are read, as a part of the bytes that are wanted."""
_MOST_RUN_BYTES = 10 << 20
_MOST_MADE_BYTES = 64 << 20
_MOST_CHUNKS = 4096
"""In a run, as its name has all of them."""
_MOST_UNIT_BYTES = 1 << 30
"""A run of the smallest size is held whole, as it is stored and as it is read."""
_MOST_WINDOWS = 1 << 26
_MOST_TABLE_BYTES = 1 << 30
_UNIT_BYTES = 1 << 20


@dataclass
class Counts:
    """How the runs read, all together."""

    runs: int = 0
    requests: int = 0
    wanted_bytes: int = 0
    in_vain_bytes: int = 0
    stored_bytes: int = 0

    def text(self) -> str:
        vain = self.in_vain_bytes / max(self.wanted_bytes, 1)
        again = self.wanted_bytes / max(self.stored_bytes, 1)
        return (
            f"an epoch sends {self.requests} requests for {self.runs} runs of samples: {self.wanted_bytes / 1e6:.1f} MB "
            f"of chunks, of which one is read {again:.2f} times, and {self.in_vain_bytes / 1e6:.1f} MB ({vain:.1%}) of "
            "gaps between them, in vain"
        )


@dataclass
class Rows:
    """A file's windows as rows of a catalogue."""

    keys: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    of_row: list[np.ndarray] = field(default_factory=list)
    offsets: list[list[np.ndarray]] = field(default_factory=list)
    """By run, then by field."""
    lengths: list[int] = field(default_factory=list)


def windows_of(
    shape: Union[Sequence[int], None], stride: Union[Sequence[int], None], arrays: Sequence[Stored]
) -> Window:
    """All windows of a file's arrays, which have the same first dimensions.

    Raises:
        leat.InvalidArgument: they have not, or no window fits.
    """
    wanted = [1] if shape is None else list(shape)
    steps = list(wanted) if stride is None else list(stride)
    if shape is None and stride is not None:
        raise InvalidArgument("stride= needs shape=: without it, a sample is one index of the first dimension")
    if len(steps) != len(wanted) or not wanted or min(wanted) < 1 or min(steps) < 1:
        raise InvalidArgument(
            f"shape={shape!r}, stride={stride!r}: one number from 1 for each of the first dimensions"
        )
    first = arrays[0]
    for each in arrays:
        if len(each.shape) < len(wanted):
            raise InvalidArgument(
                f"{each.name} has {len(each.shape)} dimensions, and windows of shape={tuple(wanted)} need {len(wanted)}"
            )
        if each.shape[: len(wanted)] != first.shape[: len(wanted)]:
            raise InvalidArgument(
                f"{each.name} is {each.shape} and {first.name} is {first.shape}: their samples do not correspond, "
                f"as the first {len(wanted)} dimensions differ"
            )
    counts = [
        max(0, (side - part) // step + 1) if side >= part else 0
        for side, part, step in zip(first.shape, wanted, steps)
    ]
    if math.prod(counts) > _MOST_WINDOWS:
        raise InvalidArgument(
            f"{math.prod(counts)} windows, and at most {_MOST_WINDOWS} are kept; give a larger stride="
        )
    return Window(wanted, steps, counts, 0, math.prod(counts), shape is None)


def is_plain(arrays: Sequence[Stored], window: Window) -> bool:
    """Whether each window is just one range of bytes."""
    if len(arrays) != 1 or len(window.counts) != 1 or arrays[0].plain_at is None:
        return False
    return arrays[0].dtype == arrays[0].dtype.newbyteorder("<")


def plain_rows(array: Stored, window: Window) -> Rows:
    """Ranges of the object itself."""
    row = array.dtype.itemsize * math.prod(array.shape[1:])
    begins = np.arange(window.samples, dtype=np.int64) * window.stride[0]
    return Rows(
        keys=[array.objects[0].stored], sizes=[array.objects[0].size], of_row=[np.zeros(window.samples, np.int64)],
        offsets=[[(array.plain_at or 0) + begins * row]], lengths=[row * window.shape[0]],
    )  # fmt: skip


def derived_rows(arrays: Sequence[Stored], window: Window, gap_bytes: int, counts: Counts) -> Rows:
    """Ranges of objects that are made of runs."""
    record = record_of(window, [(each.dtype, each.shape) for each in arrays])
    places = [record.fields[name][1] for name in record.names or ()] if record.fields else []
    rows = Rows(lengths=[each.dtype.itemsize * math.prod(sample_shape(window, each.shape)) for each in arrays])
    for each in arrays:
        there = each.object_of >= 0
        counts.stored_bytes += int(each.lengths[there].sum())
    for number, run in enumerate(_runs(arrays, window, record.itemsize)):
        key, size = _key(arrays, run, record.itemsize * run.samples, gap_bytes, counts)
        rows.keys.append(key)
        rows.sizes.append(size)
        rows.of_row.append(np.full(run.samples, number, np.int64))
        begins = np.arange(run.samples, dtype=np.int64) * record.itemsize
        rows.offsets.append([begins + place for place in places])
    return rows


def _runs(arrays: Sequence[Stored], window: Window, sample_bytes: int) -> Iterator[Window]:
    first, samples, bytes_there, chunks, seen = 0, 0, 0, 0, [np.empty(0, np.int64) for _ in arrays]
    for unit in _units(arrays, window):
        touched = [chunks_of(unit, each.shape, each.chunk, each.grid) for each in arrays]
        new = [np.setdiff1d(one, before, assume_unique=True) for one, before in zip(touched, seen)]
        more = sum(_stored_bytes(each, one) for each, one in zip(arrays, new))
        count = sum(map(len, new))
        made = (samples + unit.samples) * sample_bytes
        if samples and (
            bytes_there + more / 2 > _MOST_RUN_BYTES or made > _MOST_MADE_BYTES or chunks + count > _MOST_CHUNKS
        ):
            yield window._replace(first=first, samples=samples)
            first, samples, bytes_there, chunks, seen = unit.first, 0, 0, 0, [np.empty(0, np.int64) for _ in arrays]
            new = touched
            more = sum(_stored_bytes(each, one) for each, one in zip(arrays, new))
            count = sum(map(len, new))
        _check_unit(arrays, unit, more, sample_bytes)
        samples += unit.samples
        bytes_there += more
        chunks += count
        seen = [np.union1d(before, one) for before, one in zip(seen, new)]
    if samples:
        yield window._replace(first=first, samples=samples)


def _units(arrays: Sequence[Stored], window: Window) -> Iterator[Window]:
    """Windows that are not told apart: those that begin in some rows of chunks of the largest array."""
    if len(window.counts) > 1:
        for number in range(window.samples):
            yield window._replace(first=number, samples=1)
        return
    largest = max(arrays, key=lambda each: each.dtype.itemsize * math.prod(each.shape[1:]))
    row = max(1, largest.dtype.itemsize * math.prod(largest.shape[1:]))
    # Small chunks come in several rows at a time.
    block = largest.chunk[0] * max(1, _UNIT_BYTES // (largest.chunk[0] * row))
    first = 0
    while first < window.samples:
        end = (first * window.stride[0] // block + 1) * block
        last = min(-(-end // window.stride[0]), window.samples)
        yield window._replace(first=first, samples=last - first)
        first = last


def _stored_bytes(array: Stored, chunks: np.ndarray) -> int:
    there = chunks[array.object_of[chunks] >= 0]
    return int(array.lengths[there].sum())


def _check_unit(arrays: Sequence[Stored], unit: Window, stored: int, sample_bytes: int) -> None:
    made = unit.samples * sample_bytes
    chunk = max(each.dtype.itemsize * math.prod(each.chunk) for each in arrays)
    if max(stored, made, chunk) > _MOST_UNIT_BYTES:
        names = ", ".join(each.name for each in arrays)
        raise InvalidArgument(
            f"{names}: {max(stored, made, chunk) / 2**30:.1f} GiB belong together, and such chunks are held whole "
            "while their samples are read; write smaller chunks"
        )


def _key(arrays: Sequence[Stored], run: Window, size: int, gap_bytes: int, counts: Counts) -> tuple[str, int]:
    """The name of the object that a run is made into, and its bytes."""
    ranges, parts = _ranges_of(arrays, run, gap_bytes, counts)
    if not ranges:
        ranges = [(arrays[0].objects[0], 0, 1)]  # Something has to be read, and nothing was stored.
    (first, at, length), *others = ranges
    key = _native.derived_key(
        source=first.stored,
        etag=first.etag,
        offset=at,
        length_bytes=length,
        notes_offset=0,
        notes_bytes=0,
        size_bytes=size,
        part=f"samples {run.first} to {run.first + run.samples - 1}\n{said(run, parts)}",
        also=[
            ("", b"", at, length) if each is first else (each.stored, each.etag, at, length)
            for each, at, length in others
        ],
    )
    counts.runs += 1
    counts.requests += len(ranges)
    return key, size


def _ranges_of(
    arrays: Sequence[Stored], run: Window, gap_bytes: int, counts: Counts
) -> tuple[list[tuple[Object, int, int]], list[Part]]:
    """The ranges that are read for a run, and the place of each chunk in them."""
    objects: dict[str, tuple[int, Object]] = {}
    found: list[tuple[int, int, int, int, int]] = []  # Object, offset, length, array, chunk.
    for number, array in enumerate(arrays):
        ids = chunks_of(run, array.shape, array.chunk, array.grid)
        ids = ids[array.object_of[ids] >= 0]
        for chunk, holder, at, length in zip(
            ids.tolist(), array.object_of[ids].tolist(), array.offsets[ids].tolist(), array.lengths[ids].tolist()
        ):
            each = array.objects[holder]
            place = objects.setdefault(each.stored, (len(objects), each))[0]
            if length:
                found.append((place, at, length, number, chunk))
    found.sort()
    of_place = [each for _, each in objects.values()]
    gaps = _gaps_read(found, gap_bytes, sum(each[2] for each in found))
    ranges: list[tuple[Object, int, int]] = []
    places: list[dict[int, int]] = [{} for _ in arrays]
    begin = end = read = 0  # The range that is being made, and the bytes of those before.
    for number, (place, at, length, array_number, chunk) in enumerate(found):
        if number and number in gaps:
            end = max(end, at + length)
        else:
            read += end - begin
            begin, end = at, at + length
            ranges.append((of_place[place], begin, 0))
        ranges[-1] = (of_place[place], begin, end - begin)
        places[array_number][chunk] = read + at - begin
        counts.wanted_bytes += length
    counts.in_vain_bytes += max(0, sum(length for _, _, length in ranges) - sum(each[2] for each in found))
    return ranges, [_part(array, there) for array, there in zip(arrays, places)]


def _gaps_read(found: Sequence[tuple[int, int, int, int, int]], gap_bytes: int, wanted: int) -> set[int]:
    """Before which chunks the gap is read too, as that costs less than a further request: the shortest first,
    as far as all together are no more than a part of what is wanted."""
    gaps = []
    end = 0
    for number, (place, at, length, _, _) in enumerate(found):
        if number and place == found[number - 1][0] and at - end <= gap_bytes:
            gaps.append((max(0, at - end), number))
        end = max(end if number and place == found[number - 1][0] else 0, at + length)
    kept, in_vain = set(), 0
    for gap, number in sorted(gaps):
        in_vain += gap
        if in_vain > wanted * MOST_IN_VAIN:
            break
        kept.add(number)
    return kept


def _part(array: Stored, places: dict[int, int]) -> Part:
    ids = np.fromiter(places, np.int64, len(places))
    return Part(
        dtype=array.dtype.str,
        shape=list(array.shape),
        chunk=list(array.chunk),
        axes=array.axes,
        is_clipped=array.is_clipped,
        filters=array.filters,
        fill=array.fill.hex(),
        ids=ids.tolist(),
        places=list(places.values()),
        lengths=array.lengths[ids].tolist(),
        masks=[0] * len(ids) if array.masks is None else array.masks[ids].tolist(),
    )


def read_all(array: Stored) -> np.ndarray:
    """All of an array of one dimension.

    Raises:
        leat.InvalidArgument: it is too large to be kept in a catalogue.
    """
    if array.dtype.itemsize * math.prod(array.shape) > _MOST_TABLE_BYTES:
        raise InvalidArgument(
            f"{array.name} has {array.shape[0]} numbers, too many to keep; give shape=, to read windows of it"
        )
    if array.values is not None:
        return array.values
    window = windows_of(None, None, [array])
    found = [np.empty(0, array.dtype)]
    for run in _runs([array], window, array.dtype.itemsize):
        ranges, parts = _ranges_of([array], run, GAP_BYTES, Counts())
        data = b"".join(each.read(at, length) for each, at, length in ranges)
        try:
            found.append(assemble(run, parts, data)["f0"])
        except Corrupt as error:
            raise Corrupt(f"{array.name}: {error}") from None
    return np.concatenate(found)
