"""The common part of the scenarios: a dataset of small objects, and its content.

Each file is one way in which a store is unwell. The epoch has the content that it has without the trouble, or ends with
the one right error.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest

TESTS = pathlib.Path(__file__).parents[1] / "python"
sys.path.insert(0, str(TESTS))

_spec = importlib.util.spec_from_file_location("tests_conftest", TESTS / "conftest.py")
_shared = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_shared)
pytest_configure = _shared.pytest_configure
_no_test_hangs = _shared._no_test_hangs
_own_environment = _shared._own_environment
_no_classes_met = _shared._no_classes_met
fresh_cache = _shared.fresh_cache
serve = _shared.serve

import leat  # noqa: E402
from unwell_bucket import small_objects  # noqa: E402

COUNT = 600


@pytest.fixture(scope="session")
def objects(tmp_path_factory):
    """600 objects of 4 KB."""
    return small_objects(tmp_path_factory.mktemp("stress") / "objects", COUNT)


@pytest.fixture
def reader(fresh_cache):
    """reader(endpoint, …): a loader of one epoch over the bucket `objects` there."""

    def open_one(endpoint, **options):
        storage = {"endpoint_url": endpoint, "no_sign_request": True, **options.pop("storage", {})}
        usual = {"batch_size": 20, "shuffle": True, "seed": 3, "epochs": 1, "output": "numpy", "max_in_flight": 32}
        return leat.Loader("s3://objects", storage_options=storage, **{**usual, **options})

    return open_one


@pytest.fixture(scope="session")
def content():
    """content(loader): the hash of the epoch's content, once it has been read."""

    def read(loader) -> str:
        for _batch in loader:
            pass
        return loader.stats()[-1]["content_hash"]

    return read


@pytest.fixture(scope="session")
def rights(objects, _own_environment):
    """The contents of three epochs without trouble."""
    with leat.Loader(objects, batch_size=20, shuffle=True, seed=3, epochs=3, output="numpy") as loader:
        for _batch in loader:
            pass
        return [epoch["content_hash"] for epoch in loader.stats()]


@pytest.fixture(scope="session")
def right(rights):
    """The content of the first epoch without trouble."""
    return rights[0]
