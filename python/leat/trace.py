"""Traces for Perfetto or chrome://tracing."""

from __future__ import annotations

import collections
import gzip
import itertools
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
    agree. Times in `out` are those of the first trace. Arrows and processes of different
    ranks stay apart, though their files give them equal numbers.

    Raises `leat.InvalidArgument` for a file that is not a trace in Chrome's JSON object
    format.
    """
    merged: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    pids = _Pids()
    for number, path in enumerate(traces):
        trace = _read(pathlib.Path(path))
        if not merged:
            merged = {**trace, "traceEvents": events}
        later = _base(trace) - _base(merged)
        own = pids.of(trace["traceEvents"])
        for event in trace["traceEvents"]:
            if "ts" in event and later:
                event["ts"] += later / 1000
            if "pid" in event:
                event["pid"] = own[event["pid"]]
            for name in ("id", "bind_id"):  # The arrows of all processes share them.
                if name in event and number > 0:
                    event[name] = f"{number}:{event[name]}"
            events.append(event)
    pathlib.Path(out).write_text(json.dumps(merged), encoding="utf-8")


class _Pids:
    """Numbers of processes that are not mixed up, though machines give equal ones."""

    def __init__(self) -> None:
        self._files: collections.Counter[tuple[bool, Any]] = collections.Counter()
        self._numbers: dict[tuple[int, Any], Any] = {}
        self._new = itertools.count(1 << 24)  # No process of Linux has so high a one.

    def of(self, events: list[dict[str, Any]]) -> dict[Any, Any]:
        """The number that each process of a file has in the merged one.

        A trace of Leat's and one of torch's with the same number are of one process. Two
        of Leat's, or two of torch's, are of two.
        """
        is_leats = any(event.get("cat") == "leat" for event in events)
        found = {}
        for pid in {event["pid"]: None for event in events if "pid" in event}:
            place = (self._files[is_leats, pid], pid)
            self._files[is_leats, pid] += 1
            if place not in self._numbers:
                self._numbers[place] = next(self._new) if place[0] > 0 else pid
            found[pid] = self._numbers[place]
        return found


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
