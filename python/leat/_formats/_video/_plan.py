"""Which bytes of a file of video belong to which clips."""

from __future__ import annotations

import base64
import math
from typing import NamedTuple, Union

import numpy as np

from leat._formats._array._plan import GAP_BYTES, MOST_IN_VAIN
from leat._formats._media import Segments, derived
from leat._formats._video._decode import Run, packed, said
from leat._formats._video._format import Cues, Movie, Packets
from leat._formats._video._webm import clip_end
from leat.errors import InvalidArgument

_MOST_RUN_BYTES = 10 << 20
_MOST_MADE_BYTES = 64 << 20
_MOST_WHOLE_BYTES = 1 << 30
"""A clip is held whole, as it is stored and as it is made."""
_MOST_PICTURES = 1 << 24
_SHORT_GAP_BYTES = 64 << 10
"""Sound between pictures is read, as long as it is no more than they are: a request for each would cost more."""

Ranges = list[tuple[int, int]]


class Cut(NamedTuple):
    """How files are cut."""

    frames: int
    fps: Union[float, None]
    """None: pictures as they come."""
    step: int
    stride: int
    sides: Union[tuple[int, int], None]
    """The height and the width that are made; None: those of the file."""
    is_drawn: bool
    """Whether each clip is read by itself."""


def segments_of(movie: Movie, cut: Cut) -> Segments:
    """The clips of a file, as ranges of objects that are made of runs of clips.

    Raises:
        leat.InvalidArgument: a clip is too long to be held.
    """
    plan = plan_of(movie, cut)
    span = (cut.frames - 1) * cut.step + 1
    count = (plan.pictures - span) // cut.stride + 1 if plan.pictures >= span else 0
    firsts = np.arange(count, dtype=np.int64) * cut.stride
    height, width = cut.sides or movie.track.sides
    size = cut.frames * height * width * 3
    _check_size(movie, size, "as it is made", cut)
    made = Segments(starts=plan.times(firsts) / movie.tick_rate + movie.shift)
    clip = 0
    while clip < count:
        clips = _clips_of_a_run(plan, cut, clip, count, size)
        run, ranges = plan.run(cut, clip * cut.stride, clips)
        read = sum(length for _, length in ranges)
        _check_size(movie, read, "as it is stored", cut)
        words = f"clip {clip}" if clips == 1 else f"clips {clip} to {clip + clips - 1}"
        made.of_row.append(np.full(clips, len(made.keys), np.int64))
        made.offsets.append(np.arange(clips, dtype=np.int64) * size)
        made.lengths.append(np.full(clips, size, np.int64))
        made.sizes.append(clips * size)
        made.keys.append(derived(movie.object, ranges, clips * size, f"{words}\n{said(run)}"))
        made.requests += len(ranges)
        made.read_bytes += read
        clip += clips
    return made


def plan_of(movie: Movie, cut: Cut) -> Union[_ByPacket, _ByTime]:
    if isinstance(movie.places, Packets):
        return _ByPacket(movie, movie.places, cut)
    return _ByTime(movie, movie.places, cut)


def _check_size(movie: Movie, size: int, how: str, cut: Cut) -> None:
    if size > _MOST_WHOLE_BYTES:
        raise InvalidArgument(
            f"{movie.object.key}: a clip of {cut.frames} frames has {size / 2**30:.1f} GiB {how}, and is held whole; "
            "give fewer frames=, or a smaller size="
        )


def _clips_of_a_run(plan: Union[_ByPacket, _ByTime], cut: Cut, first: int, count: int, size: int) -> int:
    """As many as need the same groups of pictures, or neighbouring ones, and make a large read."""
    clips = 1
    if cut.is_drawn:
        return clips
    begin, end = plan.extent(cut, first * cut.stride)
    while first + clips < count and (clips + 1) * size <= _MOST_MADE_BYTES:
        low, high = plan.extent(cut, (first + clips) * cut.stride)
        if low > end or plan.stored_bytes(begin, max(end, high)) > _MOST_RUN_BYTES:
            break
        begin, end, clips = min(begin, low), max(end, high), clips + 1
    return clips


def _run_of(movie: Movie, cut: Cut, clips: int, gaps: str, sizes: str, wanted: np.ndarray, number: int) -> Run:
    track = movie.track
    height, width = cut.sides or track.sides
    return Run(
        codec=track.codec, extradata=base64.b85encode(track.extradata).decode(), stored=[track.width, track.height],
        turns=track.turns, colour=list(track.colour), clips=clips, frames=cut.frames, height=height, width=width,
        is_scaled=cut.sides is not None, gaps=gaps, sizes=sizes, wanted=packed(wanted), number=number,
    )  # fmt: skip


def _places(cut: Cut, first: int, clips: int) -> np.ndarray:
    """Which pictures clips have, by their places in the whole file: (clips, frames)."""
    return first + np.arange(clips)[:, None] * cut.stride + np.arange(cut.frames) * cut.step


def _count_by_time(movie: Movie, fps: float) -> int:
    """The pictures of a file that are taken at a rate."""
    count = math.ceil((movie.end - movie.begin) * fps / movie.tick_rate - 1e-6)
    if count > _MOST_PICTURES:
        raise InvalidArgument(f"{movie.object.key}: it has {count} pictures at fps={fps}; give a lower one")
    return max(0, count)


def _ticks(movie: Movie, fps: float, places: np.ndarray) -> np.ndarray:
    """When pictures that are taken at a rate are shown, to the nearest tick."""
    return movie.begin + np.floor(places * (movie.tick_rate / fps) + 0.5).astype(np.int64)


