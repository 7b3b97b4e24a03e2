"""Does the simulator say what DELI's authors measured?

    python bench/deli_data.py DIR [--json]

DIR holds the raw results of their artifact for CIFAR-10 (cake-lab/DELI, IC2E 2021):
tables of trials, epochs and nodes, each row with the share of reads that missed and the
seconds that the training loop spent loading. Four constants are taken from
fetch-size-results.csv alone: the time of a GET, of a hit, of the start of a fetch, and
of each sample in it. With them `leat plan --simulate` predicts every other table that
has reads from the bucket. The script prints the errors of each prediction, the median
and the worst: of the miss rate in points, of the loading time in per cent. It names
tables that it does not predict: baseline-disk.csv is about a local disk, for whose
reads there is no constant.

A training step computes what an epoch of fetch-size-results.csv takes beyond loading,
a sample; waiting for other nodes is in it. Rows are means over trials and nodes.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

from leat import testing

NODES = 3
# The reads of a node, an epoch. Rows with another number are of MNIST.
READS = 11_667
EPOCHS = 2
SAMPLES = NODES * READS
ENDLESS = SAMPLES  # Items that an unlimited cache holds.
FITTED = "fetch-size-results"
PREDICTED = ("cache-size-results", "min-queue-size", "fifty_fifty_full_fetch", "baseline-cache", "baseline-gcp")
LOCAL_DISK = "baseline-disk"
FETCH_SIZE = 1024  # For tables that do not tell: see the repository's scripts.


class Case(NamedTuple):
    """One setting of their experiment; `fetch` 0 if nothing is prefetched."""

    table: str
    batch: int
    fetch: int
    threshold: int
    items: int


class Measured(NamedTuple):
    miss_rate: float
    loading: float
    epoch_seconds: float
    gcp: float


class Constants(NamedTuple):
    """Seconds."""

    get: float
    hit: float
    fetch: float
    fetch_sample: float


class OtherDataError(Exception):
    """Says what of the data is not as this program knows it."""


def read_table(folder: pathlib.Path, table: str) -> dict[tuple[Case, int], Measured]:
    """Means by case and epoch. Raises OtherDataError."""
    path = folder / f"{table}.csv"
    try:
        return means_of(path, table)
    except FileNotFoundError:
        raise OtherDataError(f"{path}: there is none; DIR is the folder of the artifact's tables of CIFAR-10") from None
    except OSError as failed:
        raise OtherDataError(f"{path}: {failed.strerror}") from None
    except UnicodeDecodeError:
        raise OtherDataError(f"{path}: is no text") from None
    except KeyError as missing:
        raise OtherDataError(f"{path}: has no column {missing}") from None
    except (ValueError, csv.Error) as wrong:
        raise OtherDataError(f"{path}: {wrong}") from None


def means_of(path: pathlib.Path, table: str) -> dict[tuple[Case, int], Measured]:
    rows: dict[tuple[Case, int], list[Measured]] = collections.defaultdict(list)
    lines: dict[tuple[Case, int], int] = {}
    others: set[int] = set()
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        for row in reader:
            if not row.get("Epoch"):
                continue
            try:
                if (reads := whole(row, "Number of Accesses", READS)) != READS:
                    others.add(reads)
                    continue
                key = case_of(row, table), epoch_of(row)
                rows[key].append(measured_of(row))
            except ValueError as wrong:
                raise ValueError(f"line {reader.line_num}: {wrong}") from None
            lines.setdefault(key, reader.line_num)
    if not rows:
        seen = ", ".join(map(str, sorted(others))) or "none"
        raise ValueError(f"no row of {READS} reads a node, which are CIFAR-10's: rows have {seen}")
    means = {key: Measured(*map(statistics.mean, zip(*of, strict=True))) for key, of in rows.items()}
    for key, mean in means.items():
        check_divisors(mean, table, lines[key])
    return means


def check_divisors(mean: Measured, table: str, line: int) -> None:
    """Raises ValueError if errors, or constants, cannot be told relative to it. `line` is its first trial's."""
    if mean.loading == 0:
        raise ValueError(f"line {line}: 'Data Loading Time (s)' is 0, and errors are told as a share of it")
    if table == FITTED and mean.miss_rate == 0:
        raise ValueError(f"line {line}: 'Miss Rate' is 0, and the time of a GET is fitted to reads that missed")


Row = dict[str, Any]  # A row of a table, by its columns. One that is cut short has None in the last ones.


def case_of(row: Row, table: str) -> Case:
    batch = whole(row, "Batch Size")
    fetch = 0 if table in ("baseline-gcp", "baseline-cache") else whole(row, "Fetch Size", FETCH_SIZE)
    threshold = whole(row, "Minimum Queue Size", 0)
    if table == "baseline-gcp":
        items = 0
    else:
        items = ENDLESS if row.get("Cache Size") == "N/A" else whole(row, "Cache Size", ENDLESS)
    return Case(table, batch, fetch, threshold, items)


def epoch_of(row: Row) -> int:
    epoch = whole(row, "Epoch")
    if not 1 <= epoch <= EPOCHS:
        raise ValueError(f"'Epoch' is {epoch}, and {EPOCHS} are simulated, from 1 on")
    return epoch


def measured_of(row: Row) -> Measured:
    return Measured(
        number(row, "Miss Rate", 100.0) / 100,
        number(row, "Data Loading Time (s)"),
        number(row, "Epoch Run Time (s)"),
        number(row, "GCP Loading Time (s)", 0.0),
    )


