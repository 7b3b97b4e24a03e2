"""When a catalogue that is there is made anew, and whose it is."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

import leat
from small_datasets import write

DAY = 86_400


def age(path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


@pytest.fixture
def folder(tmp_path, fresh_cache):
    for number in range(3):
        write(tmp_path / "data" / f"{number}.bin", b"x")
    return tmp_path / "data"


def test_a_cached_catalogue_that_is_too_old(folder, fresh_cache):
    assert len(leat.Dataset(folder)) == 3
    write(folder / "3.bin", b"x")

    assert len(leat.Dataset(folder, refresh="if-older-than:1d")) == 3
    (cached,) = fresh_cache.glob("catalogues/*.leatcat")
    age(cached, 1.1 * DAY)
    assert len(leat.Dataset(folder)) == 3
    assert len(leat.Dataset(folder, refresh="if-older-than:2d")) == 3
    assert len(leat.Dataset(folder, refresh="if-older-than:1d")) == 4


def test_a_published_catalogue_that_is_too_old(folder, serve):
    """Its age is told by the bucket."""
    subprocess.run(["leat", "index", str(folder), "--publish"], check=True, capture_output=True)
    write(folder / "3.bin", b"x")
    age(folder / ".leat" / "catalogue", 10 * DAY)
    served = serve(folder)

    def samples(refresh: str) -> int:
        served.reset()
        return len(leat.Dataset(served.url, refresh=refresh, **served.options))

    assert samples("never") == 3
    assert samples("if-older-than:11d") == 3 and served.counters()["list"] == 0
    assert samples("if-older-than:9d") == 4 and served.counters()["list"] == 1
    # The one just made is younger.
    assert samples("if-older-than:9d") == 4 and served.counters()["list"] == 0


@pytest.mark.parametrize("refresh", ["sometimes", "if-older-than:", "if-older-than:1", "if-older-than:999ms"])
def test_what_it_may_be(folder, refresh):
    with pytest.raises(leat.InvalidArgument, match="if-older-than:AGE"):
        leat.Dataset(folder, refresh=refresh)
    told = subprocess.run(["leat", "index", str(folder), f"--refresh={refresh}"],
                          capture_output=True, text=True)
    assert told.returncode != 0 and "refresh" in told.stderr
