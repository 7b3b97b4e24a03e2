"""The example scripts, by one rank and by two of one node: the loss falls, and each
sample of an epoch is delivered once, but for what does not fill a training's step.
"""

from __future__ import annotations

import collections
import importlib.util
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch

import leat

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import digits  # noqa: E402
from small_datasets import tar_of, write  # noqa: E402

TRAIN, TEST = 1436, 359  # The second is prime.
WINDOWS = 90
EPOCHS = 4


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The digits, but two: torch's DistributedSampler then has nothing to repeat."""
    folder = digits.make(tmp_path_factory.mktemp("data"))
    train = sorted(folder.glob("train/*/*.png"))
    for path in train[TRAIN:]:
        path.unlink()
    write_labels(folder)
    write_shards(folder, folder.parent / "shards")
    write_corpus(folder.parent / "corpus")
    with leat.testing.Bucket(folder.parent, latency="2ms") as bucket:
        yield folder, bucket


def write_labels(folder) -> None:
    rows = [f"{path.relative_to(folder)},{path.parent.name},{int(path.stem) % 5}"
            for path in sorted(folder.glob("train/*/*.png"))]  # fmt: skip
    (folder / "labels.csv").write_text("\n".join(["path,class_id,writer", *rows]) + "\n")


def write_shards(folder, shards) -> None:
    paths = sorted(folder.glob("train/*/*.png"), key=lambda path: path.stem)
    for start in range(0, TRAIN, 400):
        members = []
        for path in paths[start : start + 400]:
            weight = json.dumps({"quality": {"weight": 1.0}})
            members += [(f"{path.stem}.png", path.read_bytes()),
                        (f"{path.stem}.cls", path.parent.name.encode()),
                        (f"{path.stem}.json", weight.encode())]  # fmt: skip
        write(shards / f"{start:05}.tar", tar_of(members))


def write_corpus(folder) -> None:
    """Windows of 65 tokens in two files: a walk whose next step is nearly always the same."""
    rng = np.random.default_rng(0)
    steps = np.where(rng.random(WINDOWS * 65) < 0.9, 3, 7)
    tokens = (np.cumsum(steps) % 256).astype("<u2")
    half = len(tokens) // 2
    write(folder / "a.bin", tokens[:half].tobytes())
    write(folder / "b.bin", tokens[half:].tobytes())


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Run:
    """The outputs and inputs of one program's processes."""

    def __init__(self, out: str, watched: pathlib.Path) -> None:
        self.losses = [float(x) for x in re.findall(r"epoch \d+: loss ([\d.]+)", out)]
        self.accuracies = [float(x) for x in re.findall(r"accuracy ([\d. ]+)", out) for x in x.split()]
        self._ids = collections.defaultdict(list)  # By source, loader, pass and process.
        for file in watched.glob("*.jsonl"):
            for line in map(json.loads, file.read_text().splitlines()):
                self._ids[line["source"], *line["number"], file.stem].extend(line["ids"])

    def passes(self, source: str) -> list[list[int]]:
        """The samples of all ranks of each pass over a source that ends so."""
        by_process = collections.defaultdict(list)
        for (name, *_, process), ids in sorted(self._ids.items()):
            if name.endswith(source):
                by_process[process].append(ids)
        assert len({len(passes) for passes in by_process.values()}) == 1, "ranks differ in passes"
        return [sum(of_ranks, []) for of_ranks in zip(*by_process.values())]

    def check_exactly_once(self, source: str, samples: int, passes: int) -> None:
        self.check_once(source, samples, passes, step=1)

    def check_once(self, source: str, samples: int, passes: int, step: int) -> None:
        """Samples that do not fill a step are left out; no sample comes
        twice."""
        found = self.passes(source)
        assert len(found) == passes
        for ids in found:
            assert len(set(ids)) == len(ids) == samples // step * step
            assert set(ids) <= set(range(samples))

    def check_learnt(self, epochs: int = EPOCHS) -> None:
        assert len(self.losses) == epochs
        assert self.losses[-1] < 0.7 * self.losses[0]


def environments(ranks: int):
    """torchrun's variables, for each rank of one node."""
    port = free_port()
    for rank in range(ranks):
        yield {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
            "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_PORT": str(port),
        }  # fmt: skip


