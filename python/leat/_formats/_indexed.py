"""Folders of shards whose ``index.json`` names them: those of MosaicML Streaming, and LitData's chunks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, Union

from leat.errors import InvalidArgument, NotFound

INDEX = "index.json"
MOST_INDEX_BYTES = 1 << 30
MOST_PACKED_BYTES = 1 << 30
"""A shard that no range can be read of is held whole, as it is stored and as it is read."""


class Family(NamedTuple):
    """A format of shards."""

    shard: re.Pattern[str]
    """Matches their names."""
    words: str
    opener: str
    """Opens a folder of them."""
    extension: str
    writer: str


def are_shards(native: Any, family: Family) -> bool:
    """Whether the objects of a dataset are shards and their index.

    Raises:
        leat.InvalidArgument: they are shards, and their index is not there.
    """
    if native.has_shards:
        return False
    own, others, shards = False, [], 0
    for sample in range(native.samples):
        key = native.key(sample)
        if family.shard.search(key):
            shards += 1
        elif key == INDEX:
            own = True
        elif key.endswith("/" + INDEX):
            others.append(key)
        else:
            return False
    if shards == 0:
        return False
    if len(native.places) > 1:
        raise InvalidArgument(
            f"{native.url} have {family.words}: open each folder, and join them with leat.Dataset.concat"
        )
    if own:
        return True
    if others:
        first = others[0][: -len(INDEX) - 1]
        raise InvalidArgument(
            f"{native.url} has {family.words} in folders, each with an {INDEX} of its own: open one, such as "
            f"{family.opener}({_below(native.url, first)!r}), or join them with leat.Dataset.concat"
        )
    raise InvalidArgument(
        f"{native.url} has {family.words} without their {INDEX}, which names their columns: open the folder "
        f'that has it, with {family.opener}(folder); extensions="{family.extension}" takes the files as they are'
    )


def check_none(native: Any, url: str, family: Family) -> None:
    """Raises `leat.InvalidArgument` if a stream of unknown things found shards."""
    if native is not None and are_shards(native, family):
        raise InvalidArgument(f'{url} has {family.words}; with shuffle="stream" give them as {family.opener}(url)')


def folder_of(url: str) -> str:
    """The folder that the index lies in."""
    folder = url[: -len(INDEX)] if url == INDEX or url.endswith("/" + INDEX) else url
    return folder.rstrip("/") or ("/" if folder.startswith("/") else ".")


def index_url(folder: str) -> str:
    """The place of a folder's index."""
    return _below(folder, INDEX)


def _below(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def missing(folder: str, error: NotFound, family: Family) -> NotFound:
    """The error of a folder without an index."""
    return NotFound(
        f"{error}; {family.opener} reads a folder with the {INDEX} that {family.writer} wrote, or "
        f"leat.Dataset({folder!r}) what else is there"
    )


class Wrong(Exception):
    """A part of an index is not as it should be."""


def text(value: Any, what: str) -> str:
    """A text that can be shown; raises `Wrong`."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise Wrong(f"{what} is {value!r}")
    return value


def whole(value: Any, what: str) -> int:
    """A number of 32 bits, as offsets in shards are; raises `Wrong`."""
    if type(value) is not int or not 0 <= value < 1 << 32:
        raise Wrong(f"{value!r} {what}")
    return value


def file_name(value: Any) -> str:
    """The name of a file below the index's folder; raises `Wrong`."""
    key = text(value, "the name of its file")
    # A name from outside leads to no other folder, and is no name of our own making.
    if any(part in ("", ".", "..") for part in key.split("/")) or "\\" in key or "#leat:" in key:
        raise Wrong(f"{key!r} is no name of a file below the index's folder")
    return key


class Value(Protocol):
    """A value of every sample, as an index describes it."""

    @property
    def name(self) -> str: ...

    @property
    def stored_as(self) -> str:
        """Its encoding, for messages."""

    @property
    def is_pickled(self) -> bool: ...


_V = TypeVar("_V", bound=Value)


def words(values: Sequence[Value]) -> str:
    """The values of a sample, for a message."""
    return ", ".join(f"{value.name} ({value.stored_as})" for value in values)


def choose(
    index: str,
    word: str,
    values: Sequence[_V],
    fields: Union[Sequence[str], None] = None,
    wanted: Union[frozenset[str], None] = None,
) -> list[_V]:
    """The values that are fields: `fields`; or those of `wanted`, where it has some; or all.

    Args:
        index: its name, for errors.
        word: for a value.
        values: that the index has.

    Raises:
        leat.InvalidArgument: one that is not there; or all are meant, and one is pickled.
    """
    known = {value.name: value for value in values}
    if fields is None and wanted is not None:
        fields = [name for name in known if name in wanted] or None
    if fields is None:
        _check_none_is_pickled(index, word, values)
        return list(values)
    if not fields:
        raise InvalidArgument(f"{index}: fields= names no {word}; it has {words(values)}")
    for name in fields:
        if name not in known:
            raise InvalidArgument(f"{index} has no {word} {name!r}; it has {words(values)}")
    return [known[name] for name in dict.fromkeys(fields)]


def _check_none_is_pickled(index: str, word: str, values: Sequence[Value]) -> None:
    pickled = [value for value in values if value.is_pickled]
    if not pickled:
        return
    others = tuple(value.name for value in values if not value.is_pickled)
    such = f", such as fields={others!r}" if others else ""
    raise InvalidArgument(
        f"{index}: the {word} {pickled[0].name!r} is pickled ({pickled[0].stored_as}), and Leat unpickles nothing, "
        f"since bytes from elsewhere could run any code; choose other fields{such}, or name it "
        "in fields= to get its bytes, for leat.ops.Python(pickle.loads, …) if you trust who wrote them"
    )
