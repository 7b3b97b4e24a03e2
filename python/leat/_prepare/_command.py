"""`leat prepare`: does a flow, goes on with it, takes part in it, or has a cluster do so."""

from __future__ import annotations

import argparse
import json
import signal
from typing import Any

from leat._prepare import _run
from leat._prepare._claims import living
from leat._prepare._flow import Flow, read
from leat._prepare._state import State
from leat._prepare._steps import step_of
from leat.errors import InvalidArgument

_MOST_PROCESSES = 256
_LAUNCHERS = ("slurm", "ray", "kubernetes", "jobset")


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.description = (
        "Does the steps that a file declares: index, verify, pack, warm. A call that was stopped, or killed, is called "
        "again as it was, and does what is missing. Calls on several machines that reach one state share the units."
    )
    parser.add_argument("flow", metavar="FLOW.toml", help="the file")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="units that are done at once (1)")
    parser.add_argument("--retries", type=int, default=3, metavar="N",
                        help="more tries of a unit whose store did not answer, or whose process died (3)")  # fmt: skip
    parser.add_argument("--lease", type=float, default=60.0, metavar="SECONDS",
                        help="a machine that is silent for so long is dead, and others do its units (60)")  # fmt: skip
    parser.add_argument("--page", metavar="FILE.html", help="write a page of progress, anew every few seconds")
    parser.add_argument("--watch", type=float, metavar="SECONDS",
                        help="list the source so often, and do the flow for what is new; Ctrl-C ends it")  # fmt: skip
    parser.add_argument("--status", action="store_true", help="tell how far the flow is, and do nothing")
    parser.add_argument("--json", action="store_true", help="print JSON: the manifest, or the status")
    _add_launchers(parser)
    parser.epilog = "Example:\n  leat prepare photos.toml --processes 4 --page progress.html"


def _add_launchers(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("over machines")
    group.add_argument("--on", choices=_LAUNCHERS, metavar="WHERE",
                       help="slurm: submit an array; ray: units are tasks; kubernetes, jobset: print YAML")  # fmt: skip
    group.add_argument("--tasks", type=int, default=1, metavar="N", help="calls of the array, or pods (1)")
    group.add_argument("--print", action="store_true", dest="is_printed",
                       help="print Slurm's script, and submit nothing")  # fmt: skip
    group.add_argument("--sbatch", action="append", default=[], metavar="OPTION",
                       help="a line for Slurm, such as '--sbatch=-p cpu'; may be repeated")  # fmt: skip
    group.add_argument("--address", metavar="ADDRESS", help="Ray's cluster (RAY_ADDRESS, or a new one on this machine)")
    group.add_argument("--image", metavar="IMAGE", help="the image of the pods, which has leat")
    group.add_argument("--secret", metavar="NAME", help="the Secret whose values pods have in their environment")
    group.add_argument("--volume", action="append", default=[], metavar="CLAIM:/PATH",
                       help="a PersistentVolumeClaim, and where pods see it; may be repeated")  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Does it."""
    _check(options)
    if options.on in ("kubernetes", "jobset"):
        from leat._prepare import _kubernetes

        print(_kubernetes.yaml_of(options), end="")
        return
    flow = read(options.flow)
    if options.status:
        _tell_status(flow, options)
    elif options.on == "slurm":
        from leat._prepare import _slurm

        _slurm.submit(flow, options)
    else:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # As Ctrl-C: others see at once that it has ended.
        _take_part(flow, options)


def _take_part(flow: Flow, options: argparse.Namespace) -> None:
    hands = _run.processes(options.processes)
    if options.on == "ray":
        from leat._prepare import _ray

        hands = _ray.tasks(options.processes, options.address)
    part = _run.Part(hands, options.retries, options.lease, options.page)
    if options.watch is not None:
        from leat._prepare import _watch

        _watch.watch(flow, part, options.watch)
        return
    told, is_new = _run.run(flow, part)
    if options.json:
        print(json.dumps(told))
        return
    manifest = State(flow).url_of("manifest")
    print(f"{manifest}: {len(flow.steps)} steps are done{'' if is_new else ', as they were before'}")


def _check(options: argparse.Namespace) -> None:
    for name, least, most in (("processes", 1, _MOST_PROCESSES), ("tasks", 1, 10_000), ("retries", 0, 1000),
                              ("lease", 1.0, 86_400.0), ("watch", 0.1, 30 * 86_400.0)):  # fmt: skip
        value = getattr(options, name)
        if value is not None and not least <= value <= most:
            raise InvalidArgument(f"--{name} {value:g}; it is {least:g} to {most:g}")
    pods = ("kubernetes", "jobset")
    for name, places in (("tasks", ("slurm", *pods)), ("is_printed", ("slurm",)), ("sbatch", ("slurm",)),
                         ("address", ("ray",)), ("image", pods), ("secret", pods), ("volume", pods)):  # fmt: skip
        value = getattr(options, name)
        if options.on not in places and (value is True or value not in (None, False, [], 1)):
            flag = "print" if name == "is_printed" else name
            raise InvalidArgument(f"--{flag} goes with --on {' or '.join(places)}")
    if options.watch is not None and (options.json or options.status):
        raise InvalidArgument("--watch goes on and on, and does not go with --json or --status")


def _tell_status(flow: Flow, options: argparse.Namespace) -> None:
    state = State(flow, is_only_read=True)
    state.claim()
    manifest = state.note("manifest") or {}
    is_done = manifest.get("flow") == flow.digest
    lines = _lines_of(manifest) if is_done else _lines_of_notes(flow, state)
    working = living(state)
    if options.json:
        print(json.dumps({"is_done": is_done, "steps": lines, "working": working}))
        return
    for line in lines:
        print(f"{line['step']:12} {line['done']} of {line['units']} units")
    for one in working:
        print(f"{one['host']}, process {one['pid']}: at work, as of its last note")
    print("the manifest is written" if is_done else "the manifest is not written yet")


def _lines_of(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The units of the steps of a flow that is done."""
    counts = [(step["step"], step["units"] if "units" in step else step["shards"]) for step in manifest["steps"]]
    return [{"step": name, "done": count, "units": count} for name, count in counts]


def _lines_of_notes(flow: Flow, state: State) -> list[dict[str, Any]]:
    lines = []
    for number in range(len(flow.steps)):
        step = step_of(flow, state, number)
        missing, count = step.missing(), step.count()
        lines.append({"step": step.name, "done": count - len(missing), "units": count})
    return lines
