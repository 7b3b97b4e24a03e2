"""Scripts of one process that import torch, forked from a process that has imported it: by itself, that takes each seconds.

Each is `__main__`, in the folder, with the arguments and the environment that it is given, and runs as by `python SCRIPT`.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import pathlib
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from typing import IO


class Server:
    """A process that has imported `modules`. It ends with this one."""

    def __init__(self, *modules: str) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *modules], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )

    def start(self, *words: str, cwd: pathlib.Path, env: Mapping[str, str]) -> Program:
        """`words`: the script, and its arguments."""
        program = Program()
        request = json.dumps({"words": words, "cwd": str(cwd), "env": dict(env)}).encode()
        reading, writing = os.pipe()
        socket.send_fds(self._requests, [request], [program.out.fileno(), program.err.fileno(), writing])
        os.close(writing)
        program.status = os.fdopen(reading)
        return program

    def close(self) -> None:
        self._requests.close()
        self._process.wait(60)


class Program:
    """A script that runs; a little of subprocess.Popen."""

    status: IO[str]

    def __init__(self) -> None:
        self.out = tempfile.TemporaryFile("w+")
        self.err = tempfile.TemporaryFile("w+")
        self.returncode: int | None = None

    def communicate(self) -> tuple[str, str]:
        """All that it printed, once it has ended. The alarm of a test ends the wait, and the script with it."""
        with self.out, self.err, self.status:
            pid = int(self.status.readline())
            try:
                self.returncode = int(self.status.readline())
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                raise
            for file in (self.out, self.err):
                file.seek(0)
            return self.out.read(), self.err.read()


def serve(requests: socket.socket, modules: list[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The kernel buries those who watch.
    while True:
        request, files, _, _ = socket.recv_fds(requests, 1 << 17, 3)
        if not request:
            return
        if os.fork() == 0:
            requests.close()
            watch(json.loads(request), *files)
        for file in files:
            os.close(file)


def watch(told: dict, out: int, err: int, status: int) -> None:
    """Runs the script in a process of its own; tells the number of that, and then how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    script = os.fork()
    if script == 0:
        os.close(status)
        os._exit(run(told, out, err))
    os.write(status, b"%d\n" % script)
    ended = os.waitstatus_to_exitcode(os.waitpid(script, 0)[1])
    os.write(status, b"%d\n" % ended)
    os._exit(0)


def run(told: dict, out: int, err: int) -> int:
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.chdir(told["cwd"])
    os.environ.clear()
    os.environ.update(told["env"])
    sys.argv[:] = told["words"]
    sys.path[0] = str(pathlib.Path(sys.argv[0]).parent)
    status = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # As Python does at the end: other threads, what was registered, what was printed.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
