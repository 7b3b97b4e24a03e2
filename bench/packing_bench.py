"""Packing and balancing: padding beside Grain's, documents a second, uneven steps.

    ./dev bench packing [--grain PYTHON] [--documents 20000] [--capacity 8192] [--bins 64]
        [--runs 5] [--quick] [--json]

`--grain` names an interpreter that can import grain (`pip install grain`); without it, the
rows of Grain are left out. Lengths come from a log-normal and a bimodal distribution, and
from texts: the words and signs of each .rst file that the package awscli ships, shuffled
ten times. Grain refuses documents longer than a row, so it gets them split as Leat splits
them. `padding` is the part of all rows that no document fills, `planned` the documents a
second of the plan alone, of a million documents, on one core. Grain's time includes the
copying of tokens, so it is not shown.

The second table deals the items of a step to 8 ranks with 4 micro-batches each: sequences,
or rows as best fit packs them. It has the mean time of the steps where a sequence takes L *
L, relative to ranks that are equally fast: with ranks that meet after each micro-batch, and
with ranks that meet once, after the last one; Leat then deals them one large micro-batch.
`as they come` deals runs of the stream. `whole micro-batches` is the rule of torchtitan
(torchtitan/components/data/load_balancing/planner.py): the heaviest micro-batches of a step
together, or as they come where that is quicker. `its rule by item` deals single items so:
the heaviest together, each to the rank with least. `at best` is a bound that no deal can
beat: a step takes as long as its longest item. `excess` is Leat's time above 1, relative to
that of `as they come`.

The third table is what a loader's `balance=` says of an epoch of the same documents, 8 ranks
and an attention cost: rows as best fit packs them, and samples within a budget of tokens for
each micro-batch. `begins in` is the CPU time of its first iter(), which plans and deals the
whole epoch, on one core; `without` the same of a loader that only plans.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import re
import subprocess
import tempfile
import time
from dataclasses import replace
from typing import Any

import numpy as np
from measure import report, spread

import leat
from leat._orders._pack import Pack, balance

RANKS, MICRO_BATCHES = 8, 4
METHODS = ("best_fit", "first_fit")
TOKEN = re.compile(r"\w+|[^\w\s]")


def log_normal(count: int, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).lognormal(np.log(600), 1.2, count)
    return np.maximum(drawn, 1).astype(np.int64)


def bimodal(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    drawn = np.where(rng.random(count) < 0.7, rng.normal(200, 60, count), rng.normal(5000, 800, count))
    return np.maximum(drawn, 1).astype(np.int64)


def texts(times: int, seed: int) -> np.ndarray:
    """The lengths of awscli's texts, in words and signs, shuffled that many times."""
    found = importlib.util.find_spec("awscli")
    if found is None or found.origin is None:
        return np.empty(0, np.int64)
    files = sorted(pathlib.Path(found.origin).parent.rglob("*.rst"))
    lengths = [len(TOKEN.findall(file.read_text(errors="replace"))) for file in files]
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.permutation(np.array(lengths, np.int64)) for _ in range(times)])


