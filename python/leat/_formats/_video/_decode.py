"""Pictures decoded: a derived object has the clips of a run one after the other, as a batch has them."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from leat._formats._array._stored import Object
from leat._formats._media import Head
from leat._formats._video import _webm
from leat._formats._video._format import CODECS
from leat.errors import Corrupt, InvalidArgument

_MOST_NUMBERS = 1 << 26


class Run(NamedTuple):
    """Clips of one file that are read at once. The name of the derived object holds all of these values."""

    codec: str
    extradata: str
    stored: list[int]
    """The width and the height that its header says."""
    turns: int
    colour: list[int]
    clips: int
    frames: int
    """Those of a clip."""
    height: int
    width: int
    is_scaled: bool
    """Whether pictures are brought to that size, or have to have it."""
    gaps: str
    """`packed`: what lies before each packet, behind the one before; "" if the bytes are clusters of a WebM file."""
    sizes: str
    """`packed`: the bytes of each packet."""
    wanted: str
    """`packed`: for each picture of the clips, the number of its packet; or, in clusters, when it is shown."""
    number: int
    """The number of the track, if the bytes are clusters."""

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        return self.clips, self.frames, self.height, self.width, 3


def packed(numbers: np.ndarray) -> str:
    """The numbers as a short text, for a name."""
    planes = np.diff(numbers, prepend=0).astype("<i8").view(np.uint8).reshape(-1, 8).T.tobytes()
    return base64.b85encode(zlib.compress(planes, 9)).decode()


def unpacked(text: str) -> np.ndarray:
    """Raises `leat.Corrupt` if `packed` did not make it."""
    try:
        undoing = zlib.decompressobj()
        planes = undoing.decompress(base64.b85decode(text), 8 * _MOST_NUMBERS)
    except (ValueError, zlib.error) as error:
        raise Corrupt(f"the name of the object is damaged: {error}") from None
    if not undoing.eof or len(planes) % 8:
        raise Corrupt("the name of the object is damaged")
    return np.cumsum(np.frombuffer(planes, np.uint8).reshape(8, -1).T.copy().view("<i8").reshape(-1))


def said(run: Run) -> str:
    """The run, as `derive` reads it."""
    return json.dumps(run, separators=(",", ":"))


def derive(part: str, _notes_at: int, _notes: bytes, _at: int, data: bytes) -> np.ndarray:
    """The clips of the run that `said` wrote into `part`: uint8. The first line of `part` is for errors."""
    run = Run(*json.loads(part.partition("\n")[2]))
    return clips_of(run, data).reshape(-1)


def clips_of(run: Run, data: bytes) -> np.ndarray:
    """An array of shape (clips, frames, height, width, 3).

    Raises:
        leat.Corrupt: a picture is damaged or missing.
    """
    places, sizes, wanted = _packets_of(run, data)
    made = np.empty(run.shape, np.uint8).reshape(-1, *run.shape[2:])
    # A picture may come several times, also in one clip.
    rows: dict[int, list[int]] = {}
    for row, number in enumerate(wanted.tolist()):
        rows.setdefault(number, []).append(row)
    scale = pyav().video.reformatter.VideoReformatter()
    for number, frame in _decoded(run, data, places.tolist(), sizes.tolist()):
        if number not in rows:
            continue
        picture = _picture(run, scale, frame)
        for row in rows.pop(number):
            made[row] = picture
        if not rows:
            return made.reshape(run.shape)
    raise Corrupt(f"{CODECS[run.codec]}: {len(rows)} of its pictures are missing")


def _packets_of(run: Run, data: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The places and sizes of the packets in `data`, and the number of that of each picture of the clips."""
    wanted = unpacked(run.wanted)
    if run.gaps:
        sizes = unpacked(run.sizes)
        return np.cumsum(unpacked(run.gaps) + sizes) - sizes, sizes, wanted
    object = Object("clusters", len(data), b"", lambda at, length: data[at : at + length])
    head = Head(object, len(data), 2)
    packets = _webm.blocks_of(object, head, 0, len(data), run.number, run.codec)
    shown = np.flatnonzero(packets.is_shown)
    shown = shown[np.argsort(packets.times[shown], kind="stable")]
    order = np.searchsorted(packets.times[shown], wanted, "right") - 1
    if not len(shown) or order.min() < 0:
        raise Corrupt("its cues name no keyframe of it")
    return packets.offsets, packets.sizes, shown[order]


def _decoded(run: Run, data: bytes, places: list[int], sizes: list[int]) -> Iterator[tuple[int, Any]]:
    """Pictures, and the numbers of their packets."""
    av = pyav()
    view = memoryview(data)
    try:
        context = _context(run)
        for number, (at, size) in enumerate(zip(places, sizes)):
            packet = av.Packet(view[at : at + size])
            packet.pts = number  # Times may come twice.
            packet.is_keyframe = number == 0
            for frame in context.decode(packet):
                yield _checked(frame), frame
        for frame in context.decode(None):
            yield _checked(frame), frame
    except (av.error.FFmpegError, ValueError) as error:
        raise Corrupt(f"{CODECS[run.codec]}: {error}") from None


def _context(run: Run) -> Any:
    context = pyav().codec.CodecContext.create(run.codec, "r")
    if run.extradata:
        context.extradata = base64.b85decode(run.extradata)
    width, height = run.stored
    context.width, context.height = width, height
    primaries, transfer, matrix, range = run.colour
    context.color_primaries, context.color_trc, context.colorspace = primaries, transfer, matrix
    context.color_range = range
    # "strict" has H.264 wait for as many pictures as could come late, if its header does not tell how many do.
    most = (width + 256) * (height + 256)
    context.options = {"err_detect": "explode", "strict": "strict", "max_pixels": str(most)}
    context.thread_count = threads()
    context.thread_type = "AUTO" if context.thread_count > 1 else "NONE"
    return context


def threads() -> int:
    """Those of a decoder: the engine has two decoders at work."""
    return max(1, len(os.sched_getaffinity(0)) // 2) if hasattr(os, "sched_getaffinity") else 1


def _checked(frame: Any) -> int:
    if frame.is_corrupt or frame.pts is None:
        raise Corrupt("a picture is damaged")
    return int(frame.pts)


def _picture(run: Run, scale: Any, frame: Any) -> np.ndarray:
    height, width = (run.width, run.height) if run.turns % 2 else (run.height, run.width)
    if not run.is_scaled and (frame.width, frame.height) != (width, height):
        raise Corrupt(f"a picture has {frame.width} x {frame.height}, and its header says {width} x {height}")
    picture = scale.reformat(frame, width=width, height=height, format="rgb24").to_ndarray()
    return np.rot90(picture, run.turns) if run.turns else picture


def pyav() -> Any:
    try:
        import av
    except (ImportError, OSError):
        raise InvalidArgument("video needs PyAV: pip install av") from None
    return av
