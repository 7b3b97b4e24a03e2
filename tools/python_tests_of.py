#!/usr/bin/env python3
"""Prints the Python tests of a module, one path a line: tests/python/modules.txt names them.

python_tests_of.py MODULE
"""

from __future__ import annotations

import fnmatch
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests/python"
REST = "engine"  # The module of the files that no line names


def table() -> dict[str, list[str]]:
    lines = (line.partition("#")[0] for line in (TESTS / "modules.txt").read_text().splitlines())
    rows = (line.partition(":") for line in lines if line.strip())
    return {module.strip(): patterns.split() for module, _, patterns in rows}


def main() -> None:
    modules, files = table(), sorted(TESTS.glob("test_*.py"))
    if sys.argv[1:2] == [] or sys.argv[1] not in modules:
        sys.exit(f"no module {' '.join(sys.argv[1:])}; the modules are {', '.join(modules)}")
    names = {file: file.stem.removeprefix("test_") for file in files}

    def named(name: str, patterns: list[str]) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    everywhere = [pattern for patterns in modules.values() for pattern in patterns]
    for file, name in names.items():
        if named(name, modules[sys.argv[1]]) or (sys.argv[1] == REST and not named(name, everywhere)):
            print(file)


if __name__ == "__main__":
    main()
