"""The tiers of a cache, without a loader: hits of RAM, and reads of the disk beside fio's.

    ./dev bench cache [--runs 5] [--seconds 1] [--dir /tmp] [--quick] [--json]

RAM: hits a second with all of their bookkeeping, over 256 MiB of records. Disk: 128 KiB
from the page cache, 8 reads at a time, each with its look-up and checksum; `of_fio` is
the median over interleaved pairs with fio doing the preads alone, where it is installed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
from typing import Any

from measure import report, spread
from micro import measure

THREADS, LENGTH, FILE = 8, "128k", "256m"


def fio_bytes_per_second(folder: str, seconds: float) -> float:
    """The same reads of one file, without look-up and checksum."""
    command = [
        "fio", "--name=read", f"--filename={folder}/fio.bin", f"--size={FILE}", "--rw=randread", f"--bs={LENGTH}",
        "--ioengine=psync", "--direct=0", "--invalidate=0", "--thread", f"--numjobs={THREADS}", "--group_reporting",
        "--time_based", f"--runtime={max(1, round(seconds))}", "--randrepeat=0", "--output-format=json",
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["bw_bytes"])


def tier_bytes_per_second(folder: str, seconds: float) -> float:
    return float(measure("cache_bench", "disk_read", seconds / THREADS, folder)[0]["bytes_per_second"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--dir", default="/tmp", help="a folder on the disk to be measured")
    parser.add_argument("--quick", action="store_true", help="one short run: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    runs, seconds = (1, 0.05) if args.quick else (args.runs, args.seconds)

    rows: list[dict[str, Any]] = []
    hits: dict[str, list[float]] = {}
    for _ in range(runs):
        for found in measure("cache_bench", "ram_hit", seconds):
            hits.setdefault(found["name"], []).append(found["items_per_second"])
    for name, rates in hits.items():
        _, length, _, threads = name.split("/")
        median, deviation = spread(rates)
        rows.append({
            "tier": "ram", "bytes": int(length), "threads": int(threads.removeprefix("threads:")),
            "a_second": f"{median:,.0f} \u00b1 {deviation:,.0f}", "of_fio": "",
        })  # fmt: skip

    has_fio = shutil.which("fio") is not None
    tier, ratios = [], []
    with tempfile.TemporaryDirectory(prefix="leat-cache-", dir=args.dir) as folder:
        if has_fio:
            fio_bytes_per_second(folder, 1)  # Lays the file out.
        for _ in range(runs):
            tier.append(tier_bytes_per_second(folder, seconds))
            if has_fio:
                ratios.append(tier[-1] / fio_bytes_per_second(folder, seconds))
    median, deviation = spread([rate / 1e6 for rate in tier])
    rows.append({
        "tier": "disk", "bytes": 131072, "threads": THREADS, "a_second": f"{median:,.0f} \u00b1 {deviation:,.0f} MB",
        "of_fio": f"{100 * statistics.median(ratios):.0f} %" if has_fio else "fio is not installed",
    })  # fmt: skip
    report("cache", rows, args.json)


if __name__ == "__main__":
    main()
