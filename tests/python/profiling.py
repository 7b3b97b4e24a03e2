"""`leat profile` as tests call it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

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


def told_by_processes(folder: pathlib.Path) -> dict[str, list[str]]:
    """By process, the lines that a training wrote to a file of its own in this folder."""
    return {path.name: path.read_text().splitlines() for path in folder.iterdir()}
