"""Finds the `leat` command, and becomes it."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

from leat._credentials import helper_command


def command_path() -> str:
    """The `leat` program that belongs to this package, else the one on PATH."""
    own = pathlib.Path(__file__).parent / "bin" / "leat"
    found = str(own) if own.is_file() else shutil.which("leat")
    if found is None or os.path.realpath(found) == os.path.realpath(sys.argv[0]):
        raise FileNotFoundError(
            f"the leat program is neither at {own} nor on PATH: {remedy()}"
        )
    return found


def remedy() -> str:
    """Says how to get the program where it is missing."""
    from importlib import metadata

    try:
        version = metadata.version("leat")
    except metadata.PackageNotFoundError:
        version = ""
    if version.endswith("+slim"):
        return f"leat {version} is the slim wheel, which has no command; install the whole wheel in its place"
    return "install the package again, or build it"


def main() -> None:
    """The console script: replaces this process by the program."""
    try:
        program = command_path()
    except FileNotFoundError as error:
        sys.exit(f"leat: {error}")
    # Commands that are written in Python run here.
    os.environ.setdefault("LEAT_PYTHON", sys.executable)
    # Found by this interpreter, which may have botocore; the program asks none.
    os.environ.setdefault("LEAT_CREDENTIAL_HELPER", helper_command())
    os.execv(program, ["leat", *sys.argv[1:]])
