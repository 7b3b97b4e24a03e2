"""The plan: its speed of simulating and deciding, and its memory.

    ./dev bench simulator [--seconds 1] [--samples 10000000] [--cached 2000000]
        [--batches 4000] [--only memory] [--quick] [--json]

`simulate_a_rank` is reads a second of the simulator, `decide` the time of one decision
with its next use, of ten million samples with two million held, for one rank of 4 and
of 64. `memory` is what a process had resident in which a loader had filled its RAM tier
and then delivered `--batches` of 256: catalogue, plan, policy, index of the tier and what is
on the way, but not the bytes that the tier holds. `before` is of a process that has opened
nothing, `opened` with a loader that has delivered nothing, `filled` while it filled its tier,
`most` of all that came then; `own` is heaps and stacks, `files` what is mapped of programs
and of the catalogue.
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

SAMPLE_BYTES = 100
SHARD_SAMPLES = 10_000  # As make_catalogue has it.


def measure_memory(samples: int, cached: int, batches: int) -> list[dict[str, Any]]:
    """The resident memory at each stage."""
    with tempfile.TemporaryDirectory(prefix="leat-plan-") as temporary:
        folder = pathlib.Path(temporary)
        for shard in range((samples - 1) // SHARD_SAMPLES + 1):
            with open(folder / f"{shard:06}.tar", "wb") as file:
                file.truncate(SHARD_SAMPLES * SAMPLE_BYTES)
        catalogue = folder / "samples.catalogue"
        subprocess.run([binary("make_catalogue"), catalogue, str(samples), str(SAMPLE_BYTES)], check=True)
        command = [binary("loader_memory"), folder, catalogue, str(cached), str(batches)]
        said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    what = f"{samples:,} samples, {said['records']:,} cached, {said['hits']:,} hits"
    return [
        {
            "what": f"memory: {what}: {stage}",
            "MB": f"{said[stage]['sum'] / 1e6:,.0f}",
            "own": f"{said[stage]['own'] / 1e6:,.0f}",
            "files": f"{said[stage]['files'] / 1e6:,.0f}",
            "page_tables": f"{said[stage]['page_tables'] / 1e6:,.0f}",
        }
        for stage in ("before", "opened", "filled", "most")
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--samples", type=int, default=10_000_000, help="of the measurement of memory")
    parser.add_argument("--cached", type=int, default=2_000_000)
    parser.add_argument("--batches", type=int, default=4000)
    parser.add_argument("--only", choices=["speed", "memory"])
    parser.add_argument("--quick", action="store_true", help="short, and few samples: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    seconds = 0.01 if args.quick else args.seconds
    samples, cached, batches = (100_000, 20_000, 80) if args.quick else (args.samples, args.cached, args.batches)

    rows: list[dict[str, Any]] = []
    if args.only != "memory":
        # Filling a cache of two million takes half a minute.
        pattern = "simulate_a_rank" if args.quick else "."
        for found in measure("simulator_bench", pattern, seconds):
            a_second = found["items_per_second"]
            rows.append({"what": found["name"], "a_second": f"{a_second:,.0f}", "us": f"{1e6 / a_second:.2f}", "MB": ""})
    if args.only != "speed":
        rows += measure_memory(samples, cached, batches)
    report("simulator", rows, args.json)


if __name__ == "__main__":
    main()
