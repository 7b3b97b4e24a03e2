"""What sharing could bring a mix at most: computed, for bench/mix_bench.py.

Links that lose nothing, cores that are free, decisions at once and told the truth: in
each interval between an arrival and an end the jobs are served in an order, each as fast
as it goes alone or as its links still allow. The best of all orders is not a proof, but
nothing that decides online, measures first and shares cores comes near it.
"""

from __future__ import annotations

import itertools
import statistics
from typing import Any

Job = dict[str, Any]


def run_in_order(
    jobs: list[Job], order: tuple[int, ...], alone: dict[str, float], sample_bytes: dict[str, float], link: float
) -> tuple[float, float]:
    """(throughput, makespan) as mix_bench.py has them, if jobs are served in this order."""
    left = [1.0] * len(jobs)  # Of each job, as a part of it.
    ended: dict[int, float] = {}
    now = 0.0
    while len(ended) < len(jobs):
        rates = dict.fromkeys(range(len(jobs)), 0.0)
        room: dict[int, float] = {}
        for at in order:
            job = jobs[at]
            if at in ended or job["arrives"] > now:
                continue
            seconds = alone[job["name"]]
            # A second of it at full speed, on each of its nodes.
            needs = job["objects"] * job["epochs"] * sample_bytes[job["name"]] / len(job["nodes"]) / seconds
            free = min(room.get(node, link) for node in job["nodes"])
            rates[at] = min(1.0, free / needs) / seconds
            for node in job["nodes"]:
                room[node] = room.get(node, link) - rates[at] * seconds * needs
        ends = [now + left[at] / rate for at, rate in rates.items() if rate > 1e-12]
        comes = [job["arrives"] for job in jobs if job["arrives"] > now]
        then = min(ends + comes)
        for at, rate in rates.items():
            left[at] -= rate * (then - now)
            if at not in ended and rate > 0 and left[at] < 1e-9:
                ended[at] = then
        now = then
    speeds = [alone[job["name"]] / (ended[at] - job["arrives"]) for at, job in enumerate(jobs)]
    return statistics.mean(speeds), max(ended.values())


def best_order(
    jobs: list[Job], alone: dict[str, float], sample_bytes: dict[str, float], link: float
) -> tuple[float, float, list[str]]:
    """(throughput, makespan, names from first to last) of the order with the highest throughput."""
    found = {
        order: run_in_order(jobs, order, alone, sample_bytes, link) for order in itertools.permutations(range(len(jobs)))
    }
    best = max(found, key=lambda order: found[order])
    return *found[best], [jobs[at]["name"] for at in best]
