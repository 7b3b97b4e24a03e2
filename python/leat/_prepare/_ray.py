"""Hands that are tasks of Ray: a unit is a task, on whichever node Ray has room."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from typing import Any

from leat._prepare._crew import Hand
from leat._prepare._flow import Flow
from leat._prepare._run import Hands
from leat._prepare._state import State
from leat._prepare._steps import Step, do
from leat.errors import InvalidArgument

_known: dict[str, tuple[Flow, State, dict[int, Step]]] = {}
"""A process of Ray keeps this of the last flow, by its digest: another task of the flow finds it."""


def tasks(count: int, address: str | None) -> Hands:
    """This many tasks at once.

    Raises:
        leat.InvalidArgument: ray is not installed, or there is no cluster at that address.
    """
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError:
        raise InvalidArgument("--on ray needs ray: pip install ray") from None

    def hands(flow: Flow, kept: Sequence[int]) -> Sequence[Hand]:
        if not ray.is_initialized():
            try:
                ray.init(address=address, log_to_driver=False, include_dashboard=False if address is None else None)
            except ConnectionError as error:
                raise InvalidArgument(f"--address {address}: {error}") from None
        # Another try is the crew's matter, which writes it down.
        remote = ray.remote(_do).options(max_retries=0, name=f"leat prepare {flow.path}")
        return [_Task(ray, remote, dataclasses.asdict(flow)) for _ in range(count)]

    return hands


def _do(told: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """The task."""
    flow = Flow(**told)
    key = flow.digest + flow.state
    if key not in _known:
        _known.clear()  # Each round of a watch is a flow, with datasets of its own.
        _known[key] = flow, State(flow), {}
    _, state, steps = _known[key]
    return do(flow, state, steps, asked)


class _Task:
    """Threads: one at a time, and close() any."""

    def __init__(self, ray: Any, remote: Any, flow: dict[str, Any]) -> None:
        self._ray, self._remote, self._flow = ray, remote, flow
        self._running: Any = None
        self._is_closed = False

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Does a unit; what the answer says."""
        self._running = self._remote.remote(self._flow, asked)
        if self._is_closed:  # close() may not have seen it.
            self.close()
        try:
            return self._ray.get(self._running)
        except self._ray.exceptions.RayError as error:  # Its process or its node died; do() tells all else.
            said = str(error).strip().splitlines() or [""]
            return {"error": f"Ray: {type(error).__name__}: {said[0]}", "kind": "Unavailable", "again": True}
        finally:
            self._running = None

    def close(self) -> None:
        """Cancels what it is doing."""
        self._is_closed = True
        running = self._running
        if running is not None:
            self._ray.cancel(running, force=True)
