"""A process of a rank whose batches another one of its node makes."""

from __future__ import annotations

import array
import collections
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable
from typing import Any

from leat._job import _shared_batch
from leat._job._giver import BATCH, KEY_BYTES, WORKING, is_own_user
from leat._job._shared_batch import Damaged, Fields
from leat._native import BatchPlace
from leat._opened import Opened

_log = logging.getLogger("leat")

PATIENCE = 5.0
"""Seconds in which the giver says neither that it makes the batch nor gives it."""
STREAK = 4
"""Batches in a row that were there in time: the giver keeps pace again."""
_MOST_CAME = 64
_NONE = 2**64 - 1
_ROOM = socket.CMSG_SPACE(array.array("i").itemsize)
_CAUSE = "storage"
"""The cause of all waits here: the giver knows more."""


class Taker:
    """Maps the batches that a sibling gives. If one does not come, it makes that by itself, and so
    goes on until the sibling keeps pace again. Both ways have the same batches.

    Threads: those of a loader's `next`, one at a time.

    Args:
        key: what tells the next batch from all others.
        connect: connects to the giver; None if it is not there.
        giver: the number of its process, for messages.
    """

    def __init__(
        self, opened: Opened, key: Callable[[], bytes], connect: Callable[[], socket.socket | None], giver: int
    ) -> None:
        self._opened, self._key = opened, key
        self._connect = connect
        self._giver = giver
        self._socket: socket.socket | None = None
        self._came: collections.deque[tuple[bytes, int]] = collections.deque()
        self._working: bytes | None = None
        self._why_parted = "it is gone"
        self._makes = False
        """Whether this process makes its own batches."""
        self._streak = 0
        self._has_said = False
        # The engine's number of the iteration, less the one that others have.
        self._native: Any = None
        self._more = 0
        self._current = 0
        self._waits: list[tuple[float, str]] = []
        self._pid = os.getpid()

    def begin(self) -> int:
        native = self._opened.native
        if native is not self._native:  # It counts anew.
            self._native, self._more = native, 0
        self._makes, self._streak = False, 0
        if self._socket is None:
            self._socket, self._why_parted = self._connect(), "it is gone"
        self._current = native.begin_skipping() - self._more
        if self._socket is None:
            self._make_own("it does not answer")
        return self._current

    def next(self, iteration: int, place: BatchPlace) -> Fields | None:
        native = self._opened.native
        if iteration != self._current or not self._is_within_iteration():
            return native.next(_NONE, place)  # Raises: the iteration was ended.
        native.next_place(place)
        key = self._key()
        if self._makes and not self._keeps_pace(key):
            return native.next(iteration + self._more, place)
        if native.remaining() == 0:
            native.skip(iteration + self._more, place)
            return None
        began = time.perf_counter()
        fields = self._await(key)
        if fields is None:
            return native.next(iteration + self._more, place)
        native.skip(iteration + self._more, place)
        self._waits.append((time.perf_counter() - began, _CAUSE))
        return fields

    def peek(self, place: BatchPlace) -> Fields | None:
        native = self._opened.native
        native.next_place(place)
        if self._makes or not self._is_within_iteration():
            return native.peek(place)  # Nobody gives a batch before an iteration begins.
        if native.remaining() == 0:
            return None
        key = self._key()
        fields = self._await(key, leaves=True)
        return native.peek(place) if fields is None else fields

    def _is_within_iteration(self) -> bool:
        native = self._opened.native
        return native is self._native and native.is_current(self._current + self._more)

    def take_waits(self) -> list[tuple[float, str]]:
        """The waits of the steps since the last call."""
        waits, self._waits = self._waits, []
        return waits + self._opened.native.take_waits()

    def close(self) -> None:
        if os.getpid() != self._pid:
            return
        self._forget(len(self._came))
        self._part()

    def _make_own(self, why: str) -> None:
        """Goes on with the engine at the very position."""
        if not self._has_said:
            self._has_said = True
            _log.warning(
                "process %d of this rank makes no batches for this one (%s): it makes its own, the same, until "
                "that one keeps pace", self._giver, why,
            )  # fmt: skip
        native = self._opened.native
        self._makes, self._streak = True, 0
        native.load_state(native.state())
        self._more = native.begin() - self._current

    def _take_again(self) -> None:
        native = self._opened.native
        self._makes = False
        self._waits += native.take_waits()  # In their order.
        native.load_state(native.state())
        self._more = native.begin_skipping() - self._current

    def _keeps_pace(self, key: bytes) -> bool:
        """Whether the giver has been in time for a while; goes back to it then."""
        self._receive(0.0)
        has_come = any(each == key for each, _ in self._came)
        self._streak = self._streak + 1 if has_come else 0
        self._drop_until(key)
        if self._streak < STREAK or self._opened.native.remaining() == 0:
            return False
        self._take_again()
        return True

    def _await(self, key: bytes, *, leaves: bool = False) -> Fields | None:
        """The batch of this key; None if the giver does not bring it: then the engine runs."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self._drop_until(key)
            if self._came and self._came[0][0] == key:
                return self._mapped(leaves)
            if self._socket is None:
                self._make_own(self._why_parted)
                return None
            if time.monotonic() > deadline:
                self._make_own(f"it has been silent for {PATIENCE:.0f} s")
                return None
            self._receive(min(0.2, PATIENCE))
            if self._working == key:
                self._working, deadline = None, time.monotonic() + PATIENCE

    def _mapped(self, leaves: bool) -> Fields | None:
        fd = os.dup(self._came[0][1])
        try:
            if not leaves:
                self._forget(1)
            return _shared_batch.take(fd)
        except (Damaged, OSError) as error:
            self._part()
            self._make_own(f"its batch cannot be mapped: {error}")
            return None

    def _drop_until(self, key: bytes) -> None:
        """Batches before that of the key are not needed any more."""
        place = next((i for i, (each, _) in enumerate(self._came) if each == key), None)
        if place is not None:
            self._forget(place)
        while len(self._came) > _MOST_CAME:
            self._forget(1)

    def _forget(self, number: int) -> None:
        for _ in range(number):
            os.close(self._came.popleft()[1])
        if number and self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.send(b"t" * number)

    def _receive(self, seconds: float) -> None:
        """All that has come, for which it waits so long if nothing has."""
        while self._socket is not None:
            self._socket.settimeout(seconds)
            try:
                message, ancillary, flags, _ = self._socket.recvmsg(1 + KEY_BYTES, _ROOM, socket.MSG_CMSG_CLOEXEC)
            except (TimeoutError, BlockingIOError, socket.timeout):
                return
            except ConnectionResetError:
                continue  # It ended before it heard all; what it gave is still there.
            except OSError:
                self._part()
                return
            fds = _descriptors(ancillary)
            if message[:1] == WORKING:
                self._working = message[1:]
            elif message[:1] == BATCH and len(fds) == 1:
                self._came.append((message[1:], fds.pop()))
            elif not message:
                self._part()
            elif flags & socket.MSG_CTRUNC:  # recvmsg(2): the batch came, and there was no descriptor for it.
                self._why_parted = "this process has no file descriptor left for a batch: raise ulimit -n"
                self._part()
            for fd in fds:
                os.close(fd)
            seconds = 0.0

    def _part(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return list(fds)


def connected(name: str) -> socket.socket | None:
    """A connection to the socket of a giver; None if it is not there, or is another user's."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.settimeout(PATIENCE)  # It waits where too many wait already.
    try:
        made.connect("\0" + name)
        if is_own_user(made):
            return made
    except OSError:
        pass
    made.close()
    return None
