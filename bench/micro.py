"""The micro benchmarks of the build: their paths and their results."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import leat


def binary(name: str) -> str:
    """A program of bench/ beside the `leat` that is found."""
    path = pathlib.Path(leat.testing.find_binary()).resolve().parent.parent / "bench" / name
    if not os.access(path, os.X_OK):
        sys.exit(f"bench: {path} is not built; cmake --preset release && ninja -C build/release {name}")
    return str(path)


def measure(name: str, pattern: str, min_time: float, folder: str = "/tmp") -> list[dict[str, Any]]:
    """Runs those of its benchmarks whose names match: one row each, as Google Benchmark says it."""
    command = [
        binary(name), f"--benchmark_filter={pattern}", f"--benchmark_min_time={min_time}", "--benchmark_format=json",
    ]  # fmt: skip
    environment = {**os.environ, "LEAT_BENCH_DIR": folder}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["benchmarks"]
    return rows
