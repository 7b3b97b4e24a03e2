"""The bucket server: GETs a second on one core, and how exact its delays are.

    ./dev bench bucket [--runs 5] [--seconds 3] [--only 500] [--json]

How to read it: `gets_per_core_s` is the rate over the CPU the server used, so
it holds on a machine that is busy otherwise; `gets_per_s` is the rate beside
the client. `late_ms_p50` and `p95` are the delay added beyond the one asked
for, told by the server: from the request's last byte (as the kernel noted it)
to the return of the write that the reply begins with. `first_byte_ms` is the
whole time that the client saw.

The client is `wrk` (apt-get install wrk), on one thread of the same machine.
Each connection asks again as soon as it is answered, and all begin at once: 500
at 55 ms ask 9,000 times a second, in bunches of up to a hundred a millisecond.
`client_busy` is the part of a core that it took: at 1 it is the client that
sets the rate, and `gets_per_s` says little about the server.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from leat.testing import Bucket
from measure import interleave, report, spread

SIZES = {"4k": 4096, "100k": 100_000, "8m": 8 << 20}
#       name                 size    latency connections tls
CASES = [
    ("4 KB, 64 conns", "4k", "0", 64, False),
    ("4 KB, 64 conns, TLS", "4k", "0", 64, True),
    ("100 KB, 64 conns", "100k", "0", 64, False),
    ("8 MiB, 4 conns", "8m", "0", 4, False),
    ("4 KB, 55 ms, 64 conns", "4k", "55ms", 64, False),
    ("4 KB, 55 ms, 500 conns", "4k", "55ms", 500, False),
]


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def milliseconds(text: str) -> float:
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    return float(value) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def way(folder: pathlib.Path, case: tuple[str, str, str, int, bool], seconds: int):
    _, size, latency, connections, tls = case

    def run() -> dict[str, float]:
        with Bucket(folder, latency=latency, tls=tls) as bucket:
            pid = bucket.pid
            command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--latency"]
            before, clients_before = cpu_seconds(pid), cpu_of_children()
            done = subprocess.run(
                [*command, f"{bucket.url}/bench/{size}"],
                capture_output=True, text=True, check=True,
            )
            used = cpu_seconds(pid) - before
            used_by_client = cpu_of_children() - clients_before
            counters = bucket.counters()
        if re.search(r"Non-2xx|Socket errors", done.stdout):
            sys.exit(f"bucket_bench: the server failed:\n{done.stdout}")
        median = re.search(r"50%\s+(\S+)", done.stdout)
        assert median is not None
        return {
            "gets_per_s": counters["get"] / seconds,
            "gets_per_core_s": counters["get"] / used,
            "mb_per_s": counters["bytes"] / seconds / 1e6,
            "first_byte_ms": milliseconds(median[1]),
            "late_ms_p50": counters["lateness_ms"]["p50"],
            "late_ms_p95": counters["lateness_ms"]["p95"],
            "client_busy": used_by_client / seconds,
        }

    return run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", default="", help="the cases with this in their name")
    parser.add_argument("--quick", action="store_true", help="one short run of each")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("bucket_bench: wrk is missing; apt-get install wrk")
    runs, seconds = (1, 1) if options.quick else (options.runs, options.seconds)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "bench").mkdir()
        for name, size in SIZES.items():
            (folder / "bench" / name).write_bytes(os.urandom(size))
        ways: dict[str, Callable[[], dict[str, float]]] = {
            case[0]: way(folder, case, seconds) for case in CASES if options.only in case[0]
        }
        found = interleave(ways, runs)
    rows: list[dict[str, Any]] = []
    for name, values in found.items():
        row: dict[str, Any] = {"case": name}
        for key, each in values.items():
            median, deviation = spread(each)
            digits = 2 if "ms" in key or key == "client_busy" else 0
            row[key] = f"{median:.{digits}f} ±{deviation:.{digits}f}"
            if options.json:
                row[key] = median
        rows.append(row)
    report("bucket", rows, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
