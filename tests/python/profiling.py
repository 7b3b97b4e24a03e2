"""`leat profile` as tests call it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import time
from collections.abc import Callable

import pytest


def profile(
    project: pathlib.Path, *words: str, timeout: float = 280, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["leat", "profile", "--json", *words], cwd=project, capture_output=True, text=True,
        env={**os.environ, "HOME": str(project), **variables}, timeout=timeout,
    )  # fmt: skip


def skip_without_scratch(said: str) -> None:
    """By what `leat profile` wrote to its standard error."""
    if "no scratch file system can be mounted" in said:
        pytest.skip("leat profile keeps a script's files in a scratch file system, and this machine lets it "
                    f"mount none (it takes root, or user namespaces): {said}")  # fmt: skip


def report_of(done: subprocess.CompletedProcess[str]) -> dict:
    skip_without_scratch(done.stderr)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    if "stay in memory" in report["proof"]["why_no_warm"]:
        pytest.skip("what is read cold is read from a disk, and the temporary folder lies in memory: "
                    "set TMPDIR to a folder on a disk")  # fmt: skip
    return report


def profiled_until(holds: Callable[[dict], bool], profiled: Callable[[], dict]) -> dict:
    """The report of the first profile that holds, or of the last in a minute.

    One halt of the machine is much of a few steps. It does not come every time;
    a real error does.
    """
    end = time.monotonic() + 60
    while not holds(report := profiled()) and time.monotonic() < end:
        pass
    return report


def largest_part(report: dict) -> str:
    return max(report["parts"], key=lambda part: report["parts"][part]["seconds"])
