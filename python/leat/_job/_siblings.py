"""Processes of one rank that share a node: which of them makes the batches for all.

Each says in the store of the job where it is, and what its batches depend on. Those that agree in
both are a group. The first of it makes the batches (`_giver`), the others map them (`_taker`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Sequence
from typing import Any, Protocol

from leat import _native
from leat._job import _same_functions, _shared_batch
from leat._job._agreement import JobStore
from leat._job._giver import KEY_BYTES, Giver
from leat._job._place import Place
from leat._job._shared_batch import Fields
from leat._job._taker import Taker, connected
from leat._native import BatchPlace
from leat._opened import Opened
from leat._say import once
from leat.ops import Op, Python

_SECONDS_TO_MEET = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25
_OPTIONS = (
    "ops", "fields", "ids", "collates", "on_error", "recorded_filters", "keeps_samples", "pad", "join", "hashes",
)  # fmt: skip
"""The options that the bytes of a batch depend on, besides the order, which ranks compare anyway."""


class Maker(Protocol):
    """Brings a loader's batches, as the engine hands them over."""

    def begin(self) -> int:
        """Starts the next epoch if the running one has delivered a batch; returns the number of the iteration."""

    def next(self, iteration: int, place: BatchPlace) -> Fields | None:
        """The next batch, and its place; None at the end."""

    def peek(self, place: BatchPlace) -> Fields | None:
        """A copy of the next batch, and its place; None at the end."""

    def take_waits(self) -> list[tuple[float, str]]:
        """The waits of the steps since the last call, and their causes."""

    def close(self) -> None:
        """Ends its threads; twice does no harm."""


class OwnMaker:
    """The engine of this process makes them."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def begin(self) -> int:
        return self._opened.native.begin()

    def next(self, iteration: int, place: BatchPlace) -> Fields | None:
        return self._opened.native.next(iteration, place)

    def peek(self, place: BatchPlace) -> Fields | None:
        return self._opened.native.peek(place)

    def take_waits(self) -> list[tuple[float, str]]:
        return self._opened.native.take_waits()

    def close(self) -> None:
        pass


def siblings_of(opened: Opened, place: Place, ops: Sequence[Op], met: tuple[Any, str] | None) -> Siblings | None:
    """The processes that have the same rank as this one; None if this one makes its own batches.

    Args:
        met: the store of the job, and the name of this loader in it.
    """
    if len(place.siblings) < 2:
        return None
    if met is None:
        if place.shares:
            _say("they share no store: call torch.distributed.init_process_group() before making the loader")
        return None
    words, obstacle = _words_of(opened, place, ops)
    if obstacle:
        _say(obstacle)
    siblings = Siblings(opened, place, met, words)
    return None if words is None else siblings


class Siblings:
    """Says where this process is, and finds the others.

    Args:
        words: what its batches depend on; None: it makes its own.
    """

    def __init__(self, opened: Opened, place: Place, met: tuple[Any, str], words: str | None) -> None:
        store, self._name = met
        self._opened = opened
        self._store = JobStore(store)
        self._process = place.among(opened.native)[0]
        self._order = place.siblings
        self._told: dict[int, dict[str, str]] = {}
        self._own: dict[str, str] = {}
        self._listener: socket.socket | None = None
        if words is not None and (node := _node()) is not None:
            name = f"leat-batches-{secrets.token_hex(16)}"
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._listener.bind("\0" + name)  # So no file is left behind.
            self._listener.listen(len(self._order))
            self._own = {"node": node, "words": words, "socket": name}
        self._store.ask(lambda store: store.set(self._key(self._process), json.dumps(self._own)))

    def maker(self) -> Maker:
        """The one that brings the batches. Waits a while for those that come before this process."""
        listener, self._listener = self._listener, None
        if listener is None:
            return OwnMaker(self._opened)
        place = self._order.index(self._process)
        self._meet(self._order[:place], _SECONDS_TO_MEET)
        first = next((each for each in self._order[:place] if self._is_of_group(each)), None)
        key = functools.partial(_key_of, self._opened)
        if first is not None:
            listener.close()
            return Taker(self._opened, key, functools.partial(connected, self._told[first]["socket"]), first)
        if place + 1 == len(self._order):
            listener.close()
            return OwnMaker(self._opened)
        # It may have as much as half of the memory of batches.
        most_bytes = _native.ram_for_one_rank(self._opened.options["memory"]) // 4
        return Giver(self._opened, key, listener, functools.partial(self._coming, place), most_bytes)

    def _coming(self, place: int) -> int | None:
        """The number of those that come for batches; None while one has not spoken."""
        after = self._order[place + 1 :]
        self._meet(after, 0.0)
        return sum(map(self._is_of_group, after)) if self._told.keys() >= set(after) else None

    def _meet(self, processes: Sequence[int], seconds: float) -> None:
        deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
        while missing := [each for each in processes if each not in self._told]:
            for each in missing:
                if self._store.ask(lambda store: store.check([self._key(each)])):
                    told = self._store.ask(lambda store: store.get(self._key(each)))
                    self._told[each] = {} if told is None else json.loads(told)
            if time.monotonic() >= deadline or not self._store.is_there:
                return
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _is_of_group(self, process: int) -> bool:
        told = self._told.get(process, {})
        return all(told.get(name) == self._own[name] for name in ("node", "words"))

    def _key(self, process: int) -> str:
        return f"leat/siblings/{self._name}/{process}"


def _say(obstacle: str) -> None:
    once(logging.INFO, f"processes of one rank each make its batches: {obstacle}")


def _key_of(opened: Opened) -> bytes:
    """Tells the next batch from all others: the state says what it belongs to, and is the same on all processes."""
    return hashlib.sha256(opened.native.state().encode()).digest()[:KEY_BYTES]


def _node() -> str | None:
    """Processes that have this in common can hand each other descriptors; None: nobody can."""
    if not _shared_batch.can_be_made():
        return None
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        folder = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"  # As for caches: of another node, or another container's.
        found = os.stat(folder)
        return f"{boot} {os.readlink('/proc/self/ns/net')} {os.geteuid()} {folder} {found.st_dev} {found.st_ino}"
    except OSError:
        return None


def _words_of(opened: Opened, place: Place, ops: Sequence[Op]) -> tuple[str | None, str]:
    """All that the bytes of batches depend on; or None, and the obstacle to sharing them, if it is to be said."""
    if not place.shares or place.mesh is None or not place.mesh._shares_batches:
        return None, ""
    if opened.known_dataset() is None:
        return None, "a stream indexes its shards as it reads them"
    functions = []
    for op in ops:
        if isinstance(op, Python) and op.per == "sample":
            try:
                functions.append((_same_functions.in_words(op.function), op.global_rng))
            except Exception as error:  # pickle raises what it likes.
                return None, f"nobody can tell whether {op!r} is the same in all ({type(error).__name__}: {error})"
    options = {name: opened.options.get(name) for name in _OPTIONS}
    return hashlib.sha256(repr((options, functions)).encode()).hexdigest(), ""
