"""`leat prepare`: does a flow, or goes on with it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from leat._prepare._crew import Crew
from leat._prepare._flow import Flow, read
from leat._prepare._state import State
from leat._prepare._steps import step_of
from leat._progress import Progress
from leat.errors import InvalidArgument

_MOST_PROCESSES = 256


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.description = (
        "Does the steps that a file declares: index, verify, pack, warm. A call that was stopped, or killed, is called "
        "again as it was, and does what is missing."
    )
    parser.add_argument("flow", metavar="FLOW.toml", help="the file")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="units that are done at once (1)")
    parser.add_argument("--retries", type=int, default=3, metavar="N",
                        help="more tries of a unit whose store did not answer, or whose process died (3)")  # fmt: skip
    parser.add_argument("--status", action="store_true", help="tell how far the flow is, and do nothing")
    parser.add_argument("--json", action="store_true", help="print JSON: the manifest, or the status")
    parser.epilog = "Example:\n  leat prepare photos.toml --processes 4"


def run(options: argparse.Namespace) -> None:
    """Does it."""
    if not 1 <= options.processes <= _MOST_PROCESSES:
        raise InvalidArgument(f"--processes {options.processes}; it is 1 to {_MOST_PROCESSES}")
    if options.retries < 0:
        raise InvalidArgument(f"--retries {options.retries}; it is 0 or more")
    flow = read(options.flow)
    state = State(flow)
    with state.claimed():
        if options.status:
            _tell_status(flow, state, options)
            return
        told = state.note("manifest")
        is_new = told is None or told.get("flow") != flow.digest
        if is_new:
            told = _done(flow, state, options)
    if options.json:
        print(json.dumps(told))
        return
    assert told is not None
    print(f"{state.url_of('manifest')}: {len(flow.steps)} steps are done{'' if is_new else ', as they were before'}")


def _done(flow: Flow, state: State, options: argparse.Namespace) -> dict[str, Any]:
    """Does all steps, and writes the manifest: what was done, and nothing of when or how often it was begun."""
    steps = []
    with Crew(flow, state, options.processes, options.retries) as crew:
        for number in range(len(flow.steps)):
            step = step_of(flow, state, number)
            units, count = step.units()
            with Progress(step.name, "units") as progress:
                crew.do(number, step.name, units, count, progress.tell)
            steps.append({"step": step.name, **step.end()})
    told = {"flow": flow.digest, "source": state.note("source"), "steps": steps}
    state.write("manifest", told)
    return told


def _tell_status(flow: Flow, state: State, options: argparse.Namespace) -> None:
    lines = []
    for number in range(len(flow.steps)):
        step = step_of(flow, state, number)
        units, count = step.units()
        lines.append({"step": step.name, "done": count - len(units), "units": count})
    is_done = (state.note("manifest") or {}).get("flow") == flow.digest
    if options.json:
        print(json.dumps({"is_done": is_done, "steps": lines}))
        return
    for line in lines:
        print(f"{line['step']:12} {line['done']} of {line['units']} units")
    print("the manifest is written" if is_done else "the manifest is not written yet")
