"""The flow: what a file declares, checked before anything is done."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leat.errors import InvalidArgument

_STORE = {"endpoint_url": str, "region": str, "profile": str, "no_sign_request": bool}
_SOURCE = {"url": str, "manifest": dict, "tokens": str, "megatron": bool, "as_of": str}
_STEPS: Mapping[str, Mapping[str, Any]] = {
    "index": {"publish": bool, "snapshot": bool},
    "verify": {"unit_bytes": str},
    "pack": {"dest": str, "format": str, "shard_bytes": str, "fields": list, "resize": int, "quality": int,
             "endpoint_url": str},
    "warm": {"cache_disk": str, "cache_disk_limit": str, "fields": list, "url": str},
}  # fmt: skip
"""The kinds of steps, and the keys of each."""
_NEEDED = {"pack": "dest", "warm": "cache_disk"}


@dataclass(frozen=True)
class Flow:
    """A flow. A value: it goes to other processes as it is."""

    path: str
    source: dict[str, Any]
    store: dict[str, Any]
    steps: tuple[dict[str, Any], ...]
    """Each has `do`, its kind."""
    state: str
    """The place of its notes: a folder or a prefix."""
    chosen: str = ""
    """The URL of the list of samples that a round of a watch is about; empty: all of them."""
    classes: Sequence[str] = ()
    """The classes that the labels of a round count through, whichever there are by now."""

    @property
    def digest(self) -> str:
        """Identifies all that decides what is done; the place of the notes does not."""
        said = [self.source, self.store, self.steps, *filter(None, [self.chosen])]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def dataset(self) -> Any:
        """Opens the source.

        Raises:
            leat.InvalidArgument: a sample that was chosen is not there any more, or not as it was.
        """
        dataset = self.listed()
        if not self.chosen:
            return dataset
        from leat._prepare._rounds import chosen_of

        return chosen_of(dataset, self.chosen, self.store, self.classes)

    def listed(self) -> Any:
        """The source, all of it."""
        from leat._commands import source_of

        given = argparse.Namespace(
            url=self.source["url"], tokens=self.source.get("tokens"), megatron=self.source.get("megatron", False),
            manifest=[f"{name}={column}" for name, column in self.source.get("manifest", {}).items()],
        )  # fmt: skip
        return source_of(given, self.store, as_of=self.source.get("as_of"))

    def store_of(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """How to reach the place that a step writes."""
        return {**self.store, "endpoint_url": step["endpoint_url"]} if "endpoint_url" in step else self.store


def read(path: str, text: str | None = None) -> Flow:
    """Reads a flow; `text`: what the file will say where it will be read.

    Raises:
        leat.InvalidArgument: it is no TOML, or says something that is not known; names it.
        OSError: it cannot be read.
    """
    try:
        told = _toml().loads(pathlib.Path(path).read_text(encoding="utf-8") if text is None else text)
    except ValueError as error:  # Also what is no UTF-8.
        raise InvalidArgument(f"{path}: {error}") from None
    for name in told:
        if name not in ("source", "store", "step", "state"):
            raise InvalidArgument(f"{path}: {name!r} is not known; there are source, store, step and state")
    folder = os.path.dirname(os.path.abspath(path))
    source = _table(path, "[source]", told.get("source"), _SOURCE)
    if "url" not in source:
        raise InvalidArgument(f"{path}: [source] lacks url, the dataset")
    store = _table(path, "[store]", told.get("store", {}), _STORE)
    steps = told.get("step")
    if not isinstance(steps, list) or not steps:
        raise InvalidArgument(f"{path} has no [[step]]; each has do = " + ", ".join(map(repr, _STEPS)))
    state = told.get("state", path + ".state")
    if not isinstance(state, str):
        raise InvalidArgument(f"{path}: state = {state!r}; it is a folder or a URL")
    source["url"] = _place(folder, source["url"])
    checked = tuple(_step(path, folder, number, step) for number, step in enumerate(steps, 1))
    _check_source(path, source, checked)
    return Flow(
        path, source, store, checked, _place(folder, state) if "state" in told else os.path.abspath(state)
    )  # fmt: skip


def _check_source(path: str, source: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> None:
    """Raises `leat.InvalidArgument` if a step would read other data than the source: commands take its URL alone."""
    is_packed = False
    for number, step in enumerate(steps, 1):
        kind = step["do"]
        if kind == "warm" and not is_packed and "url" not in step:
            for key in ("as_of", "manifest", "tokens", "megatron"):
                if source.get(key):
                    raise InvalidArgument(
                        f"{path}, step {number} (warm) would read the folder at [source] url, and not what {key} says: "
                        "put a pack before it, or give it a url"
                    )
        if kind == "index" and step.get("publish") and source.get("as_of"):
            raise InvalidArgument(
                f"{path}, step {number} (index): publish would put the objects of now into the catalogue, and not "
                "those of [source] as_of: leave out one of them"
            )
        is_packed = is_packed or kind == "pack"


def _step(path: str, folder: str, number: int, given: Any) -> dict[str, Any]:
    kind = given.get("do") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in _STEPS:
        raise InvalidArgument(f"{path}, step {number}: do = {kind!r}; it is {', '.join(map(repr, _STEPS))}")
    where = f"step {number} ({kind})"
    step = _table(path, where, given, {"do": str, **_STEPS[kind]})
    needed = _NEEDED.get(kind)
    if needed and needed not in step:
        raise InvalidArgument(f"{path}, {where} lacks {needed}")
    for name in ("dest", "url", "cache_disk"):
        if name in step:
            step[name] = _place(folder, step[name])
    return step


def _table(path: str, where: str, given: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidArgument(f"{path} has no {where}")
    for name, value in given.items():
        if name not in known:
            raise InvalidArgument(f"{path}, {where}: {name!r} is not known; there are {', '.join(known)}")
        kind = known[name]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InvalidArgument(f"{path}, {where}: {name} = {value!r}; it is a {_WORDS[kind]}")
    return dict(given)


_WORDS = {str: "text", bool: "true or false", int: "whole number", list: "list", dict: "table"}


def _place(folder: str, place: str) -> str:
    """A path is relative to the flow's folder."""
    return place if "://" in place else os.path.join(folder, place)


def _toml() -> Any:
    for name in ("tomllib", "tomli"):  # The first is Python's own since 3.11.
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise InvalidArgument("leat prepare needs tomli on Python before 3.11: pip install tomli")
