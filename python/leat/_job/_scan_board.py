"""The ranks of a job tell each other what they find in shards, over torch.distributed's store.

The engine indexes shards that have no index while its first epoch reads them. With several ranks each scans
shards of its own and tells the others what is in them (`leat/index/job_scan.h`). Here are the words that it
takes for that: small texts under names, which stay, and a beat by which the others see that a rank lives.
"""

from __future__ import annotations

import collections
import hashlib
import os
import sys
import threading
import zlib
from typing import Any

from leat._job._agreement import job_store
from leat.errors import Corrupt, Unavailable

MOST_BYTES = 6 << 20
"""The most bytes of a compressed message: torch's newer stores refuse more than 8 MiB. The members of a shard of a few
million take as many."""
MOST_TOLD = 256 << 20
"""The most bytes that all ranks of a job write for one loader: the store keeps them in the memory of rank 0."""
_SMALL_BYTES = 64
"""Messages as short as this are written in any case, or ranks would wait for them in vain."""
_MOST_UNPACKED = 1 << 30
_SECONDS_BETWEEN_BEATS = 1.0
_FAILURES = (RuntimeError, ValueError, NotImplementedError, AttributeError)

_openings: collections.Counter[tuple[str, int]] = collections.Counter()


def board() -> ScanBoard | None:
    """None where a job has one process, or its processes share no store."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    world_size = distributed.get_world_size()
    store = job_store(world_size) if world_size > 1 else None
    return None if store is None else ScanBoard(_of_our_own(store), distributed.get_rank(), world_size)


def _of_our_own(store: Any) -> Any:
    """A client of the same store that no other's waiting call blocks, or beats would wait with it."""
    try:
        return store.clone()
    except _FAILURES:  # An older torch's.
        return store


class ScanBoard:
    """Texts under names, which all ranks of a job read.

    Threads: any. Each method but `begin` and `end` raises `leat.Unavailable` once the store does not answer.

    Args:
        store: torch.distributed's.
    """

    def __init__(self, store: Any, rank: int, world_size: int) -> None:
        self._store = store
        self.rank, self.world_size = rank, world_size
        self._beats: dict[str, threading.Event] = {}
        self._bytes_left = MOST_TOLD // world_size

    def begin(self, place: str) -> str:
        """The name of this opening of a place: the n-th has the same in all processes. From now on this rank beats."""
        name = hashlib.sha256(place.encode()).hexdigest()[:32]
        _openings[name, self.rank] += 1
        opening = f"leat/scan/{name}/{_openings[name, self.rank]}"
        ended = self._beats[opening] = threading.Event()
        key, pid = f"{opening}/beat/{self.rank}", os.getpid()

        def beat() -> None:
            number = 0
            while os.getpid() == pid:
                number += 1
                try:
                    self._store.set(key, str(number))
                except _FAILURES:
                    return
                if ended.wait(_SECONDS_BETWEEN_BEATS):
                    return

        threading.Thread(target=beat, name="leat-scan-beat", daemon=True).start()
        return opening

    def end(self, opening: str, shards: int) -> None:
        """This rank beats no more. The last of all ranks removes the listing and what was found in this many shards."""
        self._beats.pop(opening).set()
        try:
            if shards:  # One that has not read the listing knows of none.
                self._store.set(f"{opening}/shards", str(shards))
            if self._store.add(f"{opening}/ended", 1) == self.world_size and self._store.check([f"{opening}/shards"]):
                for shard in range(int(self._store.get(f"{opening}/shards"))):
                    self._store.delete_key(f"{opening}/shard/{shard}")
                self._store.delete_key(f"{opening}/listing")
        except _FAILURES:  # They stay there.
            pass

    def claim(self, name: str, text: str) -> bool:
        """Writes a text, unless another rank has written one there."""
        try:
            return bool(self._store.compare_set(name, "", text).decode() == text)
        except _FAILURES as error:
            raise Unavailable(str(error)) from None

    def put(self, name: str, data: bytes) -> bool:
        """Writes it. False if it is too large to pass through the store, or with what this rank has written before."""
        packed = zlib.compress(data, 1)
        if len(packed) > _SMALL_BYTES:
            if len(packed) > min(MOST_BYTES, self._bytes_left):
                return False
            self._bytes_left -= len(packed)
        try:
            self._store.set(name, packed)
        except _FAILURES as error:
            raise Unavailable(str(error)) from None
        return True

    def get(self, name: str) -> bytes | None:
        """The bytes that `put` wrote; None while nothing is there. Does not wait."""
        packed = self._read(name)
        if packed is None:
            return None
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(packed, _MOST_UNPACKED)
        except zlib.error as error:
            raise Corrupt(f"the message of another rank cannot be unpacked: {error}") from None
        if not unpacker.eof:
            raise Corrupt("the message of another rank is cut short, or unpacks to more than any has")
        return data

    def text(self, name: str) -> str | None:
        """The text that `claim` or a beat wrote; None while nothing is there. Does not wait."""
        found = self._read(name)
        return None if found is None else found.decode(errors="replace")

    def _read(self, name: str) -> bytes | None:
        try:
            return bytes(self._store.get(name)) if self._store.check([name]) else None
        except _FAILURES as error:
            raise Unavailable(str(error)) from None
