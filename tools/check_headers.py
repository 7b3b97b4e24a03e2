#!/usr/bin/env python3
"""Fails if a header does not compile on its own.

    check_headers.py [--all]

Without --all, a header that a source of a module includes before all else is left to a
build that compiles each source alone: `./dev check --all` has one (the preset debug). The
builds of `./dev test` compile several sources together, and so check the first header
alone. Headers that passed are remembered in build/ under a hash of the header and of all of
ours that it includes, so that only changed ones are compiled again.
"""

from __future__ import annotations

import concurrent.futures
import functools
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


@functools.cache
def content_of(file: pathlib.Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


@functools.cache
def included_by(file: pathlib.Path) -> list[pathlib.Path]:
    return [ROOT / name for name in INCLUDE.findall((content_of(file) or b"").decode())]


def all_included(header: pathlib.Path) -> set[pathlib.Path]:
    """The header and all of ours that it reaches."""
    seen: set[pathlib.Path] = set()
    waiting = [header]
    while waiting:
        file = waiting.pop()
        if file in seen or content_of(file) is None:
            continue
        seen.add(file)
        waiting += included_by(file)
    return seen


def key_of(header: pathlib.Path, compiler: str) -> str:
    digest = hashlib.sha256((compiler + " ".join(COMPILE)).encode())
    for file in sorted(all_included(header)):
        digest.update(content_of(file) or b"")
    return digest.hexdigest()


def left_to_build() -> set[pathlib.Path]:
    """The headers that a source named by a CMakeLists.txt includes first. Those that name no
    guard are not among them: a build includes them once."""
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
    left = set() if sys.argv[1:] == ["--all"] else left_to_build()
    keys = {header: key_of(header, compiler) for header in sorted((ROOT / "leat").rglob("*.h"))}
    todo = [header for header, key in keys.items() if key not in passed and header not in left]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(todo, pool.map(complaint, todo)))
    good = [key for header, key in keys.items() if key in passed or results.get(header) == ""]
    CACHE.parent.mkdir(exist_ok=True)
    CACHE.write_text(json.dumps(good))
    for header, says in results.items():
        if says:
            print(f"{header.relative_to(ROOT)} does not compile alone:\n{says}")
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
