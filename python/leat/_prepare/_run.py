"""One call's part in a flow: its steps, one after the other, until the manifest is written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from leat._prepare._claims import Claims
from leat._prepare._crew import Crew, Hand
from leat._prepare._flow import Flow
from leat._prepare._left import Left
from leat._prepare._page import Page
from leat._prepare._process import Process
from leat._prepare._state import State
from leat._prepare._steps import Step, step_of
from leat._progress import Progress

Hands = Callable[[Flow, Sequence[int]], Sequence[Hand]]
"""Makes the hands that do units of a flow; the numbers are files that processes keep open, see `Claims.locks`."""


@dataclass(frozen=True)
class Part:
    """How a call takes part."""

    hands: Hands
    retries: int
    lease: float
    """Seconds without a sign of life after which a worker is dead."""
    page: str | None = None


def processes(count: int) -> Hands:
    """Hands that are processes of this machine."""
    return lambda flow, kept: [Process(flow, kept) for _ in range(count)]


def run(flow: Flow, part: Part) -> tuple[dict[str, Any], bool]:
    """Does what is left of a flow; returns the manifest, and whether it was not there before.

    Raises:
        leat.InvalidArgument: the state is that of another flow, or the source has changed.
        leat.Error: a unit failed.
    """
    state = State(flow)
    state.claim()
    told = state.note("manifest")
    if told is not None and told.get("flow") == flow.digest:
        return told, False
    with contextlib.ExitStack() as stack:
        claims = stack.enter_context(Claims(state, part.lease))
        steps = [step_of(flow, state, number) for number in range(len(flow.steps))]
        page = None
        if part.page is not None:
            page = stack.enter_context(Page(part.page, flow, state, claims, [step.name for step in steps]))
        crew = stack.enter_context(Crew(part.hands(flow, claims.locks), state, claims, part.retries))
        ended = [_done(step, crew, claims, page) for step in steps]
        # All that was done, and nothing of when, by whom or how often it was begun.
        source = state.note("source")
        if source is not None:
            source.pop("nonce", None)  # That of the call that noted it; see State.create().
        told = {"flow": flow.digest, "source": source, "steps": ended}
        return claims.once("manifest", lambda: told), True


def _done(step: Step, crew: Crew, claims: Claims, page: Page | None) -> dict[str, Any]:
    """Does a step; what the manifest says of it."""
    told = step.state.note(step.end_name)
    with Progress(f"{step.name}: reading the catalogue"):
        count = step.count()
    if told is None:
        with Progress(step.name, "units") as progress:
            left = Left(step, claims, progress.tell)
            if page is not None:
                page.begins(step.number, left)
            crew.do(step.number, step.name, left)
        told = claims.once(step.end_name, step.end)
    if page is not None:
        page.ends(step.number, count)
    return {"step": step.name, **told}
