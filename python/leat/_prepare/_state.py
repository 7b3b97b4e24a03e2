"""The memory of a flow: a note for each unit that is done, a log, and the manifest, which comes last."""

from __future__ import annotations

import json
import os
import re
import socket
import time
import uuid
from functools import cached_property
from typing import Any

from leat import _native
from leat._formats._table._manifest import is_local, local_folder
from leat._prepare._flow import Flow
from leat._storage import checked_storage, native_storage
from leat.errors import Corrupt, InvalidArgument, NotFound

MANIFEST = "manifest.json"
ALL = "/samples"
"""How the name of a list of all samples ends, which may be long."""
_MOST_NOTE_BYTES = 1 << 20
_MOST_MANIFEST_BYTES = 1 << 30
_MOST_READS = 20
"""How often a note is read that its writer replaces each time."""
_SETTLES = 0.5
"""Seconds in which a write to a bucket has arrived, or else its writer takes it for lost."""
_HOST = re.sub(r"[^\w.-]", "-", socket.gethostname()) or "machine"


class State:
    """The state of a flow. Its notes are whole or not there."""

    def __init__(self, flow: Flow, *, is_only_read: bool = False) -> None:
        """`is_only_read`: nothing is written, neither there nor to the places of the flow's steps."""
        self._flow = flow
        self.is_only_read = is_only_read
        self._folder = local_folder(flow.state) if is_local(flow.state) else None
        if self._folder is not None and not is_only_read:
            os.makedirs(self._folder, exist_ok=True)

    @cached_property
    def _place(self) -> Any:
        options: Any = self._flow.store
        return _native.Place(self._flow.state, native_storage(checked_storage(options)))

    def claim(self) -> None:
        """Says whose state it is; if it is only read, checks that alone.

        Raises:
            leat.InvalidArgument: it is that of another flow.
        """
        before = self.note("flow")
        if before is None and self.is_only_read:
            return
        if before is None:
            self.create("flow", {"digest": self._flow.digest})
            before = self.note("flow") or {}
        if before.get("digest") != self._flow.digest:
            raise InvalidArgument(
                f"{self._place.url_of('')} is the state of another flow, or of this one before it was changed: "
                "give the flow as it was, or a new state = and new places to write to"
            )

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, in which a name is created once; else a bucket."""
        return self._folder is not None

    def note(self, name: str) -> dict[str, Any] | None:
        """The note of that name; None if there is none, or one that no call of ours wrote."""
        for _ in range(_MOST_READS - 1):
            try:
                return self._read_note(name)
            except (Corrupt, NotFound):  # Its writer replaced or removed it after the look at its size.
                continue
        return self._read_note(name)

    def _read_note(self, name: str) -> dict[str, Any] | None:
        file = f"{name}.json"
        if self.is_only_read and self._folder is not None and not os.path.isdir(self._folder):
            return None  # Nobody has begun.
        if self._place.size(file) is None:
            return None
        is_long = file == MANIFEST or name.endswith(ALL)
        try:
            told = json.loads(self._place.read(file, _MOST_MANIFEST_BYTES if is_long else _MOST_NOTE_BYTES))
        except ValueError:
            return None
        return told if isinstance(told, dict) else None

    def names(self, below: str) -> set[str]:
        """The names of the notes below a name, by one listing."""
        return {name[: -len(".json")] for name in self.listed(f"{self._flow.state}/{below}") if name.endswith(".json")}

    def listed(self, url: str, store: Any = None) -> set[str]:
        """The names below a URL; hidden ones are left out, such as files that are being written."""
        given: Any = self._flow.store if store is None else store
        options = native_storage(checked_storage(given))
        try:
            keys = [key for key, _, _ in _native.list_url(url, options)]
        except NotFound:
            return set()
        return {key for key in keys if not any(part.startswith(".") for part in key.split("/"))}

    def write(self, name: str, told: dict[str, Any]) -> None:
        """Notes it."""
        self._place.write(f"{name}.json", json.dumps(told, sort_keys=True).encode())

    def create(self, name: str, told: dict[str, Any]) -> bool:
        """Writes the note if there is none of that name, and returns true; else false.

        If several processes try at once, one succeeds. A folder guarantees that. In a bucket, it
        holds as long as no write takes longer than `_SETTLES`; a writer that took longer returns false.
        """
        if self._folder is not None:
            return self._link(os.path.join(self._folder, f"{name}.json"), told)
        begun = time.monotonic()
        if self._place.size(f"{name}.json") is not None:
            return False
        told = {**told, "nonce": uuid.uuid4().hex}
        self.write(name, told)
        if time.monotonic() - begun > _SETTLES:
            return False  # Another one may have looked at its own meanwhile, and gone on.
        time.sleep(_SETTLES)
        return self.note(name) == told

    def _link(self, path: str, told: dict[str, Any]) -> bool:
        """A link appears whole and once, over NFS too."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        draft = os.path.join(os.path.dirname(path), f".{uuid.uuid4().hex}")
        with open(draft, "w", encoding="utf-8") as file:
            file.write(json.dumps(told, sort_keys=True))
        try:
            os.link(draft, path)
            return True
        except OSError as error:
            # Over NFS the answer can be lost, and the second request then finds the link of the first.
            is_ours = os.stat(draft).st_nlink == 2
            if not is_ours and not isinstance(error, FileExistsError):
                raise
            return is_ours
        finally:
            os.unlink(draft)

    def url_of(self, name: str) -> str:
        """The URL of a note."""
        return self._place.url_of(f"{name}.json")

    @property
    def log_place(self) -> str:
        """The folder of the logs; empty if there are none."""
        return "" if self._folder is None else os.path.join(self._folder, "log")

    def log(self, event: str, **told: Any) -> None:
        """Adds a line to this machine's log; a state in a bucket has none, since objects cannot grow."""
        if self._folder is None:
            return
        os.makedirs(self.log_place, exist_ok=True)
        line = json.dumps({"time": round(time.time(), 3), "event": event, "pid": os.getpid(), **told}) + "\n"
        # One write, which the system appends as a whole, of whichever process. Machines that share a folder by NFS have
        # no such promise, so each has its own file.
        file = os.open(os.path.join(self.log_place, f"{_HOST}.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)
