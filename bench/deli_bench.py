"""DELI's experiment (Krichevsky, St Louis, Guo; IC2E 2021), one node of it, and Leat beside it.

    ./dev bench deli [--scale 20] [--box 100] [--only 2500/s] [--runs 5] [--quick] [--json]

A node reads 11,667 objects of 2.4 KB, 55 ms away, in batches of 512, two epochs. N,
the batch, the cache C, the fetch size F and the threshold T are divided by --scale;
latency and seconds a sample are not. Training is a sleep of 12.6 ms a sample, as long
as theirs. Their server takes the times that `bench/deli_data.py` fits to their tables:
5.25 ms a sample and 5.0 s a request, which is divided too; a request waits for the one
before it. Every way reads the same order.

How to read it: compare `missed` with `simulated` (`leat plan --simulate` of the same
job). Below T = rate x fetch, samples come too late; past T + F = C they are pushed out
unread; half and half is the largest T between. Compare `wait_s` and `after_first_s`
(from the first batch to the end) of `leat` with `no I/O`: 2 % is the aim, with one GET
a sample, at most C samples' bytes held and no cache on disk. Rows of `2500/s` are at
that rate and at full scale, for there 55 ms are 137 samples. `no I/O`, `local disk`
and `leat` run --runs times there, one after the other in turn; `over_no_io` is the
median of the turns, each against its own `no I/O`, with their median deviation. GETs
are counted at the server. A content hash that differs ends the bench, as does a `leat`
that takes more than 512 MB, and a share of misses 5 points from the simulated one. A way that has run for --box seconds (at 2500/s 10, those
in turns 20) is cut there, and its hash is not compared: see `read`.

Ways that wait for single GETs take next to no CPU: they run side by side, each
with a bucket of its own. From `concurrent` on each is alone.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from typing import Any

import leat
from measure import report, spread

SAMPLES, BATCH, EPOCHS, SEED = 11_667, 512, 2, 3
OBJECT_BYTES = 2400
LATENCY = 0.055
COMPUTE = 0.0126
MOST_POINTS = 5  # That `missed` and `simulated` may differ by: more, and one is no model of the other.
FAST = 1 / 2500
START, EACH = 5.0, 0.00525
MOST_MB = 512  # The most that a process of Leat's may take, all in all.
SIDE_BY_SIDE = 6
HERE = pathlib.Path(__file__).parent


class Job:
    """One rate and scale: its objects, its order, and what its ways share."""

    def __init__(self, folder: pathlib.Path, name: str, scale: float, compute: float, epochs: int) -> None:
        self.samples = round(SAMPLES / scale)
        self.scale, self.epochs = scale, epochs
        self.data = folder / name / "data"
        self.data.mkdir(parents=True)
        for i in range(self.samples):
            (self.data / f"{i:05}.bin").write_bytes(os.urandom(OBJECT_BYTES))
        self.items = round(2048 / scale)
        self.common = {
            "batch": round(BATCH / scale), "compute": compute, "epochs": epochs, "seed": SEED,
            "bucket": "data", "folder": str(self.data), "orders": str(folder / f"{name}.json"),
            "start_seconds": START / scale, "sample_seconds": EACH, "is_our_engine": False,
            "memory": self.items * OBJECT_BYTES,
        }  # fmt: skip
        with leat.Loader(str(self.data), seed=SEED, global_batch_size=self.common["batch"], shuffle=True,
                         drop_last=False, fields=["index"], batch="dict", epochs=epochs) as loader:  # fmt: skip
            orders = [[int(n) for batch in loader for n in batch["index"]] for _ in range(epochs)]
        pathlib.Path(self.common["orders"]).write_text(json.dumps(orders))

    def run(self, name: str, way: dict[str, Any], box: float) -> dict[str, Any]:
        with leat.testing.Bucket(self.data.parent, latency=f"{LATENCY * 1000:.0f}ms") as bucket:
            spec = {**self.common, "box": box, "endpoint": bucket.url, **way}
            done = subprocess.run(
                [sys.executable, str(HERE / "deli_ways.py"), json.dumps(spec)],
                stdout=subprocess.PIPE, text=True, check=False,
            )  # fmt: skip
            if done.returncode != 0:
                sys.exit(f"deli_bench: {name} failed")
            result: dict[str, Any] = json.loads(done.stdout)
            result["gets"] = bucket.counters()["get"]
        all_reads = self.samples * self.epochs
        print(f"{name}: {result['samples']} of {all_reads} reads", file=sys.stderr)
        result["is_whole"] = result["samples"] == all_reads
        return result

    def deli(self, fetch: float, threshold: float, items: float, **more: Any) -> dict[str, Any]:
        """A way of DELI's, in the numbers of the paper."""
        return {"way": "deli", "fetch": round(fetch / self.scale), "items": round(items / self.scale),
                "threshold": round(threshold / self.scale), **more}  # fmt: skip

    def simulated(self, ways: dict[str, dict[str, Any]]) -> dict[str, float]:
        """The share of reads that `leat plan --simulate` says are missed."""
        text = ""
        for name, way in ways.items():
            if way["way"] == "cache":
                text += (
                    f'[[simulation]]\nname = "{name}"\nsamples = {self.samples}\nseed = {SEED}\n'
                    f"global_batch_size = {self.common['batch']}\nepochs = {self.epochs}\n"
                    f'tiers = [{{policy = "fifo", items = {way["items"]}}}]\n'
                )
            if way["way"] == "deli":
                text += (
                    f'[[deli]]\nname = "{name}"\nsamples = {self.samples}\nseed = {SEED}\n'
                    f"epochs = {self.epochs}\nbatch_size = {self.common['batch']}\n"
                    f"fetch_size = {way['fetch']}\nqueue_threshold = {way['threshold']}\n"
                    f"items = {way['items']}\ncompute = \"{COMPUTE * self.common['batch']:.6f}s\"\n"
                    f'get = "{LATENCY}s"\nhit = "20us"\nfetch = "{START / self.scale}s"\n'
                    f'fetch_sample = "{EACH}s"\n'
                )
        file = self.data.parent / "jobs.toml"
        file.write_text(text)
        command = [leat.testing.find_binary(), "plan", "--simulate", str(file), "--json"]
        said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        shares = {}
        for simulation in said["simulations"]:
            total = simulation["total"]
            shares[simulation["name"]] = total["gets"] / total["reads"]
        for run in said["deli"]:
            reads = sum(epoch["reads"] for epoch in run["epochs"])
            shares[run["name"]] = sum(epoch["misses"] for epoch in run["epochs"]) / reads
        return shares


