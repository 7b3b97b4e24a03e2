"""Reads manifests: tables of which a row is a sample."""

from __future__ import annotations

import os
import posixpath
import re
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from leat.errors import InvalidArgument

Values = Sequence[Any]
"""A column of a manifest: str, int, float, bool or None a row."""

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
"""The kinds of values, by the ends of names."""

_MOST_PLACES = 64
"""Each is a store of its own, with threads and connections."""

_INT64 = range(-(2**63), 2**63)


@dataclass
class Column:
    """A field of the samples, with a value for each row."""

    name: str
    kind: str
    """``int64``, ``float64``, ``string``."""
    values: Values


def format_of(name: str) -> str:
    """Raises `leat.InvalidArgument` for a name whose end says nothing."""
    end = posixpath.splitext(name)[1].lower()
    if end in FORMATS:
        return FORMATS[end]
    raise InvalidArgument(
        f"{name}: a manifest is called {', '.join(FORMATS)}; format= says which it is otherwise"
    )


def base_of(url: Any) -> str:
    """The folder that paths are relative to where nobody says it.

    Raises:
        leat.InvalidArgument: the manifests lie in several folders.
    """
    names = [url] if isinstance(url, (str, os.PathLike)) else list(url)
    folders = {os.path.dirname(os.fspath(name)) or "." for name in names}
    if len(folders) != 1 or is_pattern(next(iter(folders))):
        raise InvalidArgument(
            "the manifests lie in several folders, so nobody knows what their paths are "
            "relative to; say it with base="
        )
    return folders.pop()


def is_pattern(url: str) -> bool:
    """Whether it may name several objects."""
    _, scheme, path = url.rpartition("://")
    wild = "*[{" if url.startswith("http") else "*?[{"
    is_there = not scheme and os.path.exists(url)
    return not is_there and any(char in path for char in wild)


def _first_missing(values: Values) -> Union[int, None]:
    return next((row for row, value in enumerate(values, 1) if value is None or value == ""), None)


def scalar_column(field: str, values: Values, name: str) -> Column:
    """Numbers as int64 or float64, texts as they are.

    Raises:
        leat.InvalidArgument: rows without a value, or of several kinds.
    """
    row = _first_missing(values)
    kinds = {type(value) for value in values}
    if kinds <= {str}:
        return Column(field, "string", values)
    if row is not None:
        raise InvalidArgument(
            f"{name}, row {row}: no value for {field!r}; fill it in or leave the row out"
        )
    if kinds <= {int, bool}:
        if any(value not in _INT64 for value in values):
            raise InvalidArgument(f"{name}: {field!r} has numbers that do not fit into int64")
        return Column(field, "int64", [int(value) for value in values])
    if kinds <= {int, float, bool}:
        return Column(field, "float64", [float(value) for value in values])
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InvalidArgument(
        f"{name}: {field!r} is neither all numbers nor all texts, but {found}"
    )


def label_column(
    values: Values, classes: Union[Sequence[str], None], name: str
) -> tuple[Column, list[str]]:
    """Texts become the number of their class, of which there are these; None: as sorted."""
    if row := _first_missing(values):
        raise InvalidArgument(f"{name}, row {row}: no label; fill it in or leave the row out")
    names = list(classes) if classes is not None else sorted(set(values))
    numbers = {text: number for number, text in enumerate(names)}
    if len(numbers) != len(names):
        raise InvalidArgument("classes= names one twice")
    for row, text in enumerate(values, 1):
        if text not in numbers:
            raise InvalidArgument(f"{name}, row {row}: label {text!r} is not in classes=")
    return Column("label", "int64", [numbers[text] for text in values]), names


Rule = Union[tuple[str, str], None]
"""A prefix of paths that lie where this one does, and what may follow it for the rest to be the key as it stands:
"any", "plain path" or "plain URL" (leat/index/path_rules.h). Relative paths have the prefix ""."""


