"""The common part of sound and video: parts of files, found by their headers, as rows of a catalogue."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from leat import _native
from leat._formats._array._stored import Object, digest_of, objects_of
from leat.errors import Cancelled, Corrupt, InvalidArgument

_log = logging.getLogger("leat")

_HEAD_BYTES = 16 << 10
_MOST_READS = 1000
_MOST_THREADS = 32
_TELL_EVERY_SECONDS = 10.0
_MOST_SEGMENTS = 1 << 26

Columns = list[tuple[str, str, Any, Any, Any, Any]]
Table = tuple[int, list[str], Columns, list[str]]
"""As `_native.Dataset.from_rows_made` takes it."""
Opened = TypeVar("Opened")


class Head:
    """Reads what a header leads to, some KiB at a time."""

    def __init__(self, object: Object, at_once: int = _HEAD_BYTES, most_reads: int = _MOST_READS) -> None:
        self._object = object
        self._at_once = at_once
        self._most_reads = most_reads
        self._at = 0
        self._data = b""
        self._reads = 0

    @property
    def size(self) -> int:
        return self._object.size

    def read(self, at: int, length: int) -> bytes:
        """Raises `leat.Corrupt` if the file ends before, or the header leads to too many places."""
        if at + length > self._object.size:
            raise Corrupt(
                f"{self._object.key}: it is cut short: its header goes on after its {self._object.size} bytes"
            )
        if at < self._at or at + length > self._at + len(self._data):
            self._reads += 1
            if self._reads > self._most_reads:
                raise Corrupt(f"{self._object.key}: its header has over {self._most_reads} parts")
            self._at = at
            self._data = self._object.read(at, min(max(length, self._at_once), self._object.size - at))
        return self._data[at - self._at : at - self._at + length]


@dataclass
class Segments:
    """Those of a file, as rows of a catalogue."""

    keys: list[str] = field(default_factory=list)
    """The names of the objects that hold them."""
    sizes: list[int] = field(default_factory=list)
    of_row: list[np.ndarray] = field(default_factory=list)
    """For each segment, the number of its key."""
    offsets: list[np.ndarray] = field(default_factory=list)
    lengths: list[np.ndarray] = field(default_factory=list)
    starts: np.ndarray = field(default_factory=lambda: np.empty(0))
    """In seconds."""
    requests: int = 0
    read_bytes: int = 0


class Files:
    """Those of a dataset, and the folders that are their labels.

    Args:
        native: the objects.
    """

    def __init__(self, native: Any) -> None:
        self.url = native.url
        self.objects = objects_of(native)
        self.digest = f"{native.digest} {digest_of(self.objects)}"
        """Another one if any file was written anew."""
        has_labels = "label" in native.fields
        self._labels = native.column("label") if has_labels else None
        self._classes = native.classes if has_labels else []

    def open_each(
        self, open: Callable[[Object], Opened], what: str, is_stopped: Callable[[], bool]
    ) -> list[Opened]:
        """The results of `open` for all files, many at a time."""
        told = time.monotonic()
        found: list[Opened] = []
        with ThreadPoolExecutor(_MOST_THREADS, f"leat-{what}") as pool:

            def one(object: Object) -> Opened:
                if is_stopped():
                    raise Cancelled(f"reading the headers of {what} was stopped")
                return open(object)

            try:
                for each in pool.map(one, self.objects):
                    found.append(each)
                    if time.monotonic() - told > _TELL_EVERY_SECONDS:
                        told = time.monotonic()
                        _log.info("%s: looked at %d of %d files", self.url, len(found), len(self.objects))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return found

    def tell(self, found: Sequence[Segments], nothing: str, why_short: str) -> None:
        """Logs what an epoch costs, and how many files have no sample.

        Raises:
            leat.InvalidArgument: none has one.
        """
        short = [each.key for each, segments in zip(self.objects, found) if not len(segments.starts)]
        if len(short) == len(found):
            raise InvalidArgument(f"{self.url}: no sample is there: {nothing}")
        if short:
            _log.warning("%s: %d of %d files %s, such as %s", self.url, len(short), len(found), why_short, short[0])
        requests = sum(segments.requests for segments in found)
        if requests:
            read = sum(segments.read_bytes for segments in found)
            _log.info("%s: an epoch sends %d requests for %.1f MB", self.url, requests, read / 1e6)

    def table(self, name: str, found: Sequence[Segments], columns: Columns, are_whole: bool) -> Table:
        """The rows of all files' segments; `columns` are further ones."""
        counts = np.array([len(segments.starts) for segments in found])
        rows = int(counts.sum())
        if rows > _MOST_SEGMENTS:
            raise InvalidArgument(
                f"{self.url}: {rows} segments, and at most {_MOST_SEGMENTS} are kept; give a larger stride="
            )
        keys: list[str] = []
        sizes: list[int] = []
        numbers: list[np.ndarray] = []
        names: list[str] = []
        for object, segments in zip(self.objects, found):
            numbers += [len(keys) + each for each in segments.of_row]
            keys += segments.keys
            sizes += segments.sizes
            key = object.key
            names += [key] if are_whole else [f"{key}:{row}" for row in range(len(segments.starts))]
        of_row = np.concatenate(numbers)
        files = np.repeat(np.arange(len(found)), counts)
        # The names of objects that are made tell size and ETag; the store is asked for those of others, so that the
        # files of a dataset are all of one kind.
        own_sizes = np.array(sizes, np.uint64)[of_row] if any(segments.requests for segments in found) else None
        offsets = np.concatenate([each for segments in found for each in segments.offsets]).astype(np.uint64)
        lengths = np.concatenate([each for segments in found for each in segments.lengths]).astype(np.uint64)
        made: Columns = [
            (name, "bytes", (keys, of_row.astype(np.uint32)), own_sizes, offsets, lengths),
            ("file", "int64", files.tolist(), None, None, None),
        ]
        if not are_whole:
            starts = np.concatenate([segments.starts for segments in found])
            made.append(("start", "float64", starts.tolist(), None, None, None))
        made += columns
        if self._labels is not None:
            made.append(("label", "int64", self._labels[files].tolist(), None, None, None))
        return rows, names, made, self._classes


def derived(object: Object, ranges: Sequence[tuple[int, int]], size: int, part: str) -> str:
    """The name of the object of `size` bytes that is made of ranges of `object`, each an offset and a length."""
    (at, length), *others = ranges
    return _native.derived_key(
        source=object.stored, etag=object.etag, offset=at, length_bytes=length, notes_offset=0, notes_bytes=0,
        size_bytes=size, part=part, also=[("", b"", at, length) for at, length in others],
    )  # fmt: skip
