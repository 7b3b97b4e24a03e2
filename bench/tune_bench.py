"""The tuner, from 1 thread and 1 request in flight, beside the best of a grid.

    ./dev bench tune [--runs 5] [--settle 30] [--seconds 6] [--only NAME,...] [--changes] [--quick] [--json]

Five pipelines, each bounded by something else once it is well set (`bound`), read with
`tune={"threads": 1, "max_in_flight": 1}`, `memory="256MiB"` and hashes on. First every
setting of a grid of 21 runs alone, without tuning; then, `--runs` times and interleaved, the best of the
grid ("best"), the tuned loader, measured once --settle seconds are over ("tuned"), 1 thread
and 1 request ("naive"), and threads = cores with a window of latency x rate of the fastest
("good start"). `of_best_percent` is the median rate over that of "best"; 90 is the aim.
`last_change_s` is when the tuner last changed something that it kept.

With --changes: latency 5 -> 80 ms, training four times as fast, and a busy neighbour on
one core, in mid-run; the rate from 15 s after the change on, over that of the best of the
grid in the new world.

Every epoch that ends, in whatever run, has the same order hash, content hash and number of
GETs, or the bench ends; so it does where more of memory= was held than there is.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import leat
from measure import interleave, report, spread
from tune_pipelines import PIPELINES, Pipeline, Run, Seen, make, run

THREADS, REQUESTS = (1, 2, 4), (1, 4, 16, 64, 128, 256, 512)
MEMORY = 256 << 20


def fixed(threads: int, requests: int) -> dict[str, Any]:
    return {"tune": False, "threads": threads, "max_in_flight": requests}


def checked(pipeline: Pipeline, done: Run) -> Run:
    if done.peak_memory > MEMORY:
        sys.exit(f"{pipeline.name}: {done.peak_memory} bytes held of {MEMORY}")
    return done


def best_of_grid(way: Callable[[int, int], float], is_quick: bool) -> tuple[tuple[int, int], dict[tuple[int, int], float]]:
    grid = [(t, w) for t in THREADS for w in REQUESTS]
    rates = {}
    for setting in [(2, 64)] if is_quick else grid:
        rates[setting] = way(*setting)
        print(f"grid {setting}: {rates[setting]:.1f}/s", file=sys.stderr)
    return max(rates, key=rates.__getitem__), rates


def good_start(pipeline: Pipeline, bucket: leat.testing.Bucket, seconds: float) -> tuple[int, int]:
    """threads = cores, window = latency x rate: what one would set by hand, from two short runs."""
    cores = len(os.sched_getaffinity(0))
    dataset = pipeline.dataset(bucket)
    fast = run(pipeline, dataset, Seen(), 1, seconds, **fixed(cores, 128)).rate
    slow = run(pipeline, dataset, Seen(), 0, seconds, **fixed(cores, 1)).rate
    # One request at a time: its rate is 1 / latency, so latency x rate is their ratio.
    return cores, max(1, round(fast / max(slow, 1e-9)))


def tuned_against_grid(pipeline: Pipeline, root: pathlib.Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    seen = Seen()
    last, settings = [], []
    with leat.testing.Bucket(root, threads=2, **pipeline.bucket) as bucket:
        dataset = pipeline.dataset(bucket)

        def rate_of(threads: int, requests: int, seconds: float, settle: float = 1) -> float:
            done = run(pipeline, dataset, seen, settle, seconds, **fixed(threads, requests))
            return checked(pipeline, done).rate

        def tuned() -> dict[str, float]:
            done = checked(pipeline, run(
                pipeline, dataset, seen, options.settle, options.seconds,
                tune={"threads": 1, "max_in_flight": 1},
            ))  # fmt: skip
            last.append(done.last_change)
            settings.append(done.settings)
            return {"rate": done.rate}

        best, _ = best_of_grid(lambda t, w: rate_of(t, w, options.seconds / 2), options.quick)
        start = good_start(pipeline, bucket, options.seconds / 3)
        ways: dict[str, Callable[[], dict[str, float]]] = {
            "best": lambda: {"rate": rate_of(*best, options.seconds)},
            "tuned": tuned,
            "naive": lambda: {"rate": rate_of(1, 1, options.seconds)},
            "good start": lambda: {"rate": rate_of(*start, options.seconds)},
        }
        found = interleave(ways, options.runs)
    top = statistics.median(found["best"]["rate"])
    said = {"best": best, "tuned": settings[-1], "naive": (1, 1), "good start": start}
    rows = []
    for name in ways:
        median, mad = spread(found[name]["rate"])
        rows.append({
            "pipeline": pipeline.name, "bound": pipeline.bound, "way": name, "rate": median, "mad": mad,
            "of_best_percent": round(100 * median / top),
            "last_change_s": max(last) if name == "tuned" else "", "settings": str(said[name]),
        })  # fmt: skip
    return rows


class Neighbour:
    """A process that keeps one core busy."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        core = min(os.sched_getaffinity(0))
        code = f"import os\nos.sched_setaffinity(0, [{core}])\nwhile True: pass"
        self._process = subprocess.Popen([sys.executable, "-c", code])

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def changes(root: pathlib.Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Three changes of the world in mid-run."""
    by_name = {pipeline.name: pipeline for pipeline in PIPELINES}
    rows = []
    for what, pipeline, steps, far in (
        ("latency 5 -> 80 ms", by_name["tiny"], (0.04, 0.04), True),
        ("training x 4", by_name["images"], (0.2, 0.05), False),
        ("a neighbour on one core", by_name["decode"], (0.0, 0.0), False),
    ):
        rates: dict[str, list[float]] = {"tuned": [], "best": []}
        for _ in range(options.runs):
            rates["tuned"].append(changed_run(pipeline, root, steps, far, what, options))
        best = best_after(pipeline, root, steps[1], far, what, options)
        median, mad = spread(rates["tuned"])
        rows.append({
            "change": what, "pipeline": pipeline.name, "rate": median, "mad": mad, "best": best[1],
            "of_best_percent": round(100 * median / best[1]), "best_settings": str(best[0]),
        })  # fmt: skip
    return rows


def changed_run(pipeline, root, steps, far, what, options) -> float:  # type: ignore[no-untyped-def]
    """The rate from 15 s after the change on, that of a loader that had settled before it."""
    neighbour = Neighbour()
    at = options.settle
    near = {**pipeline.bucket, "latency": "5ms"} if far else pipeline.bucket
    before = 0
    if far:  # About as many requests as settling takes; then each is 75 ms slower.
        before = round(at * pipeline.batch / steps[0])
        near["fault_script"] = f"after {before} GET * slow:75ms"
    with leat.testing.Bucket(root, threads=2, **near) as bucket:
        step = iter_steps(steps, at)
        settle: Any = after_requests(bucket, before) if far else at + 15
        timer = threading.Timer(at, neighbour.start if "neighbour" in what else lambda: None)
        timer.start()
        try:
            done = run(pipeline, pipeline.dataset(bucket), Seen(), settle, options.seconds, step=step)
        finally:
            timer.cancel()
            neighbour.stop()
        return checked(pipeline, done).rate


def after_requests(bucket: leat.testing.Bucket, count: int) -> Callable[[float], bool]:
    """15 s after so many GETs were answered; asked for twice a second."""
    asked, crossed = 0.0, 0.0

    def is_over(now: float) -> bool:
        nonlocal asked, crossed
        if not crossed and now >= asked + 0.5:
            asked = now
            if bucket.counters()["get"] >= count:
                crossed = now
        return crossed > 0 and now >= crossed + 15

    return is_over


def iter_steps(steps: tuple[float, float], at: float) -> Callable[[float], float]:
    return lambda now: steps[0] if now < at else steps[1]


def best_after(pipeline, root, step, far, what, options) -> tuple[tuple[int, int], float]:  # type: ignore[no-untyped-def]
    """The best of the grid where the world is as after the change from the start."""
    neighbour = Neighbour()
    bucket_options = {**pipeline.bucket, "latency": "80ms"} if far else pipeline.bucket
    if "neighbour" in what:
        neighbour.start()
    try:
        with leat.testing.Bucket(root, threads=2, **bucket_options) as bucket:
            dataset = pipeline.dataset(bucket)

            def way(t: int, w: int) -> float:
                return run(pipeline, dataset, Seen(), 1, options.seconds / 2, step=lambda _: step, **fixed(t, w)).rate

            setting, _ = best_of_grid(way, options.quick)
            again = [
                run(pipeline, dataset, Seen(), 1, options.seconds, step=lambda _: step, **fixed(*setting)).rate
                for _ in range(options.runs)
            ]
    finally:
        neighbour.stop()
    return setting, statistics.median(again)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--settle", type=float, default=30, help="seconds before tuned loaders are measured")
    parser.add_argument("--seconds", type=float, default=6, help="seconds that are measured")
    parser.add_argument("--only", default="", help="such as images,tiny")
    parser.add_argument("--changes", action="store_true", help="changes in mid-run instead")
    parser.add_argument("--quick", action="store_true", help="a second of each: does it work?")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    unknown = set(filter(None, options.only.split(","))) - {p.name for p in PIPELINES}
    if unknown or (options.only and options.changes):
        parser.error("--only names some of " + ", ".join(p.name for p in PIPELINES) + ", without --changes")
    if options.quick:
        options.runs, options.settle, options.seconds = 1, 2, 1
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        names = options.only.split(",") if options.only else [p.name for p in PIPELINES]
        make(root, names, 8 if options.quick else 1)
        if options.changes:
            report("changes", changes(root, options), options.json)
            return
        rows = []
        for pipeline in PIPELINES:
            if pipeline.name in names:
                rows += tuned_against_grid(pipeline, root, options)
        report("tune", rows, options.json)


if __name__ == "__main__":
    main()
