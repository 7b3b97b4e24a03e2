"""The index of a WebM or Matroska file: its cues, or, where they are not enough, the heads of all blocks."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, Union

import numpy as np

from leat._formats._array._stored import Object
from leat._formats._media import Head
from leat._formats._video._format import Colour, Cues, Movie, Packets, Track, check_track, damaged, refuse_codec
from leat.errors import InvalidArgument

MAGIC = b"\x1aE\xdf\xa3"
_SCAN_BYTES = 8 << 20
"""This is read at a time to find all blocks."""
_MOST_INDEX_BYTES = 256 << 20
_MOST_PICTURES = 1 << 24
_CODECS = {
    b"V_VP8": "vp8", b"V_VP9": "vp9", b"V_AV1": "libdav1d", b"V_MPEG4/ISO/AVC": "h264", b"V_MPEGH/ISO/HEVC": "hevc",
    b"V_MPEG4/ISO/ASP": "mpeg4", b"V_MPEG4/ISO/SP": "mpeg4",
}  # fmt: skip
_NEVER_LEADING = ("vp8", "vp9", "libdav1d")
"""Their pictures behind a keyframe are shown behind it, so that keyframes are enough to know."""
_VIDEO = 1

EBML, SEGMENT, SEEK_HEAD, INFO, TRACKS = 0x1A45DFA3, 0x18538067, 0x114D9B74, 0x1549A966, 0x1654AE6B
CLUSTER, CUES = 0x1F43B675, 0x1C53BB6B
SEEK, SEEK_ID, SEEK_POSITION, TICK_NANOSECONDS, DURATION = 0x4DBB, 0x53AB, 0x53AC, 0x2AD7B1, 0x4489
TRACK_ENTRY, TRACK_NUMBER, TRACK_TYPE, CODEC_ID, CODEC_PRIVATE = 0xAE, 0xD7, 0x83, 0x86, 0x63A2
VIDEO, WIDTH, HEIGHT, COLOUR, ENCODINGS, PROJECTION, ROLL = 0xE0, 0xB0, 0xBA, 0x55B0, 0x6D80, 0x7670, 0x7675
_CROPS = (0x54AA, 0x54BB, 0x54CC, 0x54DD)
MATRIX, RANGE, TRANSFER, PRIMARIES = 0x55B1, 0x55B9, 0x55BA, 0x55BB
TIMESTAMP, SIMPLE_BLOCK, BLOCK_GROUP, BLOCK, REFERENCE = 0xE7, 0xA3, 0xA0, 0xA1, 0xFB
CUE_POINT, CUE_TIME, CUE_PLACES, CUE_TRACK, CUE_CLUSTER = 0xBB, 0xB3, 0xB7, 0xF7, 0xF1


class Element(NamedTuple):
    id: int
    begin: int
    """The place of its content."""
    end: Union[int, None]
    """None: unknown to its writer."""


def element_at(object: Object, head: Head, at: int) -> Element:
    """Raises `leat.Corrupt` if there is no element, or if it reaches beyond the end of the file."""
    data = head.read(at, min(12, head.size - at))
    id_length = 9 - data[0].bit_length() if data else 9
    if id_length > 4 or len(data) <= id_length:
        raise damaged(object, f"no element is at byte {at}")
    size_length = 9 - data[id_length].bit_length()
    begin = id_length + size_length
    if size_length > 8 or len(data) < begin:
        raise damaged(object, f"the element at byte {at} has no size")
    ones = (1 << 7 * size_length) - 1
    size = int.from_bytes(data[id_length:begin], "big") & ones
    if size == ones:
        return Element(int.from_bytes(data[:id_length], "big"), at + begin, None)
    if size > head.size - at - begin:
        raise damaged(object, f"it is cut short: the element at byte {at} has {size} bytes")
    return Element(int.from_bytes(data[:id_length], "big"), at + begin, at + begin + size)


class Tree:
    """An element that is held whole, and the elements in it."""

    def __init__(self, object: Object, data: bytes) -> None:
        self._object = object
        self._data = data
        self._head = Head(Object(object.key, len(data), b"", lambda at, length: data[at : at + length]), len(data))

    def each(self, id: int) -> Iterator[Tree]:
        at = 0
        while at < len(self._data):
            found = element_at(self._object, self._head, at)
            if found.end is None:
                raise damaged(self._object, "an element of its index has no size")
            if found.id == id:
                yield Tree(self._object, self._data[found.begin : found.end])
            at = found.end

    def find(self, id: int) -> Union[Tree, None]:
        return next(self.each(id), None)

    def number(self, id: int, otherwise: int) -> int:
        found = self.find(id)
        return otherwise if found is None else int.from_bytes(found.content(8), "big")

    def real(self, id: int) -> float:
        found = self.find(id)
        data = b"" if found is None else found.content(8)
        return struct.unpack(">f" if len(data) == 4 else ">d", data)[0] if len(data) in (4, 8) else 0.0

    def content(self, most: int = _MOST_INDEX_BYTES) -> bytes:
        if len(self._data) > most:
            raise damaged(self._object, f"an element of its index has {len(self._data)} bytes")
        return self._data


class _Top(NamedTuple):
    """The elements at the begin of a file, and the places of the others."""

    segment: int
    end: int
    info: Tree
    tracks: Tree
    cues: Union[int, None]
    cluster: int
    """The first."""


def movie_of(object: Object, head: Head, has_rate: bool) -> Movie:
    """As `leat._formats._video._format.movie_of`."""
    top = _top(object, head)
    nanoseconds = top.info.number(TICK_NANOSECONDS, 1_000_000)
    if not 1 <= nanoseconds <= 10**9:
        raise damaged(object, f"it says ticks of {nanoseconds} ns")
    number, track = _track(object, top.tracks)
    duration = top.info.real(DURATION)
    tick_rate = 1e9 / nanoseconds
    if has_rate and track.codec in _NEVER_LEADING and top.cues is not None and 0 < duration < 1e15:
        cues = _cues(object, head, top, number)
        if cues is not None and duration > cues.times[-1]:
            return Movie(object, track, tick_rate, int(cues.times[0]), round(duration), 0.0, cues)
    packets = _scanned(object, top, number, track.codec)
    shown = packets.times[packets.is_shown]
    if not len(shown):
        raise InvalidArgument(f"{object.key}: its track of pictures has none")
    last = int(shown.max())
    each = max(1, int(np.median(np.diff(np.sort(shown))))) if len(shown) > 1 else 1
    end = round(duration) if last < duration <= last + 100 * each else last + each
    return Movie(object, track, tick_rate, int(shown.min()), end, 0.0, packets)


def _top(object: Object, head: Head) -> _Top:
    first = element_at(object, head, 0)
    if first.id != EBML or first.end is None:
        raise damaged(object, "its head has no size")
    segment = element_at(object, head, first.end)
    if segment.id != SEGMENT:
        raise damaged(object, "it has no segment")
    end = object.size if segment.end is None else segment.end
    found: dict[int, Tree] = {}
    elsewhere: dict[int, int] = {}
    at = segment.begin
    while at < end:
        each = element_at(object, head, at)
        if each.id == CLUSTER:
            break
        if each.id == CUES:
            elsewhere[CUES] = at
        elif each.id == SEEK_HEAD:
            elsewhere.update(_seeks(_held(object, head, each), segment.begin, end))
        elif each.id in (INFO, TRACKS):
            found[each.id] = _held(object, head, each)
        if each.end is None:
            raise damaged(object, "an element of its index has no size")
        at = each.end
    else:
        raise damaged(object, "it is cut short, or has no cluster")
    for id, name in ((INFO, "Info"), (TRACKS, "Tracks")):
        if id not in found:
            raise damaged(object, f"it has no element '{name}' before its pictures")
    return _Top(segment.begin, end, found[INFO], found[TRACKS], elsewhere.get(CUES), at)


def _held(object: Object, head: Head, element: Element) -> Tree:
    if element.end is None or element.end - element.begin > _MOST_INDEX_BYTES:
        raise damaged(object, "an element of its index has no size, or too large a one")
    return Tree(object, head.read(element.begin, element.end - element.begin))


def _seeks(tree: Tree, segment: int, end: int) -> dict[int, int]:
    found = {}
    for each in tree.each(SEEK):
        place = segment + each.number(SEEK_POSITION, end)
        if place < end:
            found[each.number(SEEK_ID, 0)] = place
    return found


def _track(object: Object, tracks: Tree) -> tuple[int, Track]:
    for entry in tracks.each(TRACK_ENTRY):
        if entry.number(TRACK_TYPE, 0) == _VIDEO:
            break
    else:
        raise InvalidArgument(f"{object.key}: it has no track of pictures")
    name = entry.find(CODEC_ID)
    said = b"" if name is None else name.content(100).rstrip(b"\0")
    codec = _CODECS.get(said)
    if codec is None:
        raise refuse_codec(object, said.decode("latin-1"))
    if entry.find(ENCODINGS) is not None:
        raise InvalidArgument(
            f"{object.key}: its blocks are compressed or encrypted once more; write it anew, such as with ffmpeg -i "
            "in.mkv -c copy out.mkv"
        )
    video = entry.find(VIDEO)
    if video is None:
        raise damaged(object, "its track of pictures does not tell their size")
    projection = video.find(PROJECTION)
    if any(video.number(id, 0) for id in _CROPS) or (projection is not None and projection.real(ROLL)):
        raise InvalidArgument(
            f"{object.key}: it is shown turned or cropped, which Leat does not do; write it anew with ffmpeg -i"
        )
    private = entry.find(CODEC_PRIVATE)
    extradata = b"" if private is None else private.content(1 << 20)
    track = Track(codec, extradata, video.number(WIDTH, 0), video.number(HEIGHT, 0), 0, _colour(video.find(COLOUR)))
    return entry.number(TRACK_NUMBER, 0), check_track(object, track)


def _colour(tree: Union[Tree, None]) -> Colour:
    if tree is None:
        return Colour(2, 2, 2, 0)
    range = tree.number(RANGE, 0)
    return Colour(
        tree.number(PRIMARIES, 2), tree.number(TRANSFER, 2), tree.number(MATRIX, 2), range if range in (1, 2) else 0
    )


def _cues(object: Object, head: Head, top: _Top, track: int) -> Union[Cues, None]:
    """None if none is of the track, so that they do not help."""
    element = element_at(object, head, top.cues or 0)
    if element.id != CUES:
        raise damaged(object, f"its list of contents says that cues are at byte {top.cues}, and they are not")
    tree = _held(object, head, element)
    found: dict[int, int] = {}
    for point in tree.each(CUE_POINT):
        for place in point.each(CUE_PLACES):
            if place.number(CUE_TRACK, 0) == track:
                at = top.segment + place.number(CUE_CLUSTER, top.end)
                if not top.cluster <= at < top.end:
                    raise damaged(object, f"its cues name a cluster at byte {at}")
                found.setdefault(point.number(CUE_TIME, 0), at)
    if not found:
        return None
    times = np.array(sorted(found), np.int64)
    offsets = np.array([found[time] for time in times.tolist()], np.int64)
    behind = element.end if element.end is not None and (top.cues or 0) < offsets[-1] else top.cues
    end = top.end if behind is None or behind <= offsets[-1] else behind
    if (np.diff(offsets) < 0).any() or times[-1] >= 1 << 62:
        raise damaged(object, "its cues are not in the order of the file")
    return Cues(times, np.append(offsets, end), track)


def _scanned(object: Object, top: _Top, track: int, codec: str) -> Packets:
    """All blocks of a track."""
    most = 1000 + 2 * object.size // _SCAN_BYTES
    return blocks_of(object, Head(object, _SCAN_BYTES, most), top.cluster, top.end, track, codec)


def blocks_of(object: Object, head: Head, at: int, end: int, track: int, codec: str) -> Packets:
    """The blocks of a track between two places, of which the first is the begin of a cluster.

    Raises:
        leat.Corrupt: what is there are no clusters.
        leat.InvalidArgument: several pictures lie in one block.
    """
    rows: list[tuple[int, int, int, bool, bool]] = []
    base: Union[int, None] = None
    is_inside = False
    while at < end:
        each = element_at(object, head, at)
        if each.id == CLUSTER:
            # Its content follows, whether it says how long it is or not.
            at, base, is_inside = each.begin, None, True
            continue
        if not is_inside:
            raise damaged(object, f"no cluster begins at byte {at}")
        if each.end is None or each.end > end:
            raise damaged(object, f"the element at byte {at} has no size, or ends behind what holds it")
        if each.id == TIMESTAMP:
            base = int.from_bytes(head.read(each.begin, min(8, each.end - each.begin)), "big")
        elif each.id == SIMPLE_BLOCK:
            _add(rows, object, head, each, track, codec, base, None)
        elif each.id == BLOCK_GROUP:
            _add_group(rows, object, head, each, track, codec, base)
        if len(rows) > _MOST_PICTURES:
            raise damaged(object, f"it has over {_MOST_PICTURES} pictures")
        at = each.end
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    return Packets(columns[0], columns[1], columns[2], columns[3] != 0, columns[4] != 0)


def _add_group(
    rows: list[tuple[int, int, int, bool, bool]], object: Object, head: Head, group: Element, track: int, codec: str,
    base: Union[int, None],
) -> None:  # fmt: skip
    at, block, is_key = group.begin, None, True
    while at < (group.end or 0):
        each = element_at(object, head, at)
        if each.end is None or each.end > (group.end or 0):
            raise damaged(object, f"the element at byte {at} has no size, or ends behind what holds it")
        block = each if each.id == BLOCK else block
        is_key = is_key and each.id != REFERENCE
        at = each.end
    if block is not None:
        _add(rows, object, head, block, track, codec, base, is_key)


def _add(
    rows: list[tuple[int, int, int, bool, bool]], object: Object, head: Head, block: Element, track: int, codec: str,
    base: Union[int, None], is_key: Union[bool, None],
) -> None:  # fmt: skip
    """`is_key`: None if the block itself tells."""
    length = (block.end or 0) - block.begin
    data = head.read(block.begin, min(length, 13))
    number_length = 9 - data[0].bit_length() if data else 9
    if number_length > 8 or len(data) < number_length + 3:
        raise damaged(object, f"the block at byte {block.begin} has no head")
    number = int.from_bytes(data[:number_length], "big") & (1 << 7 * number_length) - 1
    if number != track:
        return
    if base is None or base >= 1 << 62:
        raise damaged(object, f"the block at byte {block.begin} lies in no cluster that tells its time")
    time = base + struct.unpack(">h", data[number_length : number_length + 2])[0]
    flags = data[number_length + 2]
    if flags & 6:
        raise InvalidArgument(f"{object.key}: several pictures lie in one block; write it anew with ffmpeg -i")
    begin = number_length + 3
    is_shown = length > begin and not flags & 8
    if codec == "vp8" and is_shown and len(data) > begin:
        is_shown = bool(data[begin] & 16)  # Its own head says whether it is only there for others.
    rows.append((block.begin + begin, length - begin, time, bool(flags & 128) if is_key is None else is_key, is_shown))


def clip_end(cues: Cues, time: int) -> int:
    """The end of the pictures that are shown up to a time."""
    later = int(np.searchsorted(cues.times, time, "right"))
    at = int(cues.offsets[max(later - 1, 0)])
    # Several keyframes may lie in a cluster.
    behind = cues.offsets[later:][cues.offsets[later:] > at]
    return int(behind[0]) if len(behind) else int(cues.offsets[-1])
