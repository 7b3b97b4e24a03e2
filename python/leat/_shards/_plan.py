"""The plan of a call: a function of its source and options, so that a call goes on where another stopped."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leat import __version__
from leat._dataset import Dataset
from leat._orders._mix import Mix
from leat._shards import _mds, _tar, _tokens
from leat._shards._resize import Resizer, pictures_of
from leat._shards._row import Field, kind_of
from leat.errors import InvalidArgument

FORMATS: Mapping[str, Any] = {"tar": _tar, "mds": _mds, "tokens": _tokens}
"""Modules with `check(fields)`, `name_of(number)`, `shard_of(fields, first, rows)` and `index_of(fields, shards)`."""
MOST_SHARD_BYTES = 10**9
_MEASURED = 32
_UNITS = {"": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass(frozen=True)
class Plan:
    """All that decides the bytes of the shards."""

    dataset: Dataset
    format: str
    fields: Sequence[Field]
    ranges: Sequence[tuple[int, int]]
    """The samples of each shard: from the first up to the second."""
    resizer: Resizer | None
    digest: str
    said: Mapping[str, Any]
    """All that `digest` is of, but for the version of Leat."""
    version: str
    """That of Leat: another one may write other bytes."""
    versions: str | None = None
    """Identifies the versions of the source's objects; None: nobody knows them."""


def plan_of(
    dataset: Dataset, format: str, shard_bytes: int, *,
    fields: Sequence[str] | None = None, resize: int | None = None, quality: int = 90,
) -> Plan:  # fmt: skip
    """See `leat pack --help`.

    Raises:
        leat.InvalidArgument: a field that is not there or that the format cannot hold; a mix.
    """
    if isinstance(dataset, Mix):
        raise InvalidArgument("leat pack: a mix has no end of its own; pack each of its sources")
    chosen = _fields_of(dataset, fields)
    resizer = None if resize is None else Resizer(resize, quality)
    FORMATS[format].check(chosen)
    _check_all_have_some(dataset, chosen)
    if resizer is not None:
        resizer.fields = pictures_of(chosen, _measured(dataset, chosen))
    ratio = 1.0 if resizer is None else _ratio_of(dataset, chosen, resizer)
    ranges = cut(_sizes_of(dataset, chosen) * ratio, shard_bytes)
    said = {
        "data": dataset.digest, "format": format, "ranges": ranges,
        "resize": resize, "quality": quality if resize else None,
        "fields": [[field.name, field.kind, field.ending] for field in chosen],
    }  # fmt: skip
    digest = digest_of(said, __version__)
    return Plan(dataset, format, chosen, ranges, resizer, digest, said, __version__, versions_of(dataset))


def digest_of(said: Mapping[str, Any], version: str) -> str:
    """The digest of a plan that says this, by that version of Leat."""
    return hashlib.sha256(json.dumps({**said, "version": version}).encode()).hexdigest()


def versions_of(dataset: Dataset) -> str | None:
    """Identifies the versions of the objects, as every call lists them; None: nobody knows them.

    Digests say only that names and lengths are equal. Replicas of a web server have ETags of their own.
    """
    native = dataset._native
    if any(place.startswith(("http://", "https://")) for place in native.places):
        return None
    return native.listed_versions


def cut(sizes: np.ndarray, shard_bytes: int) -> list[tuple[int, int]]:
    """Runs of samples of at most this many bytes each; a larger sample is alone."""
    ends = np.cumsum(sizes)
    ranges, begin = [], 0
    while begin < len(sizes):
        before = float(ends[begin - 1]) if begin else 0.0
        end = max(begin + 1, int(np.searchsorted(ends, before + shard_bytes, side="right")))
        ranges.append((begin, end))
        begin = end
    return ranges


def bytes_of_text(option: str, text: str) -> int:
    """Such as 64MB or 8MiB.

    Raises:
        leat.InvalidArgument: no size; names the option.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kKMG]?i?B?)", text.strip())
    if found is None or found[2] not in _UNITS:
        raise InvalidArgument(f"{option} {text}; it is a size, such as 64MB or 8MiB")
    return int(float(found[1]) * _UNITS[found[2]])


def _fields_of(dataset: Dataset, names: Sequence[str] | None) -> list[Field]:
    for name in names or ():
        if name not in dataset.fields:
            raise InvalidArgument(f"--fields names {name!r}; the dataset has {', '.join(dataset.fields)}")
    first = dataset[0]
    made = []
    for name in names or dataset.fields:
        rows = dataset._dtypes.get(name)
        if rows is not None:
            ending = _ending_of_numbers(name, is_one=rows.shape == ())
            made.append(Field(name, "rows", ending, rows.dtype, rows.is_ragged, rows.shape))
            continue
        kind = dataset.fields[name]
        lacks = kind == "bytes" and not bool(dataset.has(name).all())
        content = kind_of(first[name] or b"") if kind == "bytes" else ""
        made.append(Field(name, kind, _ending_of(name, kind, content), has_all=not lacks, content=content))
    return made


def _ending_of(name: str, kind: str, content: str) -> str:
    """How a file of the field ends."""
    if kind == "bytes" and name == "data":
        return content
    return "cls" if name == "label" and kind == "int64" else name.lower()


def _ending_of_numbers(name: str, *, is_one: bool) -> str:
    """How a file of the field ends, which holds one number in decimal or an array."""
    if is_one:
        return name.lower()
    return "npy" if name == "data" else f"{name.lower()}.npy"


def _sizes_of(dataset: Dataset, fields: Sequence[Field]) -> np.ndarray:
    """The bytes of each sample, about."""
    sizes = np.full(len(dataset), 16 * len(fields), np.float64)
    for field in fields:
        if field.kind in ("bytes", "rows"):
            sizes += np.maximum(dataset.lengths(field.name), 0)
    return sizes


def _check_all_have_some(dataset: Dataset, fields: Sequence[Field]) -> None:
    """Raises `leat.InvalidArgument` if a sample has none of the fields: its shard would be without it."""
    if any(field.has_all for field in fields):
        return
    has_some = np.logical_or.reduce([dataset.has(field.name) for field in fields])
    if has_some.all():
        return
    number = int(np.argmin(has_some))
    raise InvalidArgument(
        f"sample {number} ({dataset.key(number)!r}) has none of the fields "
        f"{', '.join(field.name for field in fields)}, so that no shard would have it; take its row out of the table, or "
        "name a field that it has with --fields"
    )


def _measured(dataset: Dataset, fields: Sequence[Field] = ()) -> Iterator[dict[str, Any]]:
    """Some samples, from the first to the last; and for each of the fields that samples lack, some that have it."""
    chosen = [_some_of(np.arange(len(dataset)))]
    chosen += [_some_of(np.flatnonzero(dataset.has(field.name))) for field in fields if not field.has_all]
    for number in np.unique(np.concatenate(chosen)).tolist():
        yield dataset[number]


def _some_of(numbers: np.ndarray) -> np.ndarray:
    """At most _MEASURED of them, from the first to the last."""
    return numbers[np.linspace(0, len(numbers) - 1, min(len(numbers), _MEASURED)).astype(int)]


def _ratio_of(dataset: Dataset, fields: Sequence[Field], resizer: Resizer) -> float:
    """How much smaller samples become, by some of them."""
    before = after = 0
    for row in _measured(dataset):
        for field in fields:
            value = row[field.name]
            if field.kind == "bytes" and value is not None:
                before += len(value)
                after += len(resizer(value) if field.name in resizer.fields else value)
    return after / before if before else 1.0
