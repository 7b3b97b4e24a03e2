"""Writes shards by a plan. Each is whole or not there, and the index comes last.

Beside the shards, DEST has hidden objects: `.leat/pack/plan`, whose content is the plan's digest, in a line of
its own the versions of the source's objects if anybody knows them, and last `leat-` with the version of Leat; and
`.leat/pack/NAME.json` for each shard that was written. So a call that was killed loses at most the shards
that it was writing, and a call with another plan is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import groupby, islice
from typing import Any

from leat import _native
from leat._formats._table._manifest import is_local, local_folder
from leat._pool import threads
from leat._shards._plan import FORMATS, Plan, digest_of
from leat._shards._row import rows_of
from leat._storage import checked_storage, native_storage
from leat.errors import InvalidArgument

_FOLDER = ".leat/pack"
_MOST_NOTE_BYTES = 1 << 16
_BY = "leat-"
_DRAFT = ".leat-write-"
"""How a file is called until it is whole: this, the number of the process, and more."""


def write(
    plan: Plan, dest: str, store: Mapping[str, Any], *,
    uploads: int = 2, progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Writes what is not there yet, and then the index.

    Returns:
        The index, shards, samples and bytes that are there; and how many shards were there before.

    Raises:
        leat.InvalidArgument: DEST has shards of another plan.
    """
    if is_local(dest):  # A bucket needs no folder.
        os.makedirs(local_folder(dest), exist_ok=True)
    place = _native.Place(dest, native_storage(checked_storage(store)))  # type: ignore[arg-type]
    if not is_begun(plan, place):
        begin(plan, place)
    done = found(plan, place)
    there = len(done)
    tell = progress or (lambda *_: None)
    with threads(uploads, "leat-pack") as pool:
        waiting: set[Future[tuple[int, dict[str, Any]]]] = set()
        for number, data in _shards(plan, done):
            waiting.add(pool.submit(_put, plan, place, number, data))
            del data
            if len(waiting) >= uploads:
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                done.update(future.result() for future in ended)
                tell(len(done), len(plan.ranges))
        done.update(future.result() for future in waiting)
    tell(len(done), len(plan.ranges))
    return {**end(plan, place, [done[number] for number in range(len(plan.ranges))]), "there": there}


