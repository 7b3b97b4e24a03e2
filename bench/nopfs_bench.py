"""Four nodes and their memory, in the four regimes of NoPFS (Dryden et al., SC21).

    ./dev bench nopfs [--runs 1] [--epochs 5] [--quick] [--json]

Each node is a network namespace with one rank; three of them run a memcached. The
bucket, of objects of 40 KB, is 20 ms away; its own counters say how often it was
asked. S is the dataset, d a node's RAM tier, D its RAM and disk tiers, N·M the memory
of the servers together. The regimes: S < d, d < S < D, D < S < N·M, N·M < S.

Ways: `none`, the tiers of each node alone; `peers`, with the servers behind them;
`partitioned` is arithmetic, not a run: what CoorDL's cache would ask of the bucket,
where every node keeps its first epoch's share as far as its tiers go and serves the
others, N + (E - 1) · N · max(0, 1 - sum of the tiers / S). `gets_of_n` is GETs over
samples: 1 is the dataset once for the whole run. Needs root, ip (iproute2) and
memcached.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from leat.testing import find_binary
from measure import interleave, report, spread
from namespaces import HUB, address, network, run

NODES = 4
SERVERS = 3
OBJECT_BYTES = 40_000
MIB = 1 << 20

# Of the dataset: RAM and disk tier of a node, memory of a server.
REGIMES = {
    "S<d": {"ram": 1.6, "disk": 0.0, "server": 0.5},
    "d<S<D": {"ram": 0.3, "disk": 1.6, "server": 0.5},
    "D<S<NM": {"ram": 0.1, "disk": 0.0, "server": 0.42},
    "NM<S": {"ram": 0.05, "disk": 0.0, "server": 0.2},
}


@contextlib.contextmanager
def running(words: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(words, text=True, **options) as process:
        try:
            yield process
        finally:
            process.terminate()


def start_servers(stack: contextlib.ExitStack, at: Callable[[int], list[str]], mib: int) -> list[str]:
    for i in range(SERVERS):
        memcached = ["memcached", "-M", "-I", "8m", "-l", address(i), "-p", "11211",
                     "-m", str(mib), "-t", "1", "-u", "root", "-n", "480", "-f", "1.12"]
        stack.enter_context(running([*at(i), *memcached]))
    time.sleep(0.5)
    return [f"{address(i)}:11211" for i in range(SERVERS)]


def train(at: Callable[[int], list[str]], endpoint: str, flags: list[list[str]]) -> list[dict]:
    """All ranks at once, each on its node; what `leat bench` says of each."""
    with contextlib.ExitStack() as stack:
        ranks = [stack.enter_context(rank) for rank in start_ranks(at, endpoint, flags)]
        outputs = [rank.communicate()[0] for rank in ranks]
        if any(rank.returncode != 0 for rank in ranks):
            sys.exit("a rank failed")
    return [json.loads(output) for output in outputs]


def start_ranks(
    at: Callable[[int], list[str]], endpoint: str, flags: list[list[str]]
) -> Iterator[contextlib.AbstractContextManager[subprocess.Popen[str]]]:
    for i in range(NODES):
        environment = {**os.environ, "RANK": str(i), "WORLD_SIZE": str(NODES), "LOCAL_RANK": "0",
                       "LOCAL_WORLD_SIZE": "1", "AWS_ENDPOINT_URL": endpoint}
        yield running(
            [*at(i), find_binary(), "bench", "s3://data/train", "--json", "--no-sign-request",
             *flags[i]],
            env=environment, stdout=subprocess.PIPE,
        )


def way(
    at: Callable[[int], list[str]], endpoint: str, regime: dict[str, float], has_peers: bool,
    samples: int, epochs: int, folder: pathlib.Path,
) -> Callable[[], dict[str, float]]:
    size = samples * OBJECT_BYTES
    base = ["--epochs", str(epochs), "--global-batch-size", "64", "--max-in-flight", "32",
            "--memory", "16MiB", "--threads", "1", "--cache-ram", str(int(regime["ram"] * size))]

    def run_once() -> dict[str, float]:
        hub = at(NODES)
        counters = f"{endpoint}/_leat/counters"
        with contextlib.ExitStack() as stack:
            shared = list(base)
            if has_peers:
                mib = max(16, int(regime["server"] * size / MIB))
                servers = start_servers(stack, at, mib)
                shared += ["--cache-peers", ",".join(servers), "--cache-peer-patience", "2s"]
            flags = []
            for i in range(NODES):
                own = list(shared)
                if regime["disk"] > 0:
                    disk = folder / f"disk{i}"
                    shutil.rmtree(disk, ignore_errors=True)
                    own += ["--cache-disk", str(disk), "--cache-disk-limit",
                            str(int(regime["disk"] * size))]
                flags.append(own)
            run(*hub, "curl", "-sf", "-X", "POST", f"{counters}/reset")
            began = time.perf_counter()
            results = train(at, endpoint, flags)
            seconds = time.perf_counter() - began
            asked = json.loads(run(*hub, "curl", "-sf", counters))
        epochs_of_all = [epoch for result in results for epoch in result["epochs"]]
        hits = {name: sum(epoch["cache"][name] for epoch in epochs_of_all)
                for name in ("ram_hits", "disk_hits", "peer_hits", "misses")}
        return {"seconds": seconds, "gets": asked["get"], "gets_of_n": asked["get"] / samples, **hits}

    return run_once


def partitioned(regime: dict[str, float], samples: int, epochs: int) -> float:
    """GETs of CoorDL's partitioned cache over the same tiers and servers."""
    kept = min(1.0, NODES * (regime["ram"] + regime["disk"]) + SERVERS * regime["server"])
    return samples + (epochs - 1) * samples * (1 - kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--quick", action="store_true", help="one regime, two epochs: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Leaves nothing behind.
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("memcached"):
        sys.exit("nopfs_bench: needs root, ip (apt install iproute2) and memcached")
    samples, epochs = (1024, 2) if args.quick else (args.samples, args.epochs)
    regimes = {"D<S<NM": REGIMES["D<S<NM"]} if args.quick else REGIMES
    with tempfile.TemporaryDirectory(prefix="leat-nopfs-") as temporary, network(NODES, f"leat{os.getpid()}-") as at:
        folder = pathlib.Path(temporary)
        os.environ["LEAT_CACHE_DIR"] = str(folder / "cache")
        data = folder / "buckets" / "data" / "train"
        data.mkdir(parents=True)
        for i in range(samples):
            (data / f"{i:05}.bin").write_bytes(os.urandom(OBJECT_BYTES))
        bucket = [*at(NODES), find_binary(), "bucket", str(folder / "buckets"), "--host", HUB,
                  "--port", "0", "--latency", "20ms"]
        with running(bucket, stdout=subprocess.PIPE) as process:
            endpoint = re.search(r"http://\S+", process.stdout.readline())[0]
            ways = {
                f"{name} {'peers' if has_peers else 'none'}": way(
                    at, endpoint, regime, has_peers, samples, epochs, folder)
                for name, regime in regimes.items() for has_peers in (False, True)
            }
            found = interleave(ways, args.runs)
    rows = []
    for name, values in found.items():
        regime = name.split()[0]
        row: dict[str, Any] = {"way": name, "samples": samples, "epochs": epochs}
        for key, measured in values.items():
            median, deviation = spread(measured)
            row[key] = round(median, 3)
            if key == "seconds":
                row["mad"] = round(deviation, 3)
        row["partitioned_gets"] = round(partitioned(regimes[regime], samples, epochs))
        rows.append(row)
    report("nopfs", rows, args.json)


if __name__ == "__main__":
    main()
