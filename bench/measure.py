"""The common part of all benchmarks: interleaved runs, median and spread, the
machine."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any


def machine() -> dict[str, Any]:
    """The machine and the commit that a result belongs to."""
    model = platform.processor()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    commit = subprocess.run(
        ["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "cpu": model,
        "cpus": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "commit": commit or "unknown",
    }


def spread(values: list[float]) -> tuple[float, float]:
    """Median and median absolute deviation."""
    median = statistics.median(values)
    return median, statistics.median(abs(value - median) for value in values)


def interleave(
    ways: dict[str, Callable[[], dict[str, float]]], runs: int
) -> dict[str, dict[str, list[float]]]:
    """Runs every way once, then every way again, so that all meet the same machine."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in ways}
    for run in range(runs):
        for name, way in ways.items():
            print(f"run {run + 1} of {runs}: {name}", file=sys.stderr)
            for key, value in way().items():
                found[name].setdefault(key, []).append(value)
    return found


def sweep(what: str, rate_of: Callable[[int], float], counts: Sequence[int], most: int) -> int:
    """The number with the highest rate: not the end of the sweep, which goes on by twos, unless that is 1 or the most.

    Args:
        what: is tried, for the line that tells what was found.
        counts: to begin with; 0 may be among them.
    """
    rates = {count: rate_of(count) for count in counts}
    while True:
        best = max(rates, key=rates.__getitem__)
        print(f"{what}:", {n: round(rates[n], 1) for n in sorted(rates)}, f"best at {best}", file=sys.stderr)
        if best == max(rates) and best < most:
            rates[2 * best] = rate_of(2 * best)
        elif best == min(rates) and best > 1:
            rates[best // 2] = rate_of(best // 2)
        else:
            return best


_published: tuple[pathlib.Path, str] | None = None  # The file, and the command.
_tables: list[dict[str, Any]] = []  # That will be in it.


def publish_to(file: pathlib.Path, command: str) -> None:
    """From now on keep(), and so report(), keeps the tables of this run for that file, which publish() writes."""
    global _published
    _published = (file, command)
    _tables.clear()


def publish_nothing(why: str) -> None:
    """Leaves what was published before, since this run has not measured the whole."""
    global _published
    if _published is not None:
        print(f"nothing is published: {why}", file=sys.stderr)
    _published = None


def keep(title: str, rows: list[dict[str, Any]]) -> None:
    """Adds a table to what is published, if anything is."""
    _tables.append({"title": title, "rows": rows})


def publish() -> None:
    """Writes the tables of a run that has come to its end: one that breaks off leaves those of the run before."""
    if _published is None or not _tables:
        return
    file, command = _published
    file.parent.mkdir(exist_ok=True)
    kept = {"command": command, "date": datetime.date.today().isoformat(), "machine": machine(), "tables": _tables}
    file.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"kept in {file}; ./dev bench --publish writes the page", file=sys.stderr)


def report(title: str, rows: list[dict[str, Any]], is_json: bool) -> None:
    """Prints the rows as a table, or as one JSON object."""
    keep(title, rows)
    if is_json:
        print(json.dumps({"bench": title, "machine": machine(), "rows": rows}))
        return
    here = machine()
    print(f"{title}: {here['cpu']}, {here['cpus']} CPUs, load {here['load']:.1f}, {here['commit']}")
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = [columns] + [[_cell(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    for line in table:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))


def _cell(value: Any) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
