"""Sound decoded: a derived object has the segments of a run one after the other, as a batch has them."""

from __future__ import annotations

import io
import json
from typing import Any, NamedTuple

import numpy as np

from leat._formats._audio._format import FLAC
from leat.errors import Corrupt, InvalidArgument


class Run(NamedTuple):
    """Segments of one file that are read at once. All of it but `first` stands in the object's name."""

    coding: str
    channels: int
    bits: int
    rate: int
    blocks: list[int]
    data_first: int
    """The number of the first frame that is read; a FLAC file is read from the begin of a block on."""
    begin: int
    """The first frame that is needed, and the one behind the last."""
    end: int
    made_rate: int
    made_first: int
    """The first frame of the first segment, counted at the rate that is made."""
    made_end: int
    """The frames that the whole file has, counted so. The rest of a segment is silence."""
    segments: int
    segment_frames: int
    stride_frames: int
    dtype: str
    is_mono: bool

    @property
    def made_channels(self) -> int:
        return 1 if self.is_mono else self.channels


def said(run: Run) -> str:
    """The run, as `derive` reads it."""
    return json.dumps(run, separators=(",", ":"))


def derive(part: str, _notes_at: int, _notes: bytes, _at: int, data: bytes) -> np.ndarray:
    """The segments of the run that `said` tells of: uint8. The first line of `part` is for errors."""
    run = Run(*json.loads(part.partition("\n")[2]))
    return segments_of(run, data).view(np.uint8).reshape(-1)


def segments_of(run: Run, data: bytes) -> np.ndarray:
    """An array of shape (segments, channels, frames).

    Raises:
        leat.Corrupt: a block is damaged.
    """
    frames = _flac(run, data) if run.coding == FLAC else _pcm(run, data)
    if run.is_mono and run.channels > 1:
        frames = frames.mean(axis=1, dtype=np.float32, keepdims=True)
    place = run.made_first - run.begin
    if run.made_rate != run.rate:
        frames = soxr().resample(frames, run.rate, run.made_rate)
        # The plan begins where a frame of one rate meets one of the other.
        place = run.made_first - run.begin * run.made_rate // run.rate
    made = np.zeros((run.segments, run.made_channels, run.segment_frames), run.dtype)
    there = frames[: place + run.made_end - run.made_first]
    for number in range(run.segments):
        found = there[place : place + run.segment_frames]
        made[number, :, : len(found)] = found.T
        place += run.stride_frames
    return made


def _pcm(run: Run, data: bytes) -> np.ndarray:
    """The frames of a WAV file: (frames, channels)."""
    if run.coding == "<i3":
        bytes_of = np.frombuffer(data, np.uint8).reshape(-1, 3)
        wide = np.zeros((len(bytes_of), 4), np.uint8)
        wide[:, 1:] = bytes_of
        values = wide.view("<i4").reshape(-1, run.channels)
    else:
        values = np.frombuffer(data, run.coding).reshape(-1, run.channels)
    if run.dtype == "<i2":
        return values if run.coding == "<i2" else (values.astype("<i2") - 128) << 8
    if values.dtype.kind == "f":
        return values.astype(np.float32, copy=False)
    if run.coding == "u1":
        return (values.astype(np.float32) - 128) / 128
    return np.multiply(values, np.float32(2.0 ** (1 - 8 * values.itemsize)), dtype=np.float32)


def _flac(run: Run, data: bytes) -> np.ndarray:
    soundfile = _soundfile()
    wanted = run.end - run.data_first
    try:
        with _reader_of(soundfile)(io.BytesIO(_flac_head(run) + data)) as file:
            found = file.read(wanted, dtype="int16" if run.dtype == "<i2" else "float32", always_2d=True)
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
        raise Corrupt(f"FLAC: {error}") from None
    if found.shape != (wanted, run.channels):
        raise Corrupt(f"FLAC: {len(found)} frames of {run.channels} channels are there, of {wanted}")
    return found[run.begin - run.data_first :]


def _flac_head(run: Run) -> bytes:
    """The header of a FLAC file whose first block is any."""
    packed = run.rate << 44 | run.channels - 1 << 41 | run.bits - 1 << 36 | run.end
    info = b"".join(size.to_bytes(2, "big") for size in run.blocks) + bytes(6) + packed.to_bytes(8, "big") + bytes(16)
    return b"fLaC\x80\x00\x00" + bytes([len(info)]) + info


_readers: dict[str, Any] = {}


def _reader_of(soundfile: Any) -> Any:
    """soundfile's, which seeks after each read, but not here: numbers of frames do not begin at 0."""
    if "reader" not in _readers:
        _readers["reader"] = type("_Reader", (soundfile.SoundFile,), {"seekable": lambda self: False})
    return _readers["reader"]


def check_needs(coding: str, is_resampled: bool) -> None:
    """Raises `leat.InvalidArgument` if a package is missing that such a file needs."""
    if coding == FLAC:
        _soundfile()
    if is_resampled:
        soxr()


def _soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError):
        raise InvalidArgument("FLAC files need soundfile: pip install soundfile") from None
    return soundfile


def soxr() -> Any:
    try:
        import soxr
    except ImportError:
        raise InvalidArgument("rate= needs soxr: pip install soxr; or leave it out") from None
    return soxr
