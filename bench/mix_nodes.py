"""Two nodes on one machine for bench/mix_bench.py, and the agents that share
them.

A node is a network namespace with a core and a bucket of its own: all nodes' buckets
serve the same folder, and the bandwidth of each is its node's link. The namespaces are
joined by a pair of virtual devices, for what ranks say to each other. Needs root and
`ip`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from leat.testing import find_binary

DEVICE = "mix0"
Shares = dict[str, int]


def address(node: int) -> str:
    return f"10.78.0.{node + 1}"


def run_ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextlib.contextmanager
def joined_namespaces() -> Iterator[list[str]]:
    """The names of two network namespaces that reach each other."""
    names = [f"leatmix{os.getpid()}n{node}" for node in range(2)]
    try:
        for name in names:
            run_ip("netns", "add", name)
        run_ip("link", "add", DEVICE, "netns", names[0], "type", "veth", "peer", "name", DEVICE, "netns", names[1])
        for node, name in enumerate(names):
            run_ip("-n", name, "link", "set", "lo", "up")
            run_ip("-n", name, "addr", "add", f"{address(node)}/24", "dev", DEVICE)
            run_ip("-n", name, "link", "set", DEVICE, "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


class Node:
    """A namespace, its cores, and a bucket in it."""

    def __init__(
        self, number: int, namespace: str, cores: list[int], root: pathlib.Path, options: dict[str, Any],
        stack: contextlib.ExitStack,
    ) -> None:  # fmt: skip
        self.number, self._namespace, self.cores, self._stack = number, namespace, cores, stack
        self._bucket = self.start(
            [find_binary(), "bucket", str(root), "--latency", options["latency"], "--total-bandwidth",
             options["bandwidth"], "--port", "0", "--exit-with-stdin", "--json"],
            {}, stdin=subprocess.PIPE,
        )  # fmt: skip
        assert self._bucket.stdout is not None
        self.url = self._bucket.stdout.readline().split()[-1]

    def start(
        self, command: list[str], env: dict[str, str], *, inside: bool = True, group: str | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[str]:  # fmt: skip
        """Runs on the cores of this node, in its network unless told otherwise."""

        def settle() -> None:
            os.sched_setaffinity(0, self.cores)
            if group is not None:
                pathlib.Path(group, "cgroup.procs").write_text("0")

        enter = ["ip", "netns", "exec", self._namespace] if inside else []
        process = subprocess.Popen(
            [*enter, *command], env={**os.environ, **env}, stdin=stdin, stdout=subprocess.PIPE, text=True,
            preexec_fn=settle,
        )  # fmt: skip
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def count_gets(self) -> int:
        """The bucket's GETs since it began. Ends it."""
        said, _ = self._bucket.communicate()
        return json.loads(said)["get"]


class RealAgent:
    """`leat agent`, and what its page showed."""

    def __init__(self, node: Node, folder: pathlib.Path, bytes_per_second: int | None) -> None:
        self.socket = str(folder / f"agent{node.number}.sock")
        bound = [] if bytes_per_second is None else ["--bandwidth", str(bytes_per_second)]
        agent = node.start([find_binary(), "agent", "--socket", self.socket, "--port", "0", *bound], {}, inside=False)
        assert agent.stdout is not None
        self._page = next(line.split()[1] for line in agent.stdout if line.startswith("showing "))
        self.names: dict[str, str] = {}
        self.points: dict[tuple[str, float], tuple[float, float | None]] = {}  # Found, foretold.
        self.decisions: dict[int, dict[str, Any]] = {}

    def watch(self) -> None:
        """Takes down what is new."""
        with urllib.request.urlopen(self._page + "/api/node", timeout=30) as answer:
            shown = json.load(answer)
        self.names |= {job["id"]: job["name"] for job in shown["jobs"]}
        for of in shown["history"]:
            for time_seconds, found, foretold in zip(of["time_seconds"], of["found_rate"], of["predicted_rate"]):
                self.points[of["job"], time_seconds] = (found, foretold)
        self.decisions |= {decision["number"]: decision for decision in shown["decisions"]}

    def errors(self) -> dict[str, list[float]]:
        """|found / foretold - 1|, by job and second: foretold before that second began."""
        by_job: dict[str, list[float]] = {}
        for (job, _), (found, foretold) in sorted(self.points.items()):
            if foretold:
                by_job.setdefault(self.names.get(job, job), []).append(abs(found / foretold - 1))
        return by_job


