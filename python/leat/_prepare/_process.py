"""A process that does units, for the one that hands them out.

It reads a line for each unit on its standard input, and answers with a line. When its input ends,
because the process that hands out is gone, it ends at once: whatever it was doing has no note, and is
done again. It leads a group of processes, and so the commands that it runs end with it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from leat._prepare._flow import Flow
from leat._prepare._state import State
from leat._prepare._steps import Step, do

_PROGRAM = (
    "import sys; sys.path[:] = [place for place in sys.path if place]; "
    "from leat._prepare._process import work; work()"
)


def work() -> None:
    """A worker: does units until its input ends."""
    os.setpgid(0, 0)  # In the session of the call: what ends that ends this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that hands out.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # A library that prints does not break the answers.
    flow = Flow(**json.loads(sys.stdin.readline()))
    state = State(flow)
    lines: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=listen, name="leat-prepare", daemon=True).start()
    steps: dict[int, Step] = {}
    while True:
        asked = json.loads(lines.get())
        print(json.dumps(do(flow, state, steps, asked)), file=answers, flush=True)


class Process:
    """Such a process, started as it is first asked, and again after it died.

    Threads: one at a time, and close() any.
    """

    def __init__(self, flow: Flow, kept: Sequence[int]) -> None:
        self._flow, self._kept = flow, kept
        self._lock = threading.Lock()
        # Guarded by _lock.
        self._is_closed = False
        self._worker: subprocess.Popen[str] | None = None

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Does a unit; what the answer says."""
        answer = ""
        with self._lock:
            if self._is_closed:
                return {"error": "its process is closed", "kind": "Unavailable", "again": True}
            if self._worker is None:
                self._worker = self._started()
            worker = self._worker
        try:
            assert worker.stdin is not None and worker.stdout is not None
            worker.stdin.write(json.dumps(asked) + "\n")
            worker.stdin.flush()
            answer = worker.stdout.readline()
        except OSError:  # It died before it read the line.
            pass
        if answer.endswith("\n"):
            return json.loads(answer)
        with self._lock:
            self._worker = None
            code = _killed(worker)
        return {"error": f"its process ended with {code}", "kind": "Unavailable", "again": True}

    def close(self) -> None:
        """Kills it."""
        with self._lock:
            self._is_closed = True
            if self._worker is not None:
                _killed(self._worker)

    def _started(self) -> subprocess.Popen[str]:
        worker = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            pass_fds=self._kept,
        )  # fmt: skip
        assert worker.stdin is not None
        worker.stdin.write(json.dumps(dataclasses.asdict(self._flow)) + "\n")
        worker.stdin.flush()
        return worker


def _killed(worker: subprocess.Popen[str]) -> int:
    """Kills it, and the commands that it runs; how it ended."""
    if worker.returncode is None:  # Else its number may be another one's.
        try:
            os.killpg(worker.pid, signal.SIGKILL)
        except ProcessLookupError:  # It has no group yet, and so runs no command.
            worker.kill()
    return worker.wait()
