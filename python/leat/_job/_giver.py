"""The process of a rank that makes the batches for the others of its node, and hands them over."""

from __future__ import annotations

import collections
import logging
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from leat._job import _shared_batch
from leat._job._shared_batch import Fields
from leat._native import BatchPlace
from leat._opened import Opened

_log = logging.getLogger("leat")

KEY_BYTES = 16
BATCH, WORKING = b"b", b"w"
"""The first byte of a message: a batch comes with it; or it is being made."""
BEAT_SECONDS = 0.5
_MOST_KEPT = 16
_SLICE_SECONDS = 0.05
_SECONDS_TO_MEET = 60.0
_SECONDS_TO_END = 2.0


class Giver:
    """Takes batches of the engine, and gives them to the siblings that ask for none of their own.

    Two threads: one copies the next batch to shared memory as soon as it is there, so that the
    training thread seldom has to; one talks with the siblings. Neither waits for a sibling: one
    that has not taken this many batches is left alone, and makes its own.

    Threads: `next` by any, one at a time; `close` by any.

    Args:
        key: what tells the next batch from all others.
        listener: a socket on which siblings may already wait.
        expected: the number of siblings that will come, once that is known, else None.
        most_bytes: of batches that were given, and that some sibling has not taken.
    """

    def __init__(
        self, opened: Opened, key: Callable[[], bytes], listener: socket.socket,
        expected: Callable[[], int | None], most_bytes: int,
    ) -> None:  # fmt: skip
        self._opened, self._key = opened, key
        self._listener = listener
        self._expected = expected
        self._most_bytes = most_bytes
        self._turn = threading.Lock()
        """Held by who takes the next batch of the engine, until it is given."""
        self._hand_over = threading.Lock()
        """Held while the memory of a batch is read, and while it becomes the user's."""
        self._changed = threading.Condition()
        # Guarded by _hand_over:
        self._given: collections.deque[bytes] = collections.deque(maxlen=4 * _MOST_KEPT)
        self._kept: collections.deque[tuple[bytes, int, int]] = collections.deque()
        """For siblings that have yet to come: key, descriptor, bytes."""
        self._takers: dict[int, _Taker] = {}
        self._known: int | None = None  # Siblings that come.
        self._meetings = 0
        self._begun = 0
        """Iterations: a batch that was looked at in one is not given in another."""
        self._has_said = False
        self._is_active = False
        self._is_closed = False
        self._is_left_to_threads = False
        """Whether the last of the threads clears up, since one of them has closed this."""
        self._running = 2  # Guarded by _changed.
        self._pid = os.getpid()
        self._woken, self._waker = socket.socketpair()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=name, daemon=True)
            for work, name in ((self._make, "leat-give"), (self._talk, "leat-siblings"))
        ]
        for thread in self._threads:
            thread.start()

    def begin(self) -> int:
        iteration = self._opened.native.begin()
        with self._hand_over:
            self._given.clear()  # A state may have brought batches back.
            self._keep_nothing_of_before()
            self._begun += 1
        with self._changed:
            self._is_active = True
            self._changed.notify_all()
        return iteration

    def next(self, iteration: int, place: BatchPlace) -> Fields | None:
        with self._turn:
            key = self._key()
            try:
                fields = self._opened.native.next(iteration, place)
            except BaseException:
                self._is_active = False
                raise
            with self._hand_over:
                if fields is None:
                    self._is_active = False
                    self._keep_nothing_of_before()
                elif self._is_wanted():
                    self._give(key, fields)
        with self._changed:
            self._changed.notify_all()
        return fields

    def peek(self, place: BatchPlace) -> Fields | None:
        return self._opened.native.peek(place)

    def take_waits(self) -> list[tuple[float, str]]:
        return self._opened.native.take_waits()

    def close(self) -> None:
        """Batches that were given stay with the siblings."""
        if os.getpid() != self._pid:
            return
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._waker.close()
        if threading.current_thread() in self._threads:
            # The collector found the loader there, perhaps where `_hand_over` is held.
            self._is_left_to_threads = True
            return
        for thread in self._threads:
            thread.join(_SECONDS_TO_END)
        self._clear_up()

    def _clear_up(self) -> None:
        with self._hand_over:
            for taker in self._takers.values():
                taker.close()
            self._takers.clear()
            self._keep_nothing()
        self._listener.close()
        self._woken.close()

    def _is_wanted(self) -> bool:
        return not self._is_closed and (bool(self._takers) or self._known is None or self._known > 0)

    def _give(self, key: bytes, fields: Fields) -> None:
        """Gives a batch, once. REQUIRES: `_hand_over` is held."""
        if key in self._given:
            return
        self._given.append(key)
        try:
            fd, size = _shared_batch.make(fields)
        except Exception as error:  # No memory or descriptors: siblings make this one, and training here goes on.
            self._say_why_not(error)
            return
        for taker in list(self._takers.values()):
            if not taker.give(key, fd, size, self._most_bytes):
                self._leave(taker)
        if self._known is None or len(self._takers) < self._known:
            self._kept.append((key, fd, size))
            while not _have_room([each for _, _, each in self._kept], 0, self._most_bytes):
                os.close(self._kept.popleft()[1])
        else:
            os.close(fd)
            self._keep_nothing()

    def _say_why_not(self, error: Exception) -> None:
        if not self._has_said:
            self._has_said = True
            _log.warning(
                "a batch cannot be shared with the other processes of this rank, which make it by themselves (%s: %s)",
                type(error).__name__, error,
            )  # fmt: skip

    def _keep_nothing(self) -> None:
        while self._kept:
            os.close(self._kept.popleft()[1])

    def _keep_nothing_of_before(self) -> None:
        """An epoch is over. A sibling that was left alone made the rest of it, and comes back for the next; only one
        that has never come may still want it. REQUIRES: `_hand_over` is held."""
        if self._known is not None and self._meetings >= self._known:
            self._keep_nothing()

    def _leave(self, taker: _Taker) -> None:
        self._takers.pop(taker.number, None)
        taker.close()

    def _guarded(self, work: Callable[[], None]) -> None:
        # A state may have brought another engine's loader, and closed this one. Training goes on in any case: siblings
        # that hear nothing make their own batches.
        while not self._is_closed:
            try:
                work()
            except Exception:
                _log.debug("a batch is not shared", exc_info=True)
            time.sleep(_SLICE_SECONDS)
        with self._changed:
            self._running -= 1
            is_last = self._running == 0
        if is_last and self._is_left_to_threads:
            self._clear_up()

    def _make(self) -> None:
        """Gives each batch as soon as it is there, which may be before training asks for it."""
        while not self._is_closed:
            begun, key = self._begun, self._key() if self._is_active and self._is_wanted() else None
            if key is None or key in self._given:
                with self._changed:
                    if not self._is_closed:
                        self._changed.wait(BEAT_SECONDS)
                continue
            began = time.monotonic()
            fields = self._opened.native.look(_SLICE_SECONDS)
            if fields is None:
                # At the end, and where a batch has failed, it does not wait.
                time.sleep(max(0.0, began + _SLICE_SECONDS - time.monotonic()))
                continue
            # Only the holder of the turn gives: a sibling drops what came before the batch that it asks for.
            if self._turn.acquire(timeout=_SLICE_SECONDS):
                try:
                    with self._hand_over:
                        # Else training has taken it, and may write to it.
                        if begun == self._begun and key == self._key():
                            self._give(key, fields)
                finally:
                    self._turn.release()
            del fields

    def _talk(self) -> None:
        self._listener.setblocking(False)
        begin, beat = time.monotonic(), 0.0
        while not self._is_closed:
            poll = select.poll()
            poll.register(self._listener, select.POLLIN)
            poll.register(self._woken, select.POLLIN)
            with self._hand_over:
                for number in self._takers:
                    poll.register(number, select.POLLIN)
            ready = poll.poll(1e3 * BEAT_SECONDS / 2)
            now = time.monotonic()
            if self._known is None:
                known = self._expected()
                self._known = 0 if known is None and now - begin > _SECONDS_TO_MEET else known
            with self._hand_over:
                for number, _ in ready:
                    self._hear(number)
                if self._known is not None and len(self._takers) >= self._known:
                    self._keep_nothing()
                if now - beat >= BEAT_SECONDS:
                    beat = now
                    self._beat()

    def _hear(self, number: int) -> None:
        if number == self._listener.fileno():
            self._meet()
            return
        taker = self._takers.get(number)
        if taker is not None and not taker.hear():
            self._leave(taker)

    def _meet(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        if not is_own_user(connection):
            connection.close()
            return
        taker = _Taker(connection)
        self._takers[taker.number] = taker
        self._meetings += 1
        for key, fd, size in self._kept:
            if not taker.give(key, fd, size, self._most_bytes):
                self._leave(taker)
                return

    def _beat(self) -> None:
        """Says which batch is being made, if one is: a sibling waits for it as training here does."""
        if not self._is_active or not self._takers:
            return
        key = self._key()
        if key in self._given:
            return
        for taker in list(self._takers.values()):
            if not taker.say(WORKING + key):
                self._leave(taker)


class _Taker:
    """A sibling, as its giver sees it."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.number = connection.fileno()
        connection.setblocking(False)
        self._sizes: collections.deque[int] = collections.deque()  # Not taken yet.

    def give(self, key: bytes, fd: int, size: int, most_bytes: int) -> bool:
        """False: it lags behind, or is gone."""
        if not _have_room(self._sizes, size, most_bytes):
            if not self.hear() or not _have_room(self._sizes, size, most_bytes):
                return False
        self._sizes.append(size)
        try:
            socket.send_fds(self.socket, [BATCH + key], [fd])
        except OSError:
            return False
        return True

    def hear(self) -> bool:
        """Each byte that comes says that it has taken a batch. False: it is gone."""
        while True:
            try:
                told = self.socket.recv(_MOST_KEPT)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not told:
                return False
            for _ in told:
                if self._sizes:
                    self._sizes.popleft()

    def say(self, message: bytes) -> bool:
        """A message that its queue has no room for is left out."""
        try:
            self.socket.send(message)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def close(self) -> None:
        self.socket.close()


def _have_room(sizes: Collection[int], size: int, most_bytes: int) -> bool:
    """Whether these batches and one more are few enough; two always are."""
    return len(sizes) < _MOST_KEPT and (len(sizes) < 2 or sum(sizes) + size <= most_bytes)


def is_own_user(connection: socket.socket) -> bool:
    """Whether the other end is this user's: the names of such sockets are open to all."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", told)[1] == os.geteuid()
