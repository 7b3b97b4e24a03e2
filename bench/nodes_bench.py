"""Private caches of three nodes, and one that eight ranks share, beside Belady's.

    ./dev bench nodes [--samples 3000] [--epochs 10] [--epoch-seconds 12]
        [--only "8 ranks"] [--policies belady lru] [--quick] [--json]

`3 nodes`: a rank on each, with a RAM tier of 25, 50 and 75 % of its reads in an
epoch. `8 ranks`: on one node, whose tier holds half of the dataset, or all of it.
`later run`: 8 ranks over the cache folder that 8 others have left, which holds half;
its hits are of all its epochs. How to read it: compare `hits`, of reads after the
first epoch, with `simulated` (`leat plan --simulate` of the same job and policy) and
with `belady`, the most that any policy could hit. Half a point is the aim for
Belady's. Hits are reads that the bucket was not asked for, by the bucket's count.
`gets_of_n` is GETs over samples: with all of the dataset in the tier it is 1, each
object fetched by one rank, once. LRU and FIFO may hit more than simulated: records
that wait to be written count, too. `belady sticky` is with `locality="sticky"`, which
deals samples otherwise: `points` may be above 0. For the other localities see `./dev
bench solar`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import leat
from measure import report

LENGTH = 3000
COST = 4096 + 128  # The cost of a record of up to a page, in a tier.
POLICIES = ("belady", "never_evict", "lru", "fifo")
SEED = 4  # The seed of every order.


def run_simulation(folder: pathlib.Path, toml: str) -> dict[str, Any]:
    """Runs `leat plan` on a file."""
    file = folder / "job.toml"
    file.write_text(toml)
    command = [leat.testing.find_binary(), "plan", "--simulate", str(file), "--json"]
    said: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return said


def simulate(folder: pathlib.Path, job: dict[str, Any], policy: str) -> dict[str, Any]:
    """The simulation of a policy, "belady", or with a locality, "belady sticky"."""
    policy, _, locality = policy.partition(" ")
    simulation: dict[str, Any] = run_simulation(folder, (
        f"[[simulation]]\nsamples = {job['samples']}\nsample_bytes = {COST}\nseed = {SEED}\n"
        f"global_batch_size = {job['batch']}\nworld_size = {job['ranks']}\nnodes = {job['nodes']}\n"
        f"epochs = {job['epochs']}\nlocality = \"{locality or 'none'}\"\n"
        f"{job.get('more', '')}"
        f'tiers = [{{policy = "{policy}", capacity = {job["capacity"]}}}]\n'
    ))["simulations"][0]
    return simulation


def simulated_hits(folder: pathlib.Path, job: dict[str, Any], policy: str) -> float:
    """After the first epoch."""
    ratio: float = simulate(folder, job, policy)["total"]["hit_ratio_later"]
    return ratio


@contextlib.contextmanager
def started(bucket: leat.testing.Bucket, job: dict[str, Any], policy: str) -> Any:
    """The ranks of a job, as their launcher starts them."""
    local = job["ranks"] // job["nodes"]
    policy, _, locality = policy.partition(" ")
    command = [
        leat.testing.find_binary(), "bench", "s3://many", "--json", "--no-sign-request", "--no-hash",
        "--global-batch-size", str(job["batch"]), "--drop-last", "false", "--seed", str(job.get("seed", SEED)),
        "--epochs", str(job["epochs"]), "--step-time", job["step_time"],
        *job.get("cache_flags", ["--cache-ram", str(job["capacity"]), "--cache-policy", policy]),
        "--memory", job["memory"], "--max-in-flight", job["in_flight"], "--threads", "1",
        "--locality", locality or "none",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        processes = []
        for rank in range(job["ranks"]):
            launcher = {"RANK": rank, "WORLD_SIZE": job["ranks"], "LOCAL_RANK": rank % local,
                        "LOCAL_WORLD_SIZE": local}  # fmt: skip
            environment = {**os.environ, **bucket.env(), **{k: str(v) for k, v in launcher.items()}}
            processes.append(stack.enter_context(
                subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)))
            stack.callback(processes[-1].terminate)
        yield processes


def count_gets(
    jobs: list[tuple[dict[str, Any], str]], folder: pathlib.Path
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """GETs and the epochs of all ranks, of each job. They run side by side, each with a
    bucket of its own."""
    with contextlib.ExitStack() as stack:
        running = []
        for job, policy in jobs:
            bucket = stack.enter_context(leat.testing.Bucket(
                folder, latency="1ms", repeat=f"many/x.bin:{job['samples']}"))
            # Listed before anything is counted.
            leat.Dataset("s3://many", storage_options={"endpoint_url": bucket.url, "no_sign_request": True})
            bucket.reset_counters()
            running.append((bucket, stack.enter_context(started(bucket, job, policy))))
        for bucket, processes in running:
            outputs = [process.communicate()[0] for process in processes]
            if any(process.returncode != 0 for process in processes):
                sys.exit("nodes_bench: a rank failed")
            epochs = [epoch for output in outputs for epoch in json.loads(output)["epochs"]]
            gets = bucket.counters()["get"]
            sent = sum(epoch["requests"]["get"] for epoch in epochs)
            if gets != sent:
                sys.exit(f"nodes_bench: the ranks sent {sent} requests, the bucket counted {gets}")
            yield gets, epochs


def run_all(jobs: list[tuple[dict[str, Any], str]], folder: pathlib.Path) -> list[dict[str, Any]]:
    rows = []
    for (job, policy), (gets, epochs) in zip(jobs, count_gets(jobs, folder)):
        later = [epoch for epoch in epochs if epoch["epoch"] > 0]
        reads = sum(epoch["samples"] for epoch in later)
        hits = 1 - sum(epoch["cache"]["misses"] for epoch in later) / reads
        best = simulated_hits(folder, job, "belady")
        rows.append({
            "job": job["name"], "policy": policy, "hits": f"{100 * hits:.2f} %",
            "simulated": f"{100 * simulated_hits(folder, job, policy):.2f} %",
            "belady": f"{100 * best:.2f} %", "points": f"{100 * (hits - best):+.2f}",
            "gets_of_n": f"{gets / job['samples']:.3f}",
        })  # fmt: skip
    return rows


def run_later(job: dict[str, Any], folder: pathlib.Path) -> dict[str, Any]:
    """Runs the job twice over one cache folder, in another order; the hits of the second run."""
    disk = folder / "disk"
    with leat.testing.Bucket(folder, latency="1ms", repeat=f"many/x.bin:{job['samples']}") as bucket:
        for seed in (SEED, SEED + 1):
            flags = ["--cache-disk", str(disk), "--cache-disk-limit", str(job["capacity"])]
            with started(bucket, {**job, "cache_flags": flags, "seed": seed}, "belady") as processes:
                outputs = [process.communicate()[0] for process in processes]
            if any(process.returncode != 0 for process in processes):
                sys.exit("nodes_bench: a rank failed")
    epochs = [epoch for output in outputs for epoch in json.loads(output)["epochs"]]
    misses = sum(epoch["cache"]["misses"] for epoch in epochs)
    hits = 1 - misses / sum(epoch["samples"] for epoch in epochs)
    best = job["capacity"] / COST / job["samples"]  # It all is there, and read once an epoch.
    return {
        "job": job["name"], "policy": "belady", "hits": f"{100 * hits:.2f} %", "simulated": "",
        "belady": f"{100 * best:.2f} %", "points": f"{100 * (hits - best):+.2f}",
        "gets_of_n": f"{misses / job['samples']:.3f}",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--epoch-seconds", type=float, default=12, help="of the ranks of one node")
    parser.add_argument("--only", choices=["3 nodes", "1 rank", "8 ranks", "later run"], help="of these jobs alone")
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=POLICIES)
    parser.add_argument("--quick", action="store_true", help="few samples: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Leaves nothing behind.
    samples, epochs = (300, 3) if args.quick else (args.samples, args.epochs)
    rows = []
    with tempfile.TemporaryDirectory(prefix="leat-nodes-") as temporary:
        folder = pathlib.Path(temporary)
        os.environ |= {"LEAT_CACHE_DIR": str(folder / "cache"), "XDG_RUNTIME_DIR": temporary}
        (folder / "many").mkdir()
        (folder / "many" / "x.bin").write_bytes(b"x" * LENGTH)
        percents = (50,) if args.quick else (25, 50, 75)
        for percent in percents if args.only in (None, "3 nodes") else ():
            job = {"name": f"3 nodes, {percent} %", "samples": samples, "epochs": epochs,
                   "ranks": 3, "nodes": 3, "batch": 12, "step_time": "0", "memory": "32KiB", "in_flight": "4",
                   "capacity": samples * COST * percent // 300}  # fmt: skip
            rows += run_all([(job, policy) for policy in (*args.policies, "belady sticky")], folder)
        # Ranks learn within a second what others have fetched: an epoch takes several.
        step = "0" if args.quick else f"{1000 * args.epoch_seconds * 48 / samples:.0f}ms"
        for ranks in (1, 8):
            if args.only not in (None, "1 rank" if ranks == 1 else "8 ranks", "later run"):
                continue
            job = {"name": f"{ranks} rank{'s' if ranks > 1 else ''}, half", "samples": samples,
                   "epochs": min(epochs, 5), "ranks": ranks, "nodes": 1, "batch": 48,
                   "step_time": step, "memory": "256KiB", "in_flight": "32", "capacity": samples * COST // 2}  # fmt: skip
            whole = {**job, "name": job["name"].replace("half", "all"), "capacity": 2 * samples * COST}
            if args.only != "later run":
                rows += run_all([(job, policy) for policy in args.policies] + [(whole, "belady")], folder)
            if ranks == 8 and args.only in (None, "later run"):
                rows.append(run_later({**job, "name": "8 ranks, later run, half", "epochs": min(epochs, 3)}, folder))
    report("nodes", rows, args.json)


if __name__ == "__main__":
    main()
