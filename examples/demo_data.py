"""The folder in which the examples keep the data that they make."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable

# A change to the code that makes the data changes the version with it.
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "build" / "demo-data" / "v1"


def make_once(folder: pathlib.Path, make: Callable[[pathlib.Path], None]) -> pathlib.Path:
    """Calls ``make`` with an empty folder that becomes ``folder``, if that is not there."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Made beside it and then renamed, so that a reader finds all of it or
    # nothing.
    unfinished = pathlib.Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        make(unfinished)
        unfinished.chmod(0o755)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.is_dir():  # Else somebody else was faster.
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder
