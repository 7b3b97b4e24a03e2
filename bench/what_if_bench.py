"""Measures how well `leat what-if` predicts, from one profile, later
measurements.

    ./dev bench what_if [--loaders torch leat] [--runs 1] [--json]

bench/emulated_training.py reads JPEGs of a bucket and decodes them; its accelerator is
a sleep. It is profiled once on two cores, 20 ms from its bucket, with nothing cached;
from that report alone each row is foretold: 5, 10, 20 and 40 ms of latency, one core
and two, 0 to 100 % of the bytes in memory. Then each row is run, without the profiler.
No constant of the model is fitted to these rows. Look at: `error %`, the distance of
foretold samples a second from those found; its median within 10 and worst within 20.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from emulated_training import BATCH, make_photos
from leat.testing import Bucket, find_binary
from measure import report, spread

TRAINING = pathlib.Path(__file__).with_name("emulated_training.py")
LATENCIES = (5, 10, 20, 40)
PROFILED_AT = 20
CACHED = (0, 0.25, 0.5, 0.75, 1)
CORES = (1, 2)
COMPUTE = 20


def limited_to(cpus: list[int]) -> list[str]:
    return ["taskset", "--cpu-list", ",".join(map(str, cpus))]


def profiled(loader: str, folder: pathlib.Path, bucket: Bucket, cpus: list[int], repeats: int) -> pathlib.Path:
    """The report of the one profile."""
    project = folder / f"profiled-{loader}"
    project.mkdir()
    done = subprocess.run(
        [*limited_to(cpus), find_binary(), "profile", "--json", "--steps", "20", "--warmup", "6", "--repeats",
         str(repeats), "--", sys.executable, str(TRAINING), str(folder / "photos"), "--loader", loader,
         "--compute", str(COMPUTE)],
        cwd=project, env={**os.environ, **bucket.env(), "HOME": str(project)}, check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    (project / "report.json").write_bytes(done.stdout)
    return project / "report.json"


def foretold(path: pathlib.Path, row: dict[str, Any], cached: float) -> float:
    """Seconds of a step."""
    done = subprocess.run(
        [find_binary(), "what-if", str(path), "--json", "--with", f"cached={cached}",
         f"cores={row['cores'] / max(CORES)}", f"latency={row['latency'] / PROFILED_AT}"],
        check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    return json.loads(done.stdout)["asked"]["step_seconds"]


def found(loader: str, folder: pathlib.Path, rows: list[dict[str, Any]], urls: dict[int, str], cpus: list[int]) -> None:
    """Runs each row once more, those of each number of cores in one process."""
    for cores in CORES:
        of_cores = [row for row in rows if row["cores"] == cores]
        asked = [{"url": urls[row["latency"]], "cached": row["cached"], "compute": COMPUTE} for row in of_cores]
        print(f"{loader}, {cores} core(s): {len(asked)} settings", file=sys.stderr)
        done = subprocess.run(
            [*limited_to(cpus[:cores]), sys.executable, str(TRAINING), str(folder / "photos"), "--loader", loader,
             "--measure"],
            input="".join(json.dumps(one) + "\n" for one in asked), check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        for row, line in zip(of_cores, done.stdout.splitlines(), strict=True):
            told = json.loads(line)
            row["steps"].append(statistics.mean(told["seconds"]))
            row["hits"] = told["cached"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loaders", nargs="+", choices=BATCH, default=list(BATCH))
    parser.add_argument("--runs", type=int, default=1, help="of each row, and repeats of the profile")
    parser.add_argument("--keep", help="a folder for the reports")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[: max(CORES)]
    if len(cpus) < max(CORES):
        sys.exit(f"this needs {max(CORES)} CPUs")

    rows = []
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        make_photos(folder, 640)
        buckets = {latency: stack.enter_context(Bucket(folder, latency=f"{latency}ms")) for latency in LATENCIES}
        urls = {latency: bucket.url for latency, bucket in buckets.items()}
        for loader in args.loaders:
            path = profiled(loader, folder, buckets[PROFILED_AT], cpus, args.runs)
            if args.keep:
                pathlib.Path(args.keep, f"{loader}.json").write_bytes(path.read_bytes())
            mine = [{"loader": loader, "latency": latency, "cores": cores, "cached": cached, "steps": []}
                    for latency, cores, cached in itertools.product(LATENCIES, CORES, CACHED)]  # fmt: skip
            for _ in range(args.runs):
                found(loader, folder, mine, urls, cpus)
            for row in mine:
                step, deviation = spread(row.pop("steps"))
                said = foretold(path, row, row["hits"])
                row.update({
                    "cached": 100.0 * row["cached"], "hits": 100.0 * row["hits"],
                    "foretold/s": BATCH[loader] / said, "found/s": BATCH[loader] / step,
                    "spread": BATCH[loader] * deviation / step**2,
                    "error %": 100 * (step / said - 1),
                })  # fmt: skip
            rows += mine
    for loader in args.loaders:
        errors = [abs(row["error %"]) for row in rows if row["loader"] == loader]
        rows += [{"loader": f"{loader}: {name}", "error %": of(errors)} for name, of in (("median", statistics.median), ("worst", max))]
    report("what-if: samples a second, foretold and found", rows, args.json)


if __name__ == "__main__":
    main()
