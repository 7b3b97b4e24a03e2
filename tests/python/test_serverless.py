"""A cloud function: 512 MB, a root that nobody can write, no home; and the slim wheel for it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

import leat
from cgroups import limited
from leat import ops
from small_datasets import make_pictures, write

ROOT = pathlib.Path(__file__).resolve().parents[2]
for folder in ("bench", "tools", "examples/function"):
    sys.path.insert(0, str(ROOT / folder))

import function_api  # noqa: E402
import pack_wheel  # noqa: E402

MEMORY = 512 * 10**6
PARTS = 3


@pytest.fixture(scope="module")
def pictures_of_classes(tmp_path_factory):
    """130 PNGs in three folders, so that no part divides by the batch."""
    root = tmp_path_factory.mktemp("served")
    make_pictures(root / "pictures", 130)
    return root / "pictures"


@pytest.fixture
def functions(tmp_path):
    """functions(bucket): starts the example's handler, in a place and with the memory of a function."""
    for why in (function_api.why_no_client(), function_api.why_no_place()):
        if why:
            pytest.skip(why)
    (tmp_path / "tmp").mkdir()
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(limited(2, MEMORY))

        def start(bucket):
            api = stack.enter_context(function_api.RuntimeApi())
            function = function_api.Function(
                api, ROOT / "examples/function", "handler.handler", tmp_path / "tmp", variables=bucket.env(),
                before=group.enter_command() if group else "true",
            )  # fmt: skip
            stack.callback(function.end)
            return function

        yield start
        assert group is None or group.out_of_memory_kills() == 0


def event(rank: int) -> dict:
    return {"url": "s3://pictures", "rank": rank, "world_size": PARTS}


def whole(folder: pathlib.Path) -> dict:
    """The sum of the parts by another way: all pictures in this process."""
    with leat.Loader(folder, batch_size=130, train=False, fields=("image", "label"), epochs=1, output="numpy",
                     ops=[ops.DecodeImage(), ops.Resize((64, 64))]) as loader:  # fmt: skip
        (images, labels), = loader
        content = loader.stats()[0]["content_hash"]
    values = images / 255
    return {"counts": np.bincount(labels).tolist(), "sums": values.sum(axis=(0, 2, 3)),
            "squares": (values**2).sum(axis=(0, 2, 3)), "content": int(content, 16)}  # fmt: skip


def test_parts_that_functions_read_add_up_to_the_whole(pictures_of_classes, serve, functions, tmp_path):
    served = serve(pictures_of_classes)
    function = functions(served.bucket)

    answers = [function.api.invoke(event(rank)) for rank in range(PARTS)]
    expected = whole(pictures_of_classes)

    assert [sum(answer["counts"][name] for answer in answers) for name in leat.Dataset(pictures_of_classes).classes] == expected["counts"]
    assert sum(answer["pixels"] for answer in answers) == 130 * 64 * 64
    for name in ("sums", "squares"):
        assert np.sum([answer[name] for answer in answers], axis=0) == pytest.approx(expected[name], rel=1e-5)
    assert sum(int(answer["content_hash"], 16) for answer in answers) % 2**128 == expected["content"]
    assert served.counters()["repeated_keys"] == 0
    assert function.most_resident_bytes() < MEMORY

    # The next function of this place finds the catalogue in /tmp, where the first one put it.
    kept = list((tmp_path / "tmp").glob("leat-*/catalogues/*.leatcat"))
    assert len(kept) == 1 and kept[0].parents[1].stat().st_mode & 0o777 == 0o700
    before = kept[0].stat()
    another = functions(served.bucket)
    assert another.api.invoke(event(0)) == answers[0]
    assert kept[0].stat().st_ino == before.st_ino, "it was not made again"


def test_a_function_says_where_it_keeps_catalogues(pictures_of_classes, serve, functions):
    function = functions(serve(pictures_of_classes).bucket)
    function.api.invoke(event(0))

    assert "this function has no home: catalogues are kept in /tmp/leat-0; LEAT_CACHE_DIR names another" in function.end()


