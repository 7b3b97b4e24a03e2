#!/usr/bin/env python3
"""Fails if a module includes, or links, a module that layers.txt does not
allow, or if two folders include each other."""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ROOT / "leat"
OURS = re.compile(r'^\s*#\s*include\s+"leat/([^"]+)"')
ANY = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]')
LINKS = re.compile(r"leat_module\(\s*(\S+)(.*?)\)", re.DOTALL)

# These decide and do not act: values in, values out. (Their tests may do more.)
PURE = {"dataset", "plan", "profile", "tune"}
ACTS = {"thread", "fstream", "filesystem", "future", "iostream", "unistd.h",
        "fcntl.h", "sys/mman.h", "sys/stat.h", "sys/socket.h", "time.h"}


def read_layers() -> dict[str, set[str]]:
    """Each module, in the order of the file, and the modules that it may
    include."""
    layers: dict[str, set[str]] = {}
    for line in (ROOT / "layers.txt").read_text().splitlines():
        module, colon, named = line.partition("#")[0].partition(":")
        if not colon:
            continue
        allowed = set(layers) if named.strip() == "*" else set(named.split())
        if missing := allowed - set(layers):
            sys.exit(f"layers.txt: {module} names {sorted(missing)[0]}, "
                     "which is not above it")
        layers[module.strip()] = allowed
    return layers


def module_of(path: str, layers: dict[str, set[str]]) -> str | None:
    """The innermost listed module that the file `path` (below leat/) is in."""
    parts = path.split("/")[:-1]
    while parts:
        if "/".join(parts) in layers:
            return "/".join(parts)
        parts.pop()
    return None


def wrong_includes(file: pathlib.Path, layers: dict[str, set[str]]):
    """(line number, complaint) for each include that breaks a rule."""
    module = module_of(file.relative_to(SOURCES).as_posix(), layers)
    if module is None:
        yield 0, "lies in a folder that layers.txt does not list"
        return
    is_pure = module in PURE and not file.stem.endswith("_test")
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        if match := OURS.match(line):
            if match[1] == "leat.h":
                yield number, "leat/leat.h is for users; include what you use"
                continue
            target = module_of(match[1], layers)
            if target != module and target not in layers[module]:
                yield number, f"{module} may not include {target or match[1]}"
            if "/internal/" in match[1] and target != module:
                yield number, f"leat/{match[1]} is internal to {target}"
        elif is_pure and (match := ANY.match(line)) and match[1] in ACTS:
            yield number, f"{module} is pure and may not use <{match[1]}>"


def mutual_pairs(files: list[pathlib.Path]):
    """A complaint for each two folders, of one module or of two, that include
    each other; tests may include what they like."""
    included: dict[tuple[str, str], str] = {}
    for file in files:
        if file.stem.endswith("_test") or file.parent.name == "testing":
            continue
        folder = file.parent.relative_to(ROOT).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), start=1):
            if match := OURS.match(line):
                target = f"leat/{match[1]}".rpartition("/")[0]
                where = f"{file.relative_to(ROOT)}:{number} includes leat/{match[1]}"
                included.setdefault((folder, target), where)
    for (one, other), where in sorted(included.items()):
        if one < other and (back := included.get((other, one))):
            yield (f"{one} and {other} include each other: {where}, and {back}; "
                   "move what both need into a folder below them")


def wrong_links(layers: dict[str, set[str]]):
    """A complaint for each DEPS of a CMakeLists.txt that breaks a rule."""
    for lists in sorted(SOURCES.rglob("CMakeLists.txt")):
        where = lists.relative_to(ROOT)
        text = re.sub(r"#.*", "", lists.read_text())
        for module, arguments in LINKS.findall(text):
            if module not in layers:
                yield f"{where}: {module} is not in layers.txt"
                continue
            is_dep = False
            for word in arguments.split():
                if word.isupper():
                    is_dep = word == "DEPS"
                elif is_dep and word not in layers[module]:
                    yield f"{where}: {module} may not link {word}"


def main() -> int:
    layers = read_layers()
    # leat/leat.h lies on top and only includes.
    files = [file for file in sorted(SOURCES.rglob("*"))
             if file.suffix in {".h", ".cc"} and file.parent != SOURCES]
    complaints = [*wrong_links(layers), *mutual_pairs(files)]
    for file in files:
        for number, what in wrong_includes(file, layers):
            complaints.append(f"{file.relative_to(ROOT)}:{number}: {what}")
    print("\n".join(complaints), end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
