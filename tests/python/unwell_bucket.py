"""A bucket that goes away and comes back at the same address."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import threading
import time
import urllib.request

import leat
import leat.testing


class Comings:
    """A `leat bucket` that may be ended and begun again on one port."""

    def __init__(self, folder: pathlib.Path, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._command = [
            leat.testing.find_binary(), "bucket", str(folder), "--port", str(self._port),
            "--exit-with-stdin", *options,
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._port}"

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
