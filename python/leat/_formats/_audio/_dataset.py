"""Sound where it lies: WAV and FLAC files. A sample is a segment of a file, or a whole one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Union

import numpy as np

from leat._formats import _media
from leat._formats._array._stored import Object
from leat._formats._audio import _plan
from leat._formats._audio._decode import check_needs
from leat._formats._audio._flac import blocks_of
from leat._formats._audio._format import FLAC, Sound, sound_of
from leat._formats._audio._plan import Cut
from leat._formats._media import Segments, Table
from leat.errors import InvalidArgument

VERSION = 2
"""Counts up when kept catalogues are to be made anew."""
EXTENSIONS = ["wav", "wave", "flac"]
_MOST_AT_ONCE_BYTES = 8 << 20
"""A FLAC file up to this size is read by one request to find its blocks."""
_DTYPES = {"float32": "<f4", "int16": "<i2"}


class Choice(NamedTuple):
    """The wishes of who calls `leat.Dataset.audio`."""

    seconds: Union[float, None]
    stride: Union[float, None]
    rate: Union[int, None]
    dtype: str
    mono: bool
    rest: str
    drawn: bool


def check(choice: Choice) -> Choice:
    """Raises `leat.InvalidArgument` if it cannot be."""
    for name, value in (("seconds", choice.seconds), ("stride", choice.stride)):
        if value is not None and not (_is_number(value) and 0 < value < 1e6):
            raise InvalidArgument(f"{name}={value!r}; it is a number of seconds above 0, such as {name}=10")
    if choice.stride is not None and choice.seconds is None:
        raise InvalidArgument("stride= needs seconds=: without it, a sample is a whole file")
    if choice.rate is not None and not (type(choice.rate) is int and 0 < choice.rate <= 1 << 20):
        raise InvalidArgument(f"rate={choice.rate!r}; it is a whole number of frames a second, such as rate=16000")
    if choice.dtype not in _DTYPES:
        raise InvalidArgument(f"dtype={choice.dtype!r}; it is float32 or int16")
    if choice.dtype == "int16" and choice.rate is not None:
        raise InvalidArgument('rate= makes fractions: leave out dtype="int16"')
    if choice.rest not in ("drop", "pad"):
        raise InvalidArgument(f'rest={choice.rest!r}; it is "drop" or "pad"')
    if choice.seconds is None and (choice.rest == "pad" or choice.drawn):
        raise InvalidArgument('rest="pad" and drawn=True need seconds=: without it, a sample is a whole file')
    return choice


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Files:
    """The files of a dataset.

    Args:
        native: the objects.

    Raises:
        leat.Corrupt, leat.InvalidArgument: as `sound_of`, of the first file.
    """

    def __init__(self, native: Any, choice: Choice) -> None:
        self._choice = choice
        self._files = _media.Files(native)
        self._first = sound_of(self._files.objects[0])
        self._check_same(self._first)
        self._cut = self._cut_of(self._first)

    def _cut_of(self, sound: Sound) -> Cut:
        choice = self._choice
        rate = choice.rate or sound.rate
        frames = None if choice.seconds is None else max(1, round(choice.seconds * rate))
        stride = frames if choice.stride is None else max(1, round(choice.stride * rate))
        return Cut(
            rate=choice.rate, frames=frames, stride=stride or 1, dtype=_DTYPES[choice.dtype],
            is_mono=choice.mono, pads=choice.rest == "pad", is_drawn=choice.drawn,
        )  # fmt: skip

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self._cut.dtype)

    @property
    def shape(self) -> Union[tuple[int, int], None]:
        """A sample's: (channels, frames). None: as many numbers as the file has frames."""
        if self._cut.frames is None:
            return None
        return 1 if self._cut.is_mono else self._first.channels, self._cut.frames

    @property
    def digest(self) -> str:
        return self._files.digest

    def rows(self, is_stopped: Callable[[], bool]) -> Table:
        """As `_native.Dataset.from_rows_made` takes them."""
        found = self._files.open_each(self._open, "audio", is_stopped)
        if any(each.requests for _, each in found):
            # Ranges of a file beside objects that are made would be read without its ETag.
            found = [(sound, self._made(sound, each)) for sound, each in found]
        segments = [each for _, each in found]
        self._tell(segments)
        columns: _media.Columns = []
        if self._cut.pads:
            columns.append(("frames", "int64", self._there(found), None, None, None))
        return self._files.table("audio", segments, columns, are_whole=self._cut.frames is None)

    def _open(self, object: Object) -> tuple[Sound, Segments]:
        is_flac = object.key.lower().endswith(FLAC)
        once = _read_once(object) if is_flac and self._cut.frames is not None else object
        sound = sound_of(once)._replace(object=object)
        self._check_same(sound)
        blocks = None
        if sound.coding == FLAC and (self._cut.frames is not None or not sound.frames):
            blocks = blocks_of(sound, once)
            sound = sound._replace(frames=int(blocks.firsts[-1]))
        if _plan.is_plain(sound, self._cut):
            return sound, _plan.plain_segments(sound, self._cut)
        return sound, _plan.made_segments(sound, blocks, self._cut)

    def _made(self, sound: Sound, found: Segments) -> Segments:
        return _plan.made_segments(sound, None, self._cut) if _plan.is_plain(sound, self._cut) else found

    def _check_same(self, sound: Sound) -> None:
        choice, first, key = self._choice, self._first, sound.object.key
        check_needs(sound.coding, choice.rate not in (None, sound.rate))
        if choice.rate is None and sound.rate != first.rate:
            raise InvalidArgument(
                f"{key} has {sound.rate} frames a second, and {first.object.key} has {first.rate}; give rate=, to have "
                "all at one rate"
            )
        if not choice.mono and choice.seconds is None and sound.channels != 1:
            raise InvalidArgument(
                f"{key} has {sound.channels} channels, and whole files come as one; give mono=True, or seconds="
            )
        if not choice.mono and sound.channels != first.channels:
            raise InvalidArgument(
                f"{key} has {sound.channels} channels, and {first.object.key} has {first.channels}; give mono=True, to "
                "have the mean of them"
            )
        if choice.dtype == "int16":
            _check_int16(sound, choice.mono)

    def _tell(self, found: list[Segments]) -> None:
        seconds = self._choice.seconds
        why = f'are shorter than {seconds} s and left out; rest="pad" fills them up with silence'
        if self._choice.rest == "pad" or seconds is None:
            why = "have no sound"
        nothing = (
            f'no file has {seconds or 0} s; rest="pad" fills them up with silence, and without seconds= a sample is a '
            "whole file"
        )
        self._files.tell(found, nothing, why)

    def _there(self, found: list[tuple[Sound, Segments]]) -> list[int]:
        """The frames of each segment that are no silence of ours."""
        made: list[int] = []
        for sound, segments in found:
            begins = np.arange(len(segments.starts)) * self._cut.stride
            left = _plan.made_frames(sound, self._cut.rate) - begins
            made += np.minimum(left, self._cut.frames or 0).tolist()
        return made


def _check_int16(sound: Sound, is_mono: bool) -> None:
    key = sound.object.key
    if sound.coding not in ("u1", "<i2") and not (sound.coding == FLAC and sound.bits <= 16):
        kind = "floats" if sound.coding.startswith("<f") else "numbers"
        raise InvalidArgument(
            f'{key} has {kind} of {sound.bits} bits, which int16 does not hold; give dtype="float32"'
        )
    if is_mono and sound.channels > 1:
        raise InvalidArgument(
            f'{key} has {sound.channels} channels, and their mean is no int16; give dtype="float32"'
        )


def _read_once(object: Object) -> Object:
    """A small file, all of it."""
    if not 0 < object.size <= _MOST_AT_ONCE_BYTES:
        return object
    data = object.read(0, object.size)
    return object._replace(read=lambda at, length: data[at : at + length])
