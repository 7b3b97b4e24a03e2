"""`leat diff`: the samples that are in one dataset and not in another, or differ."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from leat._dataset import Dataset, fields_in_words
from leat._progress import Progress
from leat.errors import InvalidArgument

_KINDS = ("added", "removed", "changed")
_NAN = float("nan")
"""In place of every other NaN: rows that hold this object in the same place are equal."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    from leat._commands import add_store

    parser.description = (
        "Tells which samples B has and A lacks, which A has and B lacks, and which differ. It reads catalogues, and no "
        "objects: a sample whose bytes changed and kept their number is not seen."
    )
    parser.add_argument("a", metavar="A", help="a dataset: a URL, a path or a pattern")
    parser.add_argument("b", metavar="B", nargs="?", help="another one; with --as-of, by default A as it is now")
    parser.add_argument("--as-of", metavar="TIME", help="take A as a snapshot has it: leat index --snapshot")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="keys that are printed of each kind (20)")
    parser.add_argument("--json", action="store_true", help="print JSON: the counts, and all keys")
    add_store(parser)
    parser.epilog = "Example:\n  leat diff s3://bucket/photos-v1 s3://bucket/photos-v2"


def run(options: argparse.Namespace) -> None:
    """Does it."""
    from leat._commands import store_of

    if options.most < 0:
        raise InvalidArgument(f"--most {options.most}; it is 0 or more")
    store: Any = store_of(options)
    if options.b is None and options.as_of is None:
        raise InvalidArgument("leat diff compares two datasets: give B, or --as-of")
    with Progress("comparing catalogues"):
        before = Dataset(options.a, as_of=options.as_of, storage_options=store)
        after = Dataset(options.a if options.b is None else options.b, storage_options=store)
        found = differences(before, after)
    if options.json:
        print(json.dumps({"samples": [len(before), len(after)], **found}))
        return
    for kind in _KINDS:
        for key in found[kind][: options.most]:
            print(f"{kind:8} {key!r}" if not key.isprintable() else f"{kind:8} {key}")
        if len(found[kind]) > options.most:
            print(f"{kind:8} … and {len(found[kind]) - options.most:,} more")
    counts = ", ".join(f"{len(found[kind]):,} {kind}" for kind in _KINDS)
    print(f"{len(before):,} samples, then {len(after):,}: {counts} (by lengths and columns; no object was read)")


def differences(before: Dataset, after: Dataset) -> dict[str, list[str]]:
    """The keys of samples that were added, removed and changed; a changed one has other lengths or values.

    Raises:
        leat.InvalidArgument: the fields differ.
    """
    if before.fields != after.fields:
        raise InvalidArgument(
            f"{before.url} has the fields {fields_in_words(before)}, and {after.url} has {fields_in_words(after)}: "
            "nobody can tell whether a sample is the same"
        )
    old, new = told_of(before), told_of(after)
    return {
        "added": [each[0] for each in new if each not in old],
        "removed": [each[0] for each in old if each not in new],
        "changed": [each[0] for each, what in new.items() if each in old and old[each] != what],
    }


def told_of(dataset: Dataset) -> Mapping[tuple[str, int], tuple[Any, ...]]:
    """All that the catalogue tells of each sample, by its key and how many samples before it have the same one."""
    columns: list[Any] = []
    for name, kind in dataset.fields.items():
        values = dataset.lengths(name).tolist() if kind == "bytes" else list(dataset.column(name))
        values = [_NAN if value != value else value for value in values]
        if name == "label" and dataset.classes:  # The same class may have another number.
            values = [dataset.classes[int(label)] for label in values]
        columns.append(values)
    met: dict[str, int] = {}
    told = {}
    for number, row in enumerate(zip(*columns)):
        key = dataset.key(number)
        before = met[key] = met.get(key, -1) + 1
        told[key, before] = row
    return told
