#!/usr/bin/env python3
"""Makes a wheel of a build folder, for one Python and one processor.

pack_wheel.py BUILD-FOLDER SUFFIX PROCESSOR OUT-FOLDER

SUFFIX is how that Python ends its modules' names: ``.cpython-312-x86_64-linux-gnu.so``.
The build folder holds ``python/leat/_native`` with that end and ``bin/leat``. The wheel's
name and metadata are those of ``pip wheel``; the libraries that it needs are not in it yet.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import scikit_build_core.build

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tags(suffix: str) -> tuple[str, str]:
    """The Python and ABI tags of a module that ends so: ("cp314", "cp314t")."""
    found = re.fullmatch(r"\.cpython-(\d+)(t?)-.+\.so", suffix)
    if not found:
        sys.exit(f"{suffix}: no module of CPython ends so")
    return f"cp{found[1]}", f"cp{found[1]}{found[2]}"


def stage_files(build: pathlib.Path, suffix: str, stage: pathlib.Path) -> None:
    """The package's sources, the module and the command, laid out as they are installed."""
    shutil.copytree(ROOT / "python/leat", stage / "leat",
                    ignore=shutil.ignore_patterns("__pycache__", "bin", "*.so"))  # fmt: skip
    shutil.copy2(build / f"python/leat/_native{suffix}", stage / "leat")
    (stage / "leat/bin").mkdir()
    shutil.copy2(build / "bin/leat", stage / "leat/bin/leat")


def stage_metadata(stage: pathlib.Path, tag: str) -> None:
    os.chdir(ROOT)
    name = scikit_build_core.build.prepare_metadata_for_build_wheel(str(stage))
    (stage / name / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: leat\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )


def main() -> None:
    build, suffix, processor, out = sys.argv[1:]
    python, abi = tags(suffix)
    with tempfile.TemporaryDirectory() as folder:
        stage = pathlib.Path(folder)
        stage_files(pathlib.Path(build).resolve(), suffix, stage)
        out = str(pathlib.Path(out).resolve())
        stage_metadata(stage, f"{python}-{abi}-linux_{processor}")
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", out, str(stage)], check=True)


if __name__ == "__main__":
    main()
