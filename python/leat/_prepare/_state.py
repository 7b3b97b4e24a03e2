"""The memory of a flow: a note for each unit that is done, a log, and the manifest, which comes last."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from typing import Any

from leat import _native
from leat._manifest import is_local, local_folder
from leat._prepare._flow import Flow
from leat._storage import checked_storage, native_storage
from leat.errors import InvalidArgument

MANIFEST = "manifest.json"
_MOST_NOTE_BYTES = 1 << 20
_MOST_MANIFEST_BYTES = 1 << 30


class State:
    """The state of a flow. Its notes are whole or not there."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._folder = local_folder(flow.state) if is_local(flow.state) else None
        if self._folder is not None:
            os.makedirs(self._folder, exist_ok=True)
        self._place = _native.Place(flow.state, native_storage(checked_storage(flow.store)))  # type: ignore[arg-type]

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Nobody else runs the flow on this machine meanwhile.

        Raises:
            leat.InvalidArgument: somebody does; or the state is that of another flow.
        """
        with contextlib.ExitStack() as stack:
            if self._folder is not None:
                lock = stack.enter_context(open(os.path.join(self._folder, "lock"), "w"))
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise InvalidArgument(f"{self._flow.path} runs already: {lock.name} is locked") from None
            before = self.note("flow")
            if before is None:
                self.write("flow", {"digest": self._flow.digest})
            elif before.get("digest") != self._flow.digest:
                raise InvalidArgument(
                    f"{self._place.url_of('')} is the state of another flow, or of this one before it was changed: "
                    "give the flow as it was, or a new state = and new places to write to"
                )
            yield

    def note(self, name: str) -> dict[str, Any] | None:
        """The note of that name; None if there is none, or one that no call of ours wrote."""
        file = f"{name}.json"
        if self._place.size(file) is None:
            return None
        most = _MOST_MANIFEST_BYTES if file == MANIFEST else _MOST_NOTE_BYTES
        try:
            told = json.loads(self._place.read(file, most))
        except ValueError:
            return None
        return told if isinstance(told, dict) else None

    def write(self, name: str, told: dict[str, Any]) -> None:
        """Notes it."""
        self._place.write(f"{name}.json", json.dumps(told, sort_keys=True).encode())

    def url_of(self, name: str) -> str:
        """The URL of a note."""
        return self._place.url_of(f"{name}.json")

    def log(self, event: str, **told: Any) -> None:
        """Adds a line to the log; a state in a bucket has none, since objects cannot grow."""
        if self._folder is None:
            return
        line = json.dumps({"time": round(time.time(), 3), "event": event, "pid": os.getpid(), **told}) + "\n"
        # One write, which the system appends as a whole, of whichever process.
        file = os.open(os.path.join(self._folder, "log.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)
