"""The files of a table, and which versions of them."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import posixpath
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leat import _native
from leat._formats._table._manifest import is_local, is_pattern, local_folder
from leat._storage import StorageOptions
from leat.errors import InvalidArgument, ResourceExhausted

PIECE_BYTES = 32 << 20
"""Read at once. Files up to this size take one request."""

_MOST_FILE_BYTES = 16 << 30
_SETTLED_SECONDS = 2.0
"""A file of this machine that was written since may be written again without a sign of it: the
clocks of file systems tick so often."""


@dataclass
class TableFile:
    """One of the files, one below the other."""

    name: str
    size: int
    version: str
    """Differs if the bytes differ; empty if only the bytes tell."""
    read_part: Callable[[int, int], bytes]
    """Reads this many bytes from an offset, of this version."""

    def read(self, at: int, length: int) -> bytes:
        if at == 0 and length == self.size:
            return self._whole
        try:
            return self.read_part(at, length)
        except InvalidArgument:
            # A server that knows no ranges gives whole objects alone.
            return self._whole[at : at + length]

    @functools.cached_property
    def _whole(self) -> bytes:
        return self.read_part(0, self.size) if self.size else b""

    def digest(self) -> str:
        """A hash of all bytes, which it reads."""
        told = hashlib.blake2b()
        for at in range(0, self.size, PIECE_BYTES):
            told.update(self.read(at, min(PIECE_BYTES, self.size - at)))
        return told.hexdigest()

    def open(self) -> io.RawIOBase:
        return _Opened(self)


class _Opened(io.RawIOBase):
    def __init__(self, file: TableFile) -> None:
        self._file = file
        self._at = 0

    readable = seekable = lambda self: True  # noqa: E731

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, into: Any) -> int:
        size = max(0, min(len(into), self._file.size - self._at))
        if size:
            into[:size] = self._file.read(self._at, size)
            self._at += size
        return size


def files_of(url: Any, options: Any, store: StorageOptions) -> list[TableFile]:
    """Asks for sizes and versions, and reads nothing.

    Raises:
        leat.NotFound: there is none.
        leat.ResourceExhausted: one is too large.
    """
    if isinstance(url, (str, os.PathLike)) and not is_pattern(os.fspath(url)):
        files = [_named_file(os.fspath(url), options)]
    else:
        files = _listed_files(url, store)
    for file in files:
        if file.size > _MOST_FILE_BYTES:
            raise ResourceExhausted(
                f"{file.name} has {file.size >> 30} GiB, and a manifest at most {_MOST_FILE_BYTES >> 30}; write several"
            )
    return files


def identity_of(files: Sequence[TableFile]) -> list[list[Any]]:
    """Identifies the bytes of these files, for JSON. Reads those whose versions do not tell."""
    return [[file.name, file.size, file.version or file.digest()] for file in files]


def _named_file(url: str, options: Any) -> TableFile:
    object = _native.ObjectFile(url, options)
    version = _checked_tag(object.etag)
    if version and is_local(url):
        version = _version_here(local_folder(url), version)
    # The endpoint is a part of it: the same URL may lead to another store.
    name = f"{object.identity}\n{url}" if version else url
    return TableFile(url, object.size, version and f"{name}\n{version}", object.read)


def _listed_files(url: Any, store: StorageOptions) -> list[TableFile]:
    from leat._dataset import Dataset

    files = Dataset(url, extensions="*", refresh="always", storage_options=store)
    places = files._native.places
    reader = _native.SampleReader(files._native)
    found = []
    for number in range(len(files)):
        key, _, size = files._native.range("data", number)
        version = _checked_tag(reader.etag(0, number))
        at, _, below = key.partition("/")
        place, path = (places[int(at)], below) if len(places) > 1 else (places[0], key)
        if version and is_local(place):
            version = _version_here(posixpath.join(local_folder(place), path), version)
        read = functools.partial(reader.read_part, 0, number)
        found.append(TableFile(files.key(number), size, version and f"{place}\n{path}\n{version}", read))
    return found


def _checked_tag(etag: bytes) -> str:
    """Empty for a weak one: it says "about the same"."""
    return "" if etag[:2].upper() == b"W/" else etag.decode("latin-1")


def _version_here(path: str, etag: str) -> str:
    """The version of a file of this machine; empty while it is so young that its times do not tell."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    if time.time() - max(status.st_mtime, status.st_ctime) < _SETTLED_SECONDS:
        return ""
    return f"{etag} {status.st_ino} {status.st_ctime_ns}"