class FixedAgent:
    """Speaks as an agent does (leat/agent/wire/messages.h) and gives what it is told to.

    Args:
        shares: from the names of the jobs that are there, to what each is given.
    """

    def __init__(self, path: pathlib.Path, shares: Callable[[list[str]], dict[str, Shares]]) -> None:
        self.socket = str(path)
        self.shares = shares
        # The last report of each.
        self.rates: dict[str, dict[str, float]] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.socket)
        os.chmod(self.socket, 0o600)
        self._listener.listen()
        self._names: dict[socket.socket, str] = {}
        self._unread: dict[socket.socket, bytes] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def tell(self) -> None:
        given = self.shares(sorted(self._names.values()))
        for connection, name in list(self._names.items()):
            with contextlib.suppress(OSError):
                connection.sendall(json.dumps({"share": given[name]}).encode() + b"\n")

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        for connection in (self._listener, *self._unread):
            connection.close()

    def _run(self) -> None:
        while not self._is_over.is_set():
            ready, _, _ = select.select([self._listener, *self._unread], [], [], 0.1)
            for connection in ready:
                if connection is self._listener:
                    self._unread[connection.accept()[0]] = b""
                else:
                    self._hear(connection)

    def _hear(self, connection: socket.socket) -> None:
        try:
            received = connection.recv(65536)
        except OSError:
            received = b""
        *lines, self._unread[connection] = (self._unread[connection] + received).split(b"\n")
        for line in map(json.loads, lines):
            if "register" in line:
                self._names[connection] = line["register"]["name"]
                self.tell()
            else:
                self.rates[self._names[connection]] = {**line["rates"], "heard": time.monotonic()}
        if not received:
            del self._unread[connection]
            if self._names.pop(connection, None) is not None:
                self.tell()
            connection.close()


def even_shares(cores: int, bytes_per_second: int, parts: int | None = None) -> Callable[[list[str]], dict[str, Shares]]:
    """An equal part for each job that is there, or always one of this many parts."""

    def shares(names: list[str]) -> dict[str, Shares]:
        count = parts or max(1, len(names))
        each = {"threads": max(1, cores // count), "bytes_per_second": bytes_per_second // count}
        return dict.fromkeys(names, each)

    return shares


class Weights:
    """A cgroup of equal CPU weight for each job. `reason` says why there are none, if so."""

    def __init__(self) -> None:
        self.reason = ""
        self._made: list[pathlib.Path] = []
        own = dict(line.split(":", 2)[1:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines())
        first = pathlib.Path("/sys/fs/cgroup/cpu")
        if "cpu" in own or "cpu,cpuacct" in own:
            self._base = first / own.get("cpu", own.get("cpu,cpuacct", "/")).lstrip("/")
            self._weight = ("cpu.shares", "1024")
        else:
            self._base = pathlib.Path("/sys/fs/cgroup") / own.get("", "/").lstrip("/")
            self._weight = ("cpu.weight", "100")
        try:
            self.group("probe")
        except OSError as error:
            self.reason = f"{self._base}: no group with a weight can be made there: {error.strerror}"

    def group(self, name: str) -> str:
        path = self._base / f"leat-mix-{os.getpid()}-{name}"
        path.mkdir(exist_ok=True)
        if path not in self._made:
            self._made.append(path)
        (path / self._weight[0]).write_text(self._weight[1])
        return str(path)

    def close(self) -> None:
        for path in self._made:
            with contextlib.suppress(OSError):
                path.rmdir()


def launch_environment(node: Node, nodes: list[int], port: int) -> dict[str, str]:
    """The variables that a launcher sets for the rank of a job on one of
    its nodes."""
    rank = nodes.index(node.number)
    return {
        "RANK": str(rank), "WORLD_SIZE": str(len(nodes)), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": address(nodes[0]) if len(nodes) > 1 else "127.0.0.1", "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": DEVICE, "OMP_NUM_THREADS": "1", "AWS_ENDPOINT_URL": node.url, "PYTHONPATH": ":".join(sys.path),
    }  # fmt: skip
