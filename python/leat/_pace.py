"""How the nodes of a job agree how fast it goes.

The ranks of a job go in step, so a job reaches only what its slowest node reaches,
and a higher share is wasted on the others. Each node's agent tells the rate that it
would give the job, and the rate that the job reaches there now, in samples a second
of one rank (``leat/tune/pace.h``). Once a second a rank writes these to the store of
torch.distributed, rank 0 writes the least of all, and every rank passes the least of
the other nodes to the agent of its node. No rank waits for another.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

from leat._agreement import JobStore

SECONDS = 1.0  # Between two looks at the store.


class Pace:
    """Sends one rank's pace to the other nodes, and receives theirs.

    Args:
        native: the engine's loader.
        store: torch's, that all ranks share.
        name: of this loader, the same on all ranks and of no other loader.
        node: where this rank runs, the same on all ranks there and nowhere else.
    """

    def __init__(self, native: Any, store: Any, name: str, node: int) -> None:
        self._native = native
        self._store = JobStore(store)
        self._node = node
        self._rank = native.rank
        self._name = name
        self._all = [self._key(rank) for rank in range(native.world_size)]
        self._told: str | None = None
        self._joined: str | None = None
        self._due = 0.0

    def step_ended(self) -> None:
        """The next batch is about to be asked for."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + SECONDS
        self._tell()
        if self._rank == 0:
            self._join()
        self._hear()

    def _tell(self) -> None:
        told = json.dumps({"node": self._node, "pace": self._native.pace()})
        if told != self._told:
            self._told = told
            self._store.ask(lambda store: store.set(self._key(self._rank), told))

    def _join(self) -> None:
        # Before every rank has said something, multi_get() would wait.
        if not self._store.ask(lambda store: store.check(self._all)):
            return
        told = self._store.ask(lambda store: store.multi_get(self._all))
        if told is None:
            return
        joined = json.dumps(least([json.loads(one) for one in told]))
        if joined != self._joined:
            self._joined = joined
            self._store.ask(lambda store: store.set(self._key("all"), joined))

    def _hear(self) -> None:
        key = self._key("all")
        if not self._store.ask(lambda store: store.check([key])):
            return
        said = self._store.ask(lambda store: store.get(key))
        heard = None if said is None else elsewhere(json.loads(said), self._node)
        if heard is not None:
            self._native.set_pace_elsewhere(*heard)

    def _key(self, who: int | str) -> str:
        return f"leat/pace/{self._name}/{who}"


def least(told: list[dict[str, Any]]) -> dict[str, Any]:
    """The least of all ranks' paces, which every node needs.

    The two nodes that offer least, and that reach least: one of two is elsewhere.
    """
    known = [(one["node"], one["pace"]) for one in told if one["pace"] is not None]
    joined: dict[str, Any] = {"ceiling": max((pace[2] for _, pace in known), default=0)}
    for place, name in enumerate(("offered", "reached")):
        of_node: dict[int, float] = {}
        for node, pace in known:
            of_node[node] = min(of_node.get(node, math.inf), pace[place])
        two = sorted(of_node.items(), key=lambda item: item[1])[:2]
        joined[name] = [[node, value] for node, value in two]
    return joined


def elsewhere(joined: dict[str, Any], node: int) -> tuple[float, float, float] | None:
    """The part of `least()` from nodes other than this one; None: nothing is known
    of them."""
    found = []
    for name in ("offered", "reached"):
        others = [value for other, value in joined[name] if other != node]
        if not others:
            return None
        found.append(others[0])
    return found[0], found[1], joined["ceiling"]
