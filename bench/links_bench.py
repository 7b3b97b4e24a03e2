"""How well `leat recommend` foretells what exchanging gradients takes: stall against layers and bytes.

    ./dev bench links [--steps 10] [--delay 2] [--megabytes 50] [--json]

Ranks on nodes of their own (bench/delayed_link.py), joined by links of this many
milliseconds and megabytes a second, train perceptrons of three depths and three widths
by DistributedDataParallel over gloo, one bucket a layer. The latency of a bucket and
the bandwidth of a byte are fitted to the four extreme shapes on two nodes; a user would
write them into a list of machines as `network_latency` and `network`. With those, `leat
recommend` predicts the five other shapes, and all nine on four nodes. Look at: `error
%` of the steps that were held out. Needs root and /dev/net/tun.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
from delayed_link import DEVICE, address, nodes
from leat.testing import find_binary
from measure import report

TRAINING = pathlib.Path(__file__).with_name("links_training.py")
DEPTHS = (4, 12, 36)
WIDTHS = (64, 256, 512)
PORT = 29555


def measured(count: int, args: argparse.Namespace) -> list[dict[str, Any]]:
    """The time of each shape on this many nodes."""
    shapes = [f"{depth}x{width}" for depth, width in itertools.product(DEPTHS, WIDTHS)]
    print(f"{count} nodes: {len(shapes)} networks", file=sys.stderr)
    with nodes(count, args.delay / 1e3, args.megabytes * 1e6) as enter, contextlib.ExitStack() as stack:
        ranks = []
        for rank in range(count):
            joint = {"RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": address(0), "MASTER_PORT": PORT, "GLOO_SOCKET_IFNAME": DEVICE}
            ranks.append(stack.enter_context(subprocess.Popen(
                [*enter(rank), sys.executable, str(TRAINING), str(args.steps), *shapes],
                env={**os.environ, **{name: str(value) for name, value in joint.items()}},
                stdout=subprocess.PIPE, text=True,
            )))  # fmt: skip
            stack.callback(ranks[-1].kill)
        said = [rank.communicate(timeout=240)[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit("a rank failed")
    return [{"nodes": count, **json.loads(line)} for line in said[0].splitlines()]


def fit(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Latency and bytes a second of a link, with the least squares of relative errors.

    Fits the model of `leat recommend` for processors (leat/profile/recommend.h), in
    which two buckets are under way at once. The model has a corner, so all points of a
    grid are tried, and then of a finer one.
    """
    hops, stall, buckets, size = (
        np.array([of(row) for row in rows])
        for of in (lambda row: 2 * (row["nodes"] - 1), lambda row: row["joined"] - row["alone"],
                   lambda row: row["buckets"], lambda row: row["bytes"] / row["nodes"])
    )  # fmt: skip
    best = np.array([1e-3, 1e-8])  # Seconds of a message, and of a byte.
    for width in (1e3, 10.0, 1.5, 1.1):
        steps = np.geomspace(1 / width, width, 201)
        latency, byte = (one[..., None] for one in np.meshgrid(best[0] * steps, best[1] * steps))
        carried = hops * size * byte
        told = np.maximum(carried, carried / 2 + hops * buckets * latency)
        at = np.square(told / stall - 1).sum(axis=-1).argmin()
        best = np.array([latency.flat[at], byte.flat[at]])
    return float(best[0]), 1 / float(best[1])


def foretold(row: dict[str, Any], latency: float, bandwidth: float, folder: pathlib.Path) -> float:
    """Seconds of a step, by the command, from a profile of one process."""
    (folder / "report.json").write_text(json.dumps({
        "leat_profile": 1, "cores": 1, "loader": "none", "settings": {"nodes": 1, "nproc_per_node": 1},
        "parts": {"compute": {"seconds": row["alone"]}, "preparation": {"seconds": 0}, "fetch": {"seconds": 0}},
        "supply_seconds": {"warm": 0, "cold": 0}, "supply_cpu_seconds": None, "epoch_batches": 1000,
        "gradients": {"bytes": row["bytes"], "buckets": row["buckets"]}, "fetch_a_batch": None,
    }))  # fmt: skip
    (folder / "machines.toml").write_text(
        '[[machine]]\nname = "node"\nspeed = 1\ncores = 1\n'
        f'network = "{bandwidth:.0f}"\nnetwork_latency = "{1e9 * latency:.0f}ns"\n'
        'dollars_per_hour = 1\nmost = 4\nas_of = "now"\nsource = "fitted"\n'
    )
    done = subprocess.run(
        [find_binary(), "recommend", str(folder / "report.json"), "--catalog", str(folder / "machines.toml"),
         "--on", "node", "--json"], check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    offers = {offer["count"]: offer["step_seconds"] for offer in json.loads(done.stdout)["machines"]}
    return offers[row["nodes"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--delay", type=float, default=2, help="milliseconds, one way")
    parser.add_argument("--megabytes", type=float, default=50, help="a second, of each node")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()

    rows = measured(2, args) + measured(4, args)
    extremes = [
        row for row in rows
        if row["nodes"] == 2 and row["depth"] in (DEPTHS[0], DEPTHS[-1]) and row["width"] in (WIDTHS[0], WIDTHS[-1])
    ]  # fmt: skip
    latency, bandwidth = fit(extremes)
    print(f"fitted: {1e3 * latency:.2f} ms a bucket and hop, {bandwidth / 1e6:.1f} MB/s", file=sys.stderr)
    table = []
    with tempfile.TemporaryDirectory() as name:
        for row in rows:
            said = foretold(row, latency, bandwidth, pathlib.Path(name))
            table.append({
                "nodes": row["nodes"], "layers": row["depth"], "width": row["width"], "buckets": row["buckets"],
                "MB": row["bytes"] / 1e6, "alone, ms": 1e3 * row["alone"], "found, ms": 1e3 * row["joined"],
                "foretold, ms": 1e3 * said, "error %": 100 * (said / row["joined"] - 1),
                "": "fitted" if row in extremes else "held out",
            })  # fmt: skip
    for count in (2, 4):
        errors = [abs(row["error %"]) for row in table if row[""] == "held out" and row["nodes"] == count]
        table += [{"nodes": count, "layers": name, "error %": of(errors), "": "held out"}
                  for name, of in (("median", statistics.median), ("worst", max))]  # fmt: skip
    report(f"links: a step with gradients, {1e3 * latency:.2f} ms and {bandwidth / 1e6:.1f} MB/s fitted", table, args.json)


if __name__ == "__main__":
    main()
