"""`leat prepare --watch`: lists the source again and again, and does the flow for samples that are new."""

from __future__ import annotations

import sys
import time

from leat import errors
from leat._formats._table._manifest import is_local
from leat._prepare import _run
from leat._prepare._flow import Flow
from leat._prepare._rounds import Rounds, Rows, rows_of
from leat.errors import InvalidArgument, NotFound

_AGAIN = (errors.Unavailable, errors.Throttled, errors.DeadlineExceeded)


def watch(flow: Flow, part: _run.Part, every: float) -> None:
    """Goes on until SIGINT or SIGTERM, and returns then.

    Raises:
        leat.InvalidArgument: a source of which no sample can be new; a sample that was changed.
        leat.Error: a unit failed.
    """
    for key in ("as_of", "tokens", "megatron"):
        if flow.source.get(key):
            raise InvalidArgument(f"--watch with [source] {key}: nothing of it can be new; it takes folders and tables")
    rounds = Rounds(flow)
    try:
        _Watch(flow, part, rounds).go_on(every)
    except KeyboardInterrupt:
        print(f"the watch has ended: {rounds.count} rounds, {len(rounds.rows):,} samples", flush=True)


class _Watch:
    def __init__(self, flow: Flow, part: _run.Part, rounds: Rounds) -> None:
        self._flow, self._part, self._rounds = flow, part, rounds
        self._before: Rows | None = None
        """The last listing told this."""
        self._said = ""

    def go_on(self, every: float) -> None:
        """Until somebody ends it."""
        while True:
            begun = time.monotonic()
            for flow in self._rounds.read():
                self._do(flow)
            if not self._begins_one():
                time.sleep(max(0.0, begun + every - time.monotonic()))

    def _do(self, flow: Flow) -> None:
        told, is_new = _run.run(flow, self._part)
        if is_new:
            samples = (told["source"] or {}).get("samples")
            print(f"round {self._rounds.count}: {samples:,} new samples, {len(flow.steps)} steps are done", flush=True)

    def _begins_one(self) -> bool:
        """Looks for new samples; whether they make a round."""
        try:
            dataset = self._flow.listed()
        except NotFound as error:
            self._say(f"nothing is there yet: {error}")
            return False
        except _AGAIN as error:
            self._say(f"listed later again: {error}")
            return False
        rows = rows_of(dataset)
        known, before = self._rounds.rows, self._before
        self._before = rows
        for key in known.keys() & rows.keys():
            if known[key] != rows[key]:
                raise InvalidArgument(
                    f"{dataset.url}: {key} was written again since its round, whose shards have what it was; write new "
                    "data under new names, or give a new state = and new places to write to"
                )
        if gone := known.keys() - rows.keys():
            self._say(f"{len(gone):,} samples of earlier rounds are gone, such as {min(gone)}; their shards stay")
        new = {key: row for key, row in rows.items() if key not in known}
        if is_local(self._flow.source["url"]):  # Files grow as they are copied: two listings must agree.
            new = {key: row for key, row in new.items() if before is not None and before.get(key) == row}
        return bool(new) and self._rounds.add(dataset, new)

    def _say(self, what: str) -> None:
        """Once, until something else is to be said."""
        if what != self._said:
            print(f"leat: {what}", file=sys.stderr, flush=True)
            self._said = what
