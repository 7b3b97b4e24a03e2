"""Token files: the rows of one field end to end, in .bin files that `leat.Dataset.tokens` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from leat._shards._row import Field, Row
from leat.errors import InvalidArgument


def check(fields: Sequence[Field]) -> None:
    """Raises `leat.InvalidArgument` unless it is one field of numbers."""
    if len(fields) != 1 or fields[0].kind != "rows":
        told = ", ".join(f"{field.name}: {field.kind}" for field in fields)
        raise InvalidArgument(
            f"--format tokens takes one field of numbers, such as tokens; here are {told}; --fields chooses"
        )


def name_of(number: int) -> str:
    """The shard of that number."""
    return f"{number:06d}.bin"


def shard_of(fields: Sequence[Field], first: int, rows: Iterable[Row]) -> bytes:
    """The tokens of these samples, end to end."""
    kind = np.dtype(fields[0].dtype).newbyteorder("<")
    return b"".join(np.ascontiguousarray(row[fields[0].name], kind).tobytes() for row in rows)


def index_of(fields: Sequence[Field], shards: Sequence[dict[str, Any]], classes: Sequence[str]) -> tuple[str, bytes]:
    """The name and the content of the list of files; readers of tokens pass over it."""
    kind = np.dtype(fields[0].dtype)
    files = [
        {**{key: shard[key] for key in ("name", "bytes", "sha256")}, "tokens": shard["bytes"] // kind.itemsize}
        for shard in shards
    ]
    return "index.json", json.dumps({"dtype": kind.name, "files": files}, indent=1).encode()
