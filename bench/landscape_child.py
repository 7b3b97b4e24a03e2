"""Runs landscape_way.py: a process for each rank, that start their clocks together, watched from outside."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

HERE = pathlib.Path(__file__).parent
READY_SECONDS = 180  # For imports, and what a library starts before any data is opened.
END_SECONDS = 30
WATCH_SECONDS = 0.5
CALM = 50  # Watching takes at most this part of one core's time.
UNWANTED = ("AWS_", "LEAT_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PYTHONPATH", "S3_", "LITDATA_")


class Failed(RuntimeError):
    """A way that did not do what it was asked, and why."""


class Watch(threading.Thread):
    """The most memory that some processes and all below them held at once: shared pages count once."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__(daemon=True)
        self._pids = pids
        self._over = threading.Event()
        self.peak_bytes = 0

    def run(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            self.peak_bytes = max(self.peak_bytes, sum(map(resident_bytes, below(self._pids))))
            self._over.wait(max(WATCH_SECONDS, CALM * (time.monotonic() - began)))

    def end(self) -> int:
        self._over.set()
        self.join()
        return self.peak_bytes


def below(pids: list[int]) -> set[int]:
    """These processes and their descendants."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                parents[int(entry)] = int(words[1])
    found = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def resident_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def environment(home: str, more: dict[str, str], *, is_leat: bool) -> dict[str, str]:
    """All that a way keeps is in a folder of its own; the package stays on the path of our own way alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}
    path = [str(HERE), str(HERE.parent / "tests/python")]
    if is_leat and "PYTHONPATH" in os.environ:
        path.append(os.environ["PYTHONPATH"])
    places = {"HOME": home, "TMPDIR": home, "LEAT_CACHE_DIR": f"{home}/leat", "LITDATA_CACHE_DIR": f"{home}/litdata",
              "DATA_OPTIMIZER_CACHE_FOLDER": f"{home}/optimizer", "PYTHONPATH": os.pathsep.join(path)}  # fmt: skip
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "RAY_DEDUP_LOGS": "0"}
    return {**kept, **places, **quiet, **more}


def once(python: str, told: dict[str, Any], *, seconds: float) -> Any:
    """The answer of a way that measures nothing."""
    with tempfile.TemporaryDirectory(prefix="leat-landscape-") as home:
        words = [python, str(HERE / "landscape_way.py"), json.dumps(told)]
        done = subprocess.run(words, capture_output=True, text=True,
                              check=False, timeout=seconds, env=environment(home, {}, is_leat=False))  # fmt: skip
    if done.returncode:
        raise Failed(last_line(done.stderr))
    return json.loads(done.stdout.strip().splitlines()[-1])


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if not line.startswith(("Traceback", "File ", "^", "~")) and "Error" in line]
    return ((errors or lines or ["ended without a word"])[-1])[:300]


class Ranks:
    """The processes of one measurement. `at_start` is called right before their clocks start."""

    def __init__(
        self, python: str, home: str, told: dict[str, Any], variables: dict[str, str], *, is_leat: bool
    ) -> None:
        self._errors = pathlib.Path(home) / "errors"
        port = str(free_port())
        self._processes = []
        with self._errors.open("w") as errors:
            for rank in range(told["ranks"]):
                mine = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(told["ranks"]),
                        "LOCAL_WORLD_SIZE": str(told["ranks"]), "MASTER_ADDR": "127.0.0.1",
                        "MASTER_PORT": port}  # fmt: skip
                words = [python, str(HERE / "landscape_way.py"), json.dumps({**told, "rank": rank, "home": home})]
                self._processes.append(subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                    start_new_session=True,
                    env=environment(home, {**variables, **(mine if told["ranks"] > 1 else {})}, is_leat=is_leat),
                ))  # fmt: skip

    def run(self, at_start: Callable[[], None], epochs: int, seconds: float) -> tuple[list[dict[str, Any]], int]:
        """The last word of each, and the most memory they held."""
        pids = [process.pid for process in self._processes]
        watch = Watch(pids)
        try:
            self._meet("ready", READY_SECONDS)
            watch.start()
            at_start()
            for _ in range(epochs - 1):
                self._go()
                self._meet("epoch", seconds)
                at_start()
            self._go()
            found = [json.loads(line) for line in self._lines(seconds)]
            return found, watch.end()
        finally:
            self._end()

    def _go(self) -> None:
        for process in self._processes:
            assert process.stdin
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write("go\n")
                process.stdin.flush()

    def _meet(self, word: str, seconds: float) -> None:
        for line in self._lines(seconds, word):
            if line != word:
                raise Failed(f"said {line[:80]!r} instead of {word!r}")

    def _lines(self, seconds: float, word: str = "{") -> list[str]:
        """A line of each that begins with that word: libraries print, too."""
        late = threading.Timer(seconds, self._kill)
        late.start()
        began = time.monotonic()
        try:
            return [self._line(process, word, began + seconds) for process in self._processes]
        finally:
            late.cancel()

    def _line(self, process: subprocess.Popen[str], word: str, end: float) -> str:
        assert process.stdout
        for line in process.stdout:
            if line.startswith(word):
                return line.strip()
        if time.monotonic() >= end:
            raise Failed(f"no answer in time, {word!r}" if word != "{" else "it did not end in time")
        process.wait()
        raise Failed(last_line(self._errors.read_text()))

    def _kill(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _end(self) -> None:
        """They end by themselves, or else by force, with all that they have started."""
        everyone = below([process.pid for process in self._processes])
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS if not sys.exc_info()[0] else 0)
        self._kill()
        for pid in everyone - {process.pid for process in self._processes}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for process in self._processes:
            process.communicate()