def split(lengths: np.ndarray, capacity: int) -> np.ndarray:
    """No document longer than a row."""
    pieces = []
    for length in lengths.tolist():
        pieces += [capacity] * (length // capacity)
        if length % capacity:
            pieces.append(length % capacity)
    return np.array(pieces, np.int64)


def grain_rows(python: str, lengths: np.ndarray, capacity: int, bins: int) -> dict[str, int]:
    """The rows that Grain makes, by method."""
    with tempfile.TemporaryDirectory(prefix="leat-packing-") as folder:
        file = pathlib.Path(folder) / "lengths.npy"
        np.save(file, split(lengths, capacity))
        script = pathlib.Path(__file__).with_name("packing_grain.py")
        command = [python, script, file, str(capacity), str(bins)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def packing_rows(
    name: str, lengths: np.ndarray, args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Padding and speed on one distribution."""
    theirs = grain_rows(args.grain, lengths, args.capacity, args.bins) if args.grain else {}
    many = np.resize(lengths, 10_000 if args.quick else 1_000_000)
    rows = []
    for method in (*METHODS, "concat_then_split"):
        pack = Pack(args.capacity, method, None if method == "concat_then_split" else args.bins)
        seconds = []
        for _ in range(args.runs):
            began = time.perf_counter()
            pack.rows(many)
            seconds.append(time.perf_counter() - began)
        row = {
            "lengths": name,
            "documents": f"{len(lengths):,}",
            "method": method,
            "padding": f"{pack.rows(lengths).padding:.2%}",
            "planned": f"{len(many) / spread(seconds)[0] / 1e6:.1f} M/s",
        }  # fmt: skip
        if method in theirs:
            room = theirs[method] * args.capacity
            row["Grain's padding"] = f"{1 - lengths.sum() / room:.2%}"
        rows.append(row)
    return rows


def step_time(costs: np.ndarray) -> float:
    """The time of a step whose ranks meet after each micro-batch, relative to ranks that are
    equally fast. Costs are of shape (micro-batches, ranks)."""
    return float(costs.max(axis=1).sum() / costs.mean(axis=1).sum())


def step_time_at_once(costs: np.ndarray) -> float:
    """The same if they meet once, after the last micro-batch."""
    return step_time(costs.sum(axis=0, keepdims=True))


def longest_first(costs: np.ndarray) -> np.ndarray:
    """The heaviest of a step make up a micro-batch; in it, each goes to the rank that has least
    and has room. The cost of each micro-batch of each rank."""
    cohorts = np.sort(costs)[::-1].reshape(MICRO_BATCHES, -1)
    dealt = np.zeros((MICRO_BATCHES, RANKS))
    for sums, cohort in zip(dealt, cohorts):
        room = np.full(RANKS, len(cohort) // RANKS)
        for cost in cohort:
            rank = int(np.argmin(np.where(room > 0, sums, np.inf)))
            sums[rank] += cost
            room[rank] -= 1
    return dealt


def costs_of(lengths: np.ndarray, capacity: int, item: str) -> np.ndarray:
    """The sum of L * L of each sequence, or of each packed row."""
    if item == "sequences":
        return split(lengths, capacity).astype(np.float64) ** 2
    rows = Pack(capacity).rows(lengths)
    return np.add.reduceat(rows.lengths.astype(np.float64) ** 2, rows.offsets[:-1])


def deals_of(step: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """The costs of all micro-batches of a step, `count` items each, by way of dealing."""
    as_they_come = step.reshape(MICRO_BATCHES, RANKS, count).sum(axis=2)
    whole = longest_first(as_they_come.ravel())
    return {
        "as they come": as_they_come,
        "whole micro-batches": min(as_they_come, whole, key=step_time),
        "its rule by item": longest_first(step),
        "Leat": balance(step, RANKS, MICRO_BATCHES)[1],
        "Leat, at once": balance(step, RANKS)[1],
    }


def balance_rows(
    name: str, costs: np.ndarray, item: str, count: int
) -> list[dict[str, Any]]:
    """The steps of one distribution, `count` items a micro-batch; no rows if there is none."""
    size = RANKS * MICRO_BATCHES * count
    steps = costs[: len(costs) // size * size].reshape(-1, size)
    if not len(steps):
        return []
    deals = [deals_of(step, count) for step in steps]
    at_best = np.mean([max(1, step.max() / (step.sum() / RANKS)) for step in steps])
    rows = []
    for meet, time_of in (("each micro-batch", step_time), ("once", step_time_at_once)):
        uneven = {way: float(np.mean([time_of(deal[way]) for deal in deals])) for way in deals[0]}
        at_once = uneven.pop("Leat, at once")
        if meet == "once":
            uneven["Leat"] = at_once
        row: dict[str, Any] = {"lengths": name, "a micro-batch": f"{count} {item}", "ranks meet": meet}
        row.update({way: f"{value:.3f}" for way, value in uneven.items()})
        row["at best"] = f"{at_best:.3f}"
        row["excess"] = f"{(uneven['Leat'] - 1) / (uneven['as they come'] - 1):.3f}"
        rows.append(row)
    return rows


def samplers_of(capacity: int) -> dict[str, tuple[int, Any]]:
    """By name, micro-batches or rows of a rank, and the sampler."""
    once, each = leat.Balance(), leat.Balance(micro_batches=MICRO_BATCHES)
    return {
        "4 rows, meet once": (4, Pack(capacity, balance=once)),
        "4 × 4 rows": (4 * MICRO_BATCHES, Pack(capacity, balance=each)),
        "a budget of 8 rows, meet once": (1, leat.TokenBudget(8 * capacity, balance=once)),
        "the same, padded": (1, leat.TokenBudget(8 * capacity, padded=True, balance=once)),
        "4 × a budget of 2 rows": (MICRO_BATCHES, leat.TokenBudget(2 * capacity, balance=each)),
    }


def begun(documents: leat.Dataset, batch: int, sampler: Any) -> tuple[dict[str, Any] | None, float]:
    """A loader's report of its balance, and the CPU seconds of iter(); None: it has no whole step."""
    with leat.Loader(
        documents, batch_size=batch, train=True, sampler=sampler, fields=("tokens",), rank=0, world_size=RANKS,
        output="numpy",
    ) as loader:  # fmt: skip
        began = time.thread_time()
        batches = iter(loader)
        seconds = time.thread_time() - began
        has_some = next(batches, None) is not None
        return (loader.stats()[-1].get("balance", {}) if has_some else None), seconds


def live_rows(name: str, lengths: np.ndarray, capacity: int) -> list[dict[str, Any]]:
    """The figures that loaders give of an epoch."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="leat-packing-") as folder:
        lengths = split(lengths, capacity)
        tokens = np.ones(int(lengths.sum()), "<u2")
        tokens[np.cumsum(lengths) - 1] = 0
        (pathlib.Path(folder) / "tokens.bin").write_bytes(tokens.tobytes())
        documents = leat.Dataset.tokens(folder, dtype="uint16", seq_len=capacity, eos=0)
        for step, (batch, sampler) in samplers_of(capacity).items():
            found, seconds = begun(documents, batch, sampler)
            _, plain = begun(documents, batch, replace(sampler, balance=None))
            if found is None:
                continue
            rows.append({
                "lengths": name,
                "a rank's step": step,
                "steps": found["steps"],
                "in runs": f"{found['unbalanced']:.3f}",
                "balanced": f"{found['balanced']:.3f}",
                "excess": f"{(found['balanced'] - 1) / max(found['unbalanced'] - 1, 1e-9):.3f}",
                "begins in": f"{seconds * 1e6 / len(lengths):.1f} µs a document",
                "without": f"{plain * 1e6 / len(lengths):.1f}",
            })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grain", help="an interpreter that can import grain")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--capacity", type=int, default=8192)
    parser.add_argument("--bins", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="shows that the bench works")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.documents, args.runs = 2000, 1
    known = {
        "log-normal": log_normal(args.documents, 1),
        "bimodal": bimodal(args.documents, 2),
        "texts of awscli": texts(1 if args.quick else 10, 3),
    }
    known = {name: lengths for name, lengths in known.items() if len(lengths)}
    packed = [row for name, lengths in known.items() for row in packing_rows(name, lengths, args)]
    report("packing", packed, args.json)
    uneven = []
    for name, lengths in known.items():
        for item, count in (("sequences", 8), ("rows", 1), ("rows", 4)):
            costs = costs_of(lengths, args.capacity, item)
            uneven += balance_rows(name, costs, item, count)
    report("balance", uneven, args.json)
    live = [row for name, lengths in known.items() for row in live_rows(name, lengths, args.capacity)]
    report("balance, in a loader", live, args.json)


if __name__ == "__main__":
    main()
