"""Clients of object stores: GETs a second, and CPU a GET, on the same servers.

    ./dev bench clients [--runs 5] [--only gcs] [--seconds 3] [--quick] [--json] [--publish]

Each row is one client that reads all objects of a bucket, again and again, in a process of its own, after a pass that
is not timed and whose bytes are compared with the files'. `us_per_get` is the CPU of that process: its threads, its
allocations, its bytes handed to Python. Each client runs at the concurrency that was its best in a sweep, which is
printed; a sweep goes on while its best is at an end. `of_best` is the rate over the best of the others', and
`cpu_of_best` the least CPU of the others over this one's, both of the same run, median and spread. obstore reads
nothing from gcp-storage-emulator, which sends no Last-Modified.

`s3` is `leat bucket`, which counts the GETs: they are as many as the client says that it sent. `gcs` is
gcp-storage-emulator and `azure` Azurite, from `./dev test-servers`; they are slow, so that there the CPU tells. A
client that is found neither here nor in build/peers is left out:

    pip install --target build/peers --no-deps -r tools/client-requirements.txt
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import clients_peer
from faults_bench import digest_of, peer_environment, sum_of
from measure import interleave, report, spread

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests/python"), str(HERE.parent / "tools")]
import test_servers  # noqa: E402
from emulators import put_at_azurite, put_at_gcs  # noqa: E402
from unwell_bucket import Comings, small_objects  # noqa: E402

MODULES = {"leat": "leat", "obstore async": "obstore"}  # Others are named as they are imported.
SWEEP = (4, 16, 64)
MOST_CONCURRENCY = 2048
MOST_SECONDS = 300.0
SIZES = {"4 KB": 4096, "100 KB": 100_000}


class Served(NamedTuple):
    """A server with the objects of a folder."""

    url: str
    count_gets: Callable[[], int] | None = None


Serve = Callable[[pathlib.Path], "contextlib.AbstractContextManager[Served]"]


@contextlib.contextmanager
def bucket(folder: pathlib.Path, latency: str) -> Iterator[Served]:
    server = Comings(folder.parent, "--latency", latency)
    server.begin()
    try:
        yield Served(server.url, lambda: server.counters()["get"])
    finally:
        server.end()


@contextlib.contextmanager
def emulator(name: str, folder: pathlib.Path) -> Iterator[Served]:
    """A server of tools/test_servers.py. Raises its NotInstalledError."""
    found = next(server for server in test_servers.SERVERS if server.name == name)
    found.install(test_servers.MOST_INSTALL_SECONDS)
    with tempfile.TemporaryDirectory() as scratch, found.start(pathlib.Path(scratch)) as environment:
        (url,) = environment.values()
        objects = ((key, (folder / key).read_bytes()) for key in keys_of(folder))
        (put_at_gcs if name == "gcs" else put_at_azurite)(url, clients_peer.BUCKET, objects)
        yield Served(url)


def keys_of(folder: pathlib.Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.bin"))


class ClientError(Exception):
    """The last line of what a client said before it gave up."""


class Case(NamedTuple):
    """A protocol's clients on one server, with objects of one size."""

    name: str
    protocol: str
    size: str
    count: int
    serve: Serve


def cases(is_quick: bool) -> list[Case]:
    found = []
    for size, bytes_each in SIZES.items():
        few = 1 if bytes_each < 10_000 else 4
        for latency in ("0ms", "5ms"):
            name = f"s3, {size}, {latency.removesuffix('ms')} ms away"
            count = 200 if is_quick else 4000 // few
            found.append(Case(name, "s3", size, count, lambda f, at=latency: bucket(f, at)))
        for protocol, server in (("gcs", "gcs"), ("azure", "azurite")):
            count = 200 // few  # gcp-storage-emulator writes the list of all with each that is put.
            found.append(Case(f"{protocol}, {size}", protocol, size, count, lambda f, name=server: emulator(name, f)))
    return [one for one in found if not is_quick or one.name == "s3, 4 KB, 0 ms away"]


def installed(protocol: str) -> list[str]:
    ways = []
    for way in clients_peer.WAYS:
        kind, _, client = way.partition(": ")
        if kind != protocol:
            continue
        probe = [sys.executable, "-c", f"import {MODULES.get(client, client)}"]
        known = subprocess.run(probe, capture_output=True, env=peer_environment(), check=False)
        if known.returncode == 0:
            ways.append(way)
        else:
            print(f"{client} is not installed; its rows are left out", file=sys.stderr)
    return ways


