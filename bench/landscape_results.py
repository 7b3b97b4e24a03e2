"""The measurements of bench/landscape_bench.py, a line of JSON each: a run that was stopped goes on after the last."""

from __future__ import annotations

import json
import pathlib
from typing import Any

KEY = ("regime", "peer", "setting", "run", "versions", "commit", "where")


class Results:
    """Each measurement is written once it is there. A line that a stop cut off is left out."""

    def __init__(self, file: pathlib.Path, is_fresh: bool = False) -> None:
        self._file = file
        if is_fresh:
            file.unlink(missing_ok=True)
        self._found: dict[str, dict[str, Any]] = {}
        self.measured = 0  # By this run.
        text = file.read_text() if file.is_file() else ""
        for line in text.splitlines():
            try:
                one = json.loads(line)
            except json.JSONDecodeError:
                continue
            self._found[self._key(one)] = one
        if text and not text.endswith("\n"):
            file.write_text("".join(json.dumps(one) + "\n" for one in self._found.values()))

    @staticmethod
    def _key(one: dict[str, Any]) -> str:
        return json.dumps([one[name] for name in KEY], sort_keys=True)

    def of(self, key: dict[str, Any]) -> dict[str, Any] | None:
        return self._found.get(self._key(key))

    def add(self, key: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
        one = {**key, **found}
        self._found[self._key(one)] = one
        self.measured += 1
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps(one) + "\n")
        return one
