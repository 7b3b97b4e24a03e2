#!/usr/bin/env python3
"""Fails if a module and its stub do not have the same classes.

    check_stub.py MODULE STUB

mypy's stubtest compares all else, but its complaints about a class as a whole are passed
over (tools/check_types.sh says why), and with them those about a class that is missing.
"""

from __future__ import annotations

import ast
import importlib
import pathlib
import sys


def main() -> int:
    name, stub = sys.argv[1:]
    told = {part.name for part in ast.parse(pathlib.Path(stub).read_text()).body if isinstance(part, ast.ClassDef)}
    there = {key for key, value in vars(importlib.import_module(name)).items() if isinstance(value, type)}
    for one in sorted(told - there):
        print(f"{stub}: {name} has no class {one}")
    for one in sorted(there - told):
        print(f"{stub}: lacks the class {one} of {name}")
    return 1 if told != there else 0


if __name__ == "__main__":
    sys.exit(main())
