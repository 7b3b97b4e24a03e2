"""A table of 10 million samples: made into a catalogue, and opened again, each in a process of its own.

    ./dev bench manifest [--rows 10000000] [--runs 5] [--formats parquet,csv,jsonl] [--quick] [--json]

A row has a path of 30 characters, the object's size, a label that is the name of one of 1,000 classes, and
a number. Two orders of paths: sorted, and scattered, in which paths have to be looked up by a hash. Only the
first object exists: the table has their sizes. How to read it: `seconds` and `peak_mb` (VmHWM, less than
what `import leat` and pyarrow take: `imports_mb`) are of `from_manifest` alone; `anonymous_mb` is what
stays in private memory afterwards. A catalogue that is mapped counts in `peak_mb` while it is checked, and
its pages belong to the page cache. `made` is one run, `again` the median of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from measure import report

CHILD = """
import json, os, re, sys, time
import leat
if sys.argv[1].endswith(".parquet"):
    import pyarrow.parquet

def memory(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1000

imports = memory("VmRSS")
begun, cpu = time.perf_counter(), time.process_time()
dataset = leat.Dataset.from_manifest(
    sys.argv[1], fields={"image": "path", "label": "kind"}, columns=["width"], sizes={"image": "nbytes"})
seconds, used = time.perf_counter() - begun, time.process_time() - cpu
assert len(dataset) == int(sys.argv[2]) and len(dataset.classes) == min(1000, len(dataset))
print(json.dumps({"seconds": seconds, "cpu_seconds": used, "imports_mb": imports, "peak_mb": memory("VmHWM"),
                  "anonymous_mb": memory("RssAnon"), "digest": dataset._native.digest}))
"""


def write_table(path: pathlib.Path, rows: int, step: int) -> None:
    """Row i has the path of number i * step mod rows."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    schema = pa.schema([("path", pa.string()), ("nbytes", pa.int64()), ("kind", pa.string()), ("width", pa.int64())])
    block = 1 << 18
    with open(path, "wb") as file:
        writer: Any = None
        if path.suffix == ".parquet":
            writer = parquet.ParquetWriter(file, schema)
        elif path.suffix == ".csv":
            writer = csv.CSVWriter(file, schema)
        for begin in range(0, rows, block):
            numbers = [number * step % rows for number in range(begin, min(begin + block, rows))]
            paths = [f"train/{number // 1000:06}/{number:09}.jpeg.." for number in numbers]
            kinds = [f"class {number % 1000:03}" for number in numbers]
            table = pa.table([paths, [100_000 + n % 777 for n in numbers], kinds, [n % 4096 for n in numbers]], schema)
            if writer is not None:
                writer.write_table(table)
            else:
                file.write("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()).encode())
        if writer is not None:
            writer.close()


def opened(table: pathlib.Path, rows: int, folder: str) -> dict[str, Any]:
    environment = {**os.environ, "LEAT_CACHE_DIR": f"{folder}/cache"}
    command = [sys.executable, "-c", CHILD, str(table), str(rows)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def measured(kind: str, order: str, rows: int, runs: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder, f"table.{kind}")
        write_table(table, rows, 1 if order == "sorted" else 7_368_787)
        first = pathlib.Path(folder, "train/000000/000000000.jpeg..")  # Opening again reads a byte of it.
        first.parent.mkdir(parents=True)
        first.write_bytes(bytes(100_000))
        # A table that was written in the last two seconds is not trusted by its times.
        os.utime(table)
        subprocess.run(["sleep", "3"], check=True)
        made = opened(table, rows, folder)
        print(kind, order, "made", made, file=sys.stderr)
        again = [opened(table, rows, folder) for _ in range(runs)]
        assert {each["digest"] for each in again} == {made["digest"]}
        (kept,) = pathlib.Path(folder, "cache/catalogues").glob("*.leatcat")
        common = {"table": kind, "paths": order, "rows": rows, "table_mb": table.stat().st_size / 1e6,
                  "catalogue_mb": kept.stat().st_size / 1e6}  # fmt: skip
    names = ["seconds", "cpu_seconds", "imports_mb", "peak_mb", "anonymous_mb"]
    middle = {name: statistics.median(each[name] for each in again) for name in names}
    shown = [("made", made), ("again", middle)]
    return [{**common, "what": what, **{name: round(each[name], 3) for name in names}} for what, each in shown]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--formats", default="parquet,csv,jsonl")
    parser.add_argument("--orders", default="sorted,scattered")
    parser.add_argument("--quick", action="store_true", help="few rows: shows that it works")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows, runs = (20_000, 1) if options.quick else (options.rows, options.runs)
    told = [
        line
        for kind in options.formats.split(",")
        for order in options.orders.split(",")
        if order == "sorted" or kind == "parquet"
        for line in measured(kind, order, rows, runs)
    ]
    report("a table of samples", told, options.json)


if __name__ == "__main__":
    main()
