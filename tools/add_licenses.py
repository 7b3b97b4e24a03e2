#!/usr/bin/env python3
"""Puts into a wheel the licences of the code of others that is in it.

add_licenses.py WHEEL [ROOT]

Each shared library in the wheel, and each package whose headers are compiled into the
engine, is of a package of Debian: its notice (``/usr/share/doc/PACKAGE/copyright``) becomes
``licenses/PACKAGE/copyright`` beside the wheel's metadata, ``licenses/leat.libs.txt`` says
which library is of which package, and ``licenses/common-licenses`` has the licences that
the notices name. ROOT is the Debian that the libraries were taken from, if not this one.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMON = pathlib.Path("/usr/share/common-licenses")


def packages_of(library: str) -> set[str]:
    """Those that have a library, which auditwheel renamed: ``libz-4cadf372.so.1`` is ``libz.so.1``."""
    name = re.sub(r"-[0-9a-f]{8}(?=\.)", "", library, count=1)
    search = ["dpkg-query", "--search", f"*/lib/*-linux-gnu/{name}"]
    told = subprocess.run(search, capture_output=True, text=True, check=False).stdout
    packages = set(re.findall(r"^([a-z0-9+.-]+)(?::\w+)?: ", told, re.MULTILINE))
    if not packages:
        sys.exit(f"leat.libs/{library}: no package of Debian has {name}, so its licence is not known; "
                 "build with Debian's library")  # fmt: skip
    return packages


def compiled_in() -> list[list[str]]:
    """The packages that Leat is built with, whose headers may hold code: for each, its names, any of which may do."""
    lines = (ROOT / "tools/debian-packages.txt").read_text().splitlines()
    entries = (line.partition("#")[0].strip() for line in lines)
    return [entry.split("|") for entry in entries if re.match(r"lib[^|]*-dev|nlohmann", entry)]


def notice_of(packages: list[str], debian: pathlib.Path) -> tuple[str, bytes]:
    for package in packages:
        notice = debian / "usr/share/doc" / package / "copyright"
        if notice.is_file():
            return package, notice.read_bytes()
    folder = debian / "usr/share/doc" / packages[0]
    sys.exit(f"{folder} has no copyright: install {packages[0]} there, with its documentation")


def notice_of_pybind11() -> bytes:
    for file in importlib.metadata.files("pybind11") or []:
        if file.name == "LICENSE":
            return pathlib.Path(str(file.locate())).read_bytes()
    sys.exit("pybind11 has no LICENSE: install PyPI's, as tools/wheel-requirements.txt names it")


def licences(libraries: list[str], debian: pathlib.Path) -> dict[str, bytes]:
    """Files of the folder ``licenses``."""
    owners = {library: sorted(packages_of(library)) for library in libraries}
    found = dict(notice_of(packages, debian) for packages in [*owners.values(), *compiled_in()])
    notices = b"\n".join(found.values()).decode(errors="replace")
    named = set(re.findall(rf"{COMMON}/([A-Za-z]+(?:-\d+(?:\.\d+)*)?)", notices))
    table = [f"{library} {notice_of(packages, debian)[0]}\n" for library, packages in owners.items()]
    return {
        **{f"{package}/copyright": notice for package, notice in found.items()},
        # A notice may misspell a name: GPL-2.0.
        **{f"common-licenses/{name}": (COMMON / name).read_bytes() for name in named if (COMMON / name).is_file()},
        "pybind11/copyright": notice_of_pybind11(),
        "leat.libs.txt": "".join(table).encode(),
    }


def add(wheel: pathlib.Path, files: dict[str, bytes], record: str) -> None:
    """Adds the files, and a line for each to the wheel's record."""
    whole = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as new:
        told = old.read(record).decode()
        for entry in old.infolist():
            if entry.filename != record:
                new.writestr(entry, old.read(entry))
        for name, content in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            told += f"{name},sha256={digest},{len(content)}\n"
            new.writestr(name, content)
        new.writestr(old.getinfo(record), told)
    os.replace(whole, wheel)


def main() -> None:
    wheel = pathlib.Path(sys.argv[1])
    debian = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "/")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    libraries = [found[1] for name in names if (found := re.fullmatch(r"leat\.libs/(.+)", name))]
    [record] = [name for name in names if re.fullmatch(r"leat-[^/]+\.dist-info/RECORD", name)]
    folder = record.replace("RECORD", "licenses")
    add(wheel, {f"{folder}/{name}": content for name, content in licences(libraries, debian).items()}, record)


if __name__ == "__main__":
    main()
