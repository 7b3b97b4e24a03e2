"""Streams composed of mixes, schedules, filters, packing and balance, for tests, and what each delivers."""

from __future__ import annotations

import hashlib
import itertools
import json
import pathlib
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import leat
from small_datasets import tar_of, write

BATCH = 192
"""Samples of a step, or rows, or micro-batches, over all ranks: 1, 2, 3, 4, 8 and 64 divide it."""
WORLDS = (1, 2, 3, 4, 8)
MANY = 64
AT_ONCE = 4
EPOCHS = 2
EPOCH = 1000
"""Samples of an epoch of most streams: five steps, and some that fill none."""
ROW = 32
EOS = 0

AXES: dict[str, tuple[str, ...]] = {
    "data": ("objects", "shards", "documents"),
    "mix": ("random", "stratified", "per_source", "nested", "repeat", "exhausted", "none"),
    "schedule": ("none", "stages", "ramp"),
    "filter": ("none", "columns", "seen", "both"),
    "pack": ("none", "best_fit", "first_fit", "concat_then_split", "budget", "padded_budget"),
    "balance": ("none", "attention", "tokens"),
    "shuffle": ("full", "block", "none"),
    "tail": ("drop", "pad"),
}


PACKS = ("best_fit", "first_fit", "concat_then_split")
BUDGETS = ("budget", "padded_budget")


@dataclass(frozen=True)
class Composition:
    """A choice along each axis, and a seed."""

    data: str = "objects"
    mix: str = "random"
    schedule: str = "none"
    filter: str = "none"
    pack: str = "none"
    balance: str = "none"
    shuffle: str = "full"
    tail: str = "drop"
    seed: int = 0

    def __str__(self) -> str:
        return "-".join([*(str(getattr(self, axis)) for axis in AXES), str(self.seed)])

    @property
    def makes_rows(self) -> bool:
        return self.pack in PACKS

    @property
    def has_budget(self) -> bool:
        return self.pack in BUDGETS

    @property
    def has_sorted_steps(self) -> bool:
        """Whether only the samples of a step are promised, and no order in it."""
        return self.shuffle == "block" or self.balance != "none"

    @property
    def is_possible(self) -> bool:
        """Whether a loader takes it."""
        has_weights = self.mix in ("random", "stratified", "per_source", "nested", "exhausted")
        return (
            (self.makes_rows or self.has_budget or self.data != "documents")
            and (not self.makes_rows or self.data == "documents")
            and (self.schedule == "none" or has_weights)
            # Windows are of shards; rows have no tail to pad, and no substitutes.
            and (self.shuffle != "block" or (self.data == "shards" and self.pack == "none"))
            and (self.pack == "none" or (self.tail == "drop" and self.filter in ("none", "columns")))
            # A row has documents of all sources.
            and (self.pack == "none" or self.mix != "per_source")
            # Samples are dealt by count unless something says how long they are.
            and (self.balance == "none" or self.pack != "none")
        )


def compositions(count: int, seed: int) -> list[Composition]:
    """This many of them, drawn: each value of each axis comes, as soon as there is room for it."""
    draw = random.Random(seed)
    possible = [each for values in itertools.product(*AXES.values()) if (each := Composition(*values)).is_possible]
    draw.shuffle(possible)
    found: list[Composition] = []
    had: set[tuple[str, str]] = set()
    for _ in range(min(count, len(possible))):
        best = max(possible, key=lambda each: len(_values(each) - had))
        possible.remove(best)
        had |= _values(best)
        found.append(replace(best, seed=draw.randrange(2**32)))
    return found


def _values(composition: Composition) -> set[tuple[str, str]]:
    """The things that it shows: pairs of values of the five axes that the promise names, and all values."""
    named = [f"{axis}={getattr(composition, axis)}" for axis in ("mix", "schedule", "filter", "pack", "balance")]
    pairs = {(one, other) for one, other in itertools.combinations(named, 2)}
    return pairs | {(axis, getattr(composition, axis)) for axis in AXES}


