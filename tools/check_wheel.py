#!/usr/bin/env python3
"""Checks the content of a wheel: the package, the libraries it needs, and
nothing else.

check_wheel.py WHEEL

None of it may ask for a newer C library than the wheel's name says, nor the name for a newer
one than README.md says. Each library has its licence beside it. A slim wheel has no command,
and takes little room where it is installed.
"""

from __future__ import annotations

import fnmatch
import io
import pathlib
import re
import sys
import zipfile

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

NEWEST_GLIBC = (2, 35)  # README.md names the systems that have it.
MOST_BYTES = 40 << 20
MOST_SLIM_BYTES = 25_000_000  # Unpacked.
ALLOWED = (
    "leat/*.py",
    "leat/*.pyi",
    "leat/_show/show.*",
    "leat/py.typed",
    "leat/_native.*.so",
    "leat/bin/leat",
    "leat.libs/*.so*",
    "leat-*.dist-info/*",
)
NEEDED = ("leat/__init__.py", "leat/py.typed", "leat/_native.pyi", "leat/bin/leat")


def glibc_asked_for(binary: bytes) -> tuple[int, ...]:
    """The newest version of the C library's symbols that it names: (2, 34)."""
    newest: tuple[int, ...] = (0,)
    for section in ELFFile(io.BytesIO(binary)).iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for _, versions in section.iter_versions():
                for version in versions:
                    if found := re.fullmatch(r"GLIBC_([0-9.]+)", version.name):
                        newest = max(newest, tuple(map(int, found[1].split("."))))
    return newest


def too_new(archive: zipfile.ZipFile, name: str) -> list[str]:
    tag = re.search(r"manylinux_(\d+)_(\d+)_\w+\.whl$", name)
    if not tag:
        return ["its name says no manylinux_X_Y"]
    told = (int(tag[1]), int(tag[2]))
    wrong = []
    if told > NEWEST_GLIBC:
        newest = ".".join(map(str, NEWEST_GLIBC))
        wrong.append(f"needs glibc {told[0]}.{told[1]}, newer than {newest}: make it on Debian 12")
    for entry in archive.namelist():
        if entry == "leat/bin/leat" or re.match(r"leat(\.libs)?/[^/]*\.so", entry):
            asked = glibc_asked_for(archive.read(entry))
            if asked > told:
                wrong.append(f"{entry} asks for glibc {'.'.join(map(str, asked))}")
    return wrong


def unlicensed(archive: zipfile.ZipFile, names: list[str]) -> list[str]:
    """Complaints about each licence that tools/add_licenses.py should have put there, and about Leat's own."""
    metadata = next((name for name in names if name.endswith(".dist-info/METADATA")), "METADATA")
    folder = metadata.replace("METADATA", "licenses")
    table = f"{folder}/leat.libs.txt"
    owners = dict(line.split() for line in archive.read(table).decode().splitlines()) if table in names else {}
    wrong = [] if f"{folder}/LICENSE" in names else [f"is missing: {folder}/LICENSE"]
    for library in (name.partition("/")[2] for name in names if name.startswith("leat.libs/")):
        if f"{folder}/{owners.get(library)}/copyright" not in names:
            wrong.append(f"has no licence of leat.libs/{library}")
    return wrong


def main() -> int:
    wheel = sys.argv[1]
    with zipfile.ZipFile(wheel) as archive:
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
        packed = sum(entry.compress_size for entry in archive.infolist())
        unpacked = sum(entry.file_size for entry in archive.infolist())
        wrong = too_new(archive, wheel) + unlicensed(archive, names)
    wrong += [f"does not belong there: {name}" for name in names
              if not any(fnmatch.fnmatch(name, pattern) for pattern in ALLOWED)]  # fmt: skip
    needed = set(NEEDED)
    if is_slim := "+slim" in pathlib.PurePath(wheel).name:
        needed.discard("leat/bin/leat")
        wrong += ["a slim wheel has no command"] if "leat/bin/leat" in names else []
        print(f"slim: {unpacked / 1e6:.1f} MB unpacked, {packed / 1e6:.1f} MB packed", file=sys.stderr)
    wrong += [f"is missing: {name}" for name in sorted(needed) if name not in names]
    if len([name for name in names if name.startswith("leat/_native.") and name.endswith(".so")]) != 1:
        wrong.append("not one module leat/_native.*.so")
    if is_slim and unpacked > MOST_SLIM_BYTES:
        wrong.append(f"{unpacked} bytes unpacked, more than {MOST_SLIM_BYTES}")
    if packed > MOST_BYTES:
        wrong.append(f"{packed >> 20} MiB, more than {MOST_BYTES >> 20}")
    for line in wrong:
        print(f"{wheel}: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
