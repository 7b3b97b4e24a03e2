"""The everyday scripts of examples/tasks: each is short, runs as it stands, and prints what it should."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest

import leat
import task_data
import torch_programs

TASKS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "tasks"
MOST_LINES = 25

SAYS = {
    "captions": r"16 images, 16 captions such as 'a photograph of a (ant|bee|cat)'",
    "classify_photos": r"epoch 2: loss \d\.\d+",
    "collate_oneself": r"\d photographs in one tensor: 4 dimensions",
    "depth_maps": r"uint16, True",
    "detection": r"4 targets, boxes torch.float32, all inside: True",
    "half_precision": r"torch.bfloat16, loss \d+\.\d+",
    "hold_out": r"(\d+) of \1 held out, \d+ to train",
    "hugging_face_trainer": r"loss [01]\.\d+",
    "image_and_mask_together": r"black where the mask is 0: True",
    "keep_in_a_cache": r"GETs an epoch: \[85, 0, 0\]",
    "language_model": r"loss [0-4]\.\d+",
    "look_at_a_batch": r"image torch.float32 \(4, 3, 32, 32\) True\n(.*\n)*21 batches, classes \['ant', 'bee', 'cat'\]",
    "mixup": r"labels \(16, 3\), each adds up to 1\.0",
    "multi_label": r"tags \(16, 3\) torch.float32, loss \d+\.\d+",
    "one_at_a_time": r"85 photographs of 35 sizes, the first \(1, 3, 40, 48\)",
    "overlapping_windows": r"156 windows apart, 311 by halves, as they lie: True",
    "own_dataset": r"11 photographs",
    "own_function": r"same pixels: True",
    "packed_documents": r"\(4, 128, 16\), up to [2-9] documents a window, a loss within each: True",
    "parquet_with_bytes": r"60 rows, classes \['ant', 'bee', 'cat'\], loss [01]\.\d+",
    "part_of_a_folder": r"40 40 20 57",
    "predict_all": r"31 photographs, first .*ant/0000\.jpg",
    "rand_augment": r"torch.float32 \(16, 3, 32, 32\)",
    "regress_a_number": r"ages torch.float64, mean 4\.20",
    "resume_exactly": r"same order: True",
    "samplers_of_torch": r"20 of a subset, 40 by weight",
    "segmentation": r"masks \(8, 32, 32\) torch.int64, (9\d|100)% of pixels right",
    "shards_of_webdataset": r"48 of 60, classes torch.int64",
    "size_buckets": r"padding: 7% without buckets, 3% with them",
    "speech": r"torch.float32, 5 recordings, [2-5] lengths",
    "two_classes": r"57 of 85: \['ant', 'cat'\]",
    "mix_datasets": r"\{'day': 300, 'night': 100\} of \['ant', 'bee', 'cat', 'dog'\]",
    "rows_of_documents": r"\d+ rows, \d+% padding, loss \d\.\d",
    "two_folders": r"105 of \['ant', 'bee', 'cat', 'dog'\]",
    "two_views": r"two views of 16, all different: True",
    "unequal_sizes": r"8 photographs of \d sizes",
    "weighted_sampling": r"there are \[ 5 28 28\], drawn \[[ \d]+\]",
    "where_it_waits": r"80 samples, waited mostly for \w+; 8\d GETs",
}
"""By script: the whole of what it prints, as a regular expression."""

OF_TWO_RANKS = {
    "train_ddp": r"epoch 0: 5 steps\nepoch 1: 5 steps",
    "validate_ddp": r"31 of 31 right",
}
"""The same for those that torchrun starts, of both ranks together."""


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    root = tmp_path_factory.mktemp("tasks")
    task_data.make(root / "data")
    with leat.testing.Bucket(root, latency="2ms") as served:
        yield served


@pytest.fixture(scope="module")
def with_torch():
    """Starts scripts that import torch."""
    with contextlib.closing(torch_programs.Server("torch")) as server:
        yield server


def start(name: str, *arguments: str, bucket, folder: pathlib.Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(TASKS / f"{name}.py"), *arguments], cwd=folder, text=True,
        env=environment_of(bucket, folder, **environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def environment_of(bucket, folder: pathlib.Path, **more: str) -> dict[str, str]:
    return {**os.environ, **bucket.env(), "LEAT_CACHE_DIR": str(folder / "catalogues"), **more}


def said_by(*running: subprocess.Popen[str] | torch_programs.Program) -> str:
    """All that they printed, once all have ended well."""
    printed = [process.communicate() for process in running]
    for process, (_, errors) in zip(running, printed):
        assert process.returncode == 0, errors
    return "".join(out for out, _ in printed).strip()


def test_each_script_is_run_and_short():
    names = {path.stem for path in TASKS.glob("*.py")}
    assert names == {*SAYS, *OF_TWO_RANKS, "lightning_resume"}
    for name in names:
        lines = (TASKS / f"{name}.py").read_text().splitlines()
        assert len(lines) <= MOST_LINES, f"{name}.py has {len(lines)} lines"


@pytest.mark.parametrize("name", sorted(SAYS))
def test_a_script_of_one_process(name, bucket, with_torch, tmp_path):
    script = TASKS / f"{name}.py"
    if re.search("^(import|from) torch", script.read_text(), re.MULTILINE):  # Others are to do without.
        said = said_by(with_torch.start(str(script), cwd=tmp_path, env=environment_of(bucket, tmp_path)))
    else:
        said = said_by(start(name, bucket=bucket, folder=tmp_path))

    assert re.search(rf"^{SAYS[name]}$", said, re.MULTILINE), said


@pytest.mark.parametrize("name", sorted(OF_TWO_RANKS))
def test_a_script_of_two_ranks(name, bucket, tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    place = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}

    said = said_by(*[
        start(name, bucket=bucket, folder=tmp_path, RANK=rank, LOCAL_RANK=rank, **place) for rank in "01"
    ])  # fmt: skip

    assert re.fullmatch(OF_TWO_RANKS[name], said), said


def test_lightning_goes_on_where_its_checkpoint_was_saved(bucket, tmp_path):
    pytest.importorskip("pytorch_lightning")

    with contextlib.closing(torch_programs.Server("pytorch_lightning")) as server:

        def run(*arguments: str) -> str:
            words = [str(TASKS / "lightning_resume.py"), *arguments]
            return said_by(server.start(*words, cwd=tmp_path, env=environment_of(bucket, tmp_path)))

        first = run("4")
        then = run("7", "last.ckpt")

    assert "step 4, delivered 32" in first
    assert "step 7, delivered 56" in then
