"""How a file of video is stored, whatever the container: pictures as packets in the order of decoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Union

import numpy as np

from leat._formats._array._stored import Object
from leat._formats._media import Head
from leat.errors import Corrupt, InvalidArgument

MOST_SIDE = 16384
CODECS = {"h264": "H.264", "hevc": "HEVC", "vp8": "VP8", "vp9": "VP9", "libdav1d": "AV1", "mpeg4": "MPEG-4 Part 2"}
"""The decoders of FFmpeg that are used, and what they read."""
UNKNOWN_COLOUR = (2, 2, 2, 0)


class Colour(NamedTuple):
    """As a container says it, in the numbers of ITU-T H.273."""

    primaries: int
    transfer: int
    matrix: int
    range: int
    """0: it says nothing; 1: narrow; 2: full."""


class Track(NamedTuple):
    """A track of pictures, without where they lie."""

    codec: str
    """One of `CODECS`."""
    extradata: bytes
    width: int
    """As stored: before `turns`."""
    height: int
    turns: int = 0
    """Quarter turns to the left that a player makes."""
    colour: Colour = Colour(*UNKNOWN_COLOUR)

    @property
    def sides(self) -> tuple[int, int]:
        """The height and the width of a picture as it is shown."""
        return (self.width, self.height) if self.turns % 2 else (self.height, self.width)


@dataclass
class Packets:
    """Each decodes to one picture, or helps others to."""

    offsets: np.ndarray
    sizes: np.ndarray
    times: np.ndarray
    """In ticks: when the picture is shown."""
    is_key: np.ndarray
    is_shown: np.ndarray

    def check(self, object: Object) -> None:
        """Raises `leat.Corrupt` if one lies outside of its file."""
        if not len(self.sizes):
            return
        if self.offsets.min() < 0 or self.sizes.min() < 0 or (self.offsets > object.size - self.sizes).any():
            raise damaged(object, f"it is cut short: its index names bytes behind its {object.size}")


@dataclass
class Cues:
    """The keyframes of a WebM file, where nothing tells of the pictures between them."""

    times: np.ndarray
    offsets: np.ndarray
    """Those of the clusters that have them, and one more: the end of the last."""
    track: int


class Movie(NamedTuple):
    """A file of video."""

    object: Object
    track: Track
    tick_rate: float
    """Ticks a second."""
    begin: int
    """In ticks: when the first picture is shown."""
    end: int
    """In ticks: until when the last is shown."""
    shift: float
    """Seconds to add to the times of pictures, for the time that a player shows."""
    places: Union[Packets, Cues]


def check_track(object: Object, track: Track) -> Track:
    if not (1 <= track.width <= MOST_SIDE and 1 <= track.height <= MOST_SIDE):
        raise damaged(object, f"it says pictures of {track.width} x {track.height}")
    return track


def refuse_codec(object: Object, name: str) -> InvalidArgument:
    return InvalidArgument(
        f"{object.key}: its pictures are stored as {name!r}, and Leat reads {', '.join(CODECS.values())}; write it "
        "anew as one of these, such as with ffmpeg -i"
    )


def damaged(object: Object, why: str) -> Corrupt:
    return Corrupt(f"{object.key}: no MP4 or WebM file, or damaged: {why}")


def movie_of(object: Object, has_rate: bool) -> Movie:
    """The video that the headers of a file tell of.

    Args:
        has_rate: pictures are taken by time, so that keyframes are enough to know.

    Raises:
        leat.Corrupt: it is neither an MP4 nor a WebM file, or damaged, or cut short; names it.
        leat.InvalidArgument: it is stored in a way that Leat does not read.
    """
    from leat._formats._video import _mp4, _webm

    head = Head(object)
    kind = head.read(0, 8)
    if kind[:4] == _webm.MAGIC:
        return _webm.movie_of(object, head, has_rate)
    if kind[4:] in _mp4.FIRST_BOXES:
        return _mp4.movie_of(object, head)
    raise Corrupt(f"{object.key}: neither an MP4 nor a WebM file: it begins with {kind!r}")
