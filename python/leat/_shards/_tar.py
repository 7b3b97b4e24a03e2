"""Tar shards as WebDataset reads them: the files of a sample have one base name, and a field is an ending."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterable, Sequence
from typing import Any

from leat._shards._row import Field, Row, bytes_of
from leat.errors import InvalidArgument

_ENDING = re.compile(r"[a-z0-9_-]+(\.npy)?")


def check(fields: Sequence[Field]) -> None:
    """Raises `leat.InvalidArgument` if a field's name cannot be the ending of a file, or two would be one."""
    met: dict[str, str] = {}
    for field in fields:
        if not _ENDING.fullmatch(field.ending):
            raise InvalidArgument(
                f"the field {field.name!r} cannot be the ending of a file in a tar; leave it out with --fields, or give "
                "--format mds"
            )
        if (other := met.setdefault(field.ending, field.name)) != field.name:
            raise InvalidArgument(
                f"the fields {other!r} and {field.name!r} would both be .{field.ending}; --fields leaves one out"
            )


def name_of(number: int) -> str:
    """The shard of that number."""
    return f"{number:06d}.tar"


def shard_of(fields: Sequence[Field], first: int, rows: Iterable[Row]) -> bytes:
    """A shard of these samples, the first of which has that number: always the same bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for number, row in enumerate(rows, first):
            for field in fields:
                value = row[field.name]
                if value is None:
                    continue
                data = bytes_of(value)
                member = tarfile.TarInfo(f"{number:09d}.{field.ending}")
                member.size, member.mode = len(data), 0o444
                tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def index_of(fields: Sequence[Field], shards: Sequence[dict[str, Any]], classes: Sequence[str]) -> tuple[str, bytes]:
    """The name and the content of the list of shards, as `wids` has it."""
    listed = [
        {"url": shard["name"], "nsamples": shard["samples"], "filesize": shard["bytes"], "md5sum": shard["md5"]}
        for shard in shards
    ]
    told = {"wids_version": 1, "name": "leat pack", "shardlist": listed}
    if classes:
        told["classes"] = list(classes)
    return "index.json", json.dumps(told, indent=1).encode()
