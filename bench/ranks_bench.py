"""One rank of a node, and eight that share what the one had.

    ./dev bench ranks [--runs 5] [--ranks 8] [--quick] [--json]

Both are given the same settings, which are the node's: threads, requests in flight,
memory. Eight ranks have to keep within them together and deliver nearly as much.
`fetch` reads objects of 100 KB, 20 ms away; `decode` makes 224 x 224 float32 images
of 37 KB JPEGs. Threads are counted by name in /proc while they run, requests in
flight at the server; `memory_mb` is what the processes held at their peak beyond
what idle ones hold, and `samples_per_s` counts to the end of the slowest rank. The
content hashes of the ranks have to add up to that of the one.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import leat
from measure import interleave, report, spread

IN_FLIGHT = 64
MEMORY = "256MiB"
OPS = "decode_image,random_resized_crop:224,random_horizontal_flip,normalize:imagenet"


def make_objects(root: pathlib.Path, count: int) -> None:
    """Photographs of the demo, and objects of noise."""
    examples = pathlib.Path(__file__).parent.parent / "examples"
    sys.path.insert(0, str(examples))
    import photos

    made = photos.make()
    shutil.copytree(made / "train", root / "decode")
    folder = root / "fetch" / "all"
    folder.mkdir(parents=True)
    for i in range(count):
        (folder / f"{i:05}").write_bytes(os.urandom(100_000))


def threads_of(processes: list[subprocess.Popen[str]]) -> collections.Counter[str]:
    """How many threads of each kind they have together."""
    kinds: collections.Counter[str] = collections.Counter()
    for process in processes:
        try:
            tasks = list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())
            for task in tasks:
                kinds[(task / "comm").read_text().strip().rstrip("-0123456789")] += 1
        except OSError:
            continue  # It has ended meanwhile.
    return kinds


def run_ranks(bucket: leat.testing.Bucket, url: str, ranks: int, flags: list[str]) -> list[dict]:
    command = ["leat", "bench", url, "--json", "--no-sign-request", *flags]
    processes = []
    for rank in range(ranks):
        launcher = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks}
        environment = {**os.environ, **bucket.env(), **{k: str(v) for k, v in launcher.items()}}
        processes.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        )
    most: collections.Counter[str] = collections.Counter()
    while any(process.poll() is None for process in processes):
        most |= threads_of(processes)
        time.sleep(0.05)
    results = []
    for process in processes:
        output, _ = process.communicate()
        if process.returncode != 0:
            sys.exit(f"leat bench {url} failed")
        results.append(json.loads(output))
    results[0]["threads"] = most
    return results


def way(
    bucket: leat.testing.Bucket, url: str, ranks: int, flags: list[str], idle: int, seen: dict
) -> Callable[[], dict[str, float]]:
    def run() -> dict[str, float]:
        bucket.reset_counters()
        results = run_ranks(bucket, url, ranks, flags)
        last = [result["epochs"][-1] for result in results]
        content = sum(int(epoch["content_hash"], 16) for epoch in last) % 2**128
        if seen.setdefault(url, content) != content:
            sys.exit(f"{url}: {ranks} ranks delivered something else")
        return {
            "samples_per_s": sum(epoch["samples"] for epoch in last)
            / max(epoch["seconds"] for epoch in last),
            "decode_threads": results[0]["threads"]["leat-decode"],
            "all_threads": results[0]["threads"].total(),
            "in_flight": bucket.counters()["most_in_flight"],
            "memory_mb": sum(epoch["peak_rss_bytes"] - idle for epoch in last) / 1e6,
        }

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="one run: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    ranks = 2 if args.quick else args.ranks
    with tempfile.TemporaryDirectory(prefix="leat-ranks-") as folder:
        os.environ["LEAT_CACHE_DIR"] = f"{folder}/cache"
        root = pathlib.Path(folder) / "buckets"
        root.mkdir()
        make_objects(root, 256 if args.quick else 4096)
        shared = ["--global-batch-size", "64", "--threads", str(args.ranks), "--memory", MEMORY,
                  "--max-in-flight", str(IN_FLIGHT), "--drop-last", "false"]  # fmt: skip
        cases = {"fetch": [*shared, "--epochs", "2"],
                 "decode": [*shared, "--epochs", "2", "--ops", OPS]}  # fmt: skip
        with leat.testing.Bucket(root, latency="20ms") as bucket:
            (root / "idle").mkdir()
            (root / "idle" / "one").write_bytes(b"1")
            still = run_ranks(bucket, "s3://idle", 1, ["--batch-size", "1", "--drop-last", "false"])
            idle = still[0]["epochs"][-1]["peak_rss_bytes"]
            seen: dict[str, int] = {}
            ways = {}
            for name, flags in cases.items():
                for count in (1, ranks):
                    ways[f"{name}, {count} ranks"] = way(bucket, f"s3://{name}", count, flags, idle, seen)
            found = interleave(ways, 1 if args.quick else args.runs)
    rows = []
    for name, values in found.items():
        rate, deviation = spread(values.pop("samples_per_s"))
        one = spread(found[f"{name.split(',')[0]}, 1 ranks"].get("samples_per_s", [rate]))[0]
        row = {"way": name, "samples_per_s": rate, "mad": deviation, "of_one_rank": rate / one}
        rows.append({**row, **{key: max(numbers) for key, numbers in values.items()}})
        found[name]["samples_per_s"] = [rate]
    report(f"ranks: the settings of one shared by {ranks}", rows, args.json)


if __name__ == "__main__":
    main()