def end(plan: Plan, place: Any, shards: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Writes the index of shards that are all there; returns where it is, and how much is there."""
    name, content = FORMATS[plan.format].index_of(plan.fields, shards, plan.dataset.classes)
    place.write(name, content)
    return {
        "index": place.url_of(name), "shards": len(shards), "samples": sum(shard["samples"] for shard in shards),
        "bytes": sum(shard["bytes"] for shard in shards),
    }  # fmt: skip


def write_one(plan: Plan, place: Any, number: int) -> None:
    """Writes a shard, and then the note that it is there."""
    begin, end = plan.ranges[number]
    rows = _resized(plan, rows_of(plan.dataset[begin:end], plan.fields))
    _put(plan, place, number, FORMATS[plan.format].shard_of(plan.fields, begin, rows))


def is_begun(plan: Plan, place: Any) -> bool:
    """Whether the place is claimed for the plan; writes nothing.

    Raises:
        leat.InvalidArgument: it has shards of another plan.
    """
    form = FORMATS[plan.format]
    # Another call may write its plan, and shards of it, meanwhile.
    strange = [name for name in (form.name_of(0), "index.json") if place.size(name) is not None]
    if place.size(f"{_FOLDER}/plan") is not None:
        words = place.read(f"{_FOLDER}/plan", _MOST_NOTE_BYTES).decode(errors="replace").split()
        by = "".join(word.removeprefix(_BY) for word in words if word.startswith(_BY))
        before = [word for word in words if not word.startswith(_BY)]
        if before[:1] != [plan.digest]:
            raise _other_plan(plan, place, before, by)
        if plan.versions is not None and before[1:] not in ([], [plan.versions]):
            raise InvalidArgument(
                f"{place.url_of('')} has shards of {plan.dataset.url} as it was before some of its objects were written "
                "anew (they have other ETags or times, and the same lengths): give an empty place"
            )
        return True
    if strange:
        raise InvalidArgument(f"{place.url_of(strange[0])} is there, and leat pack did not write it: give an empty place")
    return False


def _other_plan(plan: Plan, place: Any, before: Sequence[str], by: str) -> InvalidArgument:
    """Why a place with the shards of another plan is refused; `by`: the version of Leat that wrote it, or ""."""
    if by and before[:1] == [digest_of(plan.said, by)]:
        return InvalidArgument(
            f"{place.url_of('')} has shards that Leat {by} wrote, and those of this Leat, {plan.version}, may differ: "
            f"finish it with Leat {by}, or give an empty place"
        )
    older = "" if by else f", or of another version of Leat (this one is {plan.version})"
    return InvalidArgument(
        f"{place.url_of('')} has shards of other data, or of other options{older}: give an empty place, or the call "
        "that wrote them"
    )


def begin(plan: Plan, place: Any) -> None:
    """Claims the place for the plan, where `is_begun` has found nothing."""
    words = [plan.digest, plan.versions, f"{_BY}{plan.version}"]
    place.write(f"{_FOLDER}/plan", "\n".join(filter(None, words)).encode())


def remove_drafts(dest: str) -> None:
    """Removes from a folder what killed writes left in it.

    REQUIRES: nobody on another machine writes there any more; of this machine's, those are left alone that do.
    """
    folder = pathlib.Path(local_folder(dest))
    for draft in [*folder.glob(f"{_DRAFT}*"), *(folder / _FOLDER).glob(f"{_DRAFT}*")]:
        pid = draft.name.removeprefix(_DRAFT).partition("-")[0]
        if pid.isdecimal() and not os.path.exists(f"/proc/{pid}"):
            with contextlib.suppress(OSError):  # It may be another user's.
                draft.unlink()


def notes_of(dest: str) -> str:
    """The URL of the notes."""
    return f"{dest.rstrip('/')}/{_FOLDER}"


def found(plan: Plan, place: Any) -> dict[int, dict[str, Any]]:
    """The notes of the shards that are there, by number."""
    with threads(16, "leat-pack") as pool:
        looked = pool.map(lambda number: found_one(plan, place, number), range(len(plan.ranges)))
        return {number: told for number, told in enumerate(looked) if told is not None}


def found_one(plan: Plan, place: Any, number: int) -> dict[str, Any] | None:
    """The note of a shard that is there."""
    name = FORMATS[plan.format].name_of(number)
    note = f"{_FOLDER}/{name}.json"
    if place.size(note) is None:
        return None
    try:
        told = json.loads(place.read(note, _MOST_NOTE_BYTES))
    except ValueError:
        return None
    is_whole = isinstance(told, dict) and told.get("plan") == plan.digest and place.size(name) == told.get("bytes")
    return told if is_whole else None


def _shards(plan: Plan, done: Mapping[int, Any]) -> Iterator[tuple[int, bytes]]:
    """The shards that are missing, one after the other, in order."""
    form = FORMATS[plan.format]
    missing = [number for number in range(len(plan.ranges)) if number not in done]
    # Runs of neighbours are read as one.
    for _, run in groupby(enumerate(missing), key=lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        first, last = plan.ranges[numbers[0]][0], plan.ranges[numbers[-1]][1]
        rows = _resized(plan, rows_of(plan.dataset[first:last], plan.fields))
        for number in numbers:
            begin, end = plan.ranges[number]
            yield number, form.shard_of(plan.fields, begin, islice(rows, end - begin))


def _resized(plan: Plan, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The samples, their pictures made smaller by some threads."""
    resizer = plan.resizer
    if resizer is None:
        yield from rows
        return

    def smaller(row: dict[str, Any]) -> dict[str, Any]:
        return {name: resizer(value) if name in resizer.fields and value else value for name, value in row.items()}

    with threads(None, "leat-resize") as pool:
        while some := list(islice(rows, 64)):
            yield from pool.map(smaller, some)


def _put(plan: Plan, place: Any, number: int, data: bytes) -> tuple[int, dict[str, Any]]:
    """Writes a shard, and then the note that it is there."""
    name = FORMATS[plan.format].name_of(number)
    begin, end = plan.ranges[number]
    told = {
        "plan": plan.digest, "name": name, "samples": end - begin, "bytes": len(data),
        "md5": hashlib.md5(data, usedforsecurity=False).hexdigest(),
        "sha1": hashlib.sha1(data, usedforsecurity=False).hexdigest(), "sha256": hashlib.sha256(data).hexdigest(),
    }  # fmt: skip
    place.write(name, data)
    place.write(f"{_FOLDER}/{name}.json", json.dumps(told).encode())
    return number, told
