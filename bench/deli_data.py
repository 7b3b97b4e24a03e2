"""Does the simulator say what DELI's authors measured?

    python bench/deli_data.py DIR [OTHER...] [--reads N] [--json]

DIR holds the raw results of their artifact for CIFAR-10 (cake-lab/DELI, IC2E 2021):
tables of trials, epochs and nodes, each row with the share of reads that missed and the
seconds that the training loop spent loading. Four constants are taken from
fetch-size-results.csv alone: the time of a GET, of a hit, of the start of a fetch, and
of each sample in it. With them `leat plan --simulate` predicts every other table that
has reads from the bucket. The script prints the errors of each prediction, the median
and the worst: of the miss rate in points, of the loading time in per cent; for each
table, and for all rows that fetch ahead with a threshold T and without. It names tables
that it does not predict: baseline-disk.csv is about a local disk, for whose reads there
is no constant.

OTHER is a folder of such tables of another data set, of which the fit sees nothing: all
of its tables are predicted with the constants of DIR. The reads of a node, an epoch,
are what its rows say in 'Number of Accesses', or N. A table that is not there is named.

A training step computes what an epoch of fetch-size-results.csv takes beyond loading,
a sample; waiting for other nodes is in it. In OTHER, where another network trains, that
is what its own epochs take beyond loading. Rows are means over trials and nodes.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from deli_tables import (
    EPOCHS, FITTED, LOCAL_DISK, NODES, PREDICTED, Case, Measured, OtherDataError, Source, open_other, read_table,
)  # fmt: skip
from leat import testing


class Constants(NamedTuple):
    """Seconds."""

    get: float
    hit: float
    fetch: float
    fetch_sample: float


def prefetched(case: Case, samples: int, compute_a_sample: float, constants: Constants) -> str:
    """The case for `leat plan --simulate`."""
    return f"""
[[deli]]
samples = {samples}
nodes = {NODES}
epochs = {EPOCHS}
batch_size = {case.batch}
fetch_size = {case.fetch}
queue_threshold = {case.threshold}
items = {case.items}
compute = "{compute_a_sample * case.batch:.9f}s"
get = "{constants.get:.9f}s"
hit = "{constants.hit:.9f}s"
fetch = "{constants.fetch:.9f}s"
fetch_sample = "{constants.fetch_sample:.9f}s"
"""


def demand_filled(case: Case, samples: int) -> str:
    """A cache that misses alone fill, first in, first out."""
    tiers = f'tiers = [{{policy = "fifo", items = {case.items}}}]' if case.items else ""
    return f"""
