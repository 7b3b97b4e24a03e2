"""A mix of trainings on two nodes: shared by the agent, evenly, by cgroup weights, and not at all.

    ./dev bench mix [--runs 5] [--only mix,steady,training] [--ways agent,even,fixed,none,cgroup]
                    [--steady-seconds 4] [--quick] [--json]

`mix` is bench/mix.toml: six jobs that come and go, two of them with a rank on each of two
nodes in network namespaces, with real loaders and `leat bucket`. `throughput` is the mean
over jobs of the time that a job takes alone over the time that it took; `makespan` from
the first arrival to the last end; `total` is the sum of all times alone over the makespan:
how many jobs went at full speed, on average. `even` divides a node equally among the jobs
that are there, anew whenever one comes or goes; `fixed` into as many parts as jobs ever
come to it, and each keeps its own. (A-Dloader compares itself with "allocating resources
evenly across applications"; which of the two that is, its abstract does not say.) Every
arm delivers the same bytes (content hashes) and the buckets count as many GETs as the
loaders sent. The rows `computed` are what no way could do better than, from the times
alone: mix_bound.py. `error` is how far the agent's prediction was off a second later,
median over the seconds of a job; the row of the way has the median over jobs. `steady`: three jobs that stay, the agent beside the best of 64
fixed splits. `training`: three jobs that wait for their training: what the agent costs,
and whether it says that there is nothing to gain. Needs root, for namespaces.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

try:
    import tomllib
except ImportError:  # Before Python 3.11.
    import tomli as tomllib  # type: ignore[no-redef]

import leat
import numpy as np
from measure import interleave, report, spread
from mix_bound import FLOOR, best_order
from mix_nodes import FixedAgent, Node, RealAgent, Weights, even_shares, joined_namespaces, launch_environment
from PIL import Image

HERE = pathlib.Path(__file__).parent
JOB = HERE / "mix_job.py"
WAYS = ("agent", "even", "fixed", "none", "cgroup")
PATIENCE = 600
MEASURES = ("throughput", "makespan", "total")
Job = dict[str, Any]


def make_objects(root: pathlib.Path, jobs: list[Job]) -> None:
    draw = np.random.default_rng(5)
    for job in jobs:
        (root / job["name"]).mkdir()
        for number in range(job["objects"]):
            (root / job["name"] / f"{number:05}.{'jpg' if 'picture' in job else 'bin'}").write_bytes(
                picture(draw, job["picture"], number) if "picture" in job else draw.bytes(job["bytes"])
            )


def picture(draw: np.random.Generator, size: int, number: int) -> bytes:
    line = np.arange(size)
    waves = 60 * np.sin(line / (9 + number % 31))[:, None] + 60 * np.cos(line / (7 + number % 5))
    noise = draw.integers(-6, 6, (size, size, 3))
    pixels = np.clip(waves[:, :, None] + noise + 128, 0, 255).astype(np.uint8)
    kept = io.BytesIO()
    Image.fromarray(pixels).save(kept, "JPEG", quality=70)
    return kept.getvalue()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Arena:
    """The nodes, and one way to share them, while it is entered."""

    def __init__(self, mix: dict[str, Any], root: pathlib.Path, folder: pathlib.Path, way: str) -> None:
        self._node, self._root, self._folder, self._way = mix["node"], root, folder, way
        self._jobs = mix["jobs"]
        self._link = int(self._node["bandwidth"].removesuffix("MB")) * 1_000_000
        self._stack = contextlib.ExitStack()
        self.agents: list[RealAgent] = []
        self.ranks: list[tuple[Job, subprocess.Popen[str]]] = []

    def __enter__(self) -> Arena:
        namespaces = self._stack.enter_context(joined_namespaces())
        cores = sorted(os.sched_getaffinity(0))
        each = self._node["cores"]
        if len(cores) < 2 * each:
            sys.exit(f"mix: two nodes of {each} cores need {2 * each}, and {len(cores)} may be used here")
        self.nodes = [
            Node(n, name, cores[n * each : (n + 1) * each], self._root, self._node, self._stack)
            for n, name in enumerate(namespaces)
        ]
        where = self._stack.enter_context(tempfile.TemporaryDirectory(dir=self._folder))
        self.sockets = ["off", "off"]
        if self._way == "agent":
            self.agents = [RealAgent(node, pathlib.Path(where), self._link) for node in self.nodes]
            self.sockets = [agent.socket for agent in self.agents]
        elif self._way in ("even", "fixed"):
            for node in self.nodes:
                parts = sum(node.number in job["nodes"] for job in self._jobs) if self._way == "fixed" else None
                agent = FixedAgent(pathlib.Path(where) / f"even{node.number}", even_shares(each, self._link, parts))
                self._stack.callback(agent.close)
                self.sockets[node.number] = agent.socket
        elif self._way == "cgroup":
            self._weights = Weights()
            self._stack.callback(self._weights.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, job: Job) -> None:
        port = free_port()
        for number in job["nodes"]:
            node = self.nodes[number]
            env = launch_environment(node, job["nodes"], port)
            env |= {"LEAT_AGENT": self.sockets[number], "LEAT_JOB_NAME": job["name"], "MIX_JOB": json.dumps(job),
                    "LEAT_CACHE_DIR": str(self._folder / "cache")}  # fmt: skip
            group = self._weights.group(f"{job['name']}{number}") if self._way == "cgroup" else None
            self.ranks.append((job, node.start([sys.executable, str(JOB)], env, group=group)))

    def watch(self) -> None:
        for agent in self.agents:
            agent.watch()

    def results(self) -> dict[str, list[dict[str, Any]]]:
        """The report of each rank once it is done. Ends the buckets, and compares
        their counts."""
        end = time.monotonic() + PATIENCE
        while any(process.poll() is None for _, process in self.ranks):
            self.watch()
            if time.monotonic() > end:
                sys.exit(f"mix: {self._way}: not done after {PATIENCE} s")
            time.sleep(1)
        said: dict[str, list[dict[str, Any]]] = {}
        for job, process in self.ranks:
            line = process.communicate()[0]
            if process.returncode != 0:
                sys.exit(f"mix: a rank of {job['name']} failed")
            said.setdefault(job["name"], []).append(json.loads(line))
        sent = sum(rank["gets"] for ranks in said.values() for rank in ranks)
        counted = sum(node.count_gets() for node in self.nodes)
        # Ranks of one job look whether somebody has published a catalogue.
        looked = sum(len(job["nodes"]) > 1 for job, _ in self.ranks)
        if not sent <= counted <= sent + looked:
            sys.exit(f"mix: {self._way}: the loaders sent {sent} GETs, the buckets counted {counted}")
        return said


class Content:
    """The content that all arms must deliver alike."""

    def __init__(self) -> None:
        self._first: dict[str, list[int]] = {}

    def check(self, job: Job, ranks: list[dict[str, Any]]) -> None:
        if sum(rank["samples"] for rank in ranks) != job["epochs"] * job["objects"]:
            sys.exit(f"mix: {job['name']} did not deliver each sample once an epoch")
        sums = [sum(int(one, 16) for one in epoch) % 2**128 for epoch in zip(*(rank["content"] for rank in ranks))]
        first = self._first.setdefault(job["name"], sums)
        shared = min(len(first), len(sums))
        if first[:shared] != sums[:shared]:
            sys.exit(f"mix: {job['name']} was delivered otherwise than before")
        self._first[job["name"]] = max(first, sums, key=len)


def seconds_of(ranks: list[dict[str, Any]]) -> float:
    return max(rank["ended"] for rank in ranks) - max(rank["began"] for rank in ranks)


def run_alone(mix: dict[str, Any], root: pathlib.Path, folder: pathlib.Path, content: Content) -> dict[str, float]:
    """Seconds that each job takes with nobody beside it, from a third of its epochs."""
    alone = {}
    single = [[job for job in mix["jobs"] if job["nodes"] == [node]] for node in (0, 1)]
    rounds = [list(filter(None, pair)) for pair in itertools.zip_longest(*single)]
    rounds += [[job] for job in mix["jobs"] if len(job["nodes"]) > 1]
    for together in rounds:
        short = [{**job, "epochs": max(2, job["epochs"] // 3)} for job in together]
        print("alone:", ", ".join(job["name"] for job in short), file=sys.stderr)
        with Arena(mix, root, folder, "none") as arena:
            for job in short:
                arena.start(job)
            said = arena.results()
        for job, whole in zip(short, together):
            content.check(job, said[job["name"]])
            alone[job["name"]] = seconds_of(said[job["name"]]) * whole["epochs"] / job["epochs"]
    return alone


def run_mix(
    mix: dict[str, Any], root: pathlib.Path, folder: pathlib.Path, way: str, alone: dict[str, float],
    content: Content, details: list[dict[str, Any]],
) -> dict[str, float]:  # fmt: skip
    coming = sorted(mix["jobs"], key=lambda job: job["arrives"])
    with Arena(mix, root, folder, way) as arena:
        began = time.time()
        for job in coming:
            while (left := began + job["arrives"] - time.time()) > 0:
                arena.watch()  # Once a second: the agent alone pays for being looked at.
                time.sleep(min(1, left))
            arena.start(job)
        said = arena.results()
        errors = arena.agents[0].errors() if arena.agents else {}
        for agent in arena.agents[1:]:
            for name, values in agent.errors().items():
                errors.setdefault(name, []).extend(values)
    speeds = {}
    for job in coming:
        content.check(job, said[job["name"]])
        speeds[job["name"]] = alone[job["name"]] / seconds_of(said[job["name"]])
    makespan = max(rank["ended"] for ranks in said.values() for rank in ranks) - began
    found = {
        "throughput": statistics.mean(speeds.values()),
        "makespan": makespan,
        "total": sum(alone.values()) / makespan,
        **{f"speed of {name}": speed for name, speed in speeds.items()},
        **{f"error of {name}": 100 * statistics.median(values) for name, values in errors.items() if values},
    }
    by_job = [value for name, value in found.items() if name.startswith("error of ")]
    if by_job:
        found["error"] = statistics.median(by_job)
    print(way, json.dumps({name: round(value, 2) for name, value in found.items()}), file=sys.stderr)
    details += [
        {"way": way, "node": agent.socket[-6], **decision}
        for agent in arena.agents
        for _, decision in sorted(agent.decisions.items())
    ]
    return found


def mix_rows(found: dict[str, dict[str, list[float]]], jobs: list[Job]) -> list[dict[str, Any]]:
    rows = []
    for way, values in found.items():
        row: dict[str, Any] = {"part": "mix", "way": way}
        for name in MEASURES:
            median, mad = spread(values[name])
            row[name] = f"{median:.3f} ± {mad:.3f}"
        if "error" in values:
            row["error_percent"] = round(statistics.median(values["error"]), 1)
        for job in jobs:
            speed = statistics.median(values[f"speed of {job['name']}"])
            row[job["name"]] = f"{speed:.2f}"
        rows.append(row)
    if "agent" in found:
        errors = {job["name"]: found["agent"].get(f"error of {job['name']}") for job in jobs}
        rows.append({"part": "mix", "way": "error, %", **{n: round(statistics.median(e), 1) for n, e in errors.items() if e}})
        for way in set(found) - {"agent"}:
            ours, theirs = ({name: statistics.median(found[w][name]) for name in MEASURES} for w in ("agent", way))
            rows.append({
                "part": "mix", "way": f"agent over {way}, %",
                **{name: round(100 * (ours[name] / theirs[name] - 1), 1) for name in MEASURES},
            })  # fmt: skip
    return rows


def bound_rows(mix: dict[str, Any], root: pathlib.Path, alone: dict[str, float]) -> list[dict[str, Any]]:
    """The upper bounds for any way, without a floor and with the agent's."""
    sample_bytes = {
        job["name"]: sum(file.stat().st_size for file in (root / job["name"]).iterdir()) / job["objects"] for job in mix["jobs"]
    }
    link = int(mix["node"]["bandwidth"].removesuffix("MB")) * 1_000_000
    rows = []
    for what, floor in (("at most", 0.0), (f"with a floor of {FLOOR}", FLOOR)):
        throughput, makespan, order = best_order(mix["jobs"], alone, sample_bytes, link, floor)
        rows.append({"part": "mix", "way": f"computed, {what}: {' '.join(order)}", "throughput": f"{throughput:.3f}",
                     "makespan": f"{makespan:.3f}", "total": f"{sum(alone.values()) / makespan:.3f}"})  # fmt: skip
    return rows


