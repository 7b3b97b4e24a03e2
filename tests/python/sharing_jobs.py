"""Processes of one rank on a node, for tests: their loaders, in this process."""

from __future__ import annotations

import contextlib
import tempfile

import numpy as np
import pytest

import leat
from leat._job import _taker
from file_store import FileStore
from small_datasets import make_pictures

N = 64
G = 8
OPS = [leat.ops.DecodeImage(), leat.ops.RandomCrop(8)]
USUAL = {"global_batch_size": G, "train": True, "seed": 3, "ids": True, "batch": "dict", "output": "numpy"}
OPTIONS = {**USUAL, "ops": OPS, "memory": "64MiB"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared") / "pictures"
    make_pictures(folder, N)
    return folder


@pytest.fixture
def job(folder, monkeypatch, tmp_path):
    """Makes the loaders of a rank's processes, in this process; the first makes the batches."""
    from leat._job import _agreement, _talk

    monkeypatch.setattr(_talk, "_SECONDS_TO_END", 0.05)
    monkeypatch.setattr(_taker, "PATIENCE", 40.0)  # On a busy machine, too.
    with contextlib.ExitStack() as stack:
        def make(processes: int, source=folder, of_each=lambda number: {}, store=None, **options):
            store = store or FileStore(tempfile.mkdtemp(dir=tmp_path))
            monkeypatch.setattr(_agreement, "job_store", lambda world_size: store)
            # Each stands for a process: the first loader of its data.
            loaders = []
            for number in range(processes):
                monkeypatch.setattr(_agreement, "_made", _agreement.collections.Counter())
                mesh = leat.Mesh({"tp": processes}, rank=number)
                given = {**OPTIONS, "epochs": 3, "rank": mesh, **options, **of_each(number)}
                loaders.append(stack.enter_context(leat.Loader(source, **given)))
            return loaders

        yield make


def equal(a, b) -> bool:
    assert a.keys() == b.keys()
    return all(
        a[name] == b[name] if isinstance(a[name], list) else np.array_equal(np.asarray(a[name]), np.asarray(b[name]))
        for name in a.keys()
    )


def expected_of(folder, epochs: int = 1, **options):
    with leat.Loader(folder, **{**OPTIONS, **options}, epochs=epochs, rank=0, world_size=1) as alone:
        return [list(alone) for _ in range(epochs)]


def makers(loaders) -> list[str]:
    return [type(loader._batches._maker).__name__ for loader in loaders]


def decoded(loader) -> int:
    """The samples that this loader's engine has delivered."""
    return sum(epoch["samples"] for epoch in loader.stats())
