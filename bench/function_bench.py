"""How fast a cloud function begins, and how much memory it takes.

    ./dev bench function [--runs 5] [--latency 55ms] [--photographs 512] [--package FOLDER] [--quick] [--json]

Runs examples/function/handler.py by awslambdaric, Lambda's own client for Python, with 512 MB (a control group, where
one can be made), a root that cannot be written, and no home. It reads one batch of 32 JPEGs of 37 KB from
`leat bucket`, decodes and resizes them. `cold_s` is the time from the start of the process to the answer, so that the
interpreter, the imports, the catalogue and the first batch are in it: within 1 s. `warm_s` is the next answer of the
same process, for another part. `peak_mb` is the most memory that the process had.

"lists" finds the samples by listing the bucket; "kept" has the catalogue in /tmp, from a function before it at the
same place; "published" finds one beside the data (`leat index --publish`). --package names a folder with another
Leat, such as the one into which a slim wheel was installed.
"""

from __future__ import annotations

import argparse
import compileall
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import grainy_photographs
import leat
from function_api import Function, RuntimeApi, why_no_client, why_no_place
from measure import interleave, report, spread

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python"))
from cgroups import limited  # noqa: E402

MEMORY = 512 * 10**6
BATCH = 32
SMOOTH = grainy_photographs.SHAPES["smooth"]


def measured(
    bucket: leat.testing.Bucket, url: str, own_tmp: pathlib.Path, parts: int, package: str
) -> dict[str, float]:
    """A function that begins, and answers for two parts."""
    with limited(2, MEMORY) as group, RuntimeApi() as api:
        function = Function(
            api, ROOT / "examples/function", "handler.handler", own_tmp, variables=bucket.env(), package=package,
            before=group.enter_command() if group else "true",
        )  # fmt: skip
        try:
            first = api.invoke({"url": url, "rank": 0, "world_size": parts})
            cold = time.perf_counter() - function.started
            begin = time.perf_counter()
            second = api.invoke({"url": url, "rank": 1, "world_size": parts})
            warm = time.perf_counter() - begin
            peak = function.most_resident_bytes()
        except BaseException:
            print(function.end(), file=sys.stderr)
            raise
        function.end()
        if group and group.out_of_memory_kills():
            sys.exit("function: the kernel ended it: 512 MB are not enough")
    read = [sum(answer["counts"].values()) for answer in (first, second)]
    if read != [BATCH, BATCH] or first["content_hash"] == second["content_hash"]:
        sys.exit(f"function: {read} samples were read instead of two different batches of {BATCH}")
    return {"cold_s": cold, "warm_s": warm, "peak_mb": peak / 1e6}


def ways_of(
    root: pathlib.Path, bucket: leat.testing.Bucket, parts: int, package: str
) -> dict[str, Callable[[], dict[str, float]]]:
    def begin(url: str, own_tmp: pathlib.Path) -> dict[str, float]:
        return measured(bucket, url, own_tmp, parts, package)

    def fresh(url: str) -> dict[str, float]:
        with tempfile.TemporaryDirectory(prefix="leat-function-", dir=root) as own_tmp:
            return begin(url, pathlib.Path(own_tmp))

    kept = root / "kept"
    kept.mkdir()
    begin("s3://data/plain", kept)
    return {"lists": lambda: fresh("s3://data/plain"), "kept": lambda: begin("s3://data/plain", kept),
            "published": lambda: fresh("s3://data/published")}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--latency", default="55ms")
    parser.add_argument("--photographs", type=int, default=512)
    parser.add_argument("--package", default="", metavar="FOLDER", help="a folder in which another Leat is installed")
    parser.add_argument("--quick", action="store_true", help="one run of few: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for why in (why_no_client(), why_no_place()):
        if why:
            sys.exit(f"function: {why}")
    count, runs = (2 * BATCH, 1) if args.quick else (args.photographs // BATCH * BATCH, args.runs)
    # As pip does: the function's root cannot be written.
    compileall.compile_dir(pathlib.Path(leat.__file__).parent, quiet=2)
    with tempfile.TemporaryDirectory(prefix="leat-function-") as folder:
        root = pathlib.Path(folder)
        grainy_photographs.make(root / "served/data/plain", SMOOTH, count)
        shutil.copytree(root / "served/data/plain", root / "served/data/published")
        subprocess.run([leat.testing.find_binary(), "index", str(root / "served/data/published"), "--publish"],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        with leat.testing.Bucket(root / "served", latency=args.latency) as bucket:
            found = interleave(ways_of(root, bucket, count // BATCH, args.package), runs)
    rows = []
    for way, values in found.items():
        row = {"way": way}
        for key, numbers in values.items():
            median, deviation = spread(numbers)
            digits = 0 if key == "peak_mb" else 2
            row[key] = f"{median:.{digits}f} ± {deviation:.{digits}f}"
        rows.append({**row, "slowest_cold_s": f"{max(values['cold_s']):.2f}"})
    report(f"a function of 512 MB, {count} objects, {args.latency} away, {runs} interleaved runs", rows, args.json)


if __name__ == "__main__":
    main()
