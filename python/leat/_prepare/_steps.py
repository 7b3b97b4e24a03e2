"""The kinds of steps: the units of each, how one is done, and what ends the step.

A step has `count()`, the number of its units; `missing()`, those that are not done; `do(unit)`, in any
process, which leaves a note; and `end()`, after all of them, which gives what the manifest says of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from leat import _native, errors
from leat._formats._table._manifest import is_local, local_folder
from leat._pool import threads
from leat._prepare._flow import Flow
from leat._prepare._state import State
from leat._shards import _write
from leat._shards._plan import FORMATS, MOST_SHARD_BYTES, bytes_of_text, cut, plan_of, versions_of
from leat._shards._row import Field, bytes_of, rows_of
from leat._storage import checked_storage, native_storage
from leat.errors import Corrupt, Error, InvalidArgument, Unavailable

_LOOKERS = 16


class Step(ABC):
    """A step of a flow, as one process sees it."""

    def __init__(self, flow: Flow, state: State, number: int) -> None:
        self.flow, self.state, self.number = flow, state, number
        self.given: Mapping[str, Any] = flow.steps[number]
        self.name = f"{number + 1}-{self.given['do']}"
        self.end_name = f"{self.name}/end"
        """The name of the note that the step has ended, which says what the manifest says."""

    @cached_property
    def dataset(self) -> Any:
        """The source, the same in all processes and calls.

        Raises:
            leat.InvalidArgument: it has changed since the flow began.
        """
        dataset = self.flow.dataset()
        versions = versions_of(dataset)
        told = self.state.note("source")
        if told is None and self.state.is_only_read:
            return dataset
        if told is None:
            noted = {"digest": dataset.digest, "samples": len(dataset), "bytes": dataset.nbytes}
            noted = noted if versions is None else {**noted, "versions": versions}
            if self.state.create("source", noted):
                return dataset
            told = self.state.note("source") or {}  # Another call was quicker, or the bucket slow.
        of_versions = {versions, told.get("versions")} - {None}  # A listing without ETags says nothing of them.
        if told.get("digest") != dataset.digest or len(of_versions) > 1:
            raise InvalidArgument(
                f"{dataset.url} has changed since this flow began: give a new state = and new places to write to, or "
                "[source] as_of = a snapshot (leat index --snapshot)"
            )
        return dataset

    def note_of(self, unit: int) -> str:
        """The name of a unit's note."""
        return f"{self.name}/{unit:06d}"

    def missing(self) -> list[int]:
        """The units that are not done, each looked at."""
        with threads(_LOOKERS, "leat-prepare") as pool:
            is_done = list(pool.map(self.is_done, range(self.count())))
        return [unit for unit, has_note in enumerate(is_done) if not has_note]

    def is_done(self, unit: int) -> bool:
        """Whether a unit has a note that holds."""
        return self.state.note(self.note_of(unit)) is not None

    def noted(self) -> set[int]:
        """The units that have a note, by one listing."""
        return {int(name) for name in self.state.names(f"{self.name}/") if name.isdecimal()}

    def count(self) -> int:
        """The number of units."""
        return 1

    @abstractmethod
    def do(self, unit: int) -> None:
        """Does a unit, and notes it."""

    def end(self) -> dict[str, Any]:
        """Ends the step."""
        notes = [self.state.note(self.note_of(unit)) or {} for unit in range(self.count())]
        return {"units": len(notes), "notes": notes}

    def command(self, *words: str, store: Mapping[str, Any]) -> dict[str, Any]:
        """Runs a command of `leat`, and returns the JSON that it printed.

        Raises:
            leat.Error: it failed, and said so.
        """
        from leat.testing import find_binary

        flags = [["--no-sign-request"] if name == "no_sign_request" else [f"--{name.replace('_', '-')}", value]
                 for name, value in store.items() if value]  # fmt: skip
        line = [find_binary(), *words, *sum(flags, []), "--json"]
        ended = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if ended.returncode:
            said = ended.stderr.strip().splitlines()[-1:] or [f"ended with {ended.returncode}"]
            raise (Unavailable if ended.returncode < 0 else Error)(f"leat {words[0]}: {said[0]}")
        return json.loads(ended.stdout)


class NotedStep(Step):
    """A step whose units say themselves what their notes say."""

    def do(self, unit: int) -> None:
        self.state.write(self.note_of(unit), self.done(unit))

    @abstractmethod
    def done(self, unit: int) -> dict[str, Any]:
        """Does a unit; what the note says."""


class Index(NotedStep):
    """Makes the catalogue; puts it beside the data where asked."""

    def done(self, unit: int) -> dict[str, Any]:
        for flag in ("publish", "snapshot"):
            if self.given.get(flag):
                self.command("index", self.flow.source["url"], f"--{flag}", store=self.flow.store)
        return {"digest": self.dataset.digest, "samples": len(self.dataset), "bytes": self.dataset.nbytes}


