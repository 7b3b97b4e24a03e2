"""The files that a loader writes while training runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Union

from leat.errors import InvalidArgument

File = Union[str, os.PathLike[str]]
Trace = Union[File, Mapping[str, File], None]

_ENGINE_NAMES = {"timeline": "trace", "order_log": "order_log"}


def files_of(trace: Any, *, logs_order: bool = True) -> dict[str, str]:
    """``trace=`` as the engine's options.

    Args:
        logs_order: False: another process delivers the same and writes the order log.
    """
    named = trace if isinstance(trace, Mapping) else {} if trace is None else {"timeline": trace}
    unknown = set(named) - set(_ENGINE_NAMES)
    wrong = [name for name, file in named.items() if not isinstance(file, (str, os.PathLike))]
    if unknown or wrong:
        raise InvalidArgument(
            f"trace={trace!r}; it is a file for a timeline, or a dict of files: "
            '{"timeline": "t.json", "order_log": "run.order"}'
        )
    files = {engine: os.fspath(named.get(name, "")) for name, engine in _ENGINE_NAMES.items()}
    return files if logs_order else {**files, "order_log": ""}
