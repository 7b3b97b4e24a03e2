"""The ladder of SOLAR (Sun et al., VLDB 2023): loads an epoch, simulated and live.

    ./dev bench solar [--samples 3000] [--epochs 10] [--quick] [--json]

Four nodes of one rank, each with a RAM tier that holds `cache` of what a rank reads in
an epoch. Each rung deals or places samples otherwise, within the same steps:
`baseline`, each rank its run of the step; `sticky`, at home; `remap`, to who holds it;
`balance`, so too and evenly, ranks still getting equal numbers; `placement`, dealt as in
the baseline, but the cache of a node is a memcached: it holds, for the whole run, samples
that its node reads most often, and sends them to whoever needs them
(`peer_placement="frequency"`). That is NoPFS' placement but for one thing: no two nodes
hold the same. In the simulator alone: `epoch order`, the baseline with its epochs in the
order that leaves the fewest loads; `unequal`, SOLAR's balance, whose ranks get unequal
numbers; `NoPFS`, its placement as published: each node holds what it reads most often
though another may hold it, too, and holds it once it has read it itself.

How to read it: `simulated` and `live` are loads an epoch after the first, as the bucket
counted; `of_n` is live (else simulated) over samples. `uneven`, simulated, is summed
over the steps of an epoch: loads of the rank that loads most, less those of the one
that loads least. Ranks that train in step wait for that. `batches`: the global batches
whose samples are those of the baseline's, with loaders of the rung, over two epochs;
any that differ end the bench. The servers' room goes to samples by their names, and in
the simulation by their numbers: a few more or less.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import leat
from measure import report
from nodes_bench import COST, LENGTH, SEED, count_gets, run_simulation, simulate

LIVE = {"baseline": "belady", "sticky": "belady sticky", "remap": "belady remap",
        "balance": "belady balance"}  # fmt: skip
PLACED_SAMPLES = 3000
# Nine tenths of 8 MiB hold a quarter of what a rank reads in an epoch of so many.
PLACED_BYTES = 9 * 8 * (1 << 20) * 16 // 10 // PLACED_SAMPLES


def an_epoch(epochs: list[dict[str, Any]], what: str) -> float:
    """The mean of the epochs after the first, in which nothing is held yet."""
    return sum(epoch[what] for epoch in epochs[1:]) / len(epochs[1:])


def ladder(folder: pathlib.Path, job: dict[str, Any]) -> list[dict[str, Any]]:
    samples = job["samples"]
    live = {
        rung: (gets - samples) / (job["epochs"] - 1)
        for rung, (gets, _) in zip(LIVE, count_gets([(job, how) for how in LIVE.values()], folder))
    }
    found = {}
    for rung, how in LIVE.items():
        epochs = simulate(folder, job, how)["epochs"]
        found[rung] = (an_epoch(epochs, "gets"), an_epoch(epochs, "uneven_gets"))
    found |= simulated_alone(folder, job)
    batches = same_batches(folder, job)
    if job["samples"] == PLACED_SAMPLES:
        found["placement"], live["placement"] = placement(folder, job)
        batches["placement"] = batches["baseline"]  # Dealt alike.
    rows = []
    for rung in ("baseline", "epoch order", "sticky", "remap", "balance", "placement", "unequal", "NoPFS"):
        if rung not in found:
            continue
        loads, uneven = found[rung]
        rows.append({
            "cache": f"{job['percent']} %", "rung": rung, "simulated": loads,
            "live": live.get(rung, ""), "of_n": f"{live.get(rung, loads) / samples:.3f}",
            "uneven": uneven, "batches": batches.get(rung, ""),
        })  # fmt: skip
    return rows


def simulated_alone(folder: pathlib.Path, job: dict[str, Any]) -> dict[str, tuple[float, float]]:
    found = {}
    for rung, dealing, order in (("epoch order", "runs", "fewest_loads"), ("unequal", "unequal", "as_numbered")):
        (run,) = run_simulation(folder, (
            f"[[solar]]\nsamples = {job['samples']}\nseed = {SEED}\n"
            f"global_batch_size = {job['batch']}\nnodes = {job['nodes']}\nepochs = {job['epochs']}\n"
            f"items = {job['capacity'] // COST}\ndealing = \"{dealing}\"\nepoch_order = \"{order}\"\n"
        ))["solar"]  # fmt: skip
        found[rung] = (an_epoch(run["epochs"], "loads"), an_epoch(run["epochs"], "uneven_loads"))
    placed = simulate(folder, {**job, "more": 'scope = "peers"\nplacement = "frequency"\n'}, "never_evict")
    found["NoPFS"] = (an_epoch(placed["epochs"], "gets"), an_epoch(placed["epochs"], "uneven_gets"))
    return found


def placement(folder: pathlib.Path, job: dict[str, Any]) -> tuple[tuple[float, float], float]:
    """The caches as servers, simulated and live. A server has a page for this many of
    one size. Samples are larger here, so that the servers' content can be given in
    MiB."""
    mib = 8 * job["percent"] // 25
    (run,) = run_simulation(folder, (
        f"[[simulation]]\nsamples = {job['samples']}\nsample_bytes = {PLACED_BYTES}\nseed = {SEED}\n"
        f"global_batch_size = {job['batch']}\nworld_size = {job['ranks']}\nnodes = {job['nodes']}\n"
        f"epochs = {job['epochs']}\npeers = {{servers = {job['nodes']}, memory = \"{mib}MiB\"}}\n"
    ))["simulations"]  # fmt: skip
    root = folder / "placed"
    (root / "many").mkdir(parents=True, exist_ok=True)
    (root / "many" / "x.bin").write_bytes(b"x" * PLACED_BYTES)
    with contextlib.ExitStack() as stack:
        names = [stack.enter_context(server(mib)) for _ in range(job["nodes"])]
        flags = ["--cache-peers", ",".join(names), "--cache-peer-placement", "frequency",
                 "--cache-peer-patience", "2s"]  # fmt: skip
        placed = {**job, "memory": f"{4 * job['batch'] // job['ranks'] * PLACED_BYTES}", "cache_flags": flags}
        ((gets, _),) = count_gets([(placed, "belady")], root)
    live = (gets - job["samples"]) / (job["epochs"] - 1)
    return (an_epoch(run["epochs"], "gets"), an_epoch(run["epochs"], "uneven_gets")), live


@contextlib.contextmanager
def server(mib: int) -> Iterator[str]:
    """A memcached, as `peers="auto"` starts them, but for the smallest memory."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["memcached", "-M", "-l", "127.0.0.1", "-p", str(port), "-m", str(mib), "-t", "1", "-u", "root",
             "-n", "480", "-f", "1.12"]  # fmt: skip
    with subprocess.Popen(words) as process:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def same_batches(folder: pathlib.Path, job: dict[str, Any]) -> dict[str, str]:
    """How many global batches of each rung have the samples of the baseline's."""
    found: dict[str, list[list[int]]] = {}
    os.environ["LOCAL_WORLD_SIZE"] = "1"
    with leat.testing.Bucket(folder, latency="1ms", repeat=f"many/x.bin:{job['samples']}") as bucket:
        for rung, how in LIVE.items():
            with contextlib.ExitStack() as stack:
                loaders = [stack.enter_context(leat.research.Loader(
                    "s3://many", storage_options={"endpoint_url": bucket.url, "no_sign_request": True},
                    fields=["data", "index"], batch="dict",
                    global_batch_size=job["batch"], shuffle=True, seed=SEED, drop_last=False, epochs=2, rank=rank,
                    world_size=job["ranks"], threads=1, hashes=False,
                    cache=leat.Cache(ram=job["capacity"], locality=how.partition(" ")[2] or "none"),
                )) for rank in range(job["ranks"])]  # fmt: skip
                found[rung] = [
                    sorted(int(i) for batch in step for i in batch["index"])
                    for _ in range(2) for step in zip(*loaders)
                ]  # fmt: skip
    for rung, steps in found.items():
        if steps != found["baseline"]:
            sys.exit(f"solar_bench: {rung} has global batches of other samples than the baseline")
    return {rung: f"{len(steps)} equal" for rung, steps in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=PLACED_SAMPLES, help="`placement` is of as many as by default")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=40, help="global; a quarter for each rank")
    parser.add_argument("--quick", action="store_true", help="few epochs, one cache: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Leaves nothing behind.
    if not shutil.which("memcached"):
        sys.exit("solar_bench: needs memcached (apt install memcached)")
    epochs = 2 if args.quick else args.epochs
    rows = []
    with tempfile.TemporaryDirectory(prefix="leat-solar-") as temporary:
        folder = pathlib.Path(temporary)
        os.environ |= {"LEAT_CACHE_DIR": str(folder / "cache"), "XDG_RUNTIME_DIR": temporary}
        (folder / "many").mkdir()
        (folder / "many" / "x.bin").write_bytes(b"x" * LENGTH)
        for percent in (75,) if args.quick else (25, 50, 75):
            rows += ladder(folder, {
                "percent": percent, "samples": args.samples, "epochs": epochs, "ranks": 4, "nodes": 4,
                "batch": args.batch, "step_time": "0", "memory": "64KiB", "in_flight": "4",
                "capacity": args.samples * COST * percent // 400})  # fmt: skip
    report("solar", rows, args.json)


if __name__ == "__main__":
    main()
