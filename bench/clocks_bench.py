"""What the clocks that always run cost: calls a sample, nanoseconds a call, over the CPU a sample of the cheapest pipelines.

    ./dev bench clocks [--runs 5] [--samples 60000] [--json]

The pipelines are those of bench/trace_bench.py. Calls are counted by a library in front of
the C library's clock (bench/count_clocks.cc), as the difference of a run of three epochs
and one of one; CPU is of all threads, of the last of two epochs, without that library.
Look at: `clocks, %`.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import tempfile

from leat.testing import Bucket, find_binary
from measure import interleave, report, spread
from micro import binary
from trace_bench import cpu_of_a_sample, make

MORE_EPOCHS = 2


def clocks(words: list[str], epochs: int, told: pathlib.Path) -> tuple[int, float]:
    """Calls of a run, and nanoseconds of one."""
    library = binary("libcount_clocks.so")
    subprocess.run(
        [find_binary(), "bench", *words, "--json", "--no-hash", "--no-tune", "--epochs", str(epochs), "--global-batch-size", "256"],
        check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, "LD_PRELOAD": library, "COUNT_CLOCKS": str(told)},
    )  # fmt: skip
    calls, nanoseconds = told.read_text().split()
    return int(calls), float(nanoseconds)


def clocks_of_a_sample(words: list[str], samples: int, folder: pathlib.Path) -> dict[str, float]:
    once, _ = clocks(words, 1, folder / "told")
    more, nanoseconds = clocks(words, 1 + MORE_EPOCHS, folder / "told")
    return {"calls": (more - once) / (MORE_EPOCHS * samples), "ns": nanoseconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.runs, args.samples = 1, 4000

    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(folder, args.samples)
        with Bucket(folder, latency="0ms", repeat=f"objects/x.bin:{args.samples}") as bucket:
            pipelines = {
                "records of shards, local": [str(folder / "shards")],
                "objects of a bucket": ["s3://objects", "--endpoint-url", bucket.url, "--no-sign-request"],
            }
            for pipeline, words in pipelines.items():
                found = interleave(
                    {"cpu": lambda: cpu_of_a_sample(words, None),
                     "clocks": lambda: clocks_of_a_sample(words, args.samples, folder)},
                    args.runs,
                )  # fmt: skip
                cpu, cpu_spread = spread(found["cpu"]["cpu"])
                calls, _ = spread(found["clocks"]["calls"])
                nanoseconds, ns_spread = spread(found["clocks"]["ns"])
                rows.append({
                    "pipeline": pipeline, "calls a sample": round(calls, 2), "ns a call": nanoseconds, "+-": ns_spread,
                    "CPU a sample, us": cpu, "+- ": cpu_spread, "clocks, %": round(calls * nanoseconds / cpu / 10, 2),
                })  # fmt: skip
    report("clocks: always on, of a sample", rows, args.json)


if __name__ == "__main__":
    main()
