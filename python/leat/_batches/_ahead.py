"""Copies the next batch while the program still uses the one before."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

_log = logging.getLogger("leat")
_SLICE_SECONDS = 0.05
_SECONDS_TO_END = 2.0
_SECONDS_TO_COPY = 60.0
"""The first copy may make the context of a device."""

Fields = list[tuple[str, Any]]
"""As the engine hands them over: an array; or values, offsets and shapes; or a list of texts."""
Look = Callable[[float], "Fields | None"]
_Place = tuple[str, int, int]


class Copier(Protocol):
    """Copies batches, in two steps."""

    def preparation(self) -> Callable[[], None]:
        """The first work of a thread that copies for the calling one."""

    def copy(self, fields: Fields) -> Any:
        """Begins the copy."""

    def hand_over(self, copied: Any) -> Fields:
        """The fields, for work that the calling thread begins from now on."""


class Ahead:
    """Looks at the engine's next batch, and copies it on a thread of its own.

    The engine's position does not move: `take` is told the batch that the engine then delivers, and has its copy if
    that is the batch that was looked at. It is if both lie in the same memory, which nothing else can get as long as
    this holds the arrays.

    Threads: those of a loader, one at a time.

    Args:
        copier: `copy` is called on the thread, all else on the calling one.
    """

    def __init__(self, copier: Copier) -> None:
        self._copier = copier
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._changed = threading.Condition()
        # Guarded by _changed:
        self._work: tuple[Look, Callable[[Fields], Fields]] | None = None
        """None while no epoch runs."""
        self._turn = 0
        """Batches that were taken, and epochs that began: a look that one of them overtook may show a batch of before."""
        self._next: _Next | None = None
        self._is_closed = False
        self._is_looking = False
        self._is_copying = False

    def begin(self, look: Look, convert: Callable[[Fields], Fields]) -> None:
        """An epoch has begun.

        Args:
            look: the next batch if it is there within this many seconds, in the engine's memory; None as well at the end
                and where the engine would raise.
            convert: of a batch, before it is copied.
        """
        with self._changed:
            self._work = (look, convert)
            self._overtake()
            if self._thread is None and not self._is_closed:
                self._thread = self._started()
            self._changed.notify_all()

    def end(self) -> None:
        """There is no next batch until another epoch begins. No look is under way afterwards, which might begin one."""
        with self._changed:
            self._work = None
            self._overtake()
            self._changed.wait_for(lambda: not self._is_looking, _SECONDS_TO_END)

    def take(self, fields: Fields) -> Fields | None:
        """The copy of the batch that the engine has delivered; None if there is none."""
        with self._changed:
            seen, copied = self._next, None
            if seen is not None and seen.places == _places_of(fields):
                self._changed.wait_for(seen.ended)
                copied = seen.copied
                seen = None
            self._overtake()
            if seen is not None and not seen.was_kept:
                # The engine may have delivered this batch, and shown the one after it, before this call.
                seen.was_kept = True
                self._next = seen
            self._changed.notify_all()
        return None if copied is None else self._copier.hand_over(copied)

    def close(self) -> None:
        """Ends the thread; twice does no harm."""
        if os.getpid() != self._pid:
            return
        with self._changed:
            self._is_closed = True
            self._overtake()
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_SECONDS_TO_END)
            if self._is_copying:  # The interpreter may not end while a thread runs torch's C++: see Crew.join.
                self._thread.join(_SECONDS_TO_COPY)

    def _started(self) -> threading.Thread | None:
        thread = threading.Thread(
            target=self._run, args=(self._copier.preparation(),), name="leat-ahead", daemon=True
        )  # fmt: skip
        try:
            thread.start()
        except RuntimeError:  # The machine gives no more: the program copies its batches itself.
            return None
        return thread

    def _overtake(self) -> None:
        """REQUIRES: `_changed` is held."""
        self._turn += 1
        self._next = None

    def _run(self, prepare: Callable[[], None]) -> None:
        prepare()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or (self._work is not None and self._next is None))
                if self._is_closed or self._work is None:
                    return
                turn, (look, convert) = self._turn, self._work
                self._is_looking = True
            began = time.monotonic()
            fields = None
            with contextlib.suppress(Exception):  # The training thread asks the same, and raises it.
                fields = look(_SLICE_SECONDS)
            with self._changed:
                self._is_looking = False
                self._changed.notify_all()
            if fields is None:
                # At the end, and where a batch has failed, it does not wait.
                time.sleep(max(0.0, began + _SLICE_SECONDS - time.monotonic()))
                continue
            seen = _Next(fields)
            del fields
            with self._changed:
                if turn != self._turn:
                    continue
                self._next = seen
            self._make(seen, convert)
            del seen

    def _make(self, seen: _Next, convert: Callable[[Fields], Fields]) -> None:
        copied = None
        try:
            if seen.places:
                self._is_copying = True
                copied = self._copier.copy(convert(seen.fields))
        except Exception:  # The training thread makes the copy, and raises what it meets.
            _log.debug("a batch was not copied ahead", exc_info=True)
        self._is_copying = False
        with self._changed:
            seen.copied, seen.is_done = copied, True
            self._changed.notify_all()


class _Next:
    """A batch that was looked at."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.places = _places_of(fields)
        self.copied: Any = None
        self.is_done = False
        self.was_kept = False
        """A batch before it was taken meanwhile."""

    def ended(self) -> bool:
        """Whether it was tried to copy it."""
        return self.is_done


def _places_of(fields: Fields) -> list[_Place]:
    """The memory of all arrays; empty if they have none, as texts."""
    parts = [
        (name, part) for name, value in fields if not isinstance(value, list)
        for part in (value if isinstance(value, tuple) else (value,)) if part is not None
    ]  # fmt: skip
    return [(name, part.__array_interface__["data"][0], part.nbytes) for name, part in parts if part.nbytes]