class Places:
    """The places of a manifest's objects: the folder that paths are relative to, and
    those that whole URLs name."""

    def __init__(self, base: str, name: str) -> None:
        self._base = base.rstrip("/") or "/"
        self._name = name
        self._is_table_local = is_local(name)
        self._numbers: dict[str, int] = {}
        self._folder = local_folder(self._base) if is_local(self._base) else ""
        self._below = self._folder.rstrip("/") + "/"

    @property
    def special_prefixes(self) -> list[str]:
        """No rule for a shorter prefix holds for paths that begin with these."""
        if self._folder:
            return [self._below, f"file://{self._below}"]
        return [f"{self._base}/"]

    def find(self, path: str, row: int) -> tuple[int, str, Rule]:
        """The number of a place, the key in it, and a rule for other paths.

        Raises:
            leat.InvalidArgument: it leads out of `base`; a URL that cannot be read;
                too many places.
        """
        place, key, rule = self._place_of(path, row)
        number = self._numbers.setdefault(place, len(self._numbers))
        if number == _MOST_PLACES:
            raise InvalidArgument(
                f"{self._name}, row {row}: {path} lies in one more than {_MOST_PLACES} places "
                "(buckets and hosts); make a manifest of each part and join the datasets"
            )
        return number, key, rule

    @property
    def urls(self) -> list[str]:
        return list(self._numbers)

    def _place_of(self, path: str, row: int) -> tuple[str, str, Rule]:
        base = self._base
        if "://" in path:
            is_below = path.startswith(base + "/")
            if not is_below and path.startswith("file://"):
                return self._local(path[len("file://") :], path, row, "file://")
            place = base if is_below else _place_of_url(path)
            key = path[len(place) + 1 :]
            if not place or not key:
                raise self._bad(path, row, "names no object")
            is_http = path.startswith(("http://", "https://"))
            if is_http:
                if "?" in key or "#" in key:
                    raise self._bad(re.split("[?#]", path)[0], row, "has a query or a fragment")
                key = urllib.parse.unquote(key)
            if "://" not in place:
                return place, key, None
            return place, key, (place + "/", "plain URL" if is_http else "any")
        if not self._folder:
            return base, path.lstrip("/"), ("", "any")
        if os.path.isabs(path):
            return self._local(path, path, row, "")
        folder = self._folder
        whole = os.path.normpath(os.path.join(folder, path))
        if os.path.commonpath([folder, whole]) != folder or whole == folder:
            raise self._bad(
                path, row, f"does not lie below {base}; give base= a place that holds all of them"
            )
        return base, os.path.relpath(whole, folder), ("", "plain path")

    def _local(self, path: str, shown: str, row: int, scheme: str) -> tuple[str, str, Rule]:
        whole = os.path.normpath(path)
        folder = self._folder
        if folder and os.path.commonpath([folder, whole]) == folder and whole != folder:
            return self._base, os.path.relpath(whole, folder), (scheme + self._below, "plain path")
        if not self._is_table_local:
            raise self._bad(
                shown, row, "is a file of this machine, and the manifest comes from elsewhere; "
                "copy the manifest here if that is meant",
            )  # fmt: skip
        return "/", whole.lstrip("/"), (f"{scheme}/", "plain path")

    def _bad(self, path: str, row: int, why: str) -> InvalidArgument:
        return InvalidArgument(f"{self._name}, row {row}: {path} {why}")


def _place_of_url(url: str) -> str:
    """The bucket, the host or the dataset of the Hub that an object lies in; empty if the URL names no object."""
    scheme, _, rest = url.partition("://")
    parts = rest.split("/")
    depth = 1 if scheme != "hf" else 5 if parts[2:3] and parts[2].endswith("@refs") else 3
    names = parts[:depth]
    is_whole = all(names) and len(parts) > len(names)
    return f"{scheme}://{'/'.join(names)}" if is_whole else ""


def is_local(url: str) -> bool:
    return "://" not in url or url.startswith("file://")


def local_folder(base: str) -> str:
    return os.path.abspath(base[len("file://") :] if base.startswith("file://") else base)
