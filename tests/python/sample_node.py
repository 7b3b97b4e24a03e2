"""The agent's view of a node that never was, which stands still or moves as a test says."""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

from leat import testing


BEGIN = 1_800_000_000  # Unix time at which it does.


class SampleNode:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid
        self.url = self._line().removeprefix("listening on ")

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "serve_sample_node ended"
        return line.strip()

    def tell(self, words: str) -> None:
        """See tests/agent/serve_sample_node.cc."""
        assert self._process.stdin is not None
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()
        assert self._line() == "done"

    def get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=20) as reply:
            return reply.read().decode()

    def view(self) -> dict[str, Any]:
        return json.loads(self.get("/api/node"))


@contextlib.contextmanager
def serve(jobs: int = 5) -> Iterator[SampleNode]:
    """The server, which ends with the block."""
    program = pathlib.Path(testing.find_binary()).resolve().parents[1] / "tests/agent/serve_sample_node"
    with subprocess.Popen([str(program), str(jobs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield SampleNode(process)
        assert process.stdin is not None
        process.stdin.close()