class Staying:
    """Jobs on one node that do not end, and how fast they go."""

    def __init__(self, arena: Arena, jobs: list[Job], folder: pathlib.Path) -> None:
        self._files = {job["name"]: folder / f"{job['name']}.progress" for job in jobs}
        for job in jobs:
            progress = self._files[job["name"]]
            progress.unlink(missing_ok=True)
            arena.start({**job, "nodes": [0], "epochs": 10**6, "progress": str(progress)})
        self._wait_for_all()

    def _wait_for_all(self) -> None:
        end = time.monotonic() + 60
        while not all(file.exists() and file.stat().st_size for file in self._files.values()):
            if time.monotonic() > end:
                sys.exit("mix: a job has not begun after 60 s")
            time.sleep(0.1)

    def rates(self, seconds: float) -> dict[str, float]:
        """Samples a second of each, over about so long, from step to step."""
        first = self._progress()
        time.sleep(seconds)
        last = self._progress()
        return {
            name: (last[name][0] - first[name][0]) / max(1e-9, last[name][1] - first[name][1])
            if last[name][1] > first[name][1] else 0.0
            for name in self._files
        }  # fmt: skip

    def _progress(self) -> dict[str, tuple[int, float]]:
        return {name: struct.unpack("qd", file.read_bytes()) for name, file in self._files.items()}


