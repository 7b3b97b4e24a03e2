"""How ranks tell each other how training goes, on a thread of its own.

Ranks are a tree: rank r has the children 16 r + 1 … 16 r + 16. In a round each rank reads the
messages of its children, joins them with its own, and writes the result over its former
message; rank 0 then writes over what all ranks read. So a rank makes at most three round trips
to torch's store a round (five until all have spoken once), however many ranks there are, the
store holds one message a rank, and nobody waits for anybody.

A rank has a round only after it has trained: once a second, on more than 256 ranks less
often, and at once where an epoch ends.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol

from leat._job._agreement import JobStore

_log = logging.getLogger("leat")

CHILDREN = 16
SECONDS = 1.0
"""Between two rounds."""
RANKS_A_SECOND = 256
_PATIENCE = 5.0
"""Seconds in which messages that others have yet to write are looked for."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.25
_SECONDS_TO_END = 1.0


def seconds_between_rounds(world_size: int) -> float:
    return max(SECONDS, world_size / RANKS_A_SECOND)


class Topic(Protocol):
    """A subject of the talk. Threads: that of the talk."""

    name: str
    is_heard: bool
    """Whether `conclude` has something for all ranks."""

    def own(self) -> Any:
        """The message of this rank: a JSON value; None for nothing."""

    def join(self, told: list[Any]) -> Any:
        """One message of several, of this rank's own and its children's; each is a message of `own` or `join`."""

    def conclude(self, joined: Any) -> Any:
        """On rank 0: what follows from the message of all, for `hear`; None for nothing."""

    def hear(self, concluded: Any) -> None:
        """On every rank: what followed."""

    def awaits(self) -> bool:
        """Whether children have yet to say something that does not wait for the next round."""


class Talk:
    """One rank's part in the talk.

    Threads: `trained` and `epoch_ended` by the training thread; neither reaches the store.

    Args:
        store: torch's, that all ranks share.
        name: of this loader, the same on all ranks and of no other loader.
        topics: the same kinds on all ranks.
    """

    def __init__(self, store: Any, name: str, rank: int, world_size: int, topics: Sequence[Topic]) -> None:
        self._store = JobStore(store)
        self._name = name
        self._rank = rank
        self._topics = topics
        first = CHILDREN * rank + 1
        self._children = [self._key(child) for child in range(first, min(first + CHILDREN, world_size))]
        self._period = seconds_between_rounds(world_size)
        self._there: set[str] = set()  # Keys that were seen: they stay.
        self._said: str | None = None
        self._concluded: str | None = None
        self._thread: threading.Thread | None = None
        self._has_news = threading.Event()
        self._hurries = threading.Event()
        self._is_urgent = False
        self._is_closed = False
        self._pid = os.getpid()

    def trained(self) -> None:
        """A step has ended."""
        if not self._has_news.is_set():
            self._has_news.set()
            self._begin()

    def epoch_ended(self) -> None:
        """A round comes at once, and not in a second."""
        self._is_urgent = True
        self._hurries.set()
        self.trained()

    def close(self) -> None:
        """Ends the thread. The end of an epoch is still told, for a second at most."""
        if os.getpid() != self._pid:  # A forked child has no such thread, and perhaps held locks.
            return
        self._is_closed = True
        self._hurries.set()
        self._has_news.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2 * _SECONDS_TO_END)

    def round(self) -> None:
        """Reads what the children say, and says what follows."""
        own = [topic.own() for topic in self._topics]  # Also takes over what training left.
        told = self._several(self._children)
        if told is None:
            return
        joined: dict[str, Any] = {}
        concluded: dict[str, Any] = {}
        for topic, mine in zip(self._topics, own):
            said = [mine, *(child.get(topic.name) for child in told)]
            if any(one is None for one in said):
                continue
            joined[topic.name] = topic.join(said)
            if self._rank == 0:
                concluded[topic.name] = topic.conclude(joined[topic.name])
        if self._rank == 0:
            self._conclude(concluded)
        else:
            self._say(joined)
            self._hear()

    def _begin(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._run, name="leat-talk", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while self._wait_for_news():
            try:
                self._rounds()
            except Exception as error:  # Training goes on without.
                _log.warning("ranks no longer tell each other how training goes: %s: %s", type(error).__name__, error)
                return
            if not self._is_closed:
                self._hurries.wait(self._period)

    def _wait_for_news(self) -> bool:
        """False once it is over."""
        if not self._is_closed:
            self._has_news.wait()
        # The store may be gone by then: it is asked only if there is something to say.
        if self._is_closed and not self._is_urgent:
            return False
        self._has_news.clear()
        self._hurries.clear()
        self._is_urgent = False
        return True

    def _rounds(self) -> None:
        """A round, and others while children have yet to say what is awaited."""
        begin, pause = time.monotonic(), _FIRST_PAUSE
        while True:
            self.round()
            patience = _SECONDS_TO_END if self._is_closed else _PATIENCE
            is_over = time.monotonic() - begin > patience or not self._store.is_there
            if is_over or not any(topic.awaits() for topic in self._topics):
                return
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _say(self, joined: dict[str, Any]) -> None:
        said = json.dumps(joined)
        if joined and said != self._said:
            self._said = said
            self._store.ask(lambda store: store.set(self._key(self._rank), said))

    def _conclude(self, concluded: dict[str, Any]) -> None:
        told = {name: value for name, value in concluded.items() if value is not None}
        said = json.dumps(told)
        if told and said != self._concluded:
            self._concluded = said
            self._store.ask(lambda store: store.set(self._key("all"), said))
        self._hand_out(told)

    def _hear(self) -> None:
        if not any(topic.is_heard for topic in self._topics):
            return
        said = self._several([self._key("all")])
        if said:
            self._hand_out(said[0])

    def _hand_out(self, told: dict[str, Any]) -> None:
        for topic in self._topics:
            if topic.name in told:
                topic.hear(told[topic.name])

    def _several(self, keys: list[str]) -> list[dict[str, Any]] | None:
        """The messages under these keys; None until all are there, for which nobody waits."""
        if not keys:
            return []
        if not self._there.issuperset(keys):
            if not self._store.ask(lambda store: store.check(keys)):
                return None
            self._there.update(keys)
        found = self._store.ask(lambda store: store.multi_get(keys))
        return None if found is None else [json.loads(one) for one in found]

    def _key(self, who: int | str) -> str:
        return f"leat/talk/{self._name}/{who}"