def run_script(name, *arguments, each=({},), tmp_path, bucket, **environment) -> Run:
    """Runs an example once for each environment of `each`, all at once."""
    watched = tmp_path / "watched"
    watched.mkdir()
    path = os.pathsep.join(filter(None, [str(HERE / "watch"), os.environ.get("PYTHONPATH")]))
    shared = {**os.environ, **bucket.env(), "PYTHONPATH": path, "OMP_NUM_THREADS": "1",
              "LEAT_TEST_WATCH": str(watched), "GLOO_SOCKET_IFNAME": "lo", **environment}  # fmt: skip
    processes = [
        subprocess.Popen([sys.executable, str(EXAMPLES / name), *arguments], env={**shared, **own}, cwd=tmp_path,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        for own in each
    ]  # fmt: skip
    try:
        said = [process.communicate() for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:  # Lightning's has children of its own.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for process, (_, errors) in zip(processes, said):
        assert process.returncode == 0, errors
    return Run("".join(out for out, _ in said), watched)


def needs(*modules: str) -> None:
    """Skips without what only PyPI has."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: PyPI has it, Debian 12 does not")


RANKS = pytest.mark.parametrize("ranks", [1, 2])


@RANKS
def test_ddp(ranks, data, tmp_path):
    run = run_script("train_ddp.py", "s3://digits/train", each=environments(ranks),
                     tmp_path=tmp_path, bucket=data[1])  # fmt: skip

    run.check_learnt()
    run.check_once("train", TRAIN, passes=EPOCHS, step=64)


@RANKS
def test_validation_counts_each_sample_once(ranks, data, tmp_path):
    run = run_script("validate_ddp.py", "s3://digits", each=environments(ranks),
                     tmp_path=tmp_path, bucket=data[1])  # fmt: skip

    run.check_learnt(3)
    kept, padded = run.accuracies[0::2], run.accuracies[1::2]
    assert kept == padded and len(kept) == 3
    run.check_once("train", TRAIN, passes=3, step=64)
    run.check_exactly_once("test", TEST, passes=2 * 3)


@RANKS
def test_lightning_starts_its_own_processes(ranks, data, tmp_path):
    needs("pytorch_lightning")

    run = run_script("train_lightning.py", "s3://digits", str(ranks),
                     tmp_path=tmp_path, bucket=data[1])  # fmt: skip

    run.check_learnt()
    run.check_once("train", TRAIN, passes=EPOCHS, step=64)


@RANKS
def test_hugging_face(ranks, data, tmp_path):
    needs("transformers", "accelerate")

    run = run_script("train_hf.py", "s3://digits", each=environments(ranks),
                     tmp_path=tmp_path, bucket=data[1])  # fmt: skip

    run.check_learnt()
    assert run.accuracies[0] > 0.7
    run.check_once("train", TRAIN, passes=EPOCHS, step=16 * ranks)
    run.check_exactly_once("test", TEST, passes=1)


@RANKS
def test_a_dataset_of_ones_own(ranks, data, tmp_path):
    run = run_script("train_own_dataset.py", str(data[0] / "train"), each=environments(ranks),
                     tmp_path=tmp_path, bucket=data[1], LEAT_TEST_WATCH_DROPIN="1")  # fmt: skip

    run.check_learnt()
    run.check_exactly_once("drop-in", TRAIN, passes=EPOCHS)


@RANKS
def test_labels_from_a_csv(ranks, data, tmp_path):
    rows = (data[0] / "labels.csv").read_text().splitlines()[1:]

    run = run_script("train_csv.py", "s3://digits/labels.csv", each=environments(ranks),
                     tmp_path=tmp_path, bucket=data[1])  # fmt: skip

    run.check_learnt()
    run.check_once("", sum(not row.endswith(",3") for row in rows), passes=EPOCHS, step=64)


@RANKS
def test_webdataset_with_classes_and_json(ranks, data, tmp_path):
    run = run_script("train_webdataset.py", "s3://shards", each=environments(ranks),
                     tmp_path=tmp_path, bucket=data[1])  # fmt: skip

    run.check_learnt()
    run.check_once("shards", TRAIN, passes=EPOCHS, step=64)


@RANKS
@pytest.mark.skipif(not hasattr(torch, "uint16"), reason="torch is older than 2.3: no uint16")
def test_windows_of_tokens(ranks, data, tmp_path):
    run = run_script("train_tokens.py", "s3://corpus", each=environments(ranks),
                     tmp_path=tmp_path, bucket=data[1])  # fmt: skip

    run.check_learnt()
    run.check_once("corpus", WINDOWS, passes=EPOCHS, step=16)


def test_scripts_are_short():
    scripts = [path for path in EXAMPLES.glob("*.py") if f'"{path.name}"' in pathlib.Path(__file__).read_text()]

    assert len(scripts) == 8
    assert {path.name: len(path.read_text().splitlines()) for path in scripts
            if len(path.read_text().splitlines()) > 60} == {}  # fmt: skip