class Streams:
    """The data of all compositions, made once; and the loaders over it."""

    SIZES = {"tiny": 70, "books": 300, "code": 500, "web": 900}

    def __init__(self, folder: pathlib.Path) -> None:
        self._sources: dict[str, dict[str, leat.Dataset]] = {kind: {} for kind in AXES["data"]}
        for name, size in self.SIZES.items():
            draw = np.random.default_rng(size)
            values = [f"{name} {number} ".encode() + b"x" * int(draw.integers(0, 60)) for number in range(size)]
            for number, value in enumerate(values):
                write(folder / "objects" / name / f"{number:04}.bin", value)
            for shard, first in enumerate(range(0, size, 100)):
                part = [(f"{number:04}.bin", values[number]) for number in range(first, min(first + 100, size))]
                write(folder / "shards" / name / f"{shard}.tar", tar_of(part))
            lengths = draw.integers(0, 40, 4 * size)
            tokens = [token for length in lengths for token in (*draw.integers(1, 60_000, length), EOS)]
            write(folder / "documents" / name / "0.bin", np.array(tokens, "<u2").tobytes())
            for kind in ("objects", "shards"):
                self._sources[kind][name] = leat.Dataset(folder / kind / name)
            self._sources["documents"][name] = leat.Dataset.tokens(
                folder / "documents" / name, dtype="uint16", seq_len=4096, eos=EOS
            )

    def sources(self, kind: str) -> dict[str, leat.Dataset]:
        return self._sources[kind]

    def data(self, composition: Composition) -> leat.Dataset:
        """The dataset of a loader."""
        sources = self._sources[composition.data]
        field = _field(composition.data)
        if composition.filter in ("columns", "both"):
            sources = {name: each.filter(lambda of: of.lengths(field) % 5 != 3) for name, each in sources.items()}
        epoch = 2 * EPOCH if composition.data == "documents" else EPOCH
        if composition.mix == "none":
            return sources["web"]
        if composition.mix == "repeat":
            three = {name: sources[name] for name in ("tiny", "books", "code")}
            return leat.mix(three, repeat={"tiny": 3.5, "books": 0.8})
        schedule: dict[str, Any] = {}
        weights: dict[str, float] = {"tiny": 0.1, "books": 0.3, "web": 0.6}
        if composition.mix == "exhausted":
            weights = {"tiny": 0.2, "books": 0.4, "code": 0.4}
        weighed: dict[str, Any] = {name: (sources[name], weight) for name, weight in weights.items()}
        if composition.mix == "nested":
            inner = leat.mix({name: (sources[name], weight) for name, weight in (("code", 2), ("books", 1))})
            weighed = {"inner": (inner, 0.5), "web": (sources["web"], 0.5)}
        if composition.schedule != "none":
            names, turns = list(weighed), (epoch // 3, epoch + epoch // 2)
            schedule = {
                "schedule": {
                    at: {name: 1.0 + (place + number) % len(names) for place, name in enumerate(names)}
                    for number, at in enumerate(turns)
                },
                "ramp": composition.schedule == "ramp",
            }
        kinds = ("random", "stratified", "per_source")
        kind = composition.mix if composition.mix in kinds else kinds[composition.seed % 2]
        end: dict[str, Any] = {"samples": epoch}
        if composition.mix == "exhausted":
            end = {"stop": "all_exhausted_without_replacement"} if not schedule else {"stop": "all_exhausted"}
        return leat.mix(weighed, composition=kind, **end, **schedule)

    def loader(self, composition: Composition, data: leat.Dataset, **options: Any) -> leat.Loader:
        usual: dict[str, Any] = {
            "global_batch_size": BATCH, "seed": composition.seed % 1000, "epochs": EPOCHS, "batch": "dict",
            "output": "numpy", "drop_last": "pad" if composition.tail == "pad" else True, "threads": 1, "memory": "16MiB",
        }  # fmt: skip
        balance = leat.Balance(composition.balance) if composition.balance != "none" else None
        if composition.makes_rows:
            adds = ("segment_ids", "positions", "labels")
            pack = leat.Pack(ROW, method=composition.pack, adds=adds, balance=balance)
            usual |= {"sampler": pack, "shuffle": composition.shuffle != "none", "fields": ("tokens",)}
        elif composition.has_budget:
            budget = budget_of(composition, data, balance)
            usual |= {"sampler": budget, "shuffle": composition.shuffle != "none", "ids": True}
        else:
            shuffles = {"full": "full", "block": leat.Shuffle("block", window=4), "none": False}
            usual |= {"shuffle": shuffles[composition.shuffle], "ids": True}
        if composition.filter in ("seen", "both"):
            usual |= {"ops": [leat.ops.Python(_padded, workers="threads"), leat.ops.Filter(_is_kept, workers="threads")]}
        return leat.Loader(data, **usual, **options)


def budget_of(composition: Composition, data: leat.Dataset, balance: leat.Balance | None) -> leat.TokenBudget:
    """Micro-batches of two samples and more."""
    is_padded = composition.pack == "padded_budget"
    if composition.data == "documents":
        return leat.TokenBudget(64 + 16 * is_padded, padded=is_padded, buckets=[10, 25, 64] if is_padded else None,
                                balance=balance)  # fmt: skip
    lengths = data.lengths(_field(composition.data))
    return leat.TokenBudget(100 + 60 * is_padded, lengths, padded=is_padded, buckets=[30, 100] if is_padded else None,
                            balance=balance)  # fmt: skip


def _field(data: str) -> str:
    return {"objects": "data", "shards": "bin", "documents": "tokens"}[data]


def _padded(value: bytes) -> np.ndarray:
    return np.frombuffer(value.ljust(80), np.uint8)


def _is_kept(value: np.ndarray) -> bool:
    return int(value.sum()) % 3 != 1


@dataclass(frozen=True)
class Told:
    """The delivered rows of each step, and the state behind them."""

    steps: list[list[bytes]]
    state: dict[str, Any]


def rows_of(batch: dict[str, Any]) -> list[bytes]:
    """A digest of each row: its number, its bytes and whether it is padding."""
    if "index" not in batch:
        return [_digest(*(batch[name][row].tobytes() for name in batch)) for row in range(len(batch["tokens"]))]
    (field,) = (name for name in ("data", "bin", "tokens") if name in batch)
    values = [row.tobytes() for row in batch[field]] if field == "tokens" else batch[field].tolist()
    beside = [batch[name] for name in ("index", "source", "valid") if name in batch]
    return [
        _digest(bytes(value), batch["key"][row].encode(), *(int(each[row]).to_bytes(8, "little") for each in beside))
        for row, value in enumerate(values)
    ]


def _digest(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"|".join(parts), digest_size=8).digest()


def batches_of(loader: leat.Loader, epoch: int) -> Iterator[dict[str, Any]]:
    """To the end of the last epoch."""
    return (batch for _ in range(epoch, EPOCHS) for batch in loader)


def run(
    streams: Streams, composition: Composition, world: int, *, state: dict | None = None, stop: int | None = None,
    log: pathlib.Path | None = None,
) -> Told:  # fmt: skip
    """Each step over all ranks, from a state on; at most `stop` steps. Checks that all ranks have one state.

    A few ranks run at a time, so that 64 of them need no machine of that size.
    """
    data = streams.data(composition)
    trace = {} if log is None else {"trace": {"order_log": log}}

    def run_rank(rank: int) -> tuple[list[list[bytes]], dict]:
        with streams.loader(composition, data, rank=rank, world_size=world, **trace) as loader:
            if state is not None:
                loader.load_state_dict(state)
            batches = batches_of(loader, (state or {"epoch": 0})["epoch"])
            rows = [rows_of(batch) for batch in itertools.islice(batches, stop)]
            return rows, json.loads(json.dumps(loader.state_dict()))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found, states = zip(*pool.map(run_rank, range(world)))
    assert len({len(steps) for steps in found}) == 1, f"ranks have {[len(steps) for steps in found]} steps"
    assert all(each == states[0] for each in states), "ranks have different states"
    steps = [[row for rows in of_ranks for row in rows] for of_ranks in zip(*found)]
    return Told([sorted(step) for step in steps] if composition.has_sorted_steps else steps, states[0])


def differs(one: Sequence[Sequence[bytes]], other: Sequence[Sequence[bytes]]) -> str:
    """In words, for a failure."""
    for number, (left, right) in enumerate(zip(one, other)):
        if left != right:
            lost = len(set(left) - set(right))
            order = "" if lost else ", or in another order"
            return f"step {number} of {len(one)}: {lost} of {len(left)} rows are others{order}"
    return f"{len(one)} steps and {len(other)}" if len(one) != len(other) else ""
