"""Computes an upper bound for sharing in a mix, for bench/mix_bench.py.

    python bench/mix_bound.py      of bench/mix.toml, by the rates that its comments say

Links that lose nothing, cores that are free, decisions at once and told the truth. In each
interval between an arrival and an end the jobs are served in an order, each as fast as it
goes alone or as its links still allow; with a floor, each has that part of what an even
split would give it first. The best of all orders is what is reported.

Whether an order that changes in mid-run could do better: for this mix all jobs are there
before the first one ends, so the best of all divisions is, for each order of ends, a
linear program over the intervals between arrivals and ends; by these (a maximum of a convex
function, sought from many beginnings) nothing was 0.01 % better than the best order.
"""

from __future__ import annotations

import itertools
import pathlib
import statistics
from typing import Any

try:
    import tomllib
except ImportError:  # Before Python 3.11.
    import tomli as tomllib  # type: ignore[no-redef]

Job = dict[str, Any]
FLOOR = 0.5  # The floor of `leat agent`.
# One job's samples a second that its node's core decodes, and their bytes.
DECODED_PER_SECOND, PICTURE_BYTES, SMALL_PICTURE_BYTES = 633, 22250, 6000


def run_in_order(
    jobs: list[Job], order: tuple[int, ...], alone: dict[str, float], sample_bytes: dict[str, float], link: float, floor: float,
    parts: dict[int, int] | None = None,
) -> tuple[float, float]:  # fmt: skip
    """(throughput, makespan) as mix_bench.py has them.

    Each has `floor` of an equal part first: of those that are there, or of `parts`, by
    node; those of `order` then have the rest.
    """
    # Bytes a second of each at full speed, on each of its nodes.
    needs = [
        job["objects"] * job["epochs"] * sample_bytes[job["name"]] / len(job["nodes"]) / alone[job["name"]] for job in jobs
    ]
    left = [alone[job["name"]] for job in jobs]  # Seconds at full speed.
    ended: dict[int, float] = {}
    now = 0.0
    while len(ended) < len(jobs):
        here = [at for at, job in enumerate(jobs) if at not in ended and job["arrives"] <= now]
        room = {node: link for job in jobs for node in job["nodes"]}
        speeds = dict.fromkeys(here, 0.0)

        def raise_to(at: int, speed: float) -> None:
            more = min(speed - speeds[at], *(room[node] / needs[at] for node in jobs[at]["nodes"]))
            speeds[at] += more
            for node in jobs[at]["nodes"]:
                room[node] -= more * needs[at]

        for at in here:
            among = max(
                parts[node] if parts else sum(node in jobs[other]["nodes"] for other in here) for node in jobs[at]["nodes"]
            )
            raise_to(at, floor * min(1.0, link / among / needs[at]))
        for at in order:
            if at in speeds:
                raise_to(at, 1.0)
        ends = [now + left[at] / speed for at, speed in speeds.items() if speed > 1e-12]
        comes = [job["arrives"] for job in jobs if job["arrives"] > now]
        then = min(ends + comes)
        for at, speed in speeds.items():
            left[at] -= speed * (then - now)
            if left[at] < 1e-9:
                ended[at] = then
        now = then
    found = [alone[job["name"]] / (ended[at] - job["arrives"]) for at, job in enumerate(jobs)]
    return statistics.mean(found), max(ended.values())


def best_order(
    jobs: list[Job], alone: dict[str, float], sample_bytes: dict[str, float], link: float, floor: float = 0
) -> tuple[float, float, list[str]]:
    """(throughput, makespan, names from first to last) of the order with the highest throughput."""
    found = {
        order: run_in_order(jobs, order, alone, sample_bytes, link, floor)
        for order in itertools.permutations(range(len(jobs)))
    }
    best = max(found, key=lambda order: found[order])
    return *found[best], [jobs[at]["name"] for at in best]


def nominal(job: Job, latency: float) -> tuple[float, float]:
    """(seconds alone, bytes of a sample), by the mix's figures for it."""
    samples = job["objects"] * job["epochs"]
    if job["bound"] == "training":
        return samples / job["batch"] * job["step"], job.get("bytes", SMALL_PICTURE_BYTES)
    if job["bound"] == "latency":
        return samples / len(job["nodes"]) * latency / job["max_in_flight"], job["bytes"]
    return samples / DECODED_PER_SECOND, PICTURE_BYTES


def main() -> None:
    mix = tomllib.loads((pathlib.Path(__file__).parent / "mix.toml").read_text())
    jobs, node = mix["jobs"], mix["node"]
    link = float(node["bandwidth"].removesuffix("MB")) * 1e6
    figures = {job["name"]: nominal(job, float(node["latency"].removesuffix("ms")) / 1000) for job in jobs}
    alone = {name: of[0] for name, of in figures.items()}
    sample_bytes = {name: of[1] for name, of in figures.items()}
    parts = {at: sum(at in job["nodes"] for job in jobs) for at in (0, 1)}

    def tell(way: str, throughput: float, makespan: float) -> None:
        print(f"{way:24} throughput {throughput:.3f}  makespan {makespan:.1f} s  total {sum(alone.values()) / makespan:.3f}")

    tell("even", *run_in_order(jobs, (), alone, sample_bytes, link, 1))
    tell("fixed", *run_in_order(jobs, (), alone, sample_bytes, link, 1, parts))
    for floor in (FLOOR, 0.0):
        throughput, makespan, order = best_order(jobs, alone, sample_bytes, link, floor)
        tell(f"at most, with floor {floor:g}", throughput, makespan)
    print("served in this order:", *order)


if __name__ == "__main__":
    main()
