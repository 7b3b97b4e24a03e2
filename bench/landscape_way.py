"""One measurement of one loader, in a process of its own, for bench/landscape_bench.py.

    PYTHON landscape_way.py '{"do": "read", "peer": "torch", "batch": 64, …}'

An adapter is a generator: it imports what it needs and yields None; this prints "ready", waits for a line, and starts
its clock; then the adapter yields the batches of each epoch. So time runs from before a dataset is opened until the
last batch is there, with the listing and the start of workers, and without imports. A batch is `(numbers, rows)`: the
numbers of its samples, or None if they are in the rows, and the rows. Every row is hashed, as a training would touch
it, and the hashes are compared when the time is over. Prints a line of JSON.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import pickle
import resource
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

MODULES = ("leat", "torch", "formats", "threads", "graphs")
PR_SET_PDEATHSIG = 1
NUMBER_BYTES = 8  # Sample i of bytes begins with i.
# Odd, and so each is a permutation of the words modulo 2^64.
_FACTORS = np.random.default_rng(5).integers(1, 1 << 63, 128, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def hashes_of_small(rows: np.ndarray) -> np.ndarray:
    """A hash of each row, whose bytes are a multiple of 4: a row is read as words, each with a factor of its own."""
    words = rows.view("<u4").astype(np.uint64)
    factors = np.resize(_FACTORS, words.shape[1])
    # The place of a word counts, since its factor does; the square mixes high bits into low ones.
    mixed = (words + factors) * np.roll(factors, 1)
    return np.asarray((mixed ^ (mixed >> np.uint64(31))).sum(1, dtype=np.uint64))


def hashes_of_large(rows: Iterable[Any]) -> np.ndarray:
    import xxhash

    return np.array([xxhash.xxh3_64_intdigest(row) for row in rows], np.uint64)


def array_of(rows: Any, size: int) -> np.ndarray:
    """The rows of a batch of samples of `size` bytes, as (samples, size) in uint8."""
    if isinstance(rows, (list, tuple)):
        if not isinstance(rows[0], (bytes, bytearray, memoryview)):
            rows = [np.ascontiguousarray(row).view(np.uint8).reshape(-1) for row in rows]
        rows = np.frombuffer(b"".join(rows), np.uint8)
    elif hasattr(rows, "numpy"):
        rows = rows.numpy()
    return np.ascontiguousarray(rows).view(np.uint8).reshape(-1, size)


class Seen:
    """The numbers that came, and the hashes of their bytes."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told
        self._numbers: list[np.ndarray] = []
        self._hashes: list[np.ndarray] = []
        self.samples = 0
        self.hash_seconds = 0.0

    def add(self, numbers: Any, rows: Any) -> None:
        began = time.perf_counter()
        if self._told["task"] in ("bytes", "tokens"):
            rows = array_of(rows, self._told["size"])
            self._hashes.append(hashes_of_small(rows) if self._told["small"] else hashes_of_large(rows))
            if self._told["numbered"] is not False:
                numbers = rows[:, :NUMBER_BYTES].copy().view("<u8")[:, 0]
        else:
            float(np.asarray(rows).reshape(len(rows), -1)[:, ::1021].sum())  # A look at each picture.
        numbers = np.asarray(numbers).reshape(-1).astype(np.int64)
        self._numbers.append(numbers)
        self.samples += len(numbers)
        self.hash_seconds += time.perf_counter() - began

    def numbers(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *self._numbers])

    def faults(self) -> str:
        """The fault of it, in words: samples twice, unknown ones, other bytes."""
        numbers = self.numbers()
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < self._told["samples"]:
            return "a sample that is not in the data"
        repeated = len(numbers) - len(np.unique(numbers))
        if repeated and self._told["kind"] != "many":
            return f"{repeated} samples came twice"
        if self._hashes and self._told["table"]:
            wrong = np.concatenate(self._hashes) != np.load(self._told["table"])[numbers]
            if wrong.any():
                return f"{int(wrong.sum())} samples with other bytes"
        return ""


def tree_cpu_seconds() -> float:
    """CPU seconds of this process and of all below it, those that have ended and were waited for included."""
    stats = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # It has just ended.
            stats[int(entry)] = (int(words[1]), sum(map(int, words[11:15])))
    ticks, below = 0, {os.getpid()}
    for _ in stats:  # Until no more are found: at most as often as there are processes.
        found = {pid for pid, (parent, _) in stats.items() if parent in below} | below
        if found == below:
            break
        below = found
    ticks = sum(stats[pid][1] for pid in below if pid in stats)
    return ticks / os.sysconf("SC_CLK_TCK")


def read(told: dict[str, Any]) -> dict[str, Any]:
    adapter = adapter_of(told["peer"])(told)
    next(adapter)
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(told["epochs"] - 1):
        for numbers, rows in next(adapter):
            Seen(told).add(numbers, rows)
        print("epoch", flush=True)  # The server's counts begin with the next.
        sys.stdin.readline()
    seen, cpu, began = Seen(told), tree_cpu_seconds(), time.perf_counter()
    first, batches, whole = 0.0, 0, True
    for numbers, rows in next(adapter):
        first = first or time.perf_counter() - began
        seen.add(numbers, rows)
        batches += 1
        if told["step"]:
            time.sleep(told["step"])
        if is_enough(told, batches, time.perf_counter() - began):
            whole = False
            break
    seconds = time.perf_counter() - began
    found = {
        "seconds": seconds, "first_batch_s": first, "samples": seen.samples, "batches": batches, "whole": whole,
        "cpu_s": tree_cpu_seconds() - cpu, "hash_s": seen.hash_seconds, "fault": seen.faults(),
        "own_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }  # fmt: skip
    np.save(f"{told['home']}/numbers-{told['rank']}.npy", seen.numbers())
    if told["keep_state"]:
        with open(told["keep_state"], "wb") as file:
            pickle.dump(told["state_of"](seen.samples), file)
    adapter.close()
    return found


def is_enough(told: dict[str, Any], batches: int, seconds: float) -> bool:
    """Whether to stop before the end: at the limit, or in a trial once each worker has had its batches."""
    if told["most_batches"]:
        return batches >= int(told["most_batches"])
    return seconds > told["limit"] or (seconds > told["trial"] > 0 and batches >= told["least_batches"])


def adapter_of(peer: str) -> Any:
    for name in MODULES:
        if importlib.util.find_spec(f"landscape_ways_{name}") is None:
            continue
        module = importlib.import_module(f"landscape_ways_{name}")
        if peer in module.ADAPTERS:
            return module.ADAPTERS[peer]
    sys.exit(f"no adapter is called {peer}")


def versions_of(names: list[str]) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in names}


def end_with_parent() -> None:
    """A bench that is killed leaves nobody behind that asks a server which is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    end_with_parent()
    told = json.loads(sys.argv[1])
    if told["do"] == "versions":
        found: Any = versions_of(told["names"])
    elif told["do"] == "write":
        import landscape_ways_formats

        found = landscape_ways_formats.write(told)
    else:
        told["state"] = None
        if told["state_file"]:
            with open(told["state_file"], "rb") as file:
                told["state"] = pickle.load(file)
        found = read(told)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
