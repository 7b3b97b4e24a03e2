"""A file in a store, as Python's own files."""

from __future__ import annotations

import io
from collections import OrderedDict
from typing import Any, Union

from leat._formats._array._stored import Object
from leat.errors import Error

_PAGE_BYTES = 256 << 10
_MOST_PAGES = 256


class Remote(io.RawIOBase):
    """A file in a store, read in pages, of which the latest are held."""

    def __init__(self, object: Object) -> None:
        self._object = object
        self._pages: OrderedDict[int, bytes] = OrderedDict()
        self._at = 0
        self.error: Union[Error, None] = None
        """HDF5 tells no reason of its own failure."""

    readable = seekable = lambda self: True  # noqa: E731

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._object.size}[whence]
        if place < 0:
            raise OSError(f"no byte {place}")
        self._at = place
        return place

    def tell(self) -> int:
        return self._at

    def readinto(self, into: Any) -> int:
        view = memoryview(into).cast("B")
        done = 0
        while done < len(view) and self._at < self._object.size:
            number, within = divmod(self._at, _PAGE_BYTES)
            found = self._page(number)[within : within + len(view) - done]
            view[done : done + len(found)] = found
            done += len(found)
            self._at += len(found)
        return done

    def _page(self, number: int) -> bytes:
        if number in self._pages:
            self._pages.move_to_end(number)
            return self._pages[number]
        begin = number * _PAGE_BYTES
        try:
            page = self._object.read(begin, min(_PAGE_BYTES, self._object.size - begin))
        except Error as error:
            self.error = error
            raise OSError(str(error)) from None
        self._pages[number] = page
        if len(self._pages) > _MOST_PAGES:
            self._pages.popitem(last=False)
        return page
