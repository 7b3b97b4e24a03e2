"""Flows for the tests of `leat prepare`: made, started, killed, and held against one that nobody disturbed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import time

from leat._commands import run
from leat.testing import find_binary
from small_datasets import write

FLOW = """
[source]
url = "{source}"

[[step]]
do = "index"

[[step]]
do = "verify"
unit_bytes = "2kB"

[[step]]
do = "pack"
dest = "{dest}"
shard_bytes = "2kB"

[[step]]
do = "warm"
cache_disk = "cache"
"""


def flow_in(folder: pathlib.Path, source: object, dest: str = "out", text: str = FLOW) -> pathlib.Path:
    return write(folder / "flow.toml", text.format(source=source, dest=dest).encode())


def started(flow: pathlib.Path, *words: str, machine: pathlib.Path | None = None) -> subprocess.Popen[str]:
    """`machine`: a folder of its own for temporary files, so that no lock tells other calls of its death."""
    env = dict(os.environ)
    if machine is not None:
        machine.mkdir(exist_ok=True)
        env["TMPDIR"] = str(machine)
    return subprocess.Popen(
        [find_binary(), "prepare", str(flow), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=env,
    )  # fmt: skip


def done(flow: pathlib.Path, *words: str) -> str:
    return ended(started(flow, *words))


def ended(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def refused(flow: pathlib.Path, *words: str, code: int = 2) -> str:
    process = started(flow, *words)
    _, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    return err


def here(flow: pathlib.Path, *words: str) -> tuple[int, str, str]:
    """The command in this process, for calls that do no units: its exit code, and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(["leat._prepare._command", "prepare", str(flow), *words])
    return code, out.getvalue(), err.getvalue()


def printed(flow: pathlib.Path, *words: str) -> str:
    code, out, err = here(flow, *words)
    assert code == 0, err
    return out


def files_in(folder: pathlib.Path) -> dict[str, bytes]:
    """All but drafts, which a write leaves that was killed before it renamed its file."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".leat-write-")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def state_of(flow: pathlib.Path) -> pathlib.Path:
    return flow.with_name(flow.name + ".state")


def notes_of(flow: pathlib.Path) -> set[tuple[str, int]]:
    """The units that are done."""
    found = {(note.parent.name, int(note.stem)) for note in state_of(flow).glob("[0-9]-*/[0-9]*.json")}
    shards = (flow.parent / "out/.leat/pack").glob("*.tar.json")
    return found | {("3-pack", int(note.name.split(".")[0])) for note in shards}


def log_of(flow: pathlib.Path) -> list[dict]:
    return [json.loads(line) for file in state_of(flow).glob("log/*.jsonl") for line in file.read_text().splitlines()]


def living(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        state, _, _, of = rest.split()[:4]
        if int(of) == session and state != "Z":
            found.append(int(name.split()[0]))
    return found


def kill(process: subprocess.Popen[str], which: str) -> bool:
    """Kills processes of a flow, waits for the others, and says whether any was still there."""
    there = living(process.pid)
    for pid in there if which == "all" else [process.pid] if which == "first" else there[-1:]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.communicate(timeout=120)
    while living(process.pid):  # Workers end by themselves, without whom they work for.
        time.sleep(0.002)
    return bool(there)


def check_whole(flow: pathlib.Path, undisturbed: pathlib.Path) -> None:
    out, other = (files_in(one.parent / "out") for one in (flow, undisturbed))
    assert sorted(out) == sorted(other), sorted(out.keys() ^ other.keys())
    assert out == other, [name for name in out if out[name] != other[name]]
    made, expected = (json.loads((state_of(one) / "manifest.json").read_text()) for one in (flow, undisturbed))
    for told in (made, expected):  # Which folder it lies in is all that differs.
        told["flow"] = told["steps"][2]["index"] = told["steps"][3]["notes"] = None
    assert made == expected
    assert notes_of(flow) == notes_of(undisturbed)
    ends = [(event["step"], event["unit"]) for event in log_of(flow) if event["event"] == "done"]
    assert len(ends) == len(set(ends))