def paper_ways(job: Job, is_quick: bool) -> dict[str, dict[str, Any]]:
    ways: dict[str, dict[str, Any]] = {"sequential": {"way": "sequential"}}
    ways["cache only"] = {"way": "cache", "items": job.items}
    sweep = [(256, 0), (512, 0), (1024, 0), (1024, 512), (1024, 1536)]
    for fetch, threshold in [sweep[0], sweep[3]] if is_quick else sweep:
        ways[f"F {fetch} T {threshold}"] = job.deli(fetch, threshold, 2048)
    ways["50/50"] = job.deli(1024, 1024, 2048)
    ways["full fetch"] = job.deli(2048, 0, 2048)
    return ways


def alone_ways(job: Job) -> dict[str, dict[str, Any]]:
    return {
        "concurrent": {"way": "concurrent"},
        "50/50, our engine": job.deli(
            1024, 1024, 2048, is_our_engine=True, start_seconds=0, sample_seconds=0
        ),
        "leat": {"way": "leat"},
        "local disk": {"way": "disk"},
        "no I/O": {"way": "memory"},
    }


def over_no_io(result: dict[str, Any], bound: dict[str, Any]) -> str:
    if not result["is_whole"]:
        return ""
    if "turns" not in result:
        return f"{100 * (result['after_first'] / bound['after_first'] - 1):+.1f} %"
    median, deviation = spread([100 * (one / its - 1) for one, its in zip(result["turns"], bound["turns"])])
    return f"{median:+.2f} ± {deviation:.2f} %"