def number(row: Row, column: str, default: float | None = None) -> float:
    """The cell, or the default if it is empty or there is no such column. Raises ValueError, KeyError."""
    text = row[column] if default is None else row.get(column, "")
    if text is None:
        raise ValueError(f"the row ends before its column {column!r}")
    if text == "" and default is not None:
        return default
    try:
        value = float(text.strip("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"{column!r} is {text!r}, and a number from 0 on was expected")
    return value


def whole(row: Row, column: str, default: int | None = None) -> int:
    """As number()."""
    value = number(row, column, default)
    if value % 1:
        raise ValueError(f"{column!r} is {value}, and no whole number")
    return int(value)


def prefetched(case: Case, compute_a_sample: float, constants: Constants) -> str:
    """The case for `leat plan --simulate`."""
    return f"""
[[deli]]
samples = {SAMPLES}
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


def demand_filled(case: Case) -> str:
    """A cache that misses alone fill, first in, first out."""
    tiers = f'tiers = [{{policy = "fifo", items = {case.items}}}]' if case.items else ""
    return f"""
[[simulation]]
samples = {SAMPLES}
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
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def predict(
    cases: list[Case], compute: float, constants: Constants
) -> dict[tuple[Case, int], tuple[float, float]]:
    """Miss rate and loading seconds of each case and epoch."""
    with_fetch = [case for case in cases if case.fetch]
    without = [case for case in cases if not case.fetch]
    told = simulate(
        "".join([prefetched(case, compute, constants) for case in with_fetch])
        + "".join([demand_filled(case) for case in without])
    )
    predicted = {}
    for case, run in zip(with_fetch, told["deli"], strict=True):
        for number, epoch in enumerate(run["epochs"], start=1):
            predicted[case, number] = (epoch["miss_rate"], epoch["loading_seconds"])
    for case, run in zip(without, told["simulations"], strict=True):
        for number, epoch in enumerate(run["epochs"], start=1):
            missed = epoch["gets"] / epoch["reads"]
            loading = READS * (missed * constants.get + (1 - missed) * constants.hit)
            predicted[case, number] = (missed, loading)
    return predicted


def fit(table: dict[tuple[Case, int], Measured]) -> tuple[float, Constants]:
    """Seconds of compute a sample, and the four constants."""
    compute = statistics.mean(row.epoch_seconds - row.loading for row in table.values()) / READS
    # Every read looks the cache up; a miss then waits for a GET.
    hit = statistics.mean((row.loading - row.gcp) / READS for row in table.values())
    get = hit + statistics.mean(row.gcp / (row.miss_rate * READS) for row in table.values())
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
                predicted = predict(cases, compute, constants)
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


def not_predicted(folder: pathlib.Path) -> dict[str, str]:
    """The other tables of the folder, and why they are left out."""
    why = {LOCAL_DISK: "reads of a local disk, which no constant is about"}
    others = sorted({file.stem for file in folder.glob("*.csv")} - {FITTED, *PREDICTED})
    return {f"{name}.csv": why.get(name, "not known to this program") for name in others}


def errors_by_table(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Each has its own: one median over all hides the table that is wrong."""
    groups: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for row in rows:
        groups[row["table"]].append(row)
    return {
        table: {
            "rows": len(of),
            "median_points": statistics.median(row["points"] for row in of),
            "worst_points": max(row["points"] for row in of),
            "median_per_cent": statistics.median(row["per_cent"] for row in of),
            "worst_per_cent": max(row["per_cent"] for row in of),
        }
        for table, of in groups.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="with fetch-size-results.csv and the others")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measured: dict[tuple[Case, int], Measured] = {}
    try:
        fitted = read_table(options.folder, FITTED)
        for name in PREDICTED:
            measured |= read_table(options.folder, name)
    except OtherDataError as other:
        sys.exit(f"deli_data: {other}")
    compute, constants = fit(fitted)
    predicted = predict(sorted({case for case, _ in measured}), compute, constants)
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
    result = {
        "compute_seconds_a_sample": compute,
        "constants": constants._asdict(),
        "errors": errors_by_table(rows),
    }
    left_out = not_predicted(options.folder)
    result["not_predicted"] = left_out
    if options.json:
        print(json.dumps(result | {"table": rows}))
        return 0
    print(f"constants, from fetch-size-results.csv: {constants}")
    for row in rows:
        print(
            f"{row['table']:24} batch {row['batch']:4} F {row['fetch']:4} T {row['threshold']:4} "
            f"C {row['items']:5} epoch {row['epoch']}: missed {100 * row['missed']:5.1f} % "
            f"({100 * row['missed_predicted']:5.1f}), loading {row['loading']:5.0f} s "
            f"({row['loading_predicted']:5.0f})"
        )
    print(f"{'error: median, worst':24} {'rows':>4} {'miss rate, points':>20} {'loading time, %':>20}")
    for name, of in result["errors"].items():
        points = f"{of['median_points']:.1f}, {of['worst_points']:.1f}"
        times = f"{of['median_per_cent']:.1f}, {of['worst_per_cent']:.1f}"
        print(f"{name:24} {of['rows']:4} {points:>20} {times:>20}")
    for name, why in left_out.items():
        print(f"not predicted: {name}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
