"""A dataset as a manifest: a table that `leat.Dataset.from_manifest` reads."""

from __future__ import annotations

import os
import urllib.parse
from typing import TYPE_CHECKING, Any

import numpy as np

from leat import _native
from leat._formats._table._manifest import is_local, local_folder
from leat._query import _lengths, _scalar, _texts
from leat.errors import InvalidArgument

if TYPE_CHECKING:
    from leat._dataset import Dataset

_MADE = "#leat:made;"
"""In the keys of objects that lie nowhere: Leat makes them of parts of others."""


def check_name(path: str) -> None:
    """Raises `leat.InvalidArgument` for a file that cannot hold the types of columns, and for a URL."""
    if "://" in path:
        raise InvalidArgument(f"--out {path}: a manifest is a file of this machine; give a path, and copy it")
    if not path.endswith((".parquet", ".jsonl")):
        raise InvalidArgument(f"--out {path}: a manifest ends in .parquet or .jsonl; a CSV would not keep types")


def write(dataset: Dataset, path: str) -> dict[str, Any]:
    """Writes the samples; it is there whole, or not.

    Returns:
        The arguments that `leat.Dataset.from_manifest` needs to read it.

    Raises:
        leat.InvalidArgument: values that lie in no object as they are.
    """
    import pyarrow as arrow

    told: dict[str, Any] = {"fields": {}, "columns": []}
    made: dict[str, Any] = {"key": _texts(arrow, *_native.sample_keys(dataset._native))}
    for name, kind in dataset.fields.items():
        if kind == "bytes":
            told["fields"][name] = name
            urls, offsets, is_part = _places_of(dataset, name)
            made[name] = arrow.array(urls, arrow.string())
            if is_part:
                made[f"{name}_offset"] = arrow.array(offsets)
                made[f"{name}_length"] = _lengths(dataset, arrow, name)
                told.setdefault("ranges", {})[name] = (f"{name}_offset", f"{name}_length")
            continue
        made[name] = _scalar(dataset, arrow, name, kind).make()
        if name == "label":
            told["fields"][name] = name
        else:
            told["columns"].append(name)
    if not told["columns"]:
        del told["columns"]
    if "label" in made and dataset.classes:
        told["classes"] = list(dataset.classes)
        made["label"] = arrow.array(dataset.classes).take(made["label"])
    _write(arrow.table(made), path)
    return told


def call_of(path: str, told: dict[str, Any]) -> str:
    """The line of Python that reads it."""
    given = "".join(f", {name}={value!r}" for name, value in told.items())
    return f"leat.Dataset.from_manifest({path!r}{given})"


def _places_of(dataset: Dataset, name: str) -> tuple[list[str], np.ndarray, bool]:
    """The URL of each sample's object, empty if it lacks one; the offset; and whether values are parts of objects."""
    if name in dataset._dtypes:
        raise InvalidArgument(f"--out: the field {name!r} is numbers, whose type a manifest cannot tell")
    objects, offsets, sizes = _native.ranges(dataset._native, name)
    keys = _texts_list(*_native.object_keys(dataset._native))
    used = np.unique(objects[objects >= 0]).tolist()
    if any(_MADE in keys[number] for number in used):
        raise InvalidArgument(f"--out: Leat makes {name!r} of parts of objects, which a manifest cannot name")
    places = dataset._native.places
    urls = {number: _url_of(places, keys[number]) for number in used}
    lengths = dataset.lengths(name)
    has_it = objects >= 0
    is_part = bool(((offsets != 0) | (lengths != sizes))[has_it].any())
    if is_part and not has_it.all():
        raise InvalidArgument(
            f"--out: some of the samples lack {name!r}, and a manifest of parts of objects has one for each; choose by "
            f"{name}_bytes is not null"
        )
    return [urls.get(number, "") for number in objects.tolist()], offsets, is_part


def _url_of(places: list[str], key: str) -> str:
    if len(places) > 1:
        number, _, key = key.partition("/")
        place = places[int(number)]
    else:
        place = places[0]
    if is_local(place):
        return os.path.join(local_folder(place), key)
    if place.startswith(("http://", "https://")):
        key = urllib.parse.quote(key)
    return f"{place.rstrip('/')}/{key}"


def _texts_list(ends: np.ndarray, data: np.ndarray) -> list[str]:
    whole, at = data.tobytes(), ends.tolist()
    return [whole[begin:end].decode("utf-8", "surrogateescape") for begin, end in zip(at, at[1:])]


def _write(table: Any, path: str) -> None:
    import duckdb

    draft = f"{path}.part-{os.getpid()}"
    kind = "parquet" if path.endswith(".parquet") else "json"
    quoted = draft.replace("'", "''")
    try:
        with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
            connection.register("chosen", table)
            connection.execute(f"COPY chosen TO '{quoted}' (FORMAT {kind})").fetchall()
        os.replace(draft, path)
    except duckdb.Error as error:
        raise InvalidArgument(f"--out {path}: {error}") from None
    finally:
        if os.path.exists(draft):
            os.unlink(draft)
