"""Out of threads or of descriptors: less is done at once, or an error says what to raise."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from small_datasets import write

RUN = """
import resource, sys
import leat

url, endpoint, what, limit = sys.argv[1:]
kind = {"files": resource.RLIMIT_NOFILE, "threads": resource.RLIMIT_NPROC}[what]
resource.setrlimit(kind, (int(limit), int(limit)))
try:
    options = {"endpoint_url": endpoint, "no_sign_request": True} if endpoint else None
    with leat.Loader(url, batch_size=8, shuffle=False, threads=8, max_in_flight=32, storage_options=options, cache=leat.Cache(ram="1MiB"),
                     drop_last=False, epochs=1) as loader:
        print(sum(len(batch["data"].offsets) - 1 for batch in loader))
except leat.Error as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def data(tmp_path):
    for number in range(64):
        write(tmp_path / "data" / f"{number:02}", b"x" * 1000)
    return tmp_path / "data"


def run(data, endpoint, what, limit, tmp_path, **how) -> str:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "LEAT_CACHE_DIR": str(tmp_path / f"cache-{what}-{limit}")}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(data), endpoint, what, str(limit)],
        capture_output=True, text=True, timeout=120, env=environment, check=False, **how,
    )  # fmt: skip
    assert done.returncode == 0, (limit, done.returncode, done.stderr)
    return done.stdout.strip()


@pytest.mark.parametrize("where", ["folder", "bucket"])
def test_out_of_descriptors_is_no_abort(data, serve, tmp_path, where):
    served = serve(data)
    url, endpoint = (str(data), "") if where == "folder" else (served.url, served.bucket.url)
    told = {limit: run(url, endpoint, "files", limit, tmp_path) for limit in [4, 6, 8, 11, 14, 17, 20, 28, 64]}
    assert told[64] == "64"
    assert told[4] != "64"
    for limit, said in told.items():
        assert said == "64" or "Too many open files" in said or "ulimit -n" in said or "descriptors" in said, (limit, said)


@pytest.fixture
def anybodys():
    """A folder that another user can enter."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        path.chmod(0o755)
        yield path


def test_out_of_threads_is_no_abort(data, serve, anybodys):
    if os.geteuid() != 0:
        pytest.skip("the limit counts all processes of a user: root becomes one that has none")
    user = 54321
    tmp_path = anybodys
    served = serve(data)
    told = {}
    for limit in [1, 2, 4, 6, 9, 14, 40]:
        cache = tmp_path / f"cache-threads-{limit}"
        cache.mkdir(mode=0o700)
        shutil.chown(cache, user, user)
        told[limit] = run(served.url, served.bucket.url, "threads", limit, tmp_path, user=user, group=user)
    assert told[40] == "64"
    assert told[1] != "64"
    for limit, said in told.items():
        assert said == "64" or (said.startswith("ResourceExhausted") and "ulimit -u" in said), (limit, said)