class Verify(NotedStep):
    """Reads every byte once: objects that are not as the catalogue says, and damaged shards, fail."""

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        most = bytes_of_text("unit_bytes", self.given.get("unit_bytes", "256MB"))
        sizes = np.ones(len(self.dataset))
        for field in self._fields:
            sizes += self.dataset.lengths(field.name).clip(0)
        return cut(sizes, max(1, most))

    @cached_property
    def _fields(self) -> list[Field]:
        fields = []
        for name, kind in self.dataset.fields.items():
            if kind == "bytes":
                rows = self.dataset._dtypes.get(name)
                has_all = bool(self.dataset.has(name).all())
                fields.append(Field(name, kind if rows is None else "rows", "", has_all=has_all))
        if not fields:
            raise InvalidArgument(f"{self.dataset.url} has no bytes to verify")
        return fields

    def count(self) -> int:
        return len(self._ranges)

    def done(self, unit: int) -> dict[str, Any]:
        begin, end = self._ranges[unit]
        hashed = hashlib.sha256()
        samples = 0
        for row in rows_of(self.dataset[begin:end], self._fields):
            samples += 1
            for field in self._fields:
                data = row[field.name]
                data = b"" if data is None else bytes_of(data)
                hashed.update(len(data).to_bytes(8, "little"))
                hashed.update(data)
        if samples != end - begin:
            raise Corrupt(f"samples {begin} to {end - 1} gave {samples} samples")
        return {"samples": samples, "sha256": hashed.hexdigest()}


class Pack(Step):
    """Writes shards, as `leat pack` does; a unit is a shard, whose note lies beside it."""

    @cached_property
    def _plan(self) -> Any:
        given = self.given
        shard_bytes = bytes_of_text("shard_bytes", given.get("shard_bytes", "64MB"))
        if not 1 <= shard_bytes <= MOST_SHARD_BYTES:
            raise InvalidArgument(f"shard_bytes = {given['shard_bytes']!r}; it is at most 1GB, which is held in memory")
        form = given.get("format", "tar")
        if form not in FORMATS:
            raise InvalidArgument(f"format = {form!r}; it is {', '.join(FORMATS)}")
        return plan_of(self.dataset, form, shard_bytes, fields=given.get("fields"), resize=given.get("resize"),
                       quality=given.get("quality", 90))  # fmt: skip

    @cached_property
    def _place(self) -> Any:
        if is_local(self.given["dest"]) and not self.state.is_only_read:  # A bucket needs no folder.
            os.makedirs(local_folder(self.given["dest"]), exist_ok=True)
        options: Any = self.flow.store_of(self.given)
        return _native.Place(self.given["dest"], native_storage(checked_storage(options)))

    def count(self) -> int:
        return len(self._plan.ranges)

    def missing(self) -> list[int]:
        dest = self.given["dest"]
        if self.state.is_only_read and is_local(dest) and not os.path.isdir(local_folder(dest)):
            return list(range(self.count()))
        if not _write.is_begun(self._plan, self._place) and not self.state.is_only_read:
            _write.begin(self._plan, self._place)
        return super().missing()

    def is_done(self, unit: int) -> bool:
        return _write.found_one(self._plan, self._place, unit) is not None

    def noted(self) -> set[int]:
        numbers = {f"{FORMATS[self._plan.format].name_of(number)}.json": number for number in range(self.count())}
        there = self.state.listed(_write.notes_of(self.given["dest"]), self.flow.store_of(self.given))
        return {numbers[name] for name in there if name in numbers}

    def do(self, unit: int) -> None:
        _write.write_one(self._plan, self._place, unit)

    def end(self) -> dict[str, Any]:
        shards = _write.found(self._plan, self._place)
        told = _write.end(self._plan, self._place, [shards[number] for number in range(self.count())])
        if is_local(self.given["dest"]):  # All shards are there, so nobody writes any more.
            _write.remove_drafts(self.given["dest"])
        return {**told, "sha256": [shards[number]["sha256"] for number in range(self.count())]}


class Warm(NotedStep):
    """Fills the cache on a disk of this machine, as `leat warm` does."""

    def done(self, unit: int) -> dict[str, Any]:
        url, store = self.flow.source["url"], self.flow.store
        for step in self.flow.steps[: self.number]:
            if step["do"] == "pack":
                url, store = step["dest"], self.flow.store_of(step)
        if "url" in self.given:
            url, store = self.given["url"], self.flow.store
        words = ["warm", url, "--cache-disk", self.given["cache_disk"]]
        if "cache_disk_limit" in self.given:
            words += ["--cache-disk-limit", self.given["cache_disk_limit"]]
        if "fields" in self.given:
            words += ["--fields", ",".join(self.given["fields"])]
        self.command(*words, store=store)
        return {"url": url, "cache_disk": self.given["cache_disk"]}


_KINDS: Mapping[str, type[Step]] = {"index": Index, "verify": Verify, "pack": Pack, "warm": Warm}


def step_of(flow: Flow, state: State, number: int) -> Step:
    """The step with this number, from 0."""
    return _KINDS[flow.steps[number]["do"]](flow, state, number)


_AGAIN = (errors.Unavailable, errors.Throttled, errors.DeadlineExceeded)
"""Errors after which another try may succeed."""


def do(flow: Flow, state: State, steps: dict[int, Step], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Does the unit of the step that is asked for; `steps` keeps what this process knows of each step.

    Returns:
        Nothing, or the `error`, its `kind`, and whether to try `again`.
    """
    number, unit = asked["step"], asked["unit"]
    begun = time.monotonic()
    try:
        if number not in steps:
            steps[number] = step_of(flow, state, number)
        step = steps[number]
        state.log("begin", step=step.name, unit=unit)
        step.do(unit)
        state.log("done", step=step.name, unit=unit, seconds=round(time.monotonic() - begun, 3))
    except (Error, OSError) as error:
        kind = type(error).__name__ if isinstance(error, Error) else "Error"
        return {"error": str(error), "kind": kind, "again": isinstance(error, _AGAIN)}
    except Exception as error:  # A bug of ours, or of a library: it must not look as if the process had died.
        return {"error": f"{type(error).__name__}: {error}", "kind": "Internal", "again": False}
    return {}
