"""Snapshots: catalogues that `leat index --snapshot` kept beside the data, each under its time."""

from __future__ import annotations

import datetime
import os
import re
from typing import Any, Union

from leat import _native
from leat._formats._table._manifest import is_pattern
from leat.errors import InvalidArgument, NotFound

Time = Union[str, float, datetime.datetime]
"""A text as ISO 8601 has it, seconds since 1970, or a datetime; UTC where it says no zone."""

_FOLDER = ".leat/catalogues"
_NAME = re.compile(r"\d{8}T\d{6}Z")
_FORMAT = "%Y%m%dT%H%M%SZ"


def checked_place(url: Any, given: dict[str, Any], refresh: str) -> str:
    """The one folder that a snapshot can be of.

    Raises:
        leat.InvalidArgument: several places, a pattern, or options that choose a part.
    """
    if not isinstance(url, (str, os.PathLike)):
        raise InvalidArgument("as_of= takes one folder: a snapshot is of one; open each, and leat.Dataset.concat them")
    place = os.fspath(url)
    if is_pattern(place):
        raise InvalidArgument(f"as_of= with the pattern {place}: a snapshot is of a folder; choose with filter or query")
    for name, value in given.items():
        if value:
            raise InvalidArgument(f"as_of= with {name}=: a snapshot is of all there was; choose with filter or query")
    if refresh not in ("auto", "never"):
        raise InvalidArgument(f"as_of= with refresh={refresh!r}: a snapshot stays as it is")
    return place


def snapshot_at(url: str, as_of: Time, options: Any) -> str:
    """The name of the last snapshot that was kept at that time or before.

    Raises:
        leat.InvalidArgument: no time.
        leat.NotFound: there is none so old.
    """
    wanted = time_of(as_of)
    names = names_at(url, options)
    older = [name for name in names if _when(name) <= wanted]
    if older:
        return older[-1]
    there = f"the first one is of {iso(names[0])}" if names else "there is none at all"
    raise NotFound(
        f"{url}: no snapshot of {wanted.isoformat()} or before; {there}. `leat index {url} --snapshot` keeps one of now"
    )


def names_at(url: str, options: Any) -> list[str]:
    """The names of the snapshots of a folder, in the order of their times."""
    folder = f"{url.rstrip('/')}/{_FOLDER}"
    try:
        listed = _native.list_url(folder, options)
    except NotFound:
        return []
    return sorted(key for key, _, _ in listed if _NAME.fullmatch(key) and _is_time(key))


def iso(name: str) -> str:
    """The time of a snapshot, as `as_of=` takes it."""
    return _when(name).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_of(as_of: Time) -> datetime.datetime:
    """Raises `leat.InvalidArgument` for what is no time."""
    utc = datetime.timezone.utc
    try:
        if isinstance(as_of, str):
            text = as_of.strip()
            as_of = datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "zZ" else text)
        if isinstance(as_of, datetime.datetime):
            return as_of.replace(tzinfo=utc) if as_of.tzinfo is None else as_of.astimezone(utc)
        if isinstance(as_of, (int, float)) and not isinstance(as_of, bool):
            return datetime.datetime.fromtimestamp(as_of, utc)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidArgument(f"as_of={as_of!r}: {error}; write a time such as 2026-11-26T02:47:00Z") from None
    raise InvalidArgument(f"as_of={as_of!r} is no time; write one such as 2026-11-26T02:47:00Z")


def _when(name: str) -> datetime.datetime:
    return datetime.datetime.strptime(name, _FORMAT).replace(tzinfo=datetime.timezone.utc)


def _is_time(name: str) -> bool:
    try:
        _when(name)
    except ValueError:
        return False
    return True
