"""Wheels hold the licences of what they bring, and are refused where they lack one."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
INFO = "leat-0.1.0.dist-info"
LIBRARIES = ["libtiff-4cadf372.so.6.0.0", "liblber-2-64f183c1.5.so.0.1.8"]
CONTENT = {
    "leat/__init__.py": "", "leat/py.typed": "", "leat/_native.pyi": "", "leat/bin/leat": "",
    "leat/_native.cpython-311-x86_64-linux-gnu.so": "",
    **{f"leat.libs/{library}": "" for library in LIBRARIES},
    f"{INFO}/METADATA": "Name: leat\n", f"{INFO}/RECORD": f"leat/py.typed,,0\n{INFO}/RECORD,,\n",
    f"{INFO}/licenses/LICENSE": "ours",
}  # fmt: skip
LICENSED = {
    **CONTENT,
    f"{INFO}/licenses/leat.libs.txt": f"{LIBRARIES[0]} libtiff6\n{LIBRARIES[1]} libldap-2.5-0\n",
    f"{INFO}/licenses/libtiff6/copyright": "theirs", f"{INFO}/licenses/libldap-2.5-0/copyright": "theirs",
}  # fmt: skip


def write_wheel(folder: pathlib.Path, content: dict[str, str], glibc: str = "2_35") -> pathlib.Path:
    wheel = folder / f"leat-0.1.0-cp311-cp311-manylinux_{glibc}_x86_64.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return wheel


@pytest.fixture
def run(tmp_path):
    """Runs a tool beside an elftools that finds nothing in a file, pybind11's licence and a dpkg."""
    packages = {
        "elftools/__init__.py": "", "elftools/elf/__init__.py": "",
        "elftools/elf/elffile.py": "class ELFFile:\n    def __init__(*_): pass\n    def iter_sections(_): return []\n",
        "elftools/elf/gnuversions.py": "class GNUVerNeedSection: pass\n",
        "pybind11-9.dist-info/METADATA": "Name: pybind11\n",
        "pybind11-9.dist-info/RECORD": "pybind11-9.dist-info/licenses/LICENSE,,\n",
        "pybind11-9.dist-info/licenses/LICENSE": "pybind11's",
        "dpkg-query": """#!/bin/sh
case "$2" in
  */lib/*-linux-gnu/libtiff.so.6.0.0) echo "libtiff6:amd64: /usr/lib/x86_64-linux-gnu/libtiff.so.6.0.0" ;;
  */lib/*-linux-gnu/liblber-2.5.so.0.1.8) echo "libldap-2.5-0: /usr/lib/x86_64-linux-gnu/liblber-2.5.so.0.1.8" ;;
  *) exit 1 ;;
esac
""",
    }  # fmt: skip
    for name, text in packages.items():
        file = tmp_path / "packages" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    there = str(tmp_path / "packages")
    env = {**os.environ, "PYTHONPATH": there, "PATH": f"{there}:{os.environ['PATH']}"}

    def run_tool(tool: str, *words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / "tools" / tool), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=env)

    return run_tool


def without(name: str) -> dict[str, str]:
    return {key: text for key, text in LICENSED.items() if key != f"{INFO}/licenses/{name}"}


@pytest.mark.parametrize(("content", "glibc", "says"), [
    (LICENSED, "2_35", ""),
    (LICENSED, "2_34", ""),
    (CONTENT, "2_35", f"has no licence of leat.libs/{LIBRARIES[0]}"),
    (without("libldap-2.5-0/copyright"), "2_35", f"has no licence of leat.libs/{LIBRARIES[1]}"),
    (without("LICENSE"), "2_35", f"is missing: {INFO}/licenses/LICENSE"),
    (LICENSED, "2_41", "needs glibc 2.41, newer than 2.35: make it on Debian 12"),
])  # fmt: skip
def test_a_wheel_without_a_licence_or_for_newer_systems_than_told_is_refused(run, tmp_path, content, glibc, says):
    done = run("check_wheel.py", write_wheel(tmp_path, content, glibc))

    assert done.returncode == (1 if says else 0), done.stderr
    assert says in done.stderr
    assert done.stderr.count("\n") == (0 if not says else 2 if content is CONTENT else 1)


def test_the_readme_names_the_c_library_that_wheels_may_ask_for():
    newest = re.search(r"^NEWEST_GLIBC = \((\d+), (\d+)\)", (ROOT / "tools/check_wheel.py").read_text(), re.MULTILINE)

    assert newest and f"glibc {newest[1]}.{newest[2]} or newer" in (ROOT / "README.md").read_text()


def debian(folder: pathlib.Path, *without: str) -> pathlib.Path:
    """A Debian with the notices of what Leat is built with, less some."""
    listed = re.findall(r"^(lib\S*-dev|nlohmann\S+)", (ROOT / "tools/debian-packages.txt").read_text(), re.MULTILINE)
    for package in {*(one for entry in listed for one in entry.split("|")), "libtiff6", "libldap-2.5-0"} - set(without):
        notice = folder / "usr/share/doc" / package / "copyright"
        notice.parent.mkdir(parents=True)
        notice.write_text(f"the notice of {package}, see /usr/share/common-licenses/Apache-2.0.\n")
    return folder


def test_the_licence_of_each_library_is_put_into_the_wheel(run, tmp_path):
    wheel = write_wheel(tmp_path, CONTENT)

    done = run("add_licenses.py", wheel, debian(tmp_path / "debian", "libboost-dev"))

    assert done.returncode == 0, done.stderr
    assert run("check_wheel.py", wheel).returncode == 0
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        files = {name: archive.read(name) for name in archive.namelist()}
    assert len(files) == len(set(files)) and set(CONTENT) < set(files)
    for package in ("libtiff6", "libldap-2.5-0", "nlohmann-json3-dev", "libboost1.81-dev"):
        assert files[f"{INFO}/licenses/{package}/copyright"].startswith(f"the notice of {package},".encode())
    assert files[f"{INFO}/licenses/pybind11/copyright"] == b"pybind11's"
    assert b"Apache License" in files[f"{INFO}/licenses/common-licenses/Apache-2.0"]
    record = csv.reader(io.StringIO(files[f"{INFO}/RECORD"].decode()))
    recorded = {name: (digest, size) for name, digest, size in record}
    for name in set(files) - set(CONTENT):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
        assert recorded[name] == (f"sha256={digest}", str(len(files[name])))
    assert f"{INFO}/RECORD" in recorded and "leat/py.typed" in recorded


@pytest.mark.parametrize(("library", "lacks", "says"), [
    ("libown-01234567.so.1", (), "leat.libs/libown-01234567.so.1: no package of Debian has libown.so.1"),
    (LIBRARIES[0], ("libtiff6",), "/usr/share/doc/libtiff6 has no copyright: install libtiff6 there"),
])  # fmt: skip
def test_a_library_whose_licence_is_not_known_is_named(run, tmp_path, library, lacks, says):
    wheel = write_wheel(tmp_path, {**CONTENT, f"leat.libs/{library}": ""})
    before = wheel.read_bytes()

    done = run("add_licenses.py", wheel, debian(tmp_path / "debian", *lacks))

    assert done.returncode == 1
    assert says in done.stderr
    assert wheel.read_bytes() == before
