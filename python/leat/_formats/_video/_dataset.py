"""Video where it lies: MP4 and WebM files. A sample is a clip of a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Union

from leat._formats import _media
from leat._formats._array._stored import Object
from leat._formats._media import Segments, Table
from leat._formats._video._decode import pyav
from leat._formats._video._format import MOST_SIDE, Movie, movie_of
from leat._formats._video._plan import Cut, segments_of
from leat.errors import InvalidArgument

VERSION = 1
"""Counts up when kept catalogues are to be made anew."""
EXTENSIONS = ["mp4", "m4v", "mov", "webm", "mkv"]
_MOST_FRAMES = 1 << 16


class Choice(NamedTuple):
    """The wishes of who calls `leat.Dataset.video`."""

    frames: int
    fps: Union[float, None]
    step: int
    stride: Union[int, None]
    size: Union[Sequence[int], None]
    drawn: bool


def check(choice: Choice) -> Choice:
    """Raises `leat.InvalidArgument` if it cannot be."""
    stride = choice.step if choice.stride is None else choice.stride
    for name, value in (("frames", choice.frames), ("step", choice.step), ("stride", stride)):
        if not (_is_whole(value) and 1 <= value <= _MOST_FRAMES):
            raise InvalidArgument(f"{name}={value!r}; it is a whole number from 1, such as {name}=16")
    fps = choice.fps
    if fps is not None and not (
        isinstance(fps, (int, float)) and not isinstance(fps, bool) and math.isfinite(fps) and 0 < fps <= 1000
    ):
        raise InvalidArgument(f"fps={fps!r}; it is a number of pictures a second, such as fps=8")
    size = choice.size
    if size is not None and not (isinstance(size, (tuple, list)) and len(size) == 2 and all(map(_is_side, size))):
        raise InvalidArgument(f"size={size!r}; it is a height and a width, such as size=(224, 224)")
    return choice._replace(size=None if size is None else list(size))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_side(value: Any) -> bool:
    return _is_whole(value) and 1 <= value <= MOST_SIDE


class Files:
    """The files of a dataset.

    Args:
        native: the objects.

    Raises:
        leat.Corrupt, leat.InvalidArgument: as `movie_of`, of the first file.
    """

    def __init__(self, native: Any, choice: Choice) -> None:
        pyav()
        self._files = _media.Files(native)
        self._choice = choice
        self._first: Union[Movie, None] = None
        sides = None
        if choice.size is None:
            self._first = movie_of(self._files.objects[0], choice.fps is not None)
        else:
            sides = choice.size[0], choice.size[1]
        span = (choice.frames - 1) * choice.step + 1
        self._cut = Cut(
            frames=choice.frames, fps=choice.fps, step=choice.step, stride=choice.stride or span, sides=sides,
            is_drawn=choice.drawn,
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """A sample's: (frames, height, width, 3)."""
        height, width = self._first.track.sides if self._first else self._cut.sides or (0, 0)
        return self._cut.frames, height, width, 3

    @property
    def digest(self) -> str:
        return self._files.digest

    def rows(self, is_stopped: Callable[[], bool]) -> Table:
        """As `_native.Dataset.from_rows_made` takes them."""
        found = self._files.open_each(self._open, "video", is_stopped)
        choice = self._choice
        needed = f"{(choice.frames - 1) * choice.step + 1} frames" + (f" at fps={choice.fps}" if choice.fps else "")
        self._files.tell(found, f"no file has {needed}", f"have less than {needed} and are left out")
        return self._files.table("video", found, [], are_whole=False)

    def _open(self, object: Object) -> Segments:
        movie = movie_of(object, self._choice.fps is not None)
        if self._first is not None and movie.track.sides != self._first.track.sides:
            (height, width), (first_height, first_width) = movie.track.sides, self._first.track.sides
            raise InvalidArgument(
                f"{object.key} has pictures of {height} x {width} (height x width), and {self._first.object.key} of "
                f"{first_height} x {first_width}; give size=(height, width), to have all at one size"
            )
        return segments_of(movie, self._cut)
