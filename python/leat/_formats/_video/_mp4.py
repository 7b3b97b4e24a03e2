"""The index of an MP4 or MOV file: its box 'moov', which says where each picture lies."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, Union

import numpy as np

from leat._formats._array._stored import Object
from leat._formats._media import Head
from leat._formats._video._format import Colour, Movie, Packets, Track, check_track, damaged, refuse_codec
from leat.errors import InvalidArgument

FIRST_BOXES = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"styp")
_MOST_INDEX_BYTES = 256 << 20
_MOST_PICTURES = 1 << 24
_CODECS = {
    b"avc1": "h264", b"avc3": "h264", b"hvc1": "hevc", b"hev1": "hevc", b"vp08": "vp8", b"vp09": "vp9",
    b"av01": "libdav1d", b"mp4v": "mpeg4",
}  # fmt: skip
_TURNS: dict[tuple[float, float, float, float], int] = {
    (1, 0, 0, 1): 0, (0, -1, 1, 0): 1, (-1, 0, 0, -1): 2, (0, 1, -1, 0): 3,
}  # fmt: skip
"""Matrices (a, b, c, d), and the quarter turns to the left that each is."""
_MPEG4_VISUAL = 0x20


class Box(NamedTuple):
    """A part of the index, and the boxes in it."""

    object: Object
    kind: bytes
    data: memoryview

    def part(self, at: int, length: int) -> memoryview:
        """Raises `leat.Corrupt` if it has not as many."""
        if at + length > len(self.data):
            raise damaged(self.object, f"its box {_text(self.kind)} has {len(self.data)} bytes")
        return self.data[at : at + length]

    def number(self, at: int, length: int = 4) -> int:
        return int.from_bytes(self.part(at, length), "big")

    def table(self, at: int, count: int, dtype: str, columns: int = 1) -> np.ndarray:
        """Numbers: (count, columns), or (count,) of one column."""
        if count > _MOST_PICTURES:
            raise damaged(self.object, f"its box {_text(self.kind)} says {count} entries")
        data = self.part(at, count * columns * np.dtype(dtype).itemsize)
        found = np.frombuffer(data, dtype).astype(np.int64)
        return found if columns == 1 else found.reshape(count, columns)

    def boxes(self, at: int = 0) -> Iterator[Box]:
        while at + 8 <= len(self.data):
            size, kind, head = self.number(at), bytes(self.part(at + 4, 4)), 8
            if size == 1:
                size, head = self.number(at + 8, 8), 16
            elif size == 0:
                size = len(self.data) - at
            if size < head:
                raise damaged(self.object, f"its box {_text(kind)} has {size} bytes")
            yield Box(self.object, kind, self.part(at + head, size - head))
            at += size

    def find(self, *path: bytes) -> Union[Box, None]:
        found: Union[Box, None] = self
        for kind in path:
            found = None if found is None else next((each for each in found.boxes() if each.kind == kind), None)
        return found

    def need(self, *path: bytes) -> Box:
        found = self.find(*path)
        if found is None:
            raise damaged(self.object, f"its index has no box {_text(path[-1])}")
        return found


def _text(kind: bytes) -> str:
    return repr(kind.decode("latin-1"))


def movie_of(object: Object, head: Head) -> Movie:
    """As `leat._formats._video._format.movie_of`."""
    moov = _moov(object, head)
    if moov.find(b"mvex") is not None:
        raise InvalidArgument(
            f"{object.key}: its index is spread over the file (a fragmented MP4), which Leat does not read; write it "
            "anew as an ordinary one: ffmpeg -i in.mp4 -c copy -movflags faststart out.mp4"
        )
    trak = _track_of_pictures(moov)
    stbl = trak.need(b"mdia", b"minf", b"stbl")
    _check_not_elsewhere(trak)
    packets, ends = _packets(stbl)
    packets.check(object)
    mdhd = trak.need(b"mdia", b"mdhd")
    tick_rate = mdhd.number(20 if mdhd.number(0, 1) else 12)
    if not tick_rate:
        raise damaged(object, "it says 0 ticks a second")
    begin, shift = _edited(moov, trak, packets, tick_rate)
    shown = packets.times[packets.is_shown]
    if not len(shown):
        raise InvalidArgument(f"{object.key}: its track of pictures has none that is shown")
    return Movie(
        object, _track(stbl.need(b"stsd"), _turns(moov, trak)), tick_rate, int(shown.min()),
        int(ends[packets.is_shown].max()), shift - begin / tick_rate, packets,
    )  # fmt: skip


def _moov(object: Object, head: Head) -> Box:
    at = 0
    while at + 8 <= object.size:
        found = head.read(at, 8)
        size, kind, begin = int.from_bytes(found[:4], "big"), found[4:], 8
        if size == 1:
            size, begin = int.from_bytes(head.read(at + 8, 8), "big"), 16
        elif size == 0:
            size = object.size - at
        if size < begin or not kind.isascii() or size > object.size - at:
            raise damaged(object, f"it is cut short, or its box {_text(kind)} does not have {size} bytes")
        if kind == b"moov":
            if size > _MOST_INDEX_BYTES:
                raise damaged(object, f"its index has {size} bytes")
            return Box(object, kind, memoryview(head.read(at, size))[begin:])
        if kind == b"moof":
            break
        at += size
    raise damaged(object, "it has no index (box 'moov'): it is cut short, or its writer did not end")


def _track_of_pictures(moov: Box) -> Box:
    for trak in moov.boxes():
        if trak.kind == b"trak" and bytes(trak.need(b"mdia", b"hdlr").part(8, 4)) == b"vide":
            return trak
    raise InvalidArgument(f"{moov.object.key}: it has no track of pictures")


def _check_not_elsewhere(trak: Box) -> None:
    found = trak.find(b"mdia", b"minf", b"dinf", b"dref")
    for each in [] if found is None else found.boxes(8):
        if each.kind in (b"url ", b"urn ", b"alis") and not each.number(0) & 1:
            raise InvalidArgument(f"{trak.object.key}: its pictures lie in another file, which Leat does not follow")


def _turns(moov: Box, trak: Box) -> int:
    mvhd, tkhd = moov.need(b"mvhd"), trak.need(b"tkhd")
    whole = _matrix(mvhd, 48 if mvhd.number(0, 1) else 36)
    own = _matrix(tkhd, 52 if tkhd.number(0, 1) else 40)
    turns = _TURNS.get(own)
    if turns is None or whole != (1, 0, 0, 1):
        raise InvalidArgument(
            f"{trak.object.key}: it is shown mirrored, or turned by other than quarters, which Leat does not do; write "
            "it anew with ffmpeg -i"
        )
    return turns


def _matrix(box: Box, at: int) -> tuple[float, float, float, float]:
    a, b, _, c, d = struct.unpack(">5i", box.part(at, 20))
    return a / 65536, b / 65536, c / 65536, d / 65536


def _track(stsd: Box, turns: int) -> Track:
    object = stsd.object
    entries = list(stsd.boxes(8))
    if len(entries) != 1:
        raise InvalidArgument(
            f"{object.key}: its pictures are stored in {len(entries)} ways by turns; write it anew with ffmpeg -i"
        )
    entry = entries[0]
    codec = _CODECS.get(entry.kind)
    if codec is None:
        raise refuse_codec(object, entry.kind.decode("latin-1"))
    width, height = entry.number(24, 2), entry.number(26, 2)
    extradata, colour = b"", Colour(2, 2, 2, 0)
    for each in entry.boxes(78):
        if each.kind in (b"avcC", b"hvcC", b"av1C"):
            extradata = bytes(each.data)
        elif each.kind == b"esds":
            extradata = _decoder_config(each)
        elif each.kind == b"colr":
            colour = _colour(each)
    if codec in ("h264", "hevc") and not extradata:
        raise damaged(object, "its pictures come without the configuration of their decoder")
    return check_track(object, Track(codec, extradata, width, height, turns, colour))


def _colour(colr: Box) -> Colour:
    kind = bytes(colr.part(0, 4))
    if kind not in (b"nclx", b"nclc"):
        return Colour(2, 2, 2, 0)
    numbers = (colr.number(4, 2), colr.number(6, 2), colr.number(8, 2))
    return Colour(*numbers, 0 if kind == b"nclc" else 1 + (colr.number(10, 1) >> 7))


def _decoder_config(esds: Box) -> bytes:
    """That of MPEG-4 Part 2, which lies in descriptors in one another."""
    at = 4
    while at < len(esds.data):
        tag = esds.number(at, 1)
        at, length = at + 1, 0
        for _ in range(4):
            byte = esds.number(at, 1)
            at, length = at + 1, length << 7 | byte & 127
            if not byte & 128:
                break
        if tag == 3:
            flags = esds.number(at + 2, 1)
            at += 3 + 2 * (flags >> 7) + 2 * (flags >> 5 & 1)
            at += 1 + esds.number(at, 1) if flags >> 6 & 1 else 0
        elif tag == 4:
            if esds.number(at, 1) != _MPEG4_VISUAL:
                raise refuse_codec(esds.object, f"mp4v of type {esds.number(at, 1):#x}")
            at += 13
        elif tag == 5:
            return bytes(esds.part(at, length))
        else:
            at += length
    return b""


def _packets(stbl: Box) -> tuple[Packets, np.ndarray]:
    """In the order of decoding, and when each ends, in ticks."""
    object = stbl.object
    sizes = _sizes(stbl)
    count = len(sizes)
    offsets = _offsets(stbl, sizes)
    lasting = _spread(stbl.need(b"stts"), ">u4", count)
    times = np.cumsum(lasting) - lasting
    if (ctts := stbl.find(b"ctts")) is not None:
        times = times + _spread(ctts, ">i4", count)
    is_key = np.ones(count, bool)
    if (stss := stbl.find(b"stss")) is not None:
        numbers = stss.table(8, stss.number(4), ">u4")
        if len(numbers) and (numbers.min() < 1 or numbers.max() > count):
            raise damaged(object, f"its list of keyframes names a picture that is none of the {count}")
        is_key[:] = False
        is_key[numbers - 1] = True
    return Packets(offsets, sizes, times, is_key, sizes > 0), times + lasting


def _sizes(stbl: Box) -> np.ndarray:
    """The bytes of each picture."""
    if (stsz := stbl.find(b"stsz")) is not None:
        same, count = stsz.number(4), stsz.number(8)
        if not same:
            return stsz.table(12, count, ">u4")
        if count > min(_MOST_PICTURES, stbl.object.size // same):
            raise damaged(stbl.object, f"it says {count} pictures of {same} bytes")
        return np.full(count, same, np.int64)
    stz2 = stbl.need(b"stz2")
    bits, count = stz2.number(7, 1), stz2.number(8)
    if bits in (8, 16):
        return stz2.table(12, count, f">u{bits // 8}")
    if bits != 4:
        raise damaged(stbl.object, f"it says sizes of {bits} bits")
    pairs = stz2.table(12, (count + 1) // 2, ">u1")
    return np.stack([pairs >> 4, pairs & 15], axis=1).reshape(-1)[:count]


def _offsets(stbl: Box, sizes: np.ndarray) -> np.ndarray:
    """The place of each picture: pictures lie in chunks, one after the other."""
    object = stbl.object
    stco = stbl.find(b"stco")
    if stco is not None:
        chunks = stco.table(8, stco.number(4), ">u4")
    else:
        co64 = stbl.need(b"co64")
        chunks = co64.table(8, co64.number(4), ">u8")
    stsc = stbl.need(b"stsc")
    runs = stsc.table(8, stsc.number(4), ">u4", 3)
    if not len(sizes):
        return np.empty(0, np.int64)
    if not len(runs) or runs[0, 0] != 1 or (np.diff(runs[:, 0]) < 1).any() or runs[-1, 0] > len(chunks):
        raise damaged(object, "its list of chunks names chunks that are not there")
    if (runs[:, 2] != 1).any():
        raise damaged(object, "its list of chunks names a way of storing that is not there")
    in_each = np.repeat(runs[:, 1], np.diff(np.append(runs[:, 0], len(chunks) + 1)))
    if in_each.sum() != len(sizes):
        raise damaged(object, f"it has chunks for {in_each.sum()} pictures, and sizes of {len(sizes)}")
    before = np.cumsum(sizes) - sizes
    firsts = (np.cumsum(in_each) - in_each)[in_each > 0]
    within = before - np.repeat(before[firsts], in_each[in_each > 0])
    return np.repeat(chunks, in_each) + within


def _spread(box: Box, dtype: str, count: int) -> np.ndarray:
    """A number for each picture, of a table that says how often each comes."""
    entries = box.number(4)
    found = box.table(8, entries, ">u4", 2)
    times, values = found[:, 0], found[:, 1]
    if dtype == ">i4":
        values = values.astype(np.uint32).astype(np.int32).astype(np.int64)
    if times.sum() != count:
        raise damaged(box.object, f"its box {_text(box.kind)} is for {times.sum()} pictures, and there are {count}")
    return np.repeat(values, times)


def _edited(moov: Box, trak: Box, packets: Packets, tick_rate: int) -> tuple[int, float]:
    """Leaves out the pictures that an edit list cuts off. The tick at which it begins, and the seconds of emptiness
    before."""
    elst = trak.find(b"edts", b"elst")
    if elst is None:
        return 0, 0.0
    is_long = elst.number(0, 1) == 1
    width = 20 if is_long else 12
    mvhd = moov.need(b"mvhd")
    movie_rate = mvhd.number(20 if mvhd.number(0, 1) else 12)
    if not movie_rate:
        raise damaged(elst.object, "it says 0 ticks a second")
    empty = 0.0
    edits: list[tuple[int, int, int]] = []
    for number in range(elst.number(4)):
        entry = elst.part(8 + number * width, width)
        duration, at, rate = struct.unpack(">Qqi" if is_long else ">Iii", entry)
        if at == -1 and not edits:
            empty += duration / movie_rate
        else:
            edits.append((duration, at, rate))
    if not edits:
        return 0, empty
    if len(edits) > 1 or edits[0][1] < 0 or edits[0][2] != 1 << 16:
        raise InvalidArgument(
            f"{elst.object.key}: its edit list puts parts together, or changes their speed, which Leat does not do; "
            "write it anew with ffmpeg -i"
        )
    duration, begin, _ = edits[0]
    packets.is_shown &= packets.times >= begin
    if duration:
        packets.is_shown &= packets.times < begin + duration * tick_rate / movie_rate
    return begin, empty
