"""Which bytes of a file of sound belong to which segments."""

from __future__ import annotations

import math
from typing import NamedTuple, Union

import numpy as np

from leat._formats._audio._decode import Run, said
from leat._formats._audio._flac import Blocks
from leat._formats._audio._format import FLAC, Sound
from leat._formats._media import Segments, derived
from leat.errors import InvalidArgument

_MOST_RUN_BYTES = 10 << 20
_MOST_MADE_BYTES = 32 << 20
_MOST_WHOLE_BYTES = 1 << 30
"""A segment is held whole, as it is stored and as it is made."""
_FILTER_FRAMES = 200
"""How far soxr's filter reaches to both sides, at the lower of two rates, with room."""


class Cut(NamedTuple):
    """How files are cut. All numbers of frames are at the rate of the output."""

    rate: Union[int, None]
    """None: that of the files."""
    frames: Union[int, None]
    """Those of a segment; None: a file is one."""
    stride: int
    dtype: str
    is_mono: bool
    pads: bool
    """Whether silence fills up the last segment of a file, which is left out else."""
    is_drawn: bool
    """Whether each segment is read by itself."""


def made_frames(sound: Sound, rate: Union[int, None]) -> int:
    """The frames of the whole file at a rate."""
    return sound.frames * (rate or sound.rate) // sound.rate


def count_of(frames: int, cut: Cut) -> int:
    """The segments of a file of this many frames."""
    if cut.frames is None:
        return min(frames, 1)
    if not cut.pads:
        return (frames - cut.frames) // cut.stride + 1 if frames >= cut.frames else 0
    # Up to the one that has the last frame, unless that lies between two.
    last = max(0, -(-(frames - cut.frames) // cut.stride))
    return min(last, (frames - 1) // cut.stride) + 1 if frames else 0


def is_plain(sound: Sound, cut: Cut) -> bool:
    """Whether the bytes of a segment are those of the file."""
    return sound.coding == cut.dtype and sound.channels == 1 and cut.rate in (None, sound.rate) and not cut.pads


def plain_segments(sound: Sound, cut: Cut) -> Segments:
    """Ranges of the file itself."""
    count = count_of(sound.frames, cut)
    frames = sound.frames if cut.frames is None else cut.frames
    begins = np.arange(count, dtype=np.int64) * cut.stride
    return Segments(
        keys=[sound.object.stored], sizes=[sound.object.size], of_row=[np.zeros(count, np.int64)],
        offsets=[sound.begin + begins * sound.frame_bytes],
        lengths=[np.full(count, frames * sound.frame_bytes, np.int64)],
        starts=begins / sound.rate,
    )  # fmt: skip


def made_segments(sound: Sound, blocks: Union[Blocks, None], cut: Cut) -> Segments:
    """Ranges of objects that are made of runs of segments.

    Raises:
        leat.InvalidArgument: a segment is too long to be held.
    """
    end = made_frames(sound, cut.rate)
    count, rate = count_of(end, cut), cut.rate or sound.rate
    frames = end if cut.frames is None else cut.frames
    channels = 1 if cut.is_mono else sound.channels
    size = frames * channels * np.dtype(cut.dtype).itemsize
    _check_size(sound, frames, rate, size)
    many = _segments_of_a_run(sound, cut, frames, size)
    made = Segments(starts=np.arange(count) * cut.stride / rate)
    for first in range(0, count, many):
        segments = min(many, count - first)
        run, at, length = _run(sound, blocks, cut, first * cut.stride, segments, frames, end)
        made.of_row.append(np.full(segments, len(made.keys), np.int64))
        made.offsets.append(np.arange(segments, dtype=np.int64) * size)
        made.lengths.append(np.full(segments, size, np.int64))
        made.sizes.append(segments * size)
        part = f"{_words(first, segments, cut)}\n{said(run)}"
        made.keys.append(derived(sound.object, [(at, length)], segments * size, part))
        made.requests += 1
        made.read_bytes += length
    return made


def _words(first: int, segments: int, cut: Cut) -> str:
    if cut.frames is None:
        return "the whole file"
    return f"segment {first}" if segments == 1 else f"segments {first} to {first + segments - 1}"


def _check_size(sound: Sound, frames: int, rate: int, size: int) -> None:
    stored = frames * sound.rate / rate * sound.frame_bytes
    if max(size, stored) > _MOST_WHOLE_BYTES:
        raise InvalidArgument(
            f"{sound.object.key}: a segment of {frames / rate:.0f} s has {max(size, stored) / 2**30:.1f} GiB, and is "
            "held whole; give fewer seconds="
        )


def _segments_of_a_run(sound: Sound, cut: Cut, frames: int, size: int) -> int:
    """As many as make a large read."""
    if cut.is_drawn or cut.frames is None:
        return 1
    stored = (sound.object.size - sound.begin) / max(sound.frames, 1) * sound.rate / (cut.rate or sound.rate)
    by_read = (_MOST_RUN_BYTES / max(stored, 1e-9) - frames) / cut.stride + 1
    return max(1, int(min(by_read, _MOST_MADE_BYTES / size)))


def _run(
    sound: Sound, blocks: Union[Blocks, None], cut: Cut, first: int, segments: int, frames: int, end: int
) -> tuple[Run, int, int]:
    """A run, and the range of the file that has it."""
    last = min(first + (segments - 1) * cut.stride + frames, end)
    begin, stop = _source_frames(sound, cut.rate or sound.rate, first, last)
    data_first, at, length = begin, sound.begin + begin * sound.frame_bytes, (stop - begin) * sound.frame_bytes
    if sound.coding == FLAC:
        data_first, at, length = _flac_range(sound, blocks, begin, stop)
    run = Run(
        coding=sound.coding, channels=sound.channels, bits=sound.bits, rate=sound.rate, blocks=list(sound.blocks),
        data_first=data_first, begin=begin, end=stop, made_rate=cut.rate or sound.rate, made_first=first, made_end=end,
        segments=segments, segment_frames=frames, stride_frames=cut.stride, dtype=cut.dtype, is_mono=cut.is_mono,
    )  # fmt: skip
    return run, at, length


def _source_frames(sound: Sound, rate: int, first: int, last: int) -> tuple[int, int]:
    """The frames of the file of which those from `first` to `last` are made."""
    if rate == sound.rate:
        return first, last
    margin = -(-_FILTER_FRAMES * sound.rate // min(rate, sound.rate))
    # It begins where a frame of one rate meets one of the other, so that their distance is a whole number.
    step = sound.rate // math.gcd(sound.rate, rate)
    begin = max(0, (first * sound.rate // rate - margin) // step * step)
    return begin, min(sound.frames, -(-last * sound.rate // rate) + margin)


def _flac_range(sound: Sound, blocks: Union[Blocks, None], begin: int, stop: int) -> tuple[int, int, int]:
    """The first frame, the offset and the bytes of the blocks that have some frames."""
    if blocks is None:  # The whole file.
        return 0, sound.begin, sound.object.size - sound.begin
    low = int(np.searchsorted(blocks.firsts, begin, "right")) - 1
    high = int(np.searchsorted(blocks.firsts, stop, "left"))
    at = int(blocks.offsets[low])
    return int(blocks.firsts[low]), at, int(blocks.offsets[high]) - at
