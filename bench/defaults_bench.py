"""Leat by default settings beside its own best setting: does a user have to tune it?

    ./dev bench defaults [--only ROW ...] [--peers PEER ...] [--runs 5] [--trial 4] [--limit 60] [--budget 40min]
                         [--fresh] [--latency 20ms] [--bandwidth 5GB/s] [--quick] [--json]

Each row is a regime of `./dev bench landscape`, measured as that does it: cold processes, whole epochs, interleaved
runs, every sample's bytes hashed and compared, GETs counted at the server. "tuned" has the best requests in flight,
threads and memory of a sweep that goes on until its best is inside. `beside` rows are without a delay. `--peers` adds
loaders of others, each at its best. It can be stopped, and goes on where it stopped: build/defaults has the results.

How to read it: `default` and `best` are samples a second, or seconds in rows of the first batch and of a resume;
`of_best` is the default's rate over the best setting's in the same run, in the median ± the median absolute deviation;
`mb` and `best_mb` are the most memory that each held; `first` says which other loader is the fastest, and how many
times as fast as that the default is.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
import time
from typing import Any

import landscape_run
import measure
from landscape_bench import seconds_of
from landscape_peers import PEERS
from landscape_regimes import QUICK, REGIMES

HOME = pathlib.Path(__file__).parent.parent / "build/defaults"
OURS = ("leat", "leat-tuned")
AWAY = ("objects-4k", "objects-111k", "objects-8m", "jpegs", "function", "tokens-1", "tokens-2", "shards-raw",
        "samples-100", "first-batch", "resume", "second-epoch")  # fmt: skip
BESIDE = ("objects-4k", "objects-111k")
ROWS = {**{name: (name, True) for name in AWAY}, **{f"{name}-beside": (name, False) for name in BESIDE}}
QUICK_ROWS = {"quick-objects": ("quick-objects", True), "quick-resume": ("quick-resume", True)}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--peers", nargs="+", choices=[name for name in PEERS if name not in OURS], default=[])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--trial", type=float, default=4.0, help="seconds of a trial of a sweep")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a measurement")
    parser.add_argument("--budget", type=seconds_of, default=float("inf"), help="such as 40min: ends then")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--bandwidth", default="5GB/s")
    parser.add_argument("--quick", action="store_true", help="tiny: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.home, args.endpoint = HOME / "quick" if args.quick else HOME, None
    if args.quick:
        args.runs, args.limit, args.latency = 1, 30.0, "2ms"
    return args


def row_of(name: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """One row of what the landscape says of each way."""
    ways = {row["way"]: row for row in found}
    ours, tuned = (ways[way] for way in OURS)
    if failed := [f"{way}: {ways[way]['failed']}" for way in OURS if "failed" in ways[way]]:
        return {"row": name, "failed": "; ".join(failed)}
    figure = "seconds" if "seconds" in ours else "samples_per_s"
    others = {way: float(row["leat_over"]) for way, row in ways.items() if way not in OURS and "leat_over" in row}
    fastest = min(others, key=others.__getitem__, default=None)
    return {
        "row": name, "default": ours[figure], "best": tuned[figure], "unit": "s" if figure == "seconds" else "/s",
        "of_best": f"{tuned['leat_over']} ± {tuned['leat_over_mad']}", "setting": tuned["setting"],
        "mb": ours["peak_mb"], "best_mb": tuned["peak_mb"], "gets": ours["gets_a_sample"],
        "first": "" if fastest is None else f"{others[fastest]:.2f} x {fastest}",
    }  # fmt: skip


def main() -> None:
    args = options()
    rows = QUICK_ROWS if args.quick else ROWS
    regimes = QUICK if args.quick else REGIMES
    chosen = args.only or list(rows)
    if unknown := set(chosen) - set(rows):
        sys.exit(f"no row is called {', '.join(sorted(unknown))}; there are {', '.join(rows)}")
    if args.fresh:  # Once: the landscapes share one file.
        (args.home / "results.jsonl").unlink(missing_ok=True)
    end = time.monotonic() + args.budget
    found = []
    with contextlib.ExitStack() as stack:
        landscapes = {}
        for name in chosen:
            regime, is_away = rows[name]
            if is_away not in landscapes:
                latency = args.latency if is_away else "0ms"
                own = {**vars(args), "fresh": False, "budget": end - time.monotonic(), "latency": latency}
                landscapes[is_away] = stack.enter_context(landscape_run.Landscape(argparse.Namespace(**own)))
            told = landscapes[is_away].regime(regime, regimes[regime], [*OURS, *args.peers])
            if told:
                found.append(row_of(name, told))
        if any(one.is_spent for one in landscapes.values()) or args.only:
            measure.publish_nothing("not all rows are measured; run it again without --only, and it goes on")
    measure.report("Leat by default, and at its own best setting", found, args.json)


if __name__ == "__main__":
    main()
