"""The tuner, from 1 thread and 1 request in flight, beside the best of a grid.

    ./dev bench tune [--runs 5] [--settle 30] [--seconds 2.5] [--only NAME,...] [--tensorflow PYTHON] [--json]
    ./dev bench tune --changes [--runs 5] [--settle 30] [--seconds 2.5] [--only NAME,...] [--json]

With five runs a pipeline takes 5 to 10 minutes, and with tf.data up to twice that.

Five pipelines, each bounded by something else once it is well set (`bound`), read with
`tune={"threads": 1, "max_in_flight": 1}`, `memory="256MiB"` and hashes on. First every
setting of a grid of 21 runs alone, without tuning, and the best three of them again for longer; then, `--runs`
times and interleaved, the best of the grid ("best"), the tuned loader, a new one each time ("tuned"), and
threads = cores with a window of latency x rate of the fastest ("good start"). 1 thread and 1 request
("naive") runs twice. A tuned loader is measured once it has tried nothing for 3 s, at the latest
--settle seconds after its start: `measured_from_s` is the latest of the runs. `of_best_percent` is the median rate
over that of "best"; 90 is the aim. No rate is given as more than the store's whole bandwidth brings: what was read
before the measured time may be delivered in it. `last_change_s` is when the tuner last changed something that it kept.

With --tensorflow, a Python that can import TensorFlow, tf.data reads the same objects
(bench/tune_tensorflow.py): "tf.data AUTOTUNE" as its guide has it, and "tf.data, calls" with the best number of
reads at once of a sweep, which goes on until its best is inside it (2,048 is the most, or as many as there are
reads). Its reads are functions of Python, which run one at a time but for the waiting: what that costs is in both.
Each has --settle / 3 seconds before it is measured. All its bytes are verified first, and its GETs counted at the server.

With --changes: latency 5 -> 80 ms, training four times as fast, and a busy neighbour on
one core, in mid-run; the rate from 15 s after the change on, over that of the best of the
grid in the new world. It changes once the loader has settled.

Every epoch that ends, in any run, has the same order hash, content hash, bytes read
and, unless the tuner made parts of another length, number of GETs; otherwise the bench
ends. It also ends if more of memory= was held than there is.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import leat
from measure import interleave, report, spread
from tune_changes import CHANGES, changed
from tune_opponent import TensorFlow, can_import, most_of_store
from tune_pipelines import PIPELINES, Pipeline, Seen, best_of_grid, checked, fixed, make, run, settled


def good_start(rates: dict[tuple[int, int], float]) -> tuple[int, int]:
    """threads = cores, window = latency x rate: a setting by hand, from two points
    of the grid."""
    cores = max(t for t, _ in rates if t <= len(os.sched_getaffinity(0)))
    windows = [w for t, w in rates if t == cores and w <= 128]
    # One request at a time: its rate is 1 / latency, so latency x rate is their ratio.
    slow, fast = rates[cores, min(windows)], rates[cores, max(windows)]
    return cores, max(1, round(min(windows) * fast / slow))


def ways_of(
    pipeline: Pipeline, bucket: leat.testing.Bucket, options: argparse.Namespace
) -> tuple[dict[str, Callable[[], dict[str, Any]]], dict[str, str]]:
    """The ways that run against each other, and their settings."""
    seen, dataset = Seen(), pipeline.dataset(bucket)

    def rate_of(threads: int, requests: int, seconds: float) -> float:
        done = run(pipeline, dataset, seen, 0.5, seconds, **fixed(threads, requests))
        return checked(pipeline, done).rate

    def tuned() -> dict[str, Any]:
        done = checked(pipeline, run(
            pipeline, dataset, seen, settled(options.settle), options.seconds,
            tune={"threads": 1, "max_in_flight": 1},
        ))  # fmt: skip
        said["tuned"] = done.settings
        return {"rate": done.rate, "last_change_s": done.last_change, "measured_from_s": done.measured_from}

    best, rates = best_of_grid(rate_of, options.seconds, options.quick)
    start = good_start(rates)
    said = {"best": str(best), "tuned": "", "good start": str(start), "naive": "(1, 1)"}
    return {
        "best": lambda: {"rate": rate_of(*best, options.seconds)},
        "tuned": tuned,
        "good start": lambda: {"rate": rate_of(*start, options.seconds)},
        "naive": lambda: {"rate": rate_of(1, 1, options.seconds)},
    }, said


def tuned_against_grid(pipeline: Pipeline, root: pathlib.Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    with leat.testing.Bucket(root, threads=2, **pipeline.bucket) as bucket:
        ways, said = ways_of(pipeline, bucket, options)
        naive = {"naive": ways.pop("naive")}
        found = interleave(ways, options.runs)
        found |= interleave(naive, min(2, options.runs))
        if options.tensorflow:
            with TensorFlow(options.tensorflow, pipeline, root, bucket) as opponent:
                others, calls = opponent.ways(options.settle / 3, options.seconds, options.quick)
                said |= calls
                found |= interleave(others, min(3, options.runs))
    most = most_of_store(pipeline, root)
    for of in found.values():
        of["rate"] = [min(rate, most) for rate in of["rate"]]
    top = statistics.median(found["best"]["rate"])
    rows: list[dict[str, Any]] = []
    for name, of in found.items():
        median, mad = spread(of["rate"])
        rows.append({
            "pipeline": pipeline.name, "bound": pipeline.bound, "way": name, "rate": median, "mad": mad,
            "of_best_percent": round(100 * median / top),
            "last_change_s": max(of.get("last_change_s", [0.0])) if name == "tuned" else "",
            "measured_from_s": max(of.get("measured_from_s", [0.0])) if name == "tuned" else "",
            "settings": said[name],
        })  # fmt: skip
        print(rows[-1], file=sys.stderr)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--settle", type=float, default=30, help="seconds until a tuned loader is measured, at most")
    parser.add_argument("--seconds", type=float, default=2.5, help="seconds that are measured")
    parser.add_argument("--only", default="", help="such as images,tiny")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="one that can import tensorflow")
    parser.add_argument("--changes", action="store_true", help="changes in mid-run instead")
    parser.add_argument("--quick", action="store_true", help="a second of each: does it work?")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    known = [c.pipeline for c in CHANGES] if options.changes else [p.name for p in PIPELINES]
    names = options.only.split(",") if options.only else known
    if set(names) - set(known):
        parser.error("--only names some of " + ", ".join(known))
    if options.quick:
        options.runs, options.settle, options.seconds = 1, 2, 1
    if not options.changes and not options.tensorflow:
        print("tf.data is left out: --tensorflow names a Python that can import tensorflow", file=sys.stderr)
    if options.tensorflow and not can_import(options.tensorflow):
        parser.error(f"{options.tensorflow} cannot import tensorflow: pip install tensorflow-cpu in a venv of its own")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        make(root, names, 8 if options.quick else 1)
        if options.changes:
            report("changes", [changed(c, root, options) for c in CHANGES if c.pipeline in names], options.json)
            return
        rows = []
        for pipeline in PIPELINES:
            if pipeline.name in names:
                rows += tuned_against_grid(pipeline, root, options)
        report("tune", rows, options.json)


if __name__ == "__main__":
    main()