def in_turns(job: Job, ways: dict[str, dict[str, Any]], box: float, runs: int) -> dict[str, dict[str, Any]]:
    """Each way's median run; in `turns` what all of its runs took from the first batch on."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            found[name].append(job.run(name, way, box))
    medians = {}
    for name, results in found.items():
        if len({result["hash"] for result in results if result["is_whole"]}) > 1:
            sys.exit(f"deli_bench: {name} did not read the same each time")
        ordered = sorted(results, key=lambda result: result["after_first"])
        medians[name] = {**ordered[len(ordered) // 2], "turns": [one["after_first"] for one in results]}
    return medians


def rows_of(job: Job, found: dict[str, dict[str, Any]], simulated: dict[str, float]) -> list[dict[str, Any]]:
    hashes = {result["hash"] for result in found.values() if result["is_whole"]}
    if len(hashes) > 1:
        sys.exit(f"deli_bench: the ways did not read the same: {sorted(hashes)}")
    if found["leat"]["rss_mb"] > MOST_MB:
        sys.exit(f"deli_bench: leat took {found['leat']['rss_mb']:.0f} MB of memory")
    for name, share in simulated.items():
        missed = found[name]["misses"] / found[name]["samples"]
        if found[name]["is_whole"] and 100 * abs(missed - share) > MOST_POINTS:
            sys.exit(f"deli_bench: {name} missed {missed:.1%}, and the simulator says {share:.1%}")
    bound = found["no I/O"]
    sequential = found["sequential"]
    rows = []
    for name, result in found.items():
        read = result["samples"]
        misses = result.get("misses")
        per_sample = result["wait"] / read / (sequential["wait"] / sequential["samples"])
        rows.append({
            "rate": f"{1 / job.common['compute']:.0f}/s",
            "way": name,
            "read": read,
            "wait_s": round(result["wait"], 2),
            "wait_cut": f"{100 * (1 - per_sample):.1f} %",
            "first_s": round(result["first"], 2),
            "after_first_s": round(result["after_first"], 2),
            "over_no_io": over_no_io(result, bound),
            "gets_a_read": f"{result['gets'] / read:.3f}",
            "missed": "" if misses is None else f"{100 * misses / read:.1f} %",
            "simulated": f"{100 * simulated[name]:.1f} %" if name in simulated else "",
            "held_of_C": f"{result['held_bytes'] / job.common['memory']:.2f}"
            if "held_bytes" in result else "",
            "rss_mb": round(result["rss_mb"]),
            "hash": result["hash"][:8] if result["is_whole"] else "",
        })  # fmt: skip
    return rows


def at_the_papers_rate(folder: pathlib.Path, args: argparse.Namespace) -> list[dict[str, Any]]:
    job = Job(folder, "paper", args.scale * 4 if args.quick else args.scale, COMPUTE, EPOCHS)
    ways = paper_ways(job, args.quick)
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        running = {name: pool.submit(job.run, name, way, args.box) for name, way in ways.items()}
        found = {name: run.result() for name, run in running.items()}
    for name, way in alone_ways(job).items():
        found[name] = job.run(name, way, args.box)
    return rows_of(job, found, job.simulated(ways))


def at_a_fast_rate(folder: pathlib.Path, args: argparse.Namespace) -> list[dict[str, Any]]:
    job = Job(folder, "fast", 8 if args.quick else 1, FAST, EPOCHS)
    found = {"sequential": job.run("sequential", {"way": "sequential", "batch": 64}, min(args.box, 5))}
    others = alone_ways(job)
    compared = {name: others.pop(name) for name in ("no I/O", "local disk", "leat")}
    for name, way in others.items():
        found[name] = job.run(name, way, min(args.box, 10))
    found |= in_turns(job, compared, min(args.box, 20), 1 if args.quick else args.runs)
    return rows_of(job, found, {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=20)
    parser.add_argument("--box", type=float, default=100, help="seconds that a way may take")
    parser.add_argument("--only", choices=["79/s", "2500/s"], help="this rate alone")
    parser.add_argument("--runs", type=int, default=5, help="turns at 2500/s")
    parser.add_argument("--quick", action="store_true", help="a fourth of the samples: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Leaves nothing behind.
    rows = []
    with tempfile.TemporaryDirectory(prefix="leat-deli-") as temporary:
        folder = pathlib.Path(temporary)
        os.environ["LEAT_CACHE_DIR"] = str(folder / "cache")
        if args.only in (None, "79/s"):
            rows += at_the_papers_rate(folder, args)
        if args.only in (None, "2500/s"):
            rows += at_a_fast_rate(folder, args)
    report("deli", rows, args.json)


if __name__ == "__main__":
    main()
