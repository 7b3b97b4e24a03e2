"""Processes that do units, each for itself, and the one that hands units out.

A worker reads a line for each unit on its standard input, and answers with a line. When its input
ends, because the process that hands out is gone, a worker ends at once: whatever it was doing has no
note, and is done again.
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
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from leat import errors
from leat._prepare._flow import Flow
from leat._prepare._state import State
from leat._prepare._steps import step_of
from leat.errors import Error, Internal

_PROGRAM = (
    "import sys; sys.path[:] = [place for place in sys.path if place]; "
    "from leat._prepare._crew import work; work()"
)
_AGAIN = (errors.Unavailable, errors.Throttled, errors.DeadlineExceeded)
"""Errors after which another try may succeed."""
_FIRST_PAUSE = 0.5

Tell = Callable[[int, int], None]
"""Gets the units that are done, and the number of all."""


def work() -> None:
    """A worker: does units until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that hands out.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # A library that prints does not break the answers.
    flow = Flow(**json.loads(sys.stdin.readline()))
    state = State(flow)
    lines: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(1)

    threading.Thread(target=listen, name="leat-prepare", daemon=True).start()
    steps: dict[int, Any] = {}
    while True:
        asked = json.loads(lines.get())
        number = asked["step"]
        if number not in steps:
            steps[number] = step_of(flow, state, number)
        print(json.dumps(_told(steps[number], state, asked["unit"])), file=answers, flush=True)


def _told(step: Any, state: State, unit: int) -> dict[str, Any]:
    """Does a unit; what the answer says of it."""
    begun = time.monotonic()
    try:
        state.log("begin", step=step.name, unit=unit)
        step.do(unit)
        state.log("done", step=step.name, unit=unit, seconds=round(time.monotonic() - begun, 3))
    except (Error, OSError) as error:
        kind = type(error).__name__ if isinstance(error, Error) else "Error"
        return {"error": str(error), "kind": kind, "again": isinstance(error, _AGAIN)}
    except Exception as error:  # A bug of ours, or of a library: it must not look as if the process had died.
        return {"error": f"{type(error).__name__}: {error}", "kind": "Internal", "again": False}
    return {}


class Crew:
    """Some workers. A context manager: it leaves none behind.

    Not thread-safe, except that its own threads talk to one worker each.
    """

    def __init__(self, flow: Flow, state: State, processes: int, retries: int) -> None:
        self._flow, self._state, self._retries = flow, state, retries
        self._over = threading.Event()
        self._workers: list[subprocess.Popen[str] | None] = [None] * processes
        self._free: queue.Queue[int] = queue.Queue()
        """The places in `_workers` that no thread uses."""
        for place in range(processes):
            self._free.put(place)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        for worker in filter(None, self._workers):
            worker.kill()
            worker.wait()

    def do(self, number: int, name: str, units: Sequence[int], count: int, tell: Tell) -> None:
        """Does these units of a step, of which there are `count` in all.

        Raises:
            leat.Error: a unit failed, and another try would not help, or none was left. Units that
                were begun are done nevertheless, and no others.
        """
        failed: Error | None = None

        def one(unit: int) -> Error | None:
            if failed is not None or self._over.is_set():
                return None
            place = self._free.get()
            try:
                return self._try(place, number, name, unit)
            finally:
                self._free.put(place)

        done = count - len(units)
        with ThreadPoolExecutor(len(self._workers), "leat-prepare") as pool:
            try:
                for future in as_completed([pool.submit(one, unit) for unit in units]):
                    error = future.result()
                    failed = failed or error
                    if failed is None:
                        done += 1
                        tell(done, count)
            except BaseException:
                self.__exit__()
                raise
        if failed is not None:
            raise failed

    def _try(self, place: int, number: int, name: str, unit: int) -> Error | None:
        pause = _FIRST_PAUSE
        for left in range(self._retries, -1, -1):
            told = self._ask(place, {"step": number, "unit": unit})
            if "error" not in told:
                return None
            is_last = not left or not told["again"] or self._over.is_set()
            self._state.log("failed" if is_last else "retry", step=name, unit=unit, error=told["error"])
            if is_last or self._over.wait(pause):
                break
            pause *= 2
        return getattr(errors, told["kind"], Internal)(f"step {name}, unit {unit}: {told['error']}")

    def _ask(self, place: int, asked: dict[str, Any]) -> dict[str, Any]:
        """The answer of the worker at this place; a new worker comes where the last one died."""
        worker = self._workers[place]
        answer = ""
        try:
            if worker is None:
                worker = self._workers[place] = self._started()
            assert worker.stdin is not None and worker.stdout is not None
            worker.stdin.write(json.dumps(asked) + "\n")
            worker.stdin.flush()
            answer = worker.stdout.readline()
        except OSError:  # It died before it read the line.
            if worker is None:
                raise
        if answer.endswith("\n"):
            return json.loads(answer)
        worker.kill()
        self._workers[place] = None
        return {"error": f"its process ended with {worker.wait()}", "kind": "Unavailable", "again": True}

    def _started(self) -> subprocess.Popen[str]:
        worker = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert worker.stdin is not None
        worker.stdin.write(json.dumps(dataclasses.asdict(self._flow)) + "\n")
        worker.stdin.flush()
        return worker