def test_a_function_can_write_in_its_own_tmp_alone(functions, tmp_path):
    touched = {
        path: subprocess.run(function_api.place(tmp_path / "tmp", ["touch", path]), capture_output=True, check=False).returncode == 0
        for path in ("/tmp/file", "/file", "/dev/shm/file", str(ROOT / "file"))
    }  # fmt: skip

    assert touched == {path: path == "/tmp/file" for path in touched}
    assert (tmp_path / "tmp/file").exists()


def test_a_function_that_fails_says_why_and_serves_the_next(pictures_of_classes, serve, functions):
    function = functions(serve(pictures_of_classes).bucket)

    with pytest.raises(function_api.FunctionFailed, match="s3://nowhere") as told:
        function.api.invoke({**event(0), "url": "s3://nowhere"})
    assert told.value.kind == "NotFound"
    assert function.api.invoke(event(1))["pixels"] > 0


# --- the catalogue, and its word in the log ----------------------------------------

OPEN = """
import logging, sys, leat
logging.basicConfig(level=logging.INFO, format="%(message)s")
print(len(leat.Dataset(sys.argv[1])))
"""


def test_where_the_home_cannot_be_written_the_log_says_where_catalogues_are(pictures_of_classes, tmp_path):
    in_the_way = write(tmp_path / "file", b"")  # Not even root makes a folder in it.
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(pictures_of_classes)], capture_output=True, text=True, check=True,
        env={**{name: value for name, value in os.environ.items() if name not in ("LEAT_CACHE_DIR", "XDG_CACHE_HOME")},
             "HOME": str(in_the_way), "TMPDIR": str(tmp_path)},
    )  # fmt: skip

    (kept,) = tmp_path.glob("leat-*/catalogues/*.leatcat")
    assert done.stdout.split() == ["130"]
    assert f"{in_the_way}/.cache/leat cannot be written: catalogues are kept in {kept.parents[1]}" in done.stderr


# --- the slim wheel ------------------------------------------------------------------


def fake_build(folder: pathlib.Path) -> pathlib.Path:
    write(folder / "python/leat/_native.cpython-311-x86_64-linux-gnu.so", b"the module")
    write(folder / "bin/leat", b"the command")
    return folder


@pytest.mark.parametrize("slim", [True, False])
def test_the_slim_wheel_leaves_out_the_command_alone(slim, tmp_path):
    (tmp_path / "stage").mkdir()
    pack_wheel.stage_files(fake_build(tmp_path / "build"), ".cpython-311-x86_64-linux-gnu.so", tmp_path / "stage", slim=slim)

    assert (tmp_path / "stage/leat/bin/leat").exists() != slim
    staged = {path.relative_to(tmp_path / "stage/leat") for path in (tmp_path / "stage/leat").rglob("*.py")}
    assert staged == {path.relative_to(ROOT / "python/leat") for path in (ROOT / "python/leat").rglob("*.py")}


def test_the_slim_wheels_version_tells_it_from_the_whole_one(tmp_path):
    write(tmp_path / "leat-0.1.0.dist-info/METADATA", b"Metadata-Version: 2.2\nName: leat\nVersion: 0.1.0\n\nVersion: 0.1.0\n")

    name = pack_wheel.add_local_version(tmp_path, "leat-0.1.0.dist-info")

    assert name == "leat-0.1.0+slim.dist-info"
    assert (tmp_path / name / "METADATA").read_text().splitlines()[2:] == ["Version: 0.1.0+slim", "", "Version: 0.1.0"]


def test_what_the_slim_wheel_lacks_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(metadata, "version", lambda name: "0.1.0+slim")
    monkeypatch.setattr(leat.testing, "__file__", str(tmp_path / "testing.py"))
    monkeypatch.delenv("LEAT_BINARY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(FileNotFoundError, match=r"leat 0\.1\.0\+slim is the slim wheel, which has no command; install the whole wheel"):
        leat.testing.Bucket(tmp_path).__enter__()
