"""The cost of the clocks that always run: calls a sample, nanoseconds a call, over the
CPU a sample of the cheapest pipelines.

    ./dev bench clocks [--runs 5] [--samples 60000] [--json]

The pipelines are those of bench/trace_bench.py. Calls are counted by a library in front of
the C library's clock (bench/count_clocks.cc), as the difference of a run of three epochs
and one of one; CPU is of all threads, of the last of two epochs, without that library.
Look at: `clocks, %`.
"""

from __future__ import annotations

import os
import pathlib
import subprocess

from leat.testing import find_binary
from measure import interleave, report, spread
from micro import binary
from trace_bench import arguments, cheapest_pipelines, cpu_of_a_sample

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
    args = arguments(__doc__)
    rows = []
    with cheapest_pipelines(args.samples) as (pipelines, folder):
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
