"""The field side by side: loaders of others, each at its best, beside Leat.

    ./dev bench landscape [--only REGIME ...] [--peers PEER ...] [--runs 5] [--budget 40min] [--limit 120]
                          [--fresh] [--endpoint URL] [--latency 20ms] [--bandwidth 200MB/s] [--list] [--quick]
                          [--json]

A whole run takes many hours; it can be stopped at any time, and goes on where it stopped:
build/landscape/results.jsonl has a line for each measurement. `--budget` ends it in between. A peer is installed into
a venv of its own when it is first needed; one that fails is a row that says why. landscape_regimes.py has the
regimes, landscape_peers.py the peers.

Each measurement is a process of its own, cold: no list, index, shard or cache of an earlier one is there. Its clock
runs from before the dataset is opened until the last batch is there, with the listing and the start of workers,
without imports. A sweep of short trials first finds each peer's best setting, and goes on until its best is inside,
or is a bound; every worker has 20 batches or more. Then come interleaved runs of whole epochs. One that takes longer
than --limit is stopped there, and has the rate until then. "leat" is Leat as it comes, "leat-tuned" at the best of a
sweep like the others'. How to read it: `samples_per_s` is the median, beside the median absolute deviation;
`leat_over` is Leat's rate by default over this one's. Each sample's bytes are hashed as they come, and compared with
what was written; pixels are only counted, since chains differ. `gets` are the server's count, a sample; CPU is of all
processes of the way, in microseconds a sample; memory is the most that they held at once, shared pages counted once.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import sys

import landscape_run
import measure
from landscape_peers import PEERS
from landscape_regimes import QUICK, QUICK_USUAL, REGIMES

HOME = pathlib.Path(__file__).parent.parent / "build/landscape"


def seconds_of(text: str) -> float:
    for end, factor in (("min", 60.0), ("h", 3600.0), ("s", 1.0)):
        if text.endswith(end):
            return float(text.removesuffix(end)) * factor
    return float(text)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="REGIME", help="these regimes")
    parser.add_argument("--peers", nargs="+", choices=tuple(PEERS), help="these loaders")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a measurement")
    parser.add_argument(
        "--trial", type=float, default=8.0, help="seconds of a trial of a sweep, if each worker has its batches"
    )
    parser.add_argument(
        "--budget", type=seconds_of, default=float("inf"), help="such as 40min: ends then, and goes on next time"
    )
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    parser.add_argument("--endpoint", help="an S3 server in the place of `leat bucket`; credentials in AWS_ variables")
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--bandwidth", default="200MB/s")
    parser.add_argument("--home", type=pathlib.Path, default=HOME, help="the folder of data, venvs and results")
    parser.add_argument("--list", action="store_true", help="say which regimes and peers there are")
    parser.add_argument("--quick", action="store_true", help="tiny, two regimes, what is installed: does it work?")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    args = options()
    regimes = QUICK if args.quick else REGIMES
    chosen = args.only or list(QUICK_USUAL if args.quick else regimes)
    if unknown := set(chosen) - set(regimes):
        sys.exit(f"no regime is called {', '.join(sorted(unknown))}; there are {', '.join(regimes)}")
    if args.list:
        print("\n".join(f"{name}: {regime.about}" for name, regime in regimes.items()))
        print("\n".join(f"{name}: {peer.about}" for name, peer in PEERS.items()))
        return
    peers = args.peers or (["leat", "torch"] if args.quick else list(PEERS))
    if args.quick and importlib.util.find_spec("boto3") is None:
        peers = [name for name in peers if name != "torch"]
    if args.quick:
        args.runs, args.limit, args.latency, args.home = 1, 30.0, "2ms", args.home / "quick"
    with landscape_run.Landscape(args) as landscape:
        tables = {name: landscape.regime(name, regimes[name], peers) for name in chosen}
        whole = not landscape.is_spent and not args.peers
        versions = [{"way": name, "packages": landscape.told_versions(name)} for name in peers]
    if not whole:
        measure.publish_nothing(
            "not all of it is measured, or not of all peers; run it again without --peers, and it goes on"
        )
    for name, rows in tables.items():
        if rows:
            measure.report(f"{name}: {regimes[name].about}", rows, args.json)
    measure.keep("versions", versions)
    print(f"{landscape.measured} measured now, {landscape.known} known from before", file=sys.stderr)


if __name__ == "__main__":
    main()
