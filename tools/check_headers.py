#!/usr/bin/env python3
"""Fails if a header does not compile on its own.

A header that a source of a module includes before all else is left to the build, which
compiles the two. The other headers that passed are remembered in build/ under a hash of
the header and of all of ours that it includes, so that only changed ones are compiled again.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "headers-that-compile.json"
INCLUDE = re.compile(r'^\s*#\s*include\s+"(leat/[^"]+)"', re.MULTILINE)
FIRST_INCLUDE = re.compile(r'(?:\s|//[^\n]*\n)*#include "(leat/[^"]+)"')
COMPILE = ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
           "-I", str(ROOT), "-x", "c++", "-"]


def all_included(header: pathlib.Path) -> set[pathlib.Path]:
    """The header and all of ours that it reaches."""
    seen: set[pathlib.Path] = set()
    waiting = [header]
    while waiting:
        file = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        waiting += [ROOT / name for name in INCLUDE.findall(file.read_text())]
    return seen


def key_of(header: pathlib.Path, compiler: str) -> str:
    digest = hashlib.sha256((compiler + " ".join(COMPILE)).encode())
    for file in sorted(all_included(header)):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def left_to_build() -> set[pathlib.Path]:
    """The headers that a source named by a CMakeLists.txt includes first. Those that name no
    guard are not among them: the build includes them once."""
    headers = set()
    for listing in (ROOT / "leat").rglob("CMakeLists.txt"):
        for name in re.findall(r"[\w./-]+\.cc\b", listing.read_text()):
            source = listing.parent / name
            first = FIRST_INCLUDE.match(source.read_text()) if source.is_file() else None
            if first and (header := ROOT / first[1]).is_file() and "#pragma once\n" in header.read_text():
                headers.add(header)
    return headers


def complaint(header: pathlib.Path) -> str:
    """The compiler's complaints about a file with this header alone, twice."""
    line = f'#include "{header.relative_to(ROOT)}"\n'
    run = subprocess.run(COMPILE, input=line * 2, text=True, cwd=ROOT,
                         capture_output=True, check=False)
    return "" if run.returncode == 0 else run.stderr


def main() -> int:
    compiler = subprocess.run(["g++", "--version"], text=True, check=True,
                              capture_output=True).stdout
    try:
        passed = set(json.loads(CACHE.read_text()))
    except (OSError, ValueError):
        passed = set()
    keys = {header: key_of(header, compiler)
            for header in sorted(set((ROOT / "leat").rglob("*.h")) - left_to_build())}
    todo = [header for header, key in keys.items() if key not in passed]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(todo, pool.map(complaint, todo)))
    good = [keys[header] for header in keys if not results.get(header)]
    CACHE.parent.mkdir(exist_ok=True)
    CACHE.write_text(json.dumps(good))
    for header, says in results.items():
        if says:
            print(f"{header.relative_to(ROOT)} does not compile alone:\n{says}")
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
