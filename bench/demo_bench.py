"""The demo as a benchmark: seven ways to train from a bucket 55 ms away, and its picture.

    ./dev bench demo [--runs 5] [--picture docs/demo.svg] [--quick] [--json]

The demo runs all ways in turn, as often as told. Look at `of_torch_best`: the samples a second of
a way over those of torch's DataLoader at the best setting of a sweep, in the same run of the demo.
Medians and median absolute deviations are of the runs; the last run draws the picture.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
from typing import Any

from measure import report, spread

DEMO = pathlib.Path(__file__).parents[1] / "examples/demo.py"


def run_demo(words: list[str]) -> dict[str, Any]:
    """The report of a demo. Exits where the demo fails."""
    done = subprocess.run([sys.executable, DEMO, "--json", *words], stdout=subprocess.PIPE, text=True, check=False)
    told = done.stdout.splitlines()
    if done.returncode != 0 or not told:
        sys.exit("\n".join(told) or f"the demo ended with {done.returncode}")
    return json.loads(told[-1])


def row_of(name: str, demos: list[dict[str, Any]]) -> dict[str, Any]:
    ways = [demo["ways"][name] for demo in demos]
    rate, mad = spread([way["samples_per_second"] for way in ways])
    wait, wait_mad = spread([way["wait_fraction"] for way in ways])
    ratio, ratio_mad = spread([
        way["samples_per_second"] / demo["ways"]["torch_best"]["samples_per_second"]
        for way, demo in zip(ways, demos)
    ])  # fmt: skip
    return {
        "way": name, "samples_per_second": round(rate, 1), "mad": round(mad, 1),
        "of_torch_best": round(ratio, 2), "ratio_mad": round(ratio_mad, 2),
        "wait_fraction": round(wait, 4), "wait_mad": round(wait_mad, 4),
        "samples_trained": spread([way["samples_trained"] for way in ways])[0],
        "gets": spread([sum(way["gets"]) for way in ways])[0],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--picture", help="the last run draws it there; default: where the demo does")
    parser.add_argument("--quick", action="store_true", help="one run: does it work?")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.runs = 1
    demos = []
    for run in range(options.runs):
        print(f"run {run + 1} of {options.runs}", file=sys.stderr)
        is_last = run == options.runs - 1
        demos.append(run_demo(["--picture", options.picture] if options.picture and is_last else []))
    rows = [row_of(name, demos) for name in demos[0]["ways"]]
    report(f"demo: {demos[0]['samples']} photographs, {demos[0]['latency']} away", rows, options.json)


if __name__ == "__main__":
    main()
