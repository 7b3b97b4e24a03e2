"""What the engine says, through Python's `logging`: the logger ``leat``.

Where a program has set no logging up, lines go to stderr as the engine writes them by
itself, from INFO on. ``logging.getLogger("leat").setLevel(...)`` chooses;
``SPDLOG_LEVEL=leat=debug`` in the environment lets the engine's finest lines through.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys

from leat import _native

logger = logging.getLogger("leat")


class _Stderr(logging.Handler):
    """Silent as soon as somebody else listens."""

    def emit(self, record: logging.LogRecord) -> None:
        if logging.getLogger().handlers or logger.handlers != [self]:
            return
        print(f"leat: {record.levelname.lower()}: {record.getMessage()}", file=sys.stderr)


def _begin() -> None:
    if logger.level == logging.NOTSET:
        asks = "debug" in os.environ.get("SPDLOG_LEVEL", "")
        logger.setLevel(logging.DEBUG if asks else logging.INFO)
    logger.addHandler(_Stderr())
    _native.route_log(True)


@atexit.register
def _end() -> None:
    # Whatever comes later goes to stderr.
    _native.deliver_log()
    _native.route_log(False)


_begin()
