"""A bucket that goes away and comes back at the same address, and ranks that read one."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from typing import NamedTuple

import leat
import leat.testing


class Comings:
    """A `leat bucket` that may be ended and begun again on one port."""

    def __init__(
        self, folder: pathlib.Path, *options: str, host: str = "127.0.0.1", port: int | None = None
    ) -> None:
        if port is None:
            with socket.socket() as probe:
                probe.bind((host, 0))
                port = probe.getsockname()[1]
        self.port = port
        self._command = [
            leat.testing.find_binary(), "bucket", str(folder), "--host", host, "--port", str(port),
            "--exit-with-stdin", *options,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://{host}:{port}"

    def begin(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert b"listening on" in self._process.stdout.readline()

    def counters(self) -> dict[str, int]:
        """Since it last began."""
        with urllib.request.urlopen(f"{self.url}/_leat/counters", timeout=10) as reply:
            return json.load(reply)

    def end(self) -> None:
        """Its connections are reset, and new ones are refused."""
        if self._process is None:
            return
        self._process.kill()
        self._process.communicate()
        self._process = None

    def is_away_for(self, seconds: float) -> threading.Thread:
        """Ends now; comes back after so long."""
        self.end()

        def come_back() -> None:
            time.sleep(seconds)
            self.begin()

        thread = threading.Thread(target=come_back)
        thread.start()
        return thread


@contextlib.contextmanager
def comings(folder: pathlib.Path, *options: str):
    bucket = Comings(folder, *options)
    bucket.begin()
    try:
        yield bucket
    finally:
        bucket.end()


def small_objects(folder: pathlib.Path, count: int, size: int = 4096) -> pathlib.Path:
    for number in range(count):
        path = folder / f"{number // 500:03}" / f"{number:06}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(4, "little") + os.urandom(size - 4))
    return folder


class Found(NamedTuple):
    """The ranks of a job, and the objects that they have read."""

    seconds: float
    contents: list[str]  # For each epoch, all ranks together.
    metrics: list[dict[str, float]]  # For each rank.


RANK = """
import json, sys
import leat

words = json.loads(sys.argv[1])
loader = leat.Loader(
    words["url"], batch_size=words["batch"], shuffle=True, seed=3, epochs=words["epochs"], output="numpy",
    drop_last=False, max_in_flight=words["in_flight"], storage_options={"endpoint_url": words["endpoint"], "no_sign_request": True},
)
print("ready", flush=True)
sys.stdin.readline()
with loader:
    for batch in loader:
        pass
    print(json.dumps([[epoch["content_hash"] for epoch in loader.stats()], loader.metrics()]), flush=True)
"""


def read_in_ranks(
    endpoint: str, ranks: int, *, epochs: int = 1, in_flight: int = 64, batch: int = 25, url: str = "s3://objects"
) -> Found:
    """Reads a bucket in this many processes of one node; `in_flight` is of each."""
    processes = []
    for rank in range(ranks):
        words = {"url": url, "endpoint": endpoint, "epochs": epochs, "in_flight": in_flight, "batch": batch}
        launcher = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks}
        environment = {**os.environ, **{name: str(value) for name, value in launcher.items()}}
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", RANK, json.dumps(words)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
            )  # fmt: skip
        )
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        told = []
        for process in processes:
            assert process.stdout is not None
            told.append(json.loads(process.stdout.readline()))
        seconds = time.monotonic() - began
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    sums = [sum(int(content, 16) for content in one) % 2**128 for one in zip(*(contents for contents, _ in told))]
    return Found(seconds, [f"{content:032x}" for content in sums], [metrics for _, metrics in told])
