"""The nodes of a job tell each other what they listed, over torch.distributed's store.

The first process that opens a place lists it, or asks the store of the data whether a kept catalogue
is still true. It writes the catalogue into the job's store, from where one process of every other node takes
it. A process that waits for another one sees by its beats that it is alive, and lists for itself once
they end; so does a process that has lost the job's store.
"""

from __future__ import annotations

import collections
import hashlib
import logging
import os
import sys
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

from leat._job._agreement import job_store
from leat.errors import Unavailable

_log = logging.getLogger("leat")

MOST_BYTES = 256 << 20
"""The most bytes of a compressed catalogue. Each node lists for itself what has a larger one: the store is a process's memory."""
_BLOCK_BYTES = 8 << 20
_SECONDS_BETWEEN_BEATS = 1.0
SECONDS_TO_DIE = 30.0
"""Without a beat."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25

Turn = tuple[str, str, int, int]
"""The process that lists: ``"this"``, ``"other"`` or ``"nobody"``. Then the hash, the bytes and the time (seconds since 1970) of
the catalogue, if another one did."""

_LISTS, _NOBODY = ("this", "", 0, 0), ("nobody", "", 0, 0)

_openings: collections.Counter[str] = collections.Counter()


def board() -> ListingBoard | None:
    """None where a job has one node, or its processes share no store."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    world_size = distributed.get_world_size()
    if world_size < 2 or os.environ.get("LOCAL_WORLD_SIZE") == str(world_size):
        return None
    store = job_store(world_size)
    return None if store is None else ListingBoard(store)


class ListingBoard:
    """Tells which process lists a place for all nodes, and what it found.

    Threads: one opening is of one thread at a time.

    Args:
        store: torch.distributed's.
        seconds_to_die: how long a process that lists may give no sign.
    """

    def __init__(self, store: Any, seconds_to_die: float = SECONDS_TO_DIE) -> None:
        self._store = store
        self._seconds_to_die = seconds_to_die
        self._beats: dict[str, threading.Event] = {}
        self._sizes: dict[str, tuple[int, int]] = {}

    def begin(self, place: str) -> str:
        """The name of this opening of a place. The n-th of a place has the same in all processes."""
        name = hashlib.sha256(place.encode()).hexdigest()[:32]
        _openings[name] += 1
        return f"leat/listing/{name}/{_openings[name]}"

    def take_turn(self, opening: str, is_stopped: Callable[[], bool]) -> Turn:
        """Blocks while another process lists."""
        me = os.urandom(8).hex()
        try:
            if self._store.compare_set(f"{opening}/who", "", me).decode() == me:
                self._begin_to_beat(opening)
                return _LISTS
            return self._wait(opening, is_stopped)
        except (RuntimeError, ValueError, NotImplementedError, AttributeError) as error:
            _log.warning("each node lists for itself: the job's store does not answer: %s", error)
            return _NOBODY

    def fetch(self, opening: str) -> bytes:
        """The bytes of the catalogue that `take_turn` told of.

        Raises:
            leat.Unavailable: they are too many, or the job's store has lost them, or does not answer.
        """
        blocks, size = self._sizes[opening]
        if blocks == 0:
            raise Unavailable(f"a catalogue of {size >> 20} MiB is too large to pass through the job's store")
        try:
            packed = b"".join(self._store.get(f"{opening}/block/{block}") for block in range(blocks))
            return zlib.decompressobj().decompress(packed, size + 1)
        except (RuntimeError, ValueError, zlib.error) as error:
            raise Unavailable(f"the job's store: {error}") from None

    def post(self, opening: str, digest: str, listed_at: int, data: bytes) -> None:
        """Ends this process's turn with a catalogue."""
        packed = zlib.compress(data, 1)
        blocks = -(-len(packed) // _BLOCK_BYTES) if len(packed) <= MOST_BYTES else 0
        try:
            for block in range(blocks):
                part = packed[block * _BLOCK_BYTES : (block + 1) * _BLOCK_BYTES]
                self._store.set(f"{opening}/block/{block}", part)
            self._store.set(f"{opening}/found", f"{digest} {len(data)} {listed_at} {blocks}")
        finally:
            self._end_beats(opening)

    def give_up(self, opening: str) -> None:
        """Ends this process's turn without a catalogue."""
        try:
            self._store.set(f"{opening}/found", "nothing")
        finally:
            self._end_beats(opening)

    def _wait(self, opening: str, is_stopped: Callable[[], bool]) -> Turn:
        pause, beat, seen_at = _FIRST_PAUSE, b"", time.monotonic()
        while not is_stopped():
            if self._store.check([f"{opening}/found"]):
                return self._found(opening)
            if self._store.check([f"{opening}/beat"]):
                now = self._store.get(f"{opening}/beat")
                if now != beat:
                    beat, seen_at = now, time.monotonic()
            if time.monotonic() - seen_at > self._seconds_to_die:
                _log.warning(
                    "this node lists for itself: the process that listed for all nodes has given no sign for %.0f s",
                    self._seconds_to_die,
                )  # fmt: skip
                return _NOBODY
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return _NOBODY  # The caller looks at what stopped it.

    def _found(self, opening: str) -> Turn:
        told = self._store.get(f"{opening}/found").decode().split()
        if len(told) != 4:
            return _NOBODY
        digest, size, listed_at, blocks = told[0], int(told[1]), int(told[2]), int(told[3])
        self._sizes[opening] = blocks, size
        return "other", digest, size, listed_at

    def _begin_to_beat(self, opening: str) -> None:
        ended = self._beats[opening] = threading.Event()

        def beat() -> None:
            number = 0
            while not ended.wait(_SECONDS_BETWEEN_BEATS):
                number += 1
                try:
                    self._store.set(f"{opening}/beat", str(number))
                except (RuntimeError, ValueError):
                    return

        threading.Thread(target=beat, name="leat-listing", daemon=True).start()

    def _end_beats(self, opening: str) -> None:
        self._beats.pop(opening).set()
