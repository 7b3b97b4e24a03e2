"""The tables of DELI's artifact, read: means by case and epoch. For bench/deli_data.py."""

from __future__ import annotations

import collections
import contextlib
import csv
import math
import pathlib
import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

NODES = 3
READS = 11_667  # A node's in an epoch, in DIR. Rows with another number are of MNIST.
EPOCHS = 2
FITTED = "fetch-size-results"
PREDICTED = ("cache-size-results", "min-queue-size", "fifty_fifty_full_fetch", "baseline-cache", "baseline-gcp")
LOCAL_DISK = "baseline-disk"
FETCH_SIZE = 1024  # For tables that do not tell: see the repository's scripts.


class Source(NamedTuple):
    """A folder of tables."""

    folder: pathlib.Path
    reads: int = READS  # A node's in an epoch.
    is_fitted: bool = True  # The constants are its FITTED's.

    @property
    def samples(self) -> int:
        """Also the items that an unlimited cache holds."""
        return NODES * self.reads


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


Row = dict[str, Any]  # A row of a table, by its columns. One that is cut short has None in the last ones.


class OtherDataError(Exception):
    """Says what of the data is not as this program knows it."""


def read_table(source: Source, table: str) -> dict[tuple[Case, int], Measured]:
    """Means by case and epoch. Raises OtherDataError."""
    with naming(path := source.folder / f"{table}.csv"):
        return means_of(path, table, source)


@contextlib.contextmanager
def naming(path: pathlib.Path) -> Iterator[None]:
    """Makes an OtherDataError of each fault of a table."""
    try:
        yield
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


def rows_of(path: pathlib.Path) -> Iterator[tuple[int, Row]]:
    """Line numbers and rows."""
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if "Epoch" not in (reader.fieldnames or ()):
            raise KeyError("Epoch")
        for row in reader:
            if row["Epoch"]:
                yield reader.line_num, row


def means_of(path: pathlib.Path, table: str, source: Source) -> dict[tuple[Case, int], Measured]:
    rows: dict[tuple[Case, int], list[Measured]] = collections.defaultdict(list)
    lines: dict[tuple[Case, int], int] = {}
    others: set[int] = set()
    for line, row in rows_of(path):
        try:
            if (reads := whole(row, "Number of Accesses", source.reads)) != source.reads:
                others.add(reads)
                continue
            key = case_of(row, table, source), epoch_of(row)
            rows[key].append(measured_of(row))
        except ValueError as wrong:
            raise ValueError(f"line {line}: {wrong}") from None
        lines.setdefault(key, line)
    if not rows:
        seen = ", ".join(map(str, sorted(others))) or "none"
        raise ValueError(f"no row of {source.reads} reads a node: rows have {seen}")
    means = {key: Measured(*map(statistics.mean, zip(*of, strict=True))) for key, of in rows.items()}
    for key, mean in means.items():
        check_divisors(mean, lines[key], source.is_fitted and table == FITTED)
    return means


def open_other(folder: pathlib.Path, reads: int | None) -> tuple[Source, list[str]]:
    """A folder of another data set, and those of its tables that can be predicted. Raises OtherDataError."""
    tables = [name for name in (FITTED, *PREDICTED) if (folder / f"{name}.csv").exists()]
    if not tables:
        wanted = ", ".join(f"{name}.csv" for name in (FITTED, *PREDICTED))
        raise OtherDataError(f"{folder}: is no folder, or has none of {wanted}")
    if reads is None:
        reads = only_number_of_reads(folder, tables)
    return Source(folder, reads, is_fitted=False), tables


def only_number_of_reads(folder: pathlib.Path, tables: list[str]) -> int:
    found = set()
    for name in tables:
        with naming(path := folder / f"{name}.csv"):
            for line, row in rows_of(path):
                try:
                    found.add(whole(row, "Number of Accesses", 0))
                except ValueError as wrong:
                    raise ValueError(f"line {line}: {wrong}") from None
    found.discard(0)  # Rows that do not say it.
    if len(found) != 1:
        seen = " and ".join(map(str, sorted(found)))
        what = f"is {seen} in its tables" if found else "is in none of its tables"
        raise OtherDataError(f"{folder}: 'Number of Accesses', the reads of a node, {what}: say which with --reads")
    return found.pop()


def check_divisors(mean: Measured, line: int, is_fitted: bool) -> None:
    """Raises ValueError if errors, or constants, cannot be told relative to it. `line` is its first trial's."""
    if mean.loading == 0:
        raise ValueError(f"line {line}: 'Data Loading Time (s)' is 0, and errors are told as a share of it")
    if mean.epoch_seconds < mean.loading:
        raise ValueError(f"line {line}: 'Epoch Run Time (s)' is less than 'Data Loading Time (s)', a part of it")
    if is_fitted and mean.miss_rate == 0:
        raise ValueError(f"line {line}: 'Miss Rate' is 0, and the time of a GET is fitted to reads that missed")


def case_of(row: Row, table: str, source: Source) -> Case:
    if (node := whole(row, "Node", 1)) not in range(1, NODES + 1):
        raise ValueError(f"'Node' is {node}, and {NODES} are simulated, from 1 on")
    batch = whole(row, "Batch Size")
    fetch = 0 if table in ("baseline-gcp", "baseline-cache") else whole(row, "Fetch Size", FETCH_SIZE)
    threshold = whole(row, "Minimum Queue Size", 0)
    if table == "baseline-gcp":
        items = 0
    else:
        items = source.samples if row.get("Cache Size") == "N/A" else whole(row, "Cache Size", source.samples)
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
