"""How the nodes of a job agree how fast it goes.

The ranks of a job go in step, so a job reaches only what its slowest node reaches,
and a higher share is wasted on the others. Each node's agent tells the rate that it
would give the job, and the rate that the job reaches there now, in samples a second
of one rank (``leat/tune/pace.h``). Ranks tell these to each other (`leat._job._talk`), rank 0
says the least of all, and every rank passes the least of the other nodes to the agent of
its node.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


class Pace:
    """One rank's pace, for the other nodes, and theirs.

    Args:
        native: the engine's loader.
        node: where this rank runs, the same on all ranks there and nowhere else.
    """

    name = "pace"
    is_heard = True

    def __init__(self, native: Any, node: int) -> None:
        self._native = native
        self._node = node

    def own(self) -> dict[str, Any]:
        return least([{"node": self._node, "pace": self._native.pace()}])

    def join(self, told: list[dict[str, Any]]) -> dict[str, Any]:
        return joined(told)

    def conclude(self, said: dict[str, Any]) -> dict[str, Any]:
        return said

    def hear(self, said: dict[str, Any]) -> None:
        heard = elsewhere(said, self._node)
        if heard is not None:
            self._native.set_pace_elsewhere(*heard)

    def awaits(self) -> bool:
        return False


def least(told: list[dict[str, Any]]) -> dict[str, Any]:
    """The least of all ranks' paces, which every node needs.

    The two nodes that offer least, and that reach least: one of two is elsewhere.
    """
    known = [(one["node"], one["pace"]) for one in told if one["pace"] is not None]
    return {
        "ceiling": max((pace[2] for _, pace in known), default=0),
        "offered": _two_least((node, pace[0]) for node, pace in known),
        "reached": _two_least((node, pace[1]) for node, pace in known),
    }


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """`least()` of all ranks, of several `least()` of some each."""
    return {
        "ceiling": max(part["ceiling"] for part in parts),
        **{
            name: _two_least((node, value) for part in parts for node, value in part[name])
            for name in ("offered", "reached")
        },
    }


def _two_least(of_ranks: Iterable[tuple[int, float]]) -> list[list[Any]]:
    """The two nodes with the least values of a rank; each with that value."""
    of_node: dict[int, float] = {}
    for node, value in of_ranks:
        of_node[node] = min(of_node.get(node, math.inf), value)
    two = sorted(of_node.items(), key=lambda item: item[1])[:2]
    return [[node, value] for node, value in two]


def elsewhere(joined: dict[str, Any], node: int) -> tuple[float, float, float] | None:
    """The values of `least()` for the other nodes alone; None if nothing is known of
    them."""
    found = []
    for name in ("offered", "reached"):
        others = [value for other, value in joined[name] if other != node]
        if not others:
            return None
        found.append(others[0])
    return found[0], found[1], joined["ceiling"]
