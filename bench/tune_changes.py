"""Three changes of the world in mid-run, for bench/tune_bench.py --changes."""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import leat
from measure import spread
from tune_pipelines import PIPELINES, Pipeline, Seen, best_of_grid, checked, fixed, run

SETTLED = 12.0  # Seconds from the start until the change, at most.
WAIT = 15.0  # Seconds from the change until the tuned loader is measured.


@dataclass
class Change:
    what: str
    pipeline: str
    steps: tuple[float, float]  # Seconds of training a batch, before and after.
    # The bucket's latencies; empty: the pipeline's.
    latencies: tuple[str, str] = ("", "")
    has_neighbour: bool = False  # A process that keeps one core busy, after.


CHANGES = [
    Change("latency 5 -> 80 ms", "tiny", (0.01, 0.01), ("5ms", "80ms")),
    Change("training x 4", "images", (0.2, 0.05)),
    Change("a neighbour on one core", "decode", (0.0, 0.0), has_neighbour=True),
]


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


class World:
    """When it changes, and what then is so."""

    def __init__(self, change: Change, batch: int, most: float) -> None:
        self.neighbour = Neighbour()
        self._change, self._batch = change, batch
        self._at = min(most, SETTLED)
        self._changed_at = self._asked_at = 0.0

    def bucket_options(self, pipeline: Pipeline) -> dict[str, Any]:
        """A bucket's latency is set once: later requests are so much slower, after
        as many GETs as come before."""
        before, after = self._change.latencies
        if not after:
            return pipeline.bucket
        slower = f"after {self._gets()} GET * slow:{_ms(after) - _ms(before)}ms"
        return {**pipeline.bucket, "latency": before, "fault_script": slower}

    def _gets(self) -> int:
        return round(self._at * self._batch / self._change.steps[0])

    def step(self, now: float) -> float:
        return self._change.steps[0 if now < self._at else 1]

    def is_over(self, bucket: leat.testing.Bucket) -> Any:
        """Tells when to measure: once the world has been different for WAIT
        seconds."""

        def answer(now: float, _: leat.Loader) -> bool:
            if self._changed_at:
                return now >= self._changed_at + WAIT
            if now >= self._asked_at + 0.5:
                self._asked_at = now
                if self._is_changed(now, bucket):
                    self._changed_at = now
            return False

        return answer

    def _is_changed(self, now: float, bucket: leat.testing.Bucket) -> bool:
        if self._change.latencies[1]:
            return bucket.counters()["get"] >= self._gets()
        if now < self._at:
            return False
        if self._change.has_neighbour:
            self.neighbour.start()
        return True


def _ms(latency: str) -> int:
    return int(latency.removesuffix("ms"))


def changed(change: Change, root: pathlib.Path, options: argparse.Namespace) -> dict[str, Any]:
    """One row: tuned, beside the best of the grid where the world is so from the start."""
    pipeline = next(p for p in PIPELINES if p.name == change.pipeline)
    rates = [changed_run(change, pipeline, root, options) for _ in range(options.runs)]
    setting, again = best_after(change, pipeline, root, options)
    median, mad = spread(rates)
    best = statistics.median(again)
    return {
        "change": change.what, "pipeline": pipeline.name, "rate": median, "mad": mad, "best": best,
        "of_best_percent": round(100 * median / best), "best_settings": str(setting),
    }  # fmt: skip


def changed_run(change: Change, pipeline: Pipeline, root: pathlib.Path, options: argparse.Namespace) -> float:
    """The rate from WAIT seconds after the change on, that of a loader that had settled before it."""
    world = World(change, pipeline.batch, options.settle)
    with leat.testing.Bucket(root, threads=2, **world.bucket_options(pipeline)) as bucket:
        try:
            done = run(
                pipeline, pipeline.dataset(bucket), Seen(), world.is_over(bucket), options.seconds, step=world.step
            )
        finally:
            world.neighbour.stop()
    print(f"{change.what}: {checked(pipeline, done).rate:.1f}/s, {done.settings}", file=sys.stderr)
    return done.rate


def best_after(
    change: Change, pipeline: Pipeline, root: pathlib.Path, options: argparse.Namespace
) -> tuple[tuple[int, int], list[float]]:
    """The best of the grid where the world is as after the change from the start, and its rates again."""
    neighbour, seen = Neighbour(), Seen()
    far = {"latency": change.latencies[1]} if change.latencies[1] else {}
    if change.has_neighbour:
        neighbour.start()
    try:
        with leat.testing.Bucket(root, threads=2, **{**pipeline.bucket, **far}) as bucket:
            dataset = pipeline.dataset(bucket)

            def way(threads: int, requests: int, seconds: float) -> float:
                how = fixed(threads, requests)
                return run(pipeline, dataset, seen, 0.5, seconds, step=lambda _: change.steps[1], **how).rate

            setting, _ = best_of_grid(way, options.seconds, options.quick)
            return setting, [way(*setting, options.seconds) for _ in range(options.runs)]
    finally:
        neighbour.stop()
