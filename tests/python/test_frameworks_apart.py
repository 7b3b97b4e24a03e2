"""Loader.to_tf and Loader.to_jax, with the frameworks themselves, each in a process of its own."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

import leat
from small_datasets import encoded, make_pictures, pixels, write

APART = pathlib.Path(sys.prefix) / "frameworks"
POSITIONS = [8, 16, 24, 32, 40, 48, 0]  # Behind the last step of an epoch, the next one begins.
PROGRAM = pathlib.Path(__file__).parent / "frameworks_apart.py"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("frameworks")
    make_pictures(folder / "pictures", 60)
    for number in range(7):
        write(folder / "uneven" / f"{number}.png", encoded(pixels(number, 9 + number, 14 - number)))
    return folder / "pictures"


def run(what: str, data: pathlib.Path, package: str, **environment: str) -> dict:
    """The object that the program prints. Skips the test if the package is not there."""
    if not (APART / package).is_dir():
        pytest.skip(f"{package} is not there: pip install --target .venv/frameworks -r tools/frameworks-requirements.txt")
    # Behind everything else: they bring a NumPy of their own.
    code = f"import runpy, sys; sys.path.append({str(APART)!r}); sys.argv[:] = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, str(PROGRAM), what, str(data)], capture_output=True, text=True, check=False, timeout=280,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_tf_data_dataset_has_the_loaders_batches(data):
    told = run("tf", data, "tensorflow")

    assert told["spec"] == [
        "TensorSpec(shape=(8, 10, 12, 3), dtype=tf.uint8, name=None)", "TensorSpec(shape=(8,), dtype=tf.int64, name=None)",
        "TensorSpec(shape=(8,), dtype=tf.int64, name=None)",
    ]  # fmt: skip
    assert told["epochs"] == [True, True], "each iteration is the next epoch, in the loader's order"
    assert told["positions"] == POSITIONS * 2, "nothing is read ahead of the program"
    assert told["resumed"]
    assert told["is_aligned"] == [True] * 7 and told["is_copied"] == [False] * 7
    assert told["ragged_spec"]["name"] == "TensorSpec(shape=(None,), dtype=tf.string, name=None)"
    assert told["ragged_spec"]["raw"].startswith("RaggedTensorSpec(TensorShape([None, None]), tf.uint8, 1, tf.int64)")
    assert told["ragged"] and told["names"] and told["pictures"]
    assert told["padded"][0] != told["padded"][1] and told["alone"][0] != told["alone"][1]
    assert "collate=" in told["collated"]


@pytest.mark.parametrize(("what", "backend"), [("keras", "tensorflow"), ("keras", "jax"), ("keras_torch", "torch")])
def test_keras_fits_a_loader(data, what, backend):
    if backend == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    told = run(what, data, "keras", KERAS_BACKEND=backend)

    assert told["backend"] == backend and told["length"] == 7
    assert told["steps"] == [*range(7)] * 3
    assert told["losses"][2] < told["losses"][0]


def test_global_arrays_of_jax_lie_on_all_devices(data):
    told = run("jax", data, "jax", XLA_FLAGS="--xla_force_host_platform_device_count=4", JAX_PLATFORMS="cpu")

    assert told["devices"] == 4 and told["length"] == [7, 7]
    assert told["same"] == [True] * 7 and told["mean"]
    assert told["spread"] == [[4, 4, 4, True, True, True]] * 7 and told["rows"] == [2, 2, 2, 2]
    assert told["positions"] == POSITIONS
    assert told["by_field"] == [True, True]
    assert "sharding= has none for the field 'label'" in told["no_sharding"]
    assert "values of unequal length or shape" in told["ragged"]
    assert "rank 0 of 2 to the loader" in told["ranks"]
    assert "need 64 bits" in told["long"]
    long = told["64 bits"]
    assert "'tokens' has numbers that need 64 bits" in long["int64"] and "need 64 bits" in long["uint64"]
    assert long["float64"] is True and long["int64 of 32 bits"] is True
    (warning,) = long["warnings"]
    assert "'tokens' is float64, and jax makes float32 of its numbers" in warning


def test_what_is_missing_is_said(pictures, monkeypatch):
    for name in ("tensorflow", "jax"):
        monkeypatch.setitem(sys.modules, name, None)
    with leat.Loader(pictures, batch_size=8, train=True, output="numpy") as loader:
        with pytest.raises(leat.InvalidArgument, match="pip install tensorflow"):
            loader.to_tf()
        with pytest.raises(leat.InvalidArgument, match="pip install jax"):
            loader.to_jax(None)
