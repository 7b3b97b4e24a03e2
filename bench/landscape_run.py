"""Measures regimes: the sweep of each peer, then runs of all in turn. Known measurements are not made again."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
from types import TracebackType
from typing import Any

import leat.testing
import numpy as np

import landscape_child
from landscape_chain import is_kept
from landscape_child import Failed
from landscape_data import DataFolder
from landscape_endpoint import Endpoint
from landscape_peers import PEERS, Peer, Venvs
from landscape_regimes import DATA, Regime
from landscape_results import Results
from landscape_sweep import Knob, Setting, sweep
from measure import machine, spread

BATCHES_A_WORKER = 20
GRACE_SECONDS = 60.0  # After the limit, for a batch that takes long.
WRITE_SECONDS = 1800.0
LOW_SECONDS = 1e-9


class Spent(Exception):
    """The budget is."""


class Landscape:
    """All that the regimes share: data, venvs, results, and a bucket, which serves while this is entered."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        home = args.home.resolve()
        self._home = home
        self._venvs = Venvs(home / "venvs", may_install=not args.quick or bool(args.peers))
        self._data = DataFolder(home / "data", self._write_by_library)
        self._results = Results(home / "results.jsonl", args.fresh)
        self._end = time.monotonic() + args.budget
        self._versions: dict[str, dict[str, str]] = {}
        self._stack = contextlib.ExitStack()
        self._buckets: dict[str, Any] = {}
        here = machine()
        self._commit = here["commit"]
        self._where = (
            f"{here['cpu']}, {here['cpus']} CPUs, {args.endpoint or f'leat bucket {args.latency} {args.bandwidth}'}"
        )
        self.known = 0
        self.is_spent = False

    @property
    def measured(self) -> int:
        return self._results.measured

    def __enter__(self) -> Landscape:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def regime(self, name: str, regime: Regime, peers: list[str]) -> list[dict[str, Any]]:
        """The rows of a regime; none once the budget is spent."""
        if self.is_spent:
            return []
        cells = {peer: Cell(self, name, regime, peer) for peer in peers if PEERS[peer].reads(regime)}
        with contextlib.suppress(Spent):
            for cell in cells.values():
                cell.find_best()
            for run in range(self._args.runs):
                for cell in cells.values():
                    cell.run(run)
            return rows_of(regime, cells)
        self.is_spent = True
        return []

    # --- what cells need ---

    @property
    def limit(self) -> float:
        return float(self._args.limit)

    @property
    def trial(self) -> float:
        return float(self._args.trial)

    @property
    def is_quick(self) -> bool:
        return bool(self._args.quick)

    def python(self, peer: Peer) -> str:
        return self._venvs.python(peer)

    def versions(self, name: str) -> dict[str, str]:
        peer = PEERS[name]
        if name not in self._versions:
            told = {"do": "versions", "names": list(peer.packages)}
            self._versions[name] = landscape_child.once(self.python(peer), told, seconds=120) if peer.packages else {}
        return self._versions[name]

    def told_versions(self, name: str) -> str:
        found = self._versions.get(name, {})
        return ", ".join(f"{package} {version}" for package, version in found.items()) or f"commit {self._commit}"

    def folder(self, regime: Regime, form: str) -> pathlib.Path:
        return self._data.ensure(regime.data, DATA[regime.data], form)

    def tidy(self, form: str, bucket: Any) -> None:
        """So that the next one finds the data as it was."""
        self._data.tidy(form)
        if isinstance(bucket, Endpoint):
            bucket.tidy(form)

    def table(self, regime: Regime) -> str:
        file = self._data.table(regime.data)
        return str(file) if file.is_file() else ""

    def digest(self, regime: Regime) -> str:
        """The hash of the whole content of its data, where that is known."""
        return self._data.digest(regime.data) if self.table(regime) else ""

    def key(self, regime: str, peer: str, setting: Setting, run: int | str) -> dict[str, Any]:
        return {"regime": regime, "peer": peer, "setting": setting, "run": run,
                "versions": self._versions.get(peer, {}), "commit": self._commit, "where": self._where}  # fmt: skip

    def known_of(self, key: dict[str, Any]) -> dict[str, Any] | None:
        found = self._results.of(key)
        self.known += found is not None
        if found is None and time.monotonic() > self._end:
            raise Spent
        return found

    def keep(self, key: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
        return self._results.add(key, found)

    def bucket(self, data: str) -> Any:
        """The bucket that serves it: one for all, but that of many objects, which serves one file as so many."""
        if self._args.endpoint:
            return self._buckets.setdefault("", Endpoint(self._args.endpoint, self._data.root))
        which = data if DATA[data].kind == "many" else ""
        if which not in self._buckets:
            more = {"repeat": f"{data}-raw/x.bin:{DATA[data].samples}"} if which else {}
            self._buckets[which] = self._stack.enter_context(leat.testing.Bucket(
                self._data.root, latency=self._args.latency, total_bandwidth=self._args.bandwidth, **more
            ))  # fmt: skip
        return self._buckets[which]

    def home(self) -> str:
        (self._home / "runs").mkdir(parents=True, exist_ok=True)
        return tempfile.mkdtemp(dir=self._home / "runs")

    def _write_by_library(self, form: str, told: dict[str, Any]) -> None:
        peer = PEERS[{"mds": "streaming", "litdata": "litdata"}[form]]
        landscape_child.once(self.python(peer), {"do": "write", **told}, seconds=WRITE_SECONDS)


class Cell:
    """One peer in one regime."""

    def __init__(self, landscape: Landscape, name: str, regime: Regime, peer: str) -> None:
        self._landscape, self._name, self._regime, self._peer = landscape, name, regime, peer
        self._data = DATA[regime.data]
        self.setting: Setting | None = None
        self.runs: list[dict[str, Any]] = []
        self.failure = ""
        self.told: list[str] = []  # The sweep, in words.

    def find_best(self) -> None:
        """By a sweep, unless the regime fixes the workers or the peer has nothing to choose."""
        peer, regime = PEERS[self._peer], self._regime
        try:
            self._landscape.versions(self._peer)
        except (RuntimeError, OSError) as error:
            self.failure = str(error)
            return
        knobs = {}
        for name, knob in peer.knobs.items():
            knobs[name] = knob.within(self._most_workers()) if name == "workers" else knob
        if regime.fixed is not None:
            knobs |= fixed_knob(list(knobs), regime.fixed)
        if self._landscape.is_quick:
            self.setting = {name: knob.start[0] for name, knob in knobs.items()}
            return
        self.setting = sweep(knobs, self._trial, self._say) if knobs else {}
        if knobs and not self._trial(self.setting):
            self.failure = str(self._measured(self.setting, "trial")["failed"])

    def _most_workers(self) -> int:
        """So many that each has its batches in one epoch."""
        return max(1, self._data.samples // (BATCHES_A_WORKER * self._regime.batch * self._regime.ranks))

    def _say(self, text: str) -> None:
        self.told.append(text)
        print(f"{self._name}, {self._peer}: {text}", file=sys.stderr)

    def _trial(self, setting: Setting) -> float:
        return figure_of(self._regime, self._measured(setting, "trial"))

    def run(self, number: int) -> None:
        if self.failure or self.setting is None:
            return
        found = self._measured(self.setting, number)
        if "failed" in found:
            self.failure = found["failed"]
        self.runs.append(found)

    def _measured(self, setting: Setting, run: int | str) -> dict[str, Any]:
        key = self._landscape.key(self._name, self._peer, setting, run)
        found = self._landscape.known_of(key)
        if found is None:
            print(
                f"{self._name}, {self._peer} {setting or ''}: {'trial' if run == 'trial' else f'run {int(run) + 1}'}",
                file=sys.stderr,
            )
            try:
                found = self._landscape.keep(key, self._measure(setting, is_trial=run == "trial"))
            except (Failed, RuntimeError, OSError) as error:
                found = self._landscape.keep(key, {"failed": str(error)})
        return found

    def _measure(self, setting: Setting, *, is_trial: bool) -> dict[str, Any]:
        home = self._landscape.home()
        try:
            if self._regime.figure != "resume":
                return self._children(home, {"setting": setting}, is_trial=is_trial)
            kept = f"{home}/state"
            half = self._data.samples // self._regime.batch // 2
            self._children(home, {"setting": setting, "most_batches": half, "keep_state": kept}, is_trial=False)
            return self._children(home, {"setting": setting, "state_file": kept}, is_trial=False)
        finally:
            shutil.rmtree(home, ignore_errors=True)

    def _children(self, home: str, more: dict[str, Any], *, is_trial: bool) -> dict[str, Any]:
        regime, peer = self._regime, PEERS[self._peer]
        told = self._told(home, more, is_trial=is_trial)
        bucket = self._landscape.bucket(regime.data)
        if isinstance(bucket, Endpoint) and regime.store == "bucket":
            bucket.upload(told["bucket"], regime.data)
        if regime.store == "bucket":
            self._landscape.tidy(told["bucket"], bucket)  # One that failed may have left something.
        variables = {**bucket.env(), "S3_ENDPOINT_URL": bucket.url}
        ranks = landscape_child.Ranks(self._landscape.python(peer), home, told, variables,
                                      is_leat=self._peer.startswith("leat"))  # fmt: skip
        parts, peak = ranks.run(
            bucket.reset_counters, regime.epochs, regime.epochs * (self._landscape.limit + GRACE_SECONDS)
        )
        counted = bucket.counters()
        if regime.store == "bucket":
            self._landscape.tidy(told["bucket"], bucket)
        self._check(parts, home, more)
        samples, seconds = sum(part["samples"] for part in parts), max(part["seconds"] for part in parts)
        return {
            "samples": samples, "seconds": seconds, "first_batch_s": max(part["first_batch_s"] for part in parts),
            "whole": all(part["whole"] for part in parts), "cpu_s": sum(part["cpu_s"] for part in parts),
            "peak_bytes": max(peak, sum(part["own_peak_bytes"] for part in parts)),
            "content": self._landscape.digest(regime),
            "gets": counted["get"], "bytes": counted["bytes"], "hash_s": sum(part["hash_s"] for part in parts),
        }  # fmt: skip

    def _told(self, home: str, more: dict[str, Any], *, is_trial: bool) -> dict[str, Any]:
        regime, data = self._regime, self._data
        form = PEERS[self._peer].forms[regime.form]
        folder = self._landscape.folder(regime, form)
        shards = pathlib.Path(home) / "shards"
        if form == "tar":
            shards.write_text(json.dumps(sorted(os.listdir(folder))))
        setting = more["setting"]
        of_regime = regime._asdict() | {"form": form, "numbered": regime.task in ("bytes", "tokens")}
        return {
            **of_regime, "do": "read", "peer": self._peer, "url": self._landscape.bucket(regime.data).url,
            "bucket": folder.name, "folder": str(folder), "shards": str(shards), "cache": f"{home}/cache",
            "samples": data.samples, "size": data.size, "small": data.is_small, "kind": data.kind,
            "numbered": None if data.kind == "many" else of_regime["numbered"], "table": self._landscape.table(regime),
            "limit": self._landscape.limit, "trial": self._landscape.trial if is_trial else 0,
            "least_batches": BATCHES_A_WORKER * max(1, setting.get("workers", 1)) if is_trial else 0,
            "most_batches": 1 if regime.figure == "first" else 0, "state_file": "", "keep_state": "", **more,
        }  # fmt: skip

    def _check(self, parts: list[dict[str, Any]], home: str, more: dict[str, Any]) -> None:
        """Every sample came once, and with its bytes; of a part of an epoch, none came twice."""
        if faults := [part["fault"] for part in parts if part["fault"]]:
            raise Failed(f"wrong content: {faults[0]}")
        if self._data.kind == "many":
            return
        came = np.concatenate([np.load(f"{home}/numbers-{rank}.npy") for rank in range(self._regime.ranks)])
        if more.get("keep_state"):
            np.save(f"{home}/before.npy", came)
            return
        if more.get("state_file"):
            came = np.concatenate([np.load(f"{home}/before.npy"), came])
        if len(np.unique(came)) != len(came):
            raise Failed(f"wrong content: {len(came) - len(np.unique(came))} samples came twice")
        wanted = sum(is_kept(number, self._regime.keep) for number in range(self._data.samples))
        if all(part["whole"] for part in parts) and len(came) != wanted:
            raise Failed(f"wrong content: {len(came)} samples of {wanted}")


def fixed_knob(names: list[str], workers: int) -> dict[str, Knob]:
    """The knob that stands for workers, held at that number; threads are 1 at least."""
    for name in ("workers", "threads", "calls"):
        if name in names:
            value = workers if name == "workers" else max(1, workers)
            return {name: Knob((value,), value, value)}
    return {}


def figure_of(regime: Regime, found: dict[str, Any]) -> float:
    """More is better: samples a second, or one over seconds; 0 if it failed."""
    if "failed" in found:
        return 0.0
    if regime.is_better_low:
        return 1 / max(found["first_batch_s"], LOW_SECONDS)
    return float(found["samples"]) / max(found["seconds"], LOW_SECONDS)


def told_gets(gets: list[int | None], samples: list[int]) -> str:
    """The GETs a sample, of the runs in which a server counted them."""
    counted = [count / number for count, number in zip(gets, samples) if count is not None]
    return f"{spread(counted)[0]:.3f}" if counted else "not counted"


def rows_of(regime: Regime, cells: dict[str, Cell]) -> list[dict[str, Any]]:
    """A row for each peer, the failed ones too, and how Leat's default stands to it."""
    ours = cells["leat"].runs if "leat" in cells and not cells["leat"].failure else []
    rows = []
    for name, cell in cells.items():
        row: dict[str, Any] = {"way": name}
        if cell.failure or not cell.runs:
            rows.append({**row, "failed": cell.failure or "not run"})
            continue
        figures = [1 / figure_of(regime, run) if regime.is_better_low else figure_of(regime, run) for run in cell.runs]
        middle, deviation = spread(figures)
        row["seconds" if regime.is_better_low else "samples_per_s"] = middle
        row["mad"] = deviation
        if ours and len(ours) == len(cell.runs):
            ratios = [figure_of(regime, mine) / figure_of(regime, run) for mine, run in zip(ours, cell.runs)]
            over, over_mad = spread(ratios)
            row |= {"leat_over": f"{over:.2f}", "leat_over_mad": f"{over_mad:.2f}"}
        samples = [max(1, run["samples"]) for run in cell.runs]
        row |= {
            "first_batch_s": f"{spread([run['first_batch_s'] for run in cell.runs])[0]:.2f}",
            "gets_a_sample": told_gets([run["gets"] for run in cell.runs], samples),
            "cpu_us": spread([run["cpu_s"] / n * 1e6 for run, n in zip(cell.runs, samples)])[0],
            "peak_mb": round(spread([run["peak_bytes"] / 1e6 for run in cell.runs])[0]),
            "setting": " ".join(f"{key}={value}" for key, value in (cell.setting or {}).items()) or "default",
            "whole": "yes" if all(run["whole"] for run in cell.runs) else "stopped at the limit",
        }  # fmt: skip
        rows.append(row)
    return rows
