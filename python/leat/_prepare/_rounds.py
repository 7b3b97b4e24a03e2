"""The rounds of a watch: which samples each is about, noted so that a sample is in one round and no other."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leat import _native
from leat._dataset import Dataset
from leat._diff import told_of
from leat._prepare._flow import Flow
from leat._prepare._state import ALL, State
from leat._shards._row import kind_of
from leat._storage import checked_storage, native_storage
from leat.errors import Corrupt, InvalidArgument

_MOST_LIST_BYTES = 1 << 30

Rows = Mapping[str, str]
"""By the key of a sample: a hash of all that the catalogue tells of it."""


def rows_of(dataset: Any) -> Rows:
    """All samples.

    Raises:
        leat.InvalidArgument: two have the same key.
    """
    rows = {}
    for (key, before), row in told_of(dataset).items():
        if before:
            first, second = (_object_of(dataset, number) for number in _with_key(dataset, key)[:2])
            raise InvalidArgument(
                f"{dataset.url}: two samples have the key {key!r}, one in {first} and one in {second}, and a watch tells "
                "samples apart by their keys: give each a key of its own, or call leat prepare without --watch"
            )
        rows[key] = _hash(row)
    return rows


def _with_key(dataset: Any, key: str) -> list[int]:
    return [number for number in range(len(dataset)) if dataset.key(number) == key]


def _object_of(dataset: Any, number: int) -> str:
    """The object that holds a sample, or the first of its fields."""
    fields = [name for name, kind in dataset.fields.items() if kind == "bytes"]
    ranges = (dataset._native.range(name, number) for name in fields)
    return next((found[0] for found in ranges if found is not None), "no object")


def chosen_of(dataset: Any, url: str, store: Mapping[str, Any], classes: Sequence[str] = ()) -> Any:
    """The samples of a dataset that a list names, with labels that count through `classes` if there are any.

    So what a round is does not depend on classes that others have by now.

    Raises:
        leat.InvalidArgument: one is not there, or not as it was.
        leat.Corrupt: the list is none.
    """
    options: Any = store
    try:
        wanted = json.loads(_native.read_url(url, native_storage(checked_storage(options)), _MOST_LIST_BYTES))["rows"]
    except (ValueError, KeyError, TypeError):
        raise Corrupt(f"{url} is no list of samples") from None
    chosen = dataset.select([number for number in range(len(dataset)) if dataset.key(number) in wanted])
    found = rows_of(chosen)
    for key, row in wanted.items():
        if found.get(key) != row:
            how = "is gone" if key not in found else "was changed"
            raise InvalidArgument(f"{dataset.url}: {key} {how} before its round was done; put it back as it was")
    return Dataset._of(chosen._native.with_classes(list(classes)), chosen._dtypes) if classes else chosen


class Rounds:
    """The rounds of a flow there have been."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        # A call that does the whole flow writes to other places, and is refused this state.
        self._state = State(dataclasses.replace(flow, chosen="rounds"))
        self._state.claim()
        self.count = 0
        self.rows: dict[str, str] = {}
        """The samples of all of them."""
        self._last: dict[str, Any] = {}

    def read(self) -> Iterator[Flow]:
        """The flows of the rounds that were not known yet."""
        while (told := self._state.note(f"rounds/{self.count + 1:06d}")) is not None:
            listed = self._state.note(f"rounds/{told.get('digest')}{ALL}")
            if listed is None or not isinstance(listed.get("rows"), dict):
                raise Corrupt(f"{self._state.url_of(f'rounds/{self.count + 1:06d}')} has no list of samples")
            self.count += 1
            self.rows.update(listed["rows"])
            self._last = told
            yield self._flow_of(self.count, str(told["digest"]), told["classes"])

    def add(self, dataset: Any, rows: Rows) -> bool:
        """Makes a round of new samples; false: another call has made one meanwhile.

        Raises:
            leat.InvalidArgument: the fields are others than before, or labels have other meanings.
        """
        classes, fields = dataset.classes, _fields_of(dataset, rows)
        before = self._last
        if before and (before["fields"] != fields or classes[: len(before["classes"])] != before["classes"]):
            raise InvalidArgument(
                f"{dataset.url} had the classes {before['classes']} and fields {before['fields']} in round {self.count}, "
                f"and has {classes} and {fields} now: fields and labels of earlier rounds would mean something else. Give "
                "a new state = and new places to write to"
            )
        digest = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:32]
        self._state.write(f"rounds/{digest}{ALL}", {"rows": dict(rows)})
        told = {"digest": digest, "samples": len(rows), "classes": classes, "fields": fields}
        return self._state.create(f"rounds/{self.count + 1:06d}", told)

    def _flow_of(self, number: int, digest: str, classes: Sequence[str]) -> Flow:
        """The round's flow, whose shards and notes have a place of their own."""
        name = f"{number:06d}"
        steps = [{**step, "dest": f"{step['dest'].rstrip('/')}/round-{name}"} if step["do"] == "pack" else step
                 for step in self._flow.steps]  # fmt: skip
        state = self._flow.state.rstrip("/")
        return dataclasses.replace(
            self._flow, steps=tuple(steps), state=f"{state}/rounds/{name}",
            chosen=f"{state}/rounds/{digest}{ALL}.json", classes=list(classes),
        )  # fmt: skip


def _fields_of(dataset: Any, rows: Rows) -> dict[str, str]:
    """The kind of each field; of bytes, the usual ending of such a file, which shards call the field by."""
    first = dataset[next(number for number in range(len(dataset)) if dataset.key(number) in rows)]
    return {
        name: kind_of(first[name] or b"") if kind == "bytes" and isinstance(first[name], (bytes, type(None))) else kind
        for name, kind in dataset.fields.items()
    }


def _hash(row: Any) -> str:
    said = json.dumps(row, default=lambda value: value.item())
    return hashlib.sha256(said.encode()).hexdigest()[:16]