def run(way: str, served: Served, keys: list[str], right: int, concurrency: int, seconds: float) -> dict[str, float]:
    before = served.count_gets() if served.count_gets else 0
    done = subprocess.run(
        [sys.executable, str(HERE / "clients_peer.py"), way, served.url, str(concurrency), str(seconds)],
        input="\n".join(keys), capture_output=True, text=True, timeout=MOST_SECONDS, env=peer_environment(),
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "Error" in line]
        raise ClientError(errors[-1] if errors else done.stderr[-500:])
    found = json.loads(done.stdout.splitlines()[-1])
    if found["digest"] != right or not found["bytes_right"]:
        sys.exit(f"{way} read other bytes than those of the files")
    if served.count_gets:
        counted, sent = served.count_gets() - before, found["passes"] * len(keys)
        # Leat begins the next epoch while the last one is read, and looks for a published catalogue.
        more = len(keys) + 2 if way.endswith("leat") else 0
        if not sent <= counted <= sent + more:
            sys.exit(f"{way}: {sent} objects read by {counted} GETs, as the server counted")
    return {"rate": found["gets"] / found["seconds"], "us_per_get": 1e6 * found["cpu_seconds"] / found["gets"]}


def rate_or_none(run_at: Callable[..., dict[str, float]], way: str, concurrency: int, seconds: float) -> float:
    """The rate; 0 where another client gives up."""
    try:
        return run_at(way, concurrency, seconds)["rate"]
    except ClientError as error:
        if way.endswith(": leat"):
            raise
        print(f"{way} gives up with {concurrency} at once: {error}", file=sys.stderr)
        return 0


def sweep(way: str, rate_at: Callable[[int], float], counts: tuple[int, ...]) -> int | None:
    """The best concurrency; goes on, in steps of two, while the best is at an end. None where nothing was read."""
    rates = {count: rate_at(count) for count in counts}
    if not any(rates.values()):
        print(f"{way} reads nothing from this server; its row is left out", file=sys.stderr)
        return None
    while True:
        best = max(rates, key=lambda count: rates[count])
        if best == max(rates) and best < MOST_CONCURRENCY:
            further = 2 * best
        elif best == min(rates) and best > 1:
            further = best // 2
        else:
            tried = ", ".join(f"{count}: {rates[count]:.0f}" for count in sorted(rates))
            print(f"{way}: GETs a second at this many at once: {tried}; best {best}", file=sys.stderr)
            return best
        rates[further] = rate_at(further)


def ratio(numbers: list[float], others: list[list[float]], best: Callable[..., float]) -> str:
    """Each run over the best of the others in it."""
    if not others:
        return ""
    middle, mad = spread([number / best(run) for number, run in zip(numbers, zip(*others))])
    return f"{middle:.2f} ± {mad:.2f}"


def rows_of(case: Case, found: dict[str, dict[str, list[float]]], at: dict[str, int]) -> list[dict[str, Any]]:
    rows = []
    for way, runs in found.items():
        # The two ways of one client are no opponents of each other.
        client = way.partition(": ")[2].split()[0]
        others = [other for name, other in found.items() if name.partition(": ")[2].split()[0] != client]
        rate, rate_mad = spread(runs["rate"])
        cpu, cpu_mad = spread(runs["us_per_get"])
        rows.append({
            "server": case.name, "client": way.partition(": ")[2], "at_once": at[way],
            "gets_per_s": round(rate), "mad": round(rate_mad), "us_per_get": round(cpu), "cpu_mad": round(cpu_mad),
            "of_best": ratio(runs["rate"], [other["rate"] for other in others], max),
            "cpu_of_best": ratio([1 / one for one in runs["us_per_get"]],
                                 [[1 / one for one in other["us_per_get"]] for other in others], max),
        })  # fmt: skip
    return rows


def compare(case: Case, runs: int, seconds: float, is_quick: bool) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = small_objects(pathlib.Path(scratch) / f"buckets/{clients_peer.BUCKET}", case.count, SIZES[case.size])
        keys = keys_of(folder)
        right = sum_of(digest_of((folder / key).read_bytes()) for key in keys)
        with case.serve(folder) as served:

            def run_at(way: str, concurrency: int, most_seconds: float) -> dict[str, float]:
                return run(way, served, keys, right, concurrency, most_seconds)

            at = {}
            for way in installed(case.protocol):
                if is_quick:
                    at[way] = 16
                    continue
                trial = max(1.0, seconds / 2)
                found = sweep(f"{case.name}: {way}", lambda n, way=way: rate_or_none(run_at, way, n, trial), SWEEP)
                if found is not None:
                    at[way] = found
            ways = {way: lambda way=way: run_at(way, at[way], seconds) for way in at}
            return rows_of(case, interleave(ways, runs), at)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="how long each run takes at least")
    parser.add_argument("--only", default="", help="the servers whose name has this in it")
    parser.add_argument("--quick", action="store_true", help="one short run on one server, to see that it works")
    parser.add_argument("--json", action="store_true")
    words = parser.parse_args()
    rows = []
    for case in cases(words.quick):
        if words.only not in case.name:
            continue
        try:
            rows += compare(case, 1 if words.quick else words.runs, 0.2 if words.quick else words.seconds, words.quick)
        except test_servers.NotInstalledError as error:
            print(f"{case.name}: left out: not installed: {error}", file=sys.stderr)
    report("clients of object stores", rows, words.json)


if __name__ == "__main__":
    main()
