"""Claims: each unit of a flow is done by one of the calls that share its state.

Each call is a worker of the flow, with a note `alive/ID` that it writes again and again; its count of
beats grows. A unit is claimed by a note `claims/NAME.GENERATION` that names the worker, and that only
one can create. A claim is never taken back: if its worker has ended, or died, the next one creates the
next generation.

A worker is dead to another one that has watched its note for a lease without a new beat. No clock is
compared with another machine's. On the machine where it ran, the lock of its file tells at once.

Claims save work, and are no more than that. If one is lost in spite of all this (a machine that slept
over its lease, a bucket that lost a second), a unit is done twice, and the bytes are the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import re
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leat._prepare._state import State
from leat.errors import Error

_BEATS = 4
"""In a lease, at least."""
_MOST_PAUSE = 5.0
"""Seconds between beats, so that the page tells of now."""
_ID = re.compile(r"[0-9a-f]{32}")
_MOST_FAILED = 20
_REMEMBERS = 0.5
"""Seconds for which a note of another worker is taken as read."""
_FIRST_WAIT, _MOST_WAIT = 0.05, 2.0
PATIENCE = 2.0
"""Seconds for which a call that ends early waits for what it says last, whose store may be out."""


@dataclass
class _Watched:
    """A worker, as this one sees it."""

    beat: int
    seconds: float
    """Since it had that beat, and was looked at."""
    looked: float
    is_dead: bool


class Claims:
    """A worker of the flow. A context manager: others see that it has ended.

    Threads: any.
    """

    def __init__(self, state: State, lease: float) -> None:
        self._state, self._lease = state, lease
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._generations: dict[str, int] = {}
        self._watched: dict[str, _Watched] = {}
        self._ended: dict[str, dict[str, Any]] = {}
        """The last notes of workers that are dead."""
        self._unsure: dict[str, float] = {}
        """When claims were first met of which nobody knows whose they are."""
        self._running: dict[tuple[str, int], float] = {}
        self._failed: list[dict[str, Any]] = []
        self._begun = time.time()
        self._locks: list[tuple[str, int]] = []
        self._sign_on()
        self._beats = threading.Thread(target=self._beat, name="leat-prepare", daemon=True)

    def __enter__(self) -> Claims:
        self._beats.start()
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._over.set()
        self._beats.join(None if kind is None else PATIENCE)
        for path, file in self._locks:
            with contextlib.suppress(OSError):
                os.unlink(path)
            os.close(file)

    @property
    def locks(self) -> list[int]:
        """Files that a process of this worker keeps open, so that the worker lives as long as they do."""
        return [file for _, file in self._locks]

    def take(self, name: str) -> bool:
        """Claims what has that name; false: it is another worker's, who lives."""
        with self._lock:
            if _since_boot() - self._told_at > self._lease:
                self._sign_on()  # The others believe it dead, and take what it claimed.
            generation = self._generations.get(name, 0)
        while not self._state.create(f"claims/{name}.{generation}", {"by": self._id}):
            with self._lock:
                self._generations[name] = generation
            if not self.is_free(name):
                return False
            generation += 1
        return True

    def place_in(self, count: int) -> int:
        """A number below `count`, another one in each worker."""
        return int(self._id, 16) % count if count else 0

    def is_free(self, name: str) -> bool:
        """Whether nobody who lives has what was claimed under that name, as far as is known."""
        with self._lock:
            claim = f"{name}.{self._generations.get(name, 0)}"
        owner = (self._state.note(f"claims/{claim}") or {}).get("by")
        if isinstance(owner, str) and _ID.fullmatch(owner) and owner != self._id:
            return self._is_dead(owner)
        # Ours, but it came too late to be sure of; or nobody can read it. Another one may be at work.
        now = time.monotonic()
        with self._lock:
            return now - self._unsure.setdefault(claim, now) > self._lease

    def once(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The note of that name, which one of all workers makes; the others wait for it."""
        wait = _FIRST_WAIT
        while (told := self._state.note(name)) is None:
            if not self.take(name):
                self._over.wait(wait)
                wait = min(2 * wait, _MOST_WAIT)
                continue
            told = self._state.note(name)
            if told is None:
                told = make()
                self._state.write(name, told)
            break
        return told

    def begins(self, step: str, unit: int) -> None:
        """A unit is under way."""
        with self._lock:
            self._running[step, unit] = time.time()

    def ends(self, step: str, unit: int, error: str = "") -> None:
        """It is done, or has failed for good."""
        with self._lock:
            self._running.pop((step, unit), None)
            if error:
                self._failed = [*self._failed, {"step": step, "unit": unit, "error": error[:2000]}][-_MOST_FAILED:]

    def workers(self) -> list[dict[str, Any]]:
        """The notes of all workers there have been; `lives` says whether one does."""
        found = []
        for one in sorted(self._state.names("alive/")):
            if not _ID.fullmatch(one):
                continue
            told = self._ended.get(one) or (self._note() if one == self._id else self._state.note(f"alive/{one}"))
            if told is None:
                continue
            lives = one == self._id or not self._is_dead(one, told)
            if not lives:
                self._ended[one] = told
            found.append({**told, "lives": lives})
        return found

    def _sign_on(self) -> None:
        self._id = uuid.uuid4().hex
        self._count = 0
        path = _lock_of(self._id)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        self._locks.append((path, file))
        self._tell()

    def _beat(self) -> None:
        while not self._over.wait(min(self._lease / _BEATS, _MOST_PAUSE)):
            with contextlib.suppress(Error, OSError):  # The next one may arrive; take() sees whether one did.
                self._tell()
        with contextlib.suppress(Error, OSError):  # Then the lease ends it.
            self._tell(has_ended=True)

    def _tell(self, has_ended: bool = False) -> None:
        with self._lock:
            told_at = _since_boot()
            one = self._id
            self._count += 1
            told = self._note(has_ended)
        self._state.write(f"alive/{one}", told)
        with self._lock:
            if one == self._id:
                self._told_at = told_at

    def _note(self, has_ended: bool = False) -> dict[str, Any]:
        """This worker, as of now."""
        with self._lock:
            running = [{"step": step, "unit": unit, "since": since} for (step, unit), since in self._running.items()]
            return {
                "host": socket.gethostname(), "pid": os.getpid(), "boot": _boot(), "beat": self._count,
                "lease": self._lease, "ended": has_ended, "begun": self._begun, "running": running,
                "failed": self._failed,
            }  # fmt: skip

    def _is_dead(self, one: str, told: dict[str, Any] | None = None) -> bool:
        """Whether another worker has ended or died. Once it is dead, it stays so: it signs on anew if it was not."""
        now = time.monotonic()
        with self._lock:
            watched = self._watched.get(one)
            if one == self._id or watched is not None and (watched.is_dead or now - watched.looked < _REMEMBERS):
                return watched is not None and watched.is_dead
        told = told or self._state.note(f"alive/{one}") or {}
        beat, lease = told.get("beat", 0), told.get("lease", 0)
        most = max(self._lease, lease if isinstance(lease, (int, float)) else 0)
        with self._lock:
            if watched is None or watched.beat != beat:
                watched = _Watched(beat, 0.0, now, False)
            # Time without a look does not count: this machine may have slept, too.
            seconds = watched.seconds + min(now - watched.looked, most / _BEATS)
            is_dead = told.get("ended") is True or seconds > most or told.get("boot") == _boot() and _is_unlocked(one)
            self._watched[one] = _Watched(beat, seconds, now, is_dead)
        return is_dead


def living(state: State) -> list[dict[str, Any]]:
    """The notes of workers that have not said that they ended, and of which no lock on this machine says so."""
    notes = [(one, state.note(f"alive/{one}")) for one in sorted(state.names("alive/")) if _ID.fullmatch(one)]
    return [
        told for one, told in notes
        if told and not told.get("ended") and not (told.get("boot") == _boot() and _is_unlocked(one))
    ]  # fmt: skip


def _since_boot() -> float:
    """Seconds, also of a machine that sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _boot() -> str:
    """Identifies this run of this machine's kernel."""
    try:
        return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _lock_of(one: str) -> str:
    return os.path.join(tempfile.gettempdir(), f"leat-prepare-{one}.lock")


def _is_unlocked(one: str) -> bool:
    """Whether the worker's file is here, and neither it nor a process of its has it open."""
    try:
        file = os.open(_lock_of(one), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:  # That of another container, or cleaned up: the lease tells.
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(_lock_of(one))
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        os.close(file)
    return True