[[simulation]]
samples = {samples}
global_batch_size = {NODES * case.batch}
world_size = {NODES}
nodes = {NODES}
epochs = {EPOCHS}
{tiers}
"""


def simulate(text: str) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(
            [testing.find_binary(), "plan", "--simulate", file.name, "--json"],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        sys.exit(f"deli_data: {done.stderr}")
    runs: dict[str, Any] = json.loads(done.stdout)
    return runs


def predict(
    source: Source, cases: list[Case], compute: float, constants: Constants
) -> dict[tuple[Case, int], tuple[float, float]]:
    """Miss rate and loading seconds of each case and epoch."""
    with_fetch = [case for case in cases if case.fetch]
    without = [case for case in cases if not case.fetch]
    runs = simulate(
        "".join([prefetched(case, source.samples, compute, constants) for case in with_fetch])
        + "".join([demand_filled(case, source.samples) for case in without])
    )
    predicted = {}
    for case, run in zip(with_fetch, runs["deli"], strict=True):
        for number, epoch in enumerate(run["epochs"], start=1):
            predicted[case, number] = (epoch["miss_rate"], epoch["loading_seconds"])
    for case, run in zip(without, runs["simulations"], strict=True):
        for number, epoch in enumerate(run["epochs"], start=1):
            missed = epoch["gets"] / epoch["reads"]
            loading = source.reads * (missed * constants.get + (1 - missed) * constants.hit)
            predicted[case, number] = (missed, loading)
    return predicted


def compute_of(source: Source, rows: Iterable[Measured]) -> float:
    """Seconds a sample."""
    return statistics.mean(row.epoch_seconds - row.loading for row in rows) / source.reads


def fit(source: Source, table: dict[tuple[Case, int], Measured]) -> tuple[float, Constants]:
    """Seconds of compute a sample, and the four constants."""
    compute = compute_of(source, table.values())
    # Every read looks the cache up; a miss then waits for a GET.
    hit = statistics.mean((row.loading - row.gcp) / source.reads for row in table.values())
    get = hit + statistics.mean(row.gcp / (row.miss_rate * source.reads) for row in table.values())
    cases = sorted({case for case, _ in table})
    best = (float("inf"), Constants(get, hit, 5.0, 0.003))
    start_step, sample_step = 2.0, 0.001
    for _ in range(4):  # A grid of nine around the best, ever finer.
        around = best[1]
        for i in range(-2, 3):
            for j in range(-2, 3):
                constants = around._replace(
                    fetch=max(0.0, around.fetch + i * start_step),
                    fetch_sample=max(0.0, around.fetch_sample + j * sample_step),
                )
                predicted = predict(source, cases, compute, constants)
                # A tenth of the reads and a tenth of the time weigh the same.
                error = sum(
                    abs(predicted[key][0] - row.miss_rate)
                    + abs(predicted[key][1] / row.loading - 1)
                    for key, row in table.items()
                )
                best = min(best, (error, constants))
        start_step /= 2
        sample_step /= 2
    return compute, best[1]


def not_predicted(source: Source) -> dict[str, str]:
    """The tables of the folder that are left out, or that others have, and why."""
    why = {LOCAL_DISK: "reads of a local disk, which no constant is about"}
    there = {file.stem for file in source.folder.glob("*.csv")}
    left = {f"{name}.csv": why.get(name, "not known to this program") for name in sorted(there - {FITTED, *PREDICTED})}
    return left | {f"{name}.csv": "there is none" for name in (FITTED, *PREDICTED) if name not in there}


def errors_by(rows: list[dict[str, Any]], name_of: Callable[[dict[str, Any]], str]) -> dict[str, dict[str, float]]:
    """Each group has its own: one median over all hides the one that is wrong."""
    groups: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for row in rows:
        groups[name_of(row)].append(row)
    return {
        name: {
            "rows": len(of),
            "median_points": statistics.median(row["points"] for row in of),
            "worst_points": max(row["points"] for row in of),
            "median_per_cent": statistics.median(row["per_cent"] for row in of),
            "worst_per_cent": max(row["per_cent"] for row in of),
        }
        for name, of in groups.items()
    }


def held_against(
    source: Source, measured: dict[tuple[Case, int], Measured], compute: float, constants: Constants
) -> dict[str, Any]:
    """The predictions beside the rows of the tables, and the errors."""
    predicted = predict(source, sorted({case for case, _ in measured}), compute, constants)
    rows = []
    for (case, epoch), row in measured.items():
        missed, loading = predicted[case, epoch]
        rows.append(
            {
                **case._asdict(),
                "epoch": epoch,
                "missed": row.miss_rate,
                "missed_predicted": missed,
                "points": 100 * abs(missed - row.miss_rate),
                "loading": row.loading,
                "loading_predicted": loading,
                "per_cent": 100 * abs(loading / row.loading - 1),
            }
        )
    ahead = [row for row in rows if row["fetch"]]
    return {
        "folder": str(source.folder),
        "reads": source.reads,
        "compute_seconds_a_sample": compute,
        "errors": errors_by(rows, lambda row: str(row["table"])),
        "errors_by_threshold": errors_by(ahead, lambda row: "T > 0" if row["threshold"] else "T = 0"),
        "not_predicted": not_predicted(source),
        "table": rows,
    }


def print_result(result: dict[str, Any]) -> None:
    print(f"{result['folder']}, {result['reads']} reads of a node in an epoch:")
    for row in result["table"]:
        print(
            f"{row['table']:24} batch {row['batch']:4} F {row['fetch']:4} T {row['threshold']:4} "
            f"C {row['items']:5} epoch {row['epoch']}: missed {100 * row['missed']:5.1f} % "
            f"({100 * row['missed_predicted']:5.1f}), loading {row['loading']:5.0f} s "
            f"({row['loading_predicted']:5.0f})"
        )
    print(f"{'error: median, worst':24} {'rows':>4} {'miss rate, points':>20} {'loading time, %':>20}")
    for name, of in (result["errors"] | result["errors_by_threshold"]).items():
        points = f"{of['median_points']:.1f}, {of['worst_points']:.1f}"
        times = f"{of['median_per_cent']:.1f}, {of['worst_per_cent']:.1f}"
        print(f"{name:24} {of['rows']:4} {points:>20} {times:>20}")
    for name, why in result["not_predicted"].items():
        print(f"not predicted: {name}: {why}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", metavar="DIR", type=pathlib.Path, help="with fetch-size-results.csv and the others")
    parser.add_argument("others", metavar="OTHER", type=pathlib.Path, nargs="*", help="with tables that the fit does not see")
    parser.add_argument("--reads", type=int, help="of a node, an epoch, in OTHER; without it, what its rows say")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.reads is not None and options.reads < 1:
        parser.error(f"--reads {options.reads}: it is 1 or more")
    source = Source(options.folder)
    measured: dict[tuple[Case, int], Measured] = {}
    others: list[tuple[Source, dict[tuple[Case, int], Measured]]] = []
    try:
        fitted = read_table(source, FITTED)
        for name in PREDICTED:
            measured |= read_table(source, name)
        for folder in options.others:
            other, tables = open_other(folder, options.reads)
            others.append((other, {key: row for name in tables for key, row in read_table(other, name).items()}))
    except OtherDataError as wrong:
        sys.exit(f"deli_data: {wrong}")
    compute, constants = fit(source, fitted)
    result = held_against(source, measured, compute, constants)
    of_others = [held_against(other, rows, compute_of(other, rows.values()), constants) for other, rows in others]
    if options.json:
        print(json.dumps({**result, "constants": constants._asdict(), "others": of_others}))
        return 0
    print(f"constants, from {source.folder}/{FITTED}.csv: {constants}")
    for each in (result, *of_others):
        print_result(each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
