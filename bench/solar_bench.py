"""The ladder of SOLAR (Sun et al., VLDB 2023): loads an epoch, simulated and live.

    ./dev bench solar [--samples 3000] [--epochs 10] [--quick] [--json]

Four nodes of one rank, each with a RAM tier that holds `cache` of what a rank reads in
an epoch. Each rung deals or places samples otherwise, within the same steps:
`baseline`, each rank its run of the step; `sticky`, at home; `remap`, to who holds it;
`balance`, so too and evenly, ranks still getting equal numbers. In the simulator alone:
`epoch order`, the baseline with its epochs in the order that leaves the fewest loads;
`unequal`, SOLAR's balance, whose ranks get unequal numbers; `placement`, NoPFS' caches
that hold what their node reads most often, read by all nodes (live: peers,
`./dev bench nopfs`, whose memory is not that of the ranks).

What to look at: `simulated` and `live`, loads an epoch after the first, as the bucket
counted; `of_n`, live (else simulated) over samples; `uneven`, summed over the steps of
an epoch, simulated: loads of the rank that loads most, less those of the one that loads
least. Ranks that train in step wait for that.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys
import tempfile
from typing import Any

import leat
from measure import report
from nodes_bench import COST, LENGTH, SEED, count_gets, run_simulation, simulate

LIVE = {"baseline": "belady", "sticky": "belady sticky", "remap": "belady remap",
        "balance": "belady balance"}  # fmt: skip


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
    rows = []
    for rung in ("baseline", "epoch order", "sticky", "remap", "balance", "unequal", "placement"):
        loads, uneven = found[rung]
        rows.append({
            "cache": job["cache"], "rung": rung, "simulated": loads,
            "live": live.get(rung, ""), "of_n": f"{live.get(rung, loads) / samples:.3f}",
            "uneven": uneven,
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
    found["placement"] = (an_epoch(placed["epochs"], "gets"), an_epoch(placed["epochs"], "uneven_gets"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=40, help="global; a quarter for each rank")
    parser.add_argument("--quick", action="store_true", help="few samples: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Leaves nothing behind.
    samples, epochs = (400, 3) if args.quick else (args.samples, args.epochs)
    rows = []
    with tempfile.TemporaryDirectory(prefix="leat-solar-") as temporary:
        folder = pathlib.Path(temporary)
        os.environ |= {"LEAT_CACHE_DIR": str(folder / "cache"), "XDG_RUNTIME_DIR": temporary}
        (folder / "many").mkdir()
        (folder / "many" / "x.bin").write_bytes(b"x" * LENGTH)
        for percent in (75,) if args.quick else (25, 50, 75):
            rows += ladder(folder, {
                "cache": f"{percent} %", "samples": samples, "epochs": epochs, "ranks": 4, "nodes": 4,
                "batch": args.batch, "step_time": "0", "memory": "64KiB", "in_flight": "4",
                "capacity": samples * COST * percent // 400})  # fmt: skip
    report("solar", rows, args.json)


if __name__ == "__main__":
    main()
