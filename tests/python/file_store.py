"""The store of a job, as torch.distributed has one, in files: for processes that need no torch."""

from __future__ import annotations

import hashlib
import os
import pathlib
import tempfile
import time


class FileStore:
    """The methods of torch's stores that Leat uses.

    Args:
        folder: the same for all processes.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = pathlib.Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def set(self, key: str, value: str | bytes) -> None:
        os.replace(self._written(value), self._path(key))

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self._path(key).read_bytes()

    def check(self, keys: list[str]) -> bool:
        return all(self._path(key).exists() for key in keys)

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Sets what is not there; otherwise what is there stays."""
        assert expected == ""
        made = self._written(desired)
        try:
            os.link(made, self._path(key))
        except FileExistsError:
            pass
        os.unlink(made)
        return self._path(key).read_bytes()

    def wait(self, keys: list[str]) -> None:
        while not self.check(keys):
            time.sleep(0.002)

    def _path(self, key: str) -> pathlib.Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()

    def _written(self, value: str | bytes) -> str:
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
            file.write(value.encode() if isinstance(value, str) else value)
        return file.name
