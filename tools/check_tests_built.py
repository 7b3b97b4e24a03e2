#!/usr/bin/env python3
"""Fails if a test file is in the tree but would not be run.

    check_tests_built.py BUILD-FOLDER

Every *_test.cc must be compiled into a program that ctest runs, and pytest must
find a test in every tests/python/**/test_*.py, or skip the file as a whole, as it does
where a package is not installed. Run by the interpreter that the Python module was
built for. It is a plugin of pytest, too, which names the files skipped so.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
NO_TESTS_COLLECTED = 5  # pytest's status


def output_of(*command: str, also_fine: int = 0) -> str:
    beside = os.pathsep.join(filter(None, [str(ROOT / "tools"), os.environ.get("PYTHONPATH")]))
    run = subprocess.run(command, text=True, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": beside})
    if run.returncode not in (0, also_fine):
        sys.exit(f"{' '.join(command)}\n{run.stdout}{run.stderr}")
    return run.stdout


def programs_ctest_runs(build: pathlib.Path) -> set[str]:
    shown = json.loads(output_of("ctest", "--test-dir", str(build),
                                 "--show-only=json-v1"))
    return {os.path.basename(word) for test in shown["tests"]
            for word in test.get("command", [])}


def sources_of(file: pathlib.Path) -> list[pathlib.Path]:
    """The file; or those that it includes, if CMake wrote it to compile them together."""
    if file.suffix != ".cxx":
        return [file.resolve()]
    return [pathlib.Path(name).resolve() for name in re.findall(r'^#include "(.*)"', file.read_text(), re.MULTILINE)]


def unbuilt_cc(build: pathlib.Path) -> list[str]:
    """Every *_test.cc that no program run by ctest is made of."""
    runs = programs_ctest_runs(build)
    built = set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        target = re.search(r"CMakeFiles/([^/]+)\.dir/", entry["command"])
        if target and target[1] in runs:
            built.update(sources_of(pathlib.Path(entry["file"])))
    return [str(file.relative_to(ROOT))
            for top in ("leat", "tests", "python")
            for file in sorted((ROOT / top).rglob("*_test.cc"))
            if file.resolve() not in built]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says as of a test which files are skipped as a whole. pytest's own summary names the
    file that called skip(), which may be one that the test imports."""
    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"{report.nodeid}::")


def uncollected_py() -> list[str]:
    """Every Python test file in which pytest finds no test, and which it does not skip."""
    folders = [str(ROOT / "tests/python"), str(ROOT / "tests/stress")]
    files = sorted(file for folder in folders for file in pathlib.Path(folder).rglob("test_*.py"))
    if not files:
        return ["tests/python: no Python test at all"]
    listing = output_of(sys.executable, "-m", "pytest", "--collect-only", "-q",
                        "-p", "check_tests_built", "--rootdir", str(ROOT), *folders, also_fine=NO_TESTS_COLLECTED)
    found = {line.partition("::")[0] for line in listing.splitlines()}
    return [name for file in files
            if (name := str(file.relative_to(ROOT))) not in found]


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    missing = unbuilt_cc(build) + uncollected_py()
    for name in missing:
        print(f"{name}: no test of it is run")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
