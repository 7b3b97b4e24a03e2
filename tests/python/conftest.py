"""Fixtures that all tests share."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import signal

import pytest

import leat
from leat import _iteration, _say
from small_datasets import make_pictures, make_shards

with contextlib.suppress(ImportError):
    import torch  # noqa: F401  What output="auto" makes depends on it, not on which tests run before.

# A test that hangs is ended by an exception, and by force if that is not heard.
# Far more than any takes: on a busy machine they take several times as long.
_ALARM_SECONDS = 300
_FORCE_SECONDS = 400
_real_stderr = 2


def pytest_configure(config):
    global _real_stderr
    # A shell starts what runs in its background with Ctrl-C ignored, and so would be
    # every program that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # As before Python 3.14: torch's own workers get what tests define on the spot.
    multiprocessing.set_start_method("fork", force=True)  # The conftest of tests/stress may have.
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        _real_stderr = os.dup(2)


@pytest.fixture(autouse=True)
def _no_test_hangs():
    def ring(_signal, _frame):
        raise TimeoutError(f"the test took over {_ALARM_SECONDS} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(_ALARM_SECONDS)
    faulthandler.dump_traceback_later(_FORCE_SECONDS, exit=True, file=_real_stderr)
    yield
    faulthandler.cancel_dump_traceback_later()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _no_classes_met():
    """No test is warned of classes that another test read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_iteration, "classes_met", _say.Classes())
        yield


@pytest.fixture(autouse=True, scope="session")
def _own_environment(tmp_path_factory):
    """No settings but our own, and a cache that goes with the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "SLURM_", "OMPI_", "TORCHELASTIC_")) or name in (
                "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
                "LEAT_AGENT", "LEAT_TUNE", "LEAT_NAT", "LEAT_PRICES", "LEAT_PROVIDER", "LEAT_NODE_PER_HOUR",
                "LEAT_CARBON", "LEAT_GRID",
            ):
                patch.delenv(name)
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("LEAT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        # Some programs run at once, here and beside: more threads for torch in each would wait for each other.
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture
def no_fetcher_is_left():
    """Fails a test that leaves threads of leat.torch.DataLoader."""
    from dropin_datasets import none_left

    yield
    assert none_left()


@pytest.fixture
def fresh_cache(monkeypatch, tmp_path):
    """A cache of the test's own, so that nothing is remembered."""
    folder = tmp_path / "fresh-cache"
    monkeypatch.setenv("LEAT_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """60 PNGs of 12 x 10 in three folders."""
    folder = tmp_path_factory.mktemp("pictures")
    make_pictures(folder, 60)
    return folder


class Served:
    """A `leat bucket` over the folder that holds a dataset."""

    loaders = leat.Loader

    def __init__(self, bucket: leat.testing.Bucket, name: str) -> None:
        self.bucket = bucket
        self.url = f"s3://{name}"
        self.http_url = f"{bucket.url}/{name}"
        # Each read is one GET, which tests count, on a busy machine too.
        self.options = {"storage_options": {"endpoint_url": bucket.url, "no_sign_request": True, "no_hedge": True}}

    def loader(self, **options) -> leat.Loader:
        usual = {"shuffle": True, "batch": "dict", "output": "numpy"}
        return self.loaders(self.url, **{**usual, **self.options, **options})

    def counters(self) -> dict:
        return self.bucket.counters()

    def reset(self) -> None:
        self.bucket.reset_counters()


_served_before: set[str] = set()


@pytest.fixture
def serve():
    """serve(folder, latency="2ms", …): the folder as a bucket of its own name."""
    with contextlib.ExitStack() as stack:

        def start(folder, latency="2ms", **options) -> Served:
            while True:
                bucket = stack.enter_context(leat.testing.Bucket(folder.parent, latency=latency, **options))
                # Another's catalogue, of the same name at the same port, may be in the cache.
                if bucket.url not in _served_before:
                    _served_before.add(bucket.url)
                    return Served(bucket, folder.name)

        yield start


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Six shards of 13 MiB: a piece and a half each."""
    folder = tmp_path_factory.mktemp("large-shards")
    make_shards(folder, shards=6, samples=52, size=2**18)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Eight shards of 1.6 MB, a piece each."""
    folder = tmp_path_factory.mktemp("small-shards")
    make_shards(folder, shards=8, samples=32, size=50_000)
    return folder
