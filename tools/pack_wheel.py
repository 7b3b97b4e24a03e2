#!/usr/bin/env python3
"""Makes a wheel of a build folder, for one Python and one processor.

pack_wheel.py [--slim] BUILD-FOLDER SUFFIX PROCESSOR OUT-FOLDER

SUFFIX is how that Python ends its modules' names: ``.cpython-312-x86_64-linux-gnu.so``.
The build folder holds ``python/leat/_native`` with that end and ``bin/leat``. The wheel's
name and metadata are those of ``pip wheel``; the libraries that it needs are not in it yet.
With --slim it has no command, and its version ends with ``+slim``.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tags(suffix: str) -> tuple[str, str]:
    """The Python and ABI tags of a module that ends so: ("cp314", "cp314t")."""
    found = re.fullmatch(r"\.cpython-(\d+)(t?)-.+\.so", suffix)
    if not found:
        sys.exit(f"{suffix}: no module of CPython ends so")
    return f"cp{found[1]}", f"cp{found[1]}{found[2]}"


def stage_files(build: pathlib.Path, suffix: str, stage: pathlib.Path, *, slim: bool) -> None:
    """The package's sources, the module and the command, laid out as they are installed."""
    shutil.copytree(ROOT / "python/leat", stage / "leat",
                    ignore=shutil.ignore_patterns("__pycache__", "bin", "*.so"))  # fmt: skip
    shutil.copy2(build / f"python/leat/_native{suffix}", stage / "leat")
    if not slim:
        (stage / "leat/bin").mkdir()
        shutil.copy2(build / "bin/leat", stage / "leat/bin/leat")


def stage_metadata(stage: pathlib.Path, tag: str, *, slim: bool) -> None:
    import scikit_build_core.build

    os.chdir(ROOT)
    name = scikit_build_core.build.prepare_metadata_for_build_wheel(str(stage))
    if slim:
        name = add_local_version(stage, name)
    (stage / name / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: leat\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )


def add_local_version(stage: pathlib.Path, name: str) -> str:
    """Says in the metadata, and in their folder's name, that the wheel is slim: pip then tells the two apart."""
    version = name[len("leat-") : -len(".dist-info")]
    slim = f"leat-{version}+slim.dist-info"
    (stage / name).rename(stage / slim)
    metadata = stage / slim / "METADATA"
    text, count = re.subn(rf"^Version: {re.escape(version)}$", f"Version: {version}+slim", metadata.read_text(), count=1,
                          flags=re.MULTILINE)  # fmt: skip
    if count != 1:
        sys.exit(f"{name}/METADATA has no line Version: {version}")
    metadata.write_text(text)
    return slim


def main() -> None:
    slim = "--slim" in sys.argv
    build, suffix, processor, out = (word for word in sys.argv[1:] if word != "--slim")
    python, abi = tags(suffix)
    with tempfile.TemporaryDirectory() as folder:
        stage = pathlib.Path(folder)
        stage_files(pathlib.Path(build).resolve(), suffix, stage, slim=slim)
        out = str(pathlib.Path(out).resolve())
        stage_metadata(stage, f"{python}-{abi}-linux_{processor}", slim=slim)
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", out, str(stage)], check=True)


if __name__ == "__main__":
    main()