def splits(parts: int, jobs: int) -> Iterator[tuple[int, ...]]:
    """Every way to give each of the jobs one part or more."""
    for cuts in itertools.combinations(range(1, parts), jobs - 1):
        yield tuple(b - a for a, b in zip((0, *cuts), (*cuts, parts)))


def rates_alone(arena: Arena, names: list[str], mix: dict[str, Any], folder: pathlib.Path, seconds: float) -> dict[str, float]:
    """The rate of each job on a node, with nobody beside it."""
    alone = {}
    for job in mix["jobs"]:
        if job["name"] not in names:
            continue
        staying = Staying(arena, [job], folder)
        time.sleep(seconds)
        alone |= staying.rates(seconds)
        end_all(arena)
    return alone


def end_all(arena: Arena) -> None:
    for _, process in arena.ranks:
        process.kill()
        process.wait()
    arena.ranks.clear()


def run_steady(mix: dict[str, Any], root: pathlib.Path, folder: pathlib.Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Three jobs on one node: the agent beside fixed splits of its link."""
    names = ["windows", "segment", "photos"]
    jobs = [job for job in mix["jobs"] if job["name"] in names]
    names = [job["name"] for job in jobs]
    link = int(mix["node"]["bandwidth"].removesuffix("MB")) * 1_000_000
    tried = list(splits(6 if options.quick else 13, len(jobs)))[:64]
    with Arena(mix, root, folder, "none") as arena:
        alone = rates_alone(arena, names, mix, folder, options.steady_seconds)
        path = folder / "steady"
        arena.sockets = [str(path), "off"]
        given: dict[str, Any] = {}
        staying = Staying(arena, jobs, folder)

        def value(seconds: float) -> float:
            rates = staying.rates(seconds)
            return statistics.mean(rates[name] / alone[name] for name in names)

        def fixed(split: tuple[int, ...], seconds: float) -> float:
            path.unlink(missing_ok=True)
            parts = sum(split)
            given.update({n: {"bytes_per_second": link * part // parts} for n, part in zip(names, split)})
            agent = FixedAgent(path, lambda _: given)
            try:
                time.sleep(2 if options.quick else 3)  # They look for it once a second.
                return value(seconds)
            finally:
                agent.close()

        def shared() -> dict[str, float]:
            path.unlink(missing_ok=True)
            agent = arena.nodes[0].start(
                [leat.testing.find_binary(), "agent", "--socket", str(path), "--bandwidth", str(link)], {}, inside=False
            )
            time.sleep(5 if options.quick else 25)
            try:
                return {"value": value(2 * options.steady_seconds)}
            finally:
                agent.terminate()
                agent.wait()

        found = {split: fixed(split, options.steady_seconds / 2) for split in tried}
        best = max(tried, key=lambda split: found[split])
        ways: dict[str, Callable[[], dict[str, float]]] = {
            "agent": shared, "best": lambda: {"value": fixed(best, 2 * options.steady_seconds)},
        }  # fmt: skip
        values = interleave(ways, options.runs)
        end_all(arena)
    rows: list[dict[str, Any]] = []
    medians = []
    for way, of in values.items():
        median, mad = spread(of["value"])
        medians.append(median)
        rows.append({"part": "steady", "way": way, "throughput": f"{median:.3f} ± {mad:.3f}"})
    rows[1]["way"] = f"best of {len(tried)}: {best}"
    rows.append({"part": "steady", "way": "agent over best, %",
                 "throughput": round(100 * (medians[0] / medians[1] - 1), 1)})  # fmt: skip
    return rows


def run_training(mix: dict[str, Any], root: pathlib.Path, folder: pathlib.Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Three jobs that wait for their training, with the agent and without."""
    jobs = [job for job in mix["jobs"] if job["bound"] == "training"]
    said: list[bool] = []

    def run(way: str) -> dict[str, float]:
        with Arena(mix, root, folder, way) as arena:
            staying = Staying(arena, jobs, folder)
            time.sleep(5 if options.quick else 20)
            rates = staying.rates(3 * options.steady_seconds)
            if way == "agent":
                arena.watch()
                decisions = arena.agents[0].decisions.values()
                said.append(any("nothing to gain" in one["reason"] for one in decisions))
            end_all(arena)
        return rates

    found = interleave({"agent": lambda: run("agent"), "none": lambda: run("none")}, options.runs)
    medians = {way: {name: statistics.median(of) for name, of in values.items()} for way, values in found.items()}
    rows: list[dict[str, Any]] = [
        {"part": "training", "way": way, **{name: round(rate, 1) for name, rate in rates.items()}} for way, rates in medians.items()
    ]
    rows.append({
        "part": "training", "way": "agent over none, %",
        **{name: round(100 * (rate / medians["none"][name] - 1), 1) for name, rate in medians["agent"].items()},
    })  # fmt: skip
    rows.append({"part": "training", "way": f"said there is nothing to gain: {sum(said)} of {len(said)} runs"})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", default="mix,steady,training", help="some of mix,steady,training")
    parser.add_argument("--ways", default=",".join(WAYS), help="of the mix")
    parser.add_argument("--steady-seconds", type=float, default=4)
    parser.add_argument("--quick", action="store_true", help="a few epochs: does it work?")
    parser.add_argument("--decisions", action="store_true", help="print what the agents decided, to stderr")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ways = options.ways.split(",")
    if set(ways) - set(WAYS) or set(options.only.split(",")) - {"mix", "steady", "training"}:
        parser.error("--ways names some of " + ", ".join(WAYS) + ", --only some of mix, steady, training")
    mix = tomllib.loads((HERE / "mix.toml").read_text())
    if options.quick:
        for job in mix["jobs"]:
            job["epochs"] = max(1, job["epochs"] // 6)
    weights = Weights()
    weights.close()
    if "cgroup" in ways and weights.reason:
        print(f"without cgroup weights: {weights.reason}", file=sys.stderr)
        ways.remove("cgroup")
    rows = []
    with tempfile.TemporaryDirectory(prefix="leat-mix-") as temporary:
        folder = pathlib.Path(temporary)
        root = folder / "objects"
        root.mkdir()
        make_objects(root, mix["jobs"])
        if "mix" in options.only:
            content, details = Content(), []
            alone = run_alone(mix, root, folder, content)
            found = interleave(
                {way: lambda way=way: run_mix(mix, root, folder, way, alone, content, details) for way in ways}, options.runs
            )
            rows += mix_rows(found, mix["jobs"])
            rows += bound_rows(mix, root, alone)
            if options.decisions:
                for one in details:
                    print(json.dumps(one), file=sys.stderr)
        if "steady" in options.only:
            rows += run_steady(mix, root, folder, options)
        if "training" in options.only:
            rows += run_training(mix, root, folder, options)
    report("mix", rows, options.json)


if __name__ == "__main__":
    main()
