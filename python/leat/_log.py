"""The engine's messages, through Python's `logging`: the logger ``leat``.

If a program has not set up logging, lines go to stderr as the engine writes them by
itself, from INFO on. ``logging.getLogger("leat").setLevel(...)`` chooses the level.
``SPDLOG_LEVEL=leat=debug`` in the environment lets the engine's finest lines through,
and ``SPDLOG_LEVEL=leat=off`` none.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys

from leat import _native

logger = logging.getLogger("leat")


_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "err": logging.ERROR,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "off": logging.CRITICAL + 1,
}


class _Stderr(logging.Handler):
    """Is silent as soon as another handler listens."""

    def emit(self, record: logging.LogRecord) -> None:
        if logging.getLogger().handlers or logger.handlers != [self]:
            return
        print(f"leat: {record.levelname.lower()}: {record.getMessage()}", file=sys.stderr)


def _asked_level(levels: str) -> int:
    """The level that spdlog's variable asks for, such as ``leat=off``; INFO if none."""
    asked = logging.INFO
    for part in levels.split(","):
        name, _, level = part.strip().rpartition("=")
        if name in ("", "leat") and level in _LEVELS:
            asked = _LEVELS[level]
    return asked


def _begin() -> None:
    if logger.level == logging.NOTSET:
        logger.setLevel(_asked_level(os.environ.get("SPDLOG_LEVEL", "")))
    logger.addHandler(_Stderr())
    _native.route_log(True)


@atexit.register
def _end() -> None:
    # Later messages go to stderr.
    try:
        _native.deliver_log()
    finally:
        _native.route_log(False)


_begin()
