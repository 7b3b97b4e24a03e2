"""A cloud function on this machine: AWS Lambda's runtime API, and a place as Lambda has it.

`RuntimeApi` is the server that a function asks for events, over loopback. `Function` is a process that runs a handler
by awslambdaric, Lambda's own client for Python. `place()` gives it a root that nobody can write, a /tmp of its own and
no shared memory.
"""

from __future__ import annotations

import http.server
import importlib.util
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import Any

VERSION = "/2018-06-01/runtime"
_UNSHARE = ["unshare", "--user", "--map-root-user", "--mount"]
# $1 becomes /tmp. The rest of what can be written is below the root.
_PLACE = ('mount --bind "$1" /tmp && mount -t tmpfs -o ro tmpfs /dev/shm && mount -o remount,ro,bind / && shift && '
          'cd /tmp && exec "$@"')  # fmt: skip


class FunctionFailed(Exception):
    """The function answered with an error; `kind` is its type."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.kind = told.get("errorType", "")
        super().__init__(f"{self.kind}: {told.get('errorMessage', '')}")


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # Functions end without a word.
            super().handle_error(request, client_address)


class RuntimeApi:
    """Gives a function its events one by one, and takes its answers."""

    def __init__(self) -> None:
        self._events: queue.Queue[tuple[str, bytes] | None] = queue.Queue()
        self._answers: queue.Queue[tuple[str, bool, bytes]] = queue.Queue()
        api = self

        class Replies(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:  # noqa: N802  As the server calls it.
                event = api._events.get() if self.path == f"{VERSION}/invocation/next" else None
                if event is None:
                    self.close_connection = True
                    return
                self.reply(200, event[1], {
                    "Content-Type": "application/json",  # The client crashes without it.
                    "Lambda-Runtime-Aws-Request-Id": event[0],
                    "Lambda-Runtime-Deadline-Ms": str(int(1e3 * (time.time() + 900))),
                    "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:000000000000:function:leat",
                })  # fmt: skip

            def do_POST(self) -> None:  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"]))
                # /invocation/ID/response, /invocation/ID/error or /init/error
                words = self.path.removeprefix(VERSION).split("/")
                api._answers.put((words[2] if words[1] == "invocation" else "", words[-1] == "response", body))
                self.reply(202, b"{}", {})

            def reply(self, status: int, body: bytes, heads: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in {**heads, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Replies)
        self._thread = threading.Thread(target=self._server.serve_forever, name="leat-runtime-api")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def invoke(self, event: dict[str, Any], timeout: float = 60) -> Any:
        """The function's answer to an event.

        Raises:
            FunctionFailed: it answered with an error.
            TimeoutError: it did not answer in time.
        """
        name = str(uuid.uuid4())
        self._events.put((name, json.dumps(event).encode()))
        try:
            of, is_good, body = self._answers.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"the function did not answer within {timeout} s") from None
        told = json.loads(body)
        if not is_good:
            raise FunctionFailed(told)
        if of != name:
            raise AssertionError(f"the function answered {of}, and was asked {name}")
        return told

    def __enter__(self) -> RuntimeApi:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._events.put(None)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def why_no_place() -> str:
    """Why this machine cannot give a function its own place; empty if it can."""
    if shutil.which("unshare") is None:
        return "there is no `unshare`, of util-linux"
    needed = [pathlib.Path(place).resolve() for place in (__file__, sys.prefix, sys.base_prefix)]
    if any(path.is_relative_to("/tmp") for path in needed):
        return "the repository, or its Python, lies in /tmp, which the function has for itself"
    tried = subprocess.run(place(pathlib.Path("/tmp"), ["true"]), capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"`unshare --user --mount` is not allowed here: {tried.stderr.strip()}"


def place(own_tmp: pathlib.Path, command: Sequence[str]) -> list[str]:
    """The command, in a place where nothing but `own_tmp` can be written, and that is called /tmp."""
    return [*_UNSHARE, "sh", "-c", _PLACE, "sh", str(own_tmp), *command]


def why_no_client() -> str:
    """Why no handler can be run; empty if one can."""
    if importlib.util.find_spec("awslambdaric") is None:
        return "awslambdaric is not installed: pip install awslambdaric"
    return ""


class Function:
    """A process that runs a handler, ``file.function`` of `folder`, and is asked through `api`.

    `before` are words of a shell that come first, such as those by which it enters a control group; `package` is a
    folder in which Python looks first. The process has the variables that Lambda sets, and no home; it is a node of
    its own. A function that waited for an event when it ended may still take the next one: give each function an API
    of its own.
    """

    def __init__(self, api: RuntimeApi, folder: pathlib.Path, handler: str, own_tmp: pathlib.Path, *,
                 variables: dict[str, str], before: str = "true", package: str = "") -> None:  # fmt: skip
        self.api = api
        command = place(own_tmp, [sys.executable, "-m", "awslambdaric", handler])
        paths = [str(folder), *filter(None, [package, os.environ.get("PYTHONPATH")])]
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            ["sh", "-c", f'{before} && exec "$@"', "sh", *command], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={
                "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(paths), "LANG": "C.UTF-8",
                "AWS_LAMBDA_RUNTIME_API": api.address, "AWS_LAMBDA_FUNCTION_NAME": "leat",
                "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
                "LAMBDA_TASK_ROOT": str(folder), "_HANDLER": handler, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                **variables,
            },
        )  # fmt: skip

    def most_resident_bytes(self) -> int:
        """The most memory that the process has had so far."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the process is gone")

    def end(self) -> str:
        """Ends the process, as Lambda does without a word; returns what it logged."""
        self.process.kill()
        said, errors = self.process.communicate()
        return said + errors
