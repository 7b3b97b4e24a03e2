"""Traces for Perfetto or chrome://tracing."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import zlib
from typing import Any

from leat.errors import InvalidArgument


def merge(traces: list[str | os.PathLike[str]], out: str | os.PathLike[str]) -> None:
    """Merges traces by the wall clock.

    It takes traces of ``leat.Loader(trace=...)``, also of several ranks, and of
    ``torch.profiler`` (``export_chrome_trace``, gzipped or not), from machines whose clocks
    agree. Times in `out` are those of the first trace.

    Raises `leat.InvalidArgument` for a file that is not a trace in Chrome's JSON object
    format.
    """
    merged: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    for path in traces:
        trace = _read(pathlib.Path(path))
        if not merged:
            merged = {**trace, "traceEvents": events}
        later = _base(trace) - _base(merged)
        for event in trace["traceEvents"]:
            if "ts" in event and later:
                event["ts"] += later / 1000
            events.append(event)
    pathlib.Path(out).write_text(json.dumps(merged), encoding="utf-8")


def _base(trace: dict[str, Any]) -> int:
    """Nanoseconds of the wall clock at which its times begin."""
    return int(trace.get("baseTimeNanoseconds", 0))


def _read(path: pathlib.Path) -> dict[str, Any]:
    raw = path.read_bytes()
    try:
        trace = json.loads(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise InvalidArgument(f"{path}: no trace, since it is no JSON: {error}") from None
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise InvalidArgument(f'{path}: no trace: it is no object with "traceEvents"')
    return trace
