"""The plan: how fast it simulates and decides, and what it takes of memory.

    ./dev bench simulator [--seconds 1] [--samples 10000000] [--cached 2000000] [--quick] [--json]

`simulate_a_rank` is reads a second of the simulator, `decide` the time of one decision
with its next use, of ten million samples with two million held, for one rank of 4 and
of 64. `memory` is the most that a process had resident which did what a loader does at
each read of two epochs, but for the bytes: catalogue, plan, policy and index of the tier.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import tempfile
from typing import Any

from measure import report
from micro import binary, measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--samples", type=int, default=10_000_000, help="of the measurement of memory")
    parser.add_argument("--cached", type=int, default=2_000_000)
    parser.add_argument("--only", choices=["speed", "memory"])
    parser.add_argument("--quick", action="store_true", help="short, and few samples: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    seconds = 0.01 if args.quick else args.seconds
    samples, cached = (100_000, 20_000) if args.quick else (args.samples, args.cached)

    rows: list[dict[str, Any]] = []
    if args.only != "memory":
        # Filling a cache of two million takes half a minute.
        pattern = "simulate_a_rank" if args.quick else "."
        for found in measure("simulator_bench", pattern, seconds):
            a_second = found["items_per_second"]
            rows.append({"what": found["name"], "a_second": f"{a_second:,.0f}", "us": f"{1e6 / a_second:.2f}", "MB": ""})
    if args.only != "speed":
        with tempfile.TemporaryDirectory(prefix="leat-plan-") as folder:
            catalogue = pathlib.Path(folder) / "samples.catalogue"
            subprocess.run([binary("make_catalogue"), str(catalogue), str(samples)], check=True)
            command = [binary("plan_memory"), str(catalogue), str(cached), "2"]
            said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        rows.append({
            "what": f"memory: {samples:,} samples, {said['cached']:,} cached", "a_second": "", "us": "",
            "MB": f"{said['peak_rss_bytes'] / 1e6:,.0f}",
        })  # fmt: skip
    report("simulator", rows, args.json)


if __name__ == "__main__":
    main()
