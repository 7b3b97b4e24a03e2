"""Four nodes and their memory, in the four regimes of NoPFS (Dryden et al., SC21).

    ./dev bench nopfs [--runs 1] [--epochs 5] [--only "D<S<NM"] [--quick] [--json]

Each node is a network namespace with one rank; three of them run a memcached. Links
between them have a delay and a rate (bench/delayed_link.py), and the bucket, of objects
of 40 KB, sends them all together less than training asks for. Training is a sleep, in
step (bench/nopfs_training.py). S is the dataset, d a node's RAM tier, D its RAM and disk
tiers, N·M the memory of the servers. The regimes: S < d, d < S < D, D < S < N·M, N·M < S.

Ways: `none`, the tiers of each node alone; `peers`, with the servers behind them;
`partitioned`, CoorDL's cache: the same memory altogether, all of it in the servers, each
object on one of them, none ever evicted, and no tiers. `no I/O` trains without data.

How to read it: compare `seconds` with `simulated` (`leat plan --simulate` of the same
job); `error` is the difference, and 10 % is the aim. The simulation takes two things
from the machine, before the first run: the time of a step without data, and the links
as bench/nopfs_calibration.py measures them. Nothing is fitted. `gets_of_n` is GETs, as
the bucket counted them, over samples: 1 is the dataset once for the whole run; the
simulation's stands beside it. `ram`, `disk`, `peer` are reads that those answered, and
simulated ones. Needs root, ip (iproute2), /dev/net/tun and memcached.
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
from typing import Any, NamedTuple

from delayed_link import address, nodes
from leat.testing import find_binary
from measure import interleave, report, spread
from namespaces import run
from nodes_bench import SEED, run_simulation
from nopfs_training import meeting

NODES = 4
SERVERS = 3
BUCKET_NODE = NODES
OBJECT_BYTES = 40_000
# The size of a record in a tier: whole pages, and its place in the index.
RECORD_BYTES = 10 * 4096 + 128
BATCH = 16 * NODES
STEP = 0.06
LATENCY = "20ms"
BUCKET_RATE = "12MB/s"
DELAY, LINE = 0.001, 25e6  # Between nodes, one way; bytes a second that each sends.
STEPS_AHEAD = 6
IN_FLIGHT = 64
HERE = pathlib.Path(__file__).parent
MIB = 1 << 20
LEAST_MIB = 16  # For a memcached whose values may have 8 MiB.

Enter = Callable[[int], list[str]]


class Regime(NamedTuple):
    """Shares of the dataset: RAM and disk tier of a node, memory of a
    server."""

    ram: float
    disk: float
    server: float


REGIMES = {
    "S<d": Regime(1.6, 0.0, 0.5),
    "d<S<D": Regime(0.1, 1.6, 0.5),
    "D<S<NM": Regime(0.1, 0.0, 0.43),
    "NM<S": Regime(0.05, 0.0, 0.19),
}
WAYS = ("none", "peers", "partitioned")


class Memory(NamedTuple):
    """The memory of a way in a regime: bytes of the tiers of a node, MiB of a
    server; 0: none."""

    ram: int
    disk: int
    server_mib: int

    @classmethod
    def of(cls, regime: Regime, way: str, size: int) -> Memory:
        ram, disk, server = (int(share * size) for share in regime)
        server = max(server, LEAST_MIB * MIB)
        if way == "partitioned":
            return cls(0, 0, (NODES * (ram + disk) // SERVERS + server) // MIB)
        return cls(ram, disk, server // MIB if way == "peers" else 0)


class Job:
    """The dataset, its place, and the parameters that all ways share."""

    def __init__(self, enter: Enter, folder: pathlib.Path, endpoint: str, samples: int, epochs: int) -> None:
        self.enter, self.folder, self.endpoint = enter, folder, endpoint
        self.samples, self.epochs = samples, epochs
        self.steps = epochs * samples // BATCH

    def loader(self, rank: int, memory: Memory, servers: list[str]) -> dict[str, Any]:
        cache: dict[str, Any] = {}
        if memory.ram:
            cache["ram"] = memory.ram
        if memory.disk:
            disk = self.folder / f"disk{rank}"
            shutil.rmtree(disk, ignore_errors=True)
            cache |= {"disk": str(disk), "disk_limit": memory.disk}
        if servers:
            cache |= {"peers": servers, "peer_patience": "2s"}
        return {
            "url": "s3://data/train", "fields": ["data"], "batch": "dict",
            "storage_options": {"endpoint_url": self.endpoint, "no_sign_request": True},
            "rank": rank, "world_size": NODES, "global_batch_size": BATCH, "seed": SEED, "epochs": self.epochs,
            # The batch that is trained on, and the samples that are asked for
            # ahead of it.
            "memory": int((STEPS_AHEAD + 1.5) * BATCH // NODES * OBJECT_BYTES),
            "max_in_flight": IN_FLIGHT, "threads": 1, "tune": False, "hashes": False, "cache": cache or None,
        }  # fmt: skip

    def train(self, loaders: list[dict[str, Any] | None]) -> list[dict[str, Any]]:
        """Runs all ranks at once, each on its node; returns the report of
        each."""
        path = str(self.folder / "meeting")
        with contextlib.ExitStack() as stack:
            stack.enter_context(meeting(path, NODES))
            ranks = []
            for node, loader in enumerate(loaders):
                job = {"meeting": path, "step": STEP, "steps": self.steps, "loader": loader}
                words = [*self.enter(node), sys.executable, str(HERE / "nopfs_training.py"), json.dumps(job)]
                ranks.append(stack.enter_context(running(words, stdout=subprocess.PIPE)))
            outputs = [rank.communicate()[0] for rank in ranks]
            if any(rank.returncode != 0 for rank in ranks):
                sys.exit("nopfs_bench: a rank failed")
        return [json.loads(output) for output in outputs]

    def without_data(self) -> float:
        return max(rank["seconds"] for rank in self.train([None] * NODES))

    def run(self, memory: Memory) -> dict[str, float]:
        counters = f"{self.endpoint}/_leat/counters"
        with contextlib.ExitStack() as stack:
            servers = start_servers(stack, self.enter, memory.server_mib) if memory.server_mib else []
            at_bucket = self.enter(BUCKET_NODE)
            run(*at_bucket, "curl", "-sf", "-X", "POST", f"{counters}/reset")
            ranks = self.train([self.loader(rank, memory, servers) for rank in range(NODES)])
            asked = json.loads(run(*at_bucket, "curl", "-sf", counters))
        epochs = [epoch for rank in ranks for epoch in rank["epochs"]]
        reads = {name: sum(epoch["cache"][name] for epoch in epochs)
                 for name in ("ram_hits", "disk_hits", "peer_hits", "misses")}  # fmt: skip
        if asked["get"] != reads["misses"] or sum(reads.values()) != self.samples * self.epochs:
            sys.exit(f"nopfs_bench: the ranks say {reads}, the bucket counted {asked['get']} GETs")
        return {"seconds": max(rank["seconds"] for rank in ranks), "gets": asked["get"], **reads}

    def simulation(self, name: str, memory: Memory, times: dict[str, float]) -> str:
        """For `leat plan --simulate`."""
        tiers = ", ".join(
            f'{{policy = "belady", items = {size // RECORD_BYTES}}}' for size in (memory.ram, memory.disk) if size
        )
        peers = f"peers = {{memory = {memory.server_mib * MIB}, servers = {SERVERS}}}\n" if memory.server_mib else ""
        return (
            f'[[simulation]]\nname = "{name}"\nsamples = {self.samples}\nsample_bytes = {OBJECT_BYTES}\n'
            f"seed = {SEED}\nglobal_batch_size = {BATCH}\nworld_size = {NODES}\nnodes = {NODES}\n"
            f"epochs = {self.epochs}\ntiers = [{tiers}]\n{peers}"
            f'times = {{compute = "{times["compute"]:.6f}s", get = "{times["get"]:.6f}s", '
            f'peer = "{times["peer"]:.6f}s", store_bytes_per_second = {times["store_bytes_per_second"]:.0f}, '
            f'peer_bytes_per_second = {times["peer_bytes_per_second"]:.0f}, max_in_flight = {IN_FLIGHT}, '
            f"prefetch_steps = {STEPS_AHEAD}}}\n"
        )

    def calibrated(self) -> dict[str, float]:
        """The links, without Leat; a step, without data."""
        keys = self.folder / "keys.json"
        keys.write_text(json.dumps([f"{i:05}.bin" for i in range(min(400, self.samples))]))
        with contextlib.ExitStack() as stack:
            servers = start_servers(stack, self.enter, 64)
            words = [sys.executable, str(HERE / "nopfs_calibration.py"), f"{self.endpoint}/data/train/",
                     str(keys), servers[1]]  # fmt: skip
            times: dict[str, float] = json.loads(run(*self.enter(0), *words))
        return {"compute": self.without_data() / self.steps, **times}


@contextlib.contextmanager
def running(words: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(words, text=True, **options) as process:
        try:
            yield process
        finally:
            process.terminate()


def start_servers(stack: contextlib.ExitStack, enter: Enter, mib: int) -> list[str]:
    for i in range(SERVERS):
        memcached = ["memcached", "-M", "-I", "8m", "-l", address(i), "-p", "11211",
                     "-m", str(mib), "-t", "1", "-u", "root", "-n", "480", "-f", "1.12"]  # fmt: skip
        stack.enter_context(running([*enter(i), *memcached]))
    time.sleep(0.5)
    return [f"{address(i)}:11211" for i in range(SERVERS)]


def rows_of(job: Job, found: dict[str, dict[str, list[float]]], simulated: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, values in found.items():
        seconds, deviation = spread(values["seconds"])
        row: dict[str, Any] = {"way": name, "seconds": f"{seconds:.2f}", "mad": f"{deviation:.2f}"}
        if name in simulated:
            total = simulated[name]["total"]
            tiers = [*total["tier_hits"], 0]
            row |= {"simulated": f"{total['seconds']:.2f}", "error": f"{100 * (total['seconds'] / seconds - 1):+.1f} %"}
            for key, measured, told in (
                ("gets_of_n", "gets", total["gets"]),
                ("ram", "ram_hits", tiers[0]),
                ("disk", "disk_hits", tiers[1] if len(tiers) > 2 else 0),
                ("peer", "peer_hits", total["peer_hits"]),
            ):
                median, _ = spread(values[measured])
                if key == "gets_of_n":
                    row["gets"] = round(median)
                    row |= {key: f"{median / job.samples:.3f}", "(n)": f"({told / job.samples:.3f})"}
                else:
                    row |= {key: round(median), f"({key})": f"({told})"}
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=2304, help=f"a multiple of {BATCH}")
    parser.add_argument("--only", choices=REGIMES, help="this regime alone")
    parser.add_argument("--quick", action="store_true", help="one regime, two epochs: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Leaves nothing behind.
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("memcached"):
        sys.exit("nopfs_bench: needs root, ip (apt install iproute2) and memcached")
    samples, epochs = (15 * BATCH, 2) if args.quick else (args.samples, args.epochs)
    if samples <= 0 or samples % BATCH != 0:
        sys.exit(f"nopfs_bench: --samples {samples} is no multiple of the batch; take one of {BATCH}")
    only = "D<S<NM" if args.quick else args.only
    with tempfile.TemporaryDirectory(prefix="leat-nopfs-") as temporary, nodes(NODES + 1, DELAY, LINE) as enter:
        folder = pathlib.Path(temporary)
        os.environ["LEAT_CACHE_DIR"] = str(folder / "cache")
        data = folder / "buckets" / "data" / "train"
        data.mkdir(parents=True)
        for i in range(samples):
            (data / f"{i:05}.bin").write_bytes(os.urandom(OBJECT_BYTES))
        bucket = [*enter(BUCKET_NODE), find_binary(), "bucket", str(folder / "buckets"), "--host", address(BUCKET_NODE), "--no-credentials",
                  "--port", "0", "--latency", LATENCY, "--total-bandwidth", BUCKET_RATE]  # fmt: skip
        with running(bucket, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            endpoint = re.search(r"http://\S+", process.stdout.readline())[0]  # type: ignore[index]
            job = Job(enter, folder, endpoint, samples, epochs)
            memory = {
                f"{name}: {way}": Memory.of(regime, way, samples * OBJECT_BYTES)
                for name, regime in REGIMES.items() for way in WAYS if only in (None, name)
            }  # fmt: skip
            times = job.calibrated()
            print(f"calibrated: {times}", file=sys.stderr)
            jobs = "".join(job.simulation(name, one, times) for name, one in memory.items())
            simulated = {one["name"]: one for one in run_simulation(folder, jobs)["simulations"]}
            ways: dict[str, Callable[[], dict[str, float]]] = {"no I/O": lambda: {"seconds": job.without_data()}}
            for name, one in memory.items():
                ways[name] = lambda one=one: job.run(one)  # type: ignore[misc]
            found = interleave(ways, args.runs)
    report("nopfs", list(rows_of(job, found, simulated)), args.json)


if __name__ == "__main__":
    main()