class _ByPacket:
    """The clips of a file whose index has each picture. An extent is one of packets."""

    def __init__(self, movie: Movie, packets: Packets, cut: Cut) -> None:
        self._movie, self._packets = movie, packets
        self._cover = covers(packets)
        shown = np.flatnonzero(packets.is_shown & (self._cover >= 0))
        self._order = shown[np.argsort(packets.times[shown], kind="stable")]
        self._read_to = np.cumsum(packets.sizes)
        if cut.fps is not None and len(self._order):
            taken = _ticks(movie, cut.fps, np.arange(_count_by_time(movie, cut.fps)))
            self._taken_at: Union[np.ndarray, None] = taken
            found = np.searchsorted(packets.times[self._order], taken, "right") - 1
            self._order = self._order[np.maximum(found, 0)]
        else:
            self._taken_at = None

    @property
    def pictures(self) -> int:
        return len(self._order)

    def times(self, places: np.ndarray) -> np.ndarray:
        if self._taken_at is not None:
            return self._taken_at[places]
        return self._packets.times[self._order[places]]

    def extent(self, cut: Cut, first: int) -> tuple[int, int]:
        numbers = self._order[_places(cut, first, 1)]
        return int(self._cover[numbers].min()), int(numbers.max()) + 1

    def stored_bytes(self, begin: int, end: int) -> int:
        return int(self._read_to[end - 1] - self._read_to[begin] + self._packets.sizes[begin])

    def run(self, cut: Cut, first: int, clips: int) -> tuple[Run, Ranges]:
        wanted = self._order[_places(cut, first, clips)].reshape(-1)
        begin, end = int(self._cover[wanted].min()), int(wanted.max()) + 1
        packets = self._packets
        # Those that are shown before the first keyframe need what lies before it.
        needed = begin + np.flatnonzero(
            (packets.times[begin:end] >= packets.times[begin]) & (packets.sizes[begin:end] > 0)
        )
        ranges, places = _ranges(packets.offsets[needed], packets.sizes[needed])
        sizes = packets.sizes[needed]
        gaps = places - np.append(0, (places + sizes)[:-1])
        numbers = np.searchsorted(needed, wanted)
        return _run_of(self._movie, cut, clips, packed(gaps), packed(sizes), numbers, 0), ranges


class _ByTime:
    """The clips of a WebM file whose cues are known. An extent is one of bytes."""

    def __init__(self, movie: Movie, cues: Cues, cut: Cut) -> None:
        self._movie, self._cues, self._fps = movie, cues, cut.fps or 1.0
        self.pictures = _count_by_time(movie, self._fps)

    def times(self, places: np.ndarray) -> np.ndarray:
        return _ticks(self._movie, self._fps, places)

    def extent(self, cut: Cut, first: int) -> tuple[int, int]:
        times = self.times(_places(cut, first, 1))
        key = int(np.searchsorted(self._cues.times, times.min(), "right")) - 1
        return int(self._cues.offsets[max(key, 0)]), clip_end(self._cues, int(times.max()))

    def stored_bytes(self, begin: int, end: int) -> int:
        return end - begin

    def run(self, cut: Cut, first: int, clips: int) -> tuple[Run, Ranges]:
        begin = self.extent(cut, first)[0]
        end = self.extent(cut, first + (clips - 1) * cut.stride)[1]
        wanted = self.times(_places(cut, first, clips)).reshape(-1)
        return _run_of(self._movie, cut, clips, "", "", wanted, self._cues.track), [(begin, end - begin)]


def covers(packets: Packets) -> np.ndarray:
    """For each packet, the keyframe from which on it decodes: the last before it that is shown before it; -1: none."""
    numbers = np.arange(len(packets.sizes))
    keys = np.flatnonzero(packets.is_key)
    place = np.searchsorted(keys, numbers, "right") - 1
    if not len(keys):
        return np.full(len(numbers), -1)
    for _ in range(2):
        # A picture that is shown before its keyframe needs the one before that, too.
        is_leading = (place >= 0) & (packets.times[keys[place]] > packets.times)
        place = np.where(is_leading, place - 1, place)
    is_leading = (place >= 0) & (packets.times[keys[place]] > packets.times)
    return np.where((place < 0) | is_leading, -1, keys[place])


def _ranges(offsets: np.ndarray, sizes: np.ndarray) -> tuple[Ranges, np.ndarray]:
    """The ranges that are read for some packets, and the place of each in what is read.

    Gaps are read too, as far as all together are no more than a part of what is wanted.
    """
    order = np.argsort(offsets, kind="stable")
    begins = offsets[order]
    ends = np.maximum.accumulate(begins + sizes[order])
    gaps = np.maximum(begins[1:] - ends[:-1], 0)
    by_length = np.argsort(gaps, kind="stable")
    lengths, in_vain = gaps[by_length], np.cumsum(gaps[by_length])
    is_read = (lengths <= GAP_BYTES) & (in_vain <= MOST_IN_VAIN * sizes.sum())
    is_read |= (lengths <= _SHORT_GAP_BYTES) & (in_vain <= sizes.sum())
    is_cut = np.ones(len(gaps), bool)
    is_cut[by_length[is_read]] = False
    firsts = np.append(0, np.flatnonzero(is_cut) + 1)
    range_begins = begins[firsts]
    lengths = ends[np.append(firsts[1:] - 1, len(ends) - 1)] - range_begins
    before = np.cumsum(lengths) - lengths
    of_packet = np.searchsorted(firsts, np.arange(len(begins)), "right") - 1
    places = np.empty(len(begins), np.int64)
    places[order] = before[of_packet] + begins - range_begins[of_packet]
    return list(zip(range_begins.tolist(), lengths.tolist())), places
