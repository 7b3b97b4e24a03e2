"""tf.data in a process of its own, for bench/tune_bench.py: see bench/tune_tensorflow.py."""

from __future__ import annotations

import hashlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tarfile
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

import leat
from tune_pipelines import Pipeline

CALLS = (16, 64, 256)  # The sweep begins with these.
STEP = 2  # From one number of calls to the next.
MOST_CALLS = 2048


def can_import(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", "import tensorflow"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def sweep_calls(rate_of: Callable[[int], float], most: int) -> int:
    """The number of calls at once that is fastest: not the sweep's end, unless that is 1 or the most."""
    rates = {calls: rate_of(calls) for calls in [c for c in CALLS if c <= most] or [most]}
    while True:
        best = max(rates, key=rates.__getitem__)
        print("tf.data, samples/s by calls:", {n: round(rates[n], 1) for n in sorted(rates)}, f"best at {best}", file=sys.stderr)
        if best == max(rates) and best < most:
            more = min(STEP * best, most)
        elif best == min(rates) and best > 1:
            more = max(best // STEP, 1)
        else:
            return best
        rates[more] = rate_of(more)


def reads_of(pipeline: Pipeline, root: pathlib.Path) -> list[tuple[str, int, int]]:
    """(path, offset, bytes) of each read: whole objects, or ranges of them."""
    reads = []
    for file in sorted((root / pipeline.name).iterdir()):
        size = file.stat().st_size
        each = pipeline.read_bytes or size
        path = f"/{pipeline.name}/{file.name}"
        reads += [(path, begin, min(each, size - begin)) for begin in range(0, size, each)]
    return reads


def samples_in(pipeline: Pipeline, root: pathlib.Path, reads: list[tuple[str, int, int]]) -> int:
    """That all these reads hold."""
    if pipeline.tokens:
        window = pipeline.tokens["seq_len"] * np.dtype(pipeline.tokens["dtype"]).itemsize
        return sum(size for _, _, size in reads) // window
    if pipeline.name != "shards":
        return len(reads)
    count = 0
    for path, _, _ in reads:
        with tarfile.open(root / path[1:]) as shard:
            count += len(shard.getmembers())
    return count


def most_of_store(pipeline: Pipeline, root: pathlib.Path) -> float:
    """Samples a second that its whole bandwidth brings."""
    bandwidth = pipeline.bucket.get("total_bandwidth")
    if bandwidth is None:
        return math.inf
    reads = reads_of(pipeline, root)
    bytes_a_sample = sum(size for _, _, size in reads) / samples_in(pipeline, root, reads)
    return float(bandwidth.removesuffix("MB/s")) * 1e6 / bytes_a_sample


def digest(root: pathlib.Path, reads: list[tuple[str, int, int]]) -> str:
    """As the other process makes it, from the files."""
    total = 0
    for path, offset, size in reads:
        with open(root / path[1:], "rb") as file:
            file.seek(offset)
            body = file.read(size)
        place = f"{path} {offset} ".encode()
        total += int.from_bytes(hashlib.sha256(place + body).digest()[:16], "big")
    return f"{total % (1 << 128):032x}"


class TensorFlow:
    """Its process, whose bytes have been verified; every answer's GETs are those that the server counted."""

    def __init__(self, python: str, pipeline: Pipeline, root: pathlib.Path, bucket: leat.testing.Bucket) -> None:
        self._pipeline, self._bucket = pipeline, bucket
        reads = reads_of(pipeline, root)
        self._reads = len(reads)
        spec = {
            "url": bucket.url, "kind": pipeline.name, "reads": reads, "batch": pipeline.batch,
            "samples": samples_in(pipeline, root, reads), "step": pipeline.step, **(pipeline.tokens or {}),
        }  # fmt: skip
        script = pathlib.Path(__file__).parent / "tune_tensorflow.py"
        self._process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", **os.environ, "PYTHONPATH": ""},
        )  # fmt: skip
        assert self._process.stdin
        # Not as an argument: for many tiny objects it would be too long.
        self._process.stdin.write(json.dumps(spec) + "\n")
        found = self._ask(verify=True)
        if found != {"digest": digest(root, reads), "gets": len(reads)}:
            sys.exit(f"{pipeline.name}: tf.data read {found}, not the {len(reads)} reads of the files")

    def __enter__(self) -> TensorFlow:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def _ask(self, **told: Any) -> dict[str, Any]:
        before = self._bucket.counters()["get"]
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self._pipeline.name}: tf.data's process ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        counted = self._bucket.counters()["get"] - before
        if counted != answer["gets"]:
            sys.exit(f"{self._pipeline.name}: tf.data sent {answer['gets']} GETs, the server counted {counted}")
        return answer

    def ways(
        self, settle: float, seconds: float, is_quick: bool
    ) -> tuple[dict[str, Callable[[], dict[str, float]]], dict[str, str]]:
        """AUTOTUNE, and the best number of calls at once of a sweep; with the choice in
        words.

        No more than there are reads: beyond them the next epoch is read with this one.
        """

        def rate_of(calls: int) -> float:
            return float(self._ask(calls=calls, settle=settle / 4, seconds=seconds / 2)["rate"])

        most = min(self._reads, MOST_CALLS)
        best = min(CALLS[0], most) if is_quick else sweep_calls(rate_of, most)

        def way(calls: int | str) -> Callable[[], dict[str, float]]:
            return lambda: {"rate": self._ask(calls=calls, settle=settle, seconds=seconds)["rate"]}

        ways = {"tf.data AUTOTUNE": way("AUTOTUNE"), "tf.data, calls": way(best)}
        return ways, {"tf.data AUTOTUNE": "AUTOTUNE", "tf.data, calls": f"{best} calls"}
