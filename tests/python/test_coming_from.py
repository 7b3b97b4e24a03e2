"""Ten tasks, each as Leat, PyTorch, LitData and Streaming would have it (docs/coming-from/tasks):
all are run, and all deliver the same samples.
"""

from __future__ import annotations

import collections
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import zlib

import numpy as np
import pytest

import leat

pytest.importorskip("torch", reason="the tasks train with torch")

import coming_from_data as data  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TASKS = data.TASKS
PEERS = pathlib.Path(sys.prefix) / "peers"
ORACLE = pathlib.Path(sys.prefix) / "oracle"
LIBRARIES = {"leat": "leat", "torch": "s3torchconnector", "litdata": "litdata", "streaming": "streaming"}
"""Each with the module that its scripts need."""
CLASS_OF = [number % 3 for number in range(216)]


class Runner:
    """A process that has libraries imported and runs scripts in forks of itself."""

    def __init__(self, libraries: list[str]) -> None:
        paths = [str(TASKS), str(pathlib.Path(__file__).parent)]
        if libraries != ["leat"]:
            paths += [str(PEERS), str(ORACLE)]
        paths += [path for path in (os.environ.get("PYTHONPATH"),) if path]
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/python/coming_from_runner.py"), *libraries],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, path: pathlib.Path, folder: pathlib.Path, environments: list[dict]) -> list[str]:
        """Runs it at once with each of these; the lines that all printed, once all have ended well."""
        folder.mkdir(exist_ok=True)
        jobs = [
            {"path": str(path), "folder": str(folder), "environment": environment,
             "printed": f"{path.stem}.{rank}.out", "errors": f"{path.stem}.{rank}.err"}
            for rank, environment in enumerate(environments)
        ]  # fmt: skip
        print(json.dumps(jobs), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer, "the runner has ended"
        for job, status in zip(jobs, json.loads(answer)):
            assert status == 0, f"{path} ended with {status}\n{(folder / job['errors']).read_text()}"
        return [line for job in jobs for line in (folder / job["printed"]).read_text().splitlines()]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(30)


def missing(library: str) -> str | None:
    """A package that its scripts need and that is not there."""
    needed = () if library == "leat" else ((LIBRARIES[library], PEERS), ("torchvision", ORACLE))
    for module, apart in needed:
        if not (apart / module).is_dir() and importlib.util.find_spec(module) is None:
            return module
    return None


@pytest.fixture(scope="module")
def runners():
    """By library. Leat has a process of its own; the others, which import for seconds, share one."""
    others = [library for library in LIBRARIES if library != "leat" and missing(library) is None]
    started = [(group, Runner(group)) for group in (["leat"], others) if group]
    yield {library: runner for group, runner in started for library in group}
    for _, runner in started:
        runner.close()


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coming-from")
    data.make(folder)
    return folder


class Place:
    """A bucket and a folder for one task by one library."""

    def __init__(self, runner: Runner, library: str, bucket, folder: pathlib.Path) -> None:
        self.runner = runner
        self.loader = library
        self.folder = folder
        self.environment = {
            **bucket.env(), "S3_ENDPOINT_URL": bucket.url, "HOME": str(folder), "TMPDIR": str(folder),
            "LEAT_CACHE_DIR": str(folder / "catalogues"), "LITDATA_CACHE_DIR": str(folder / "chunks"),
        }  # fmt: skip

    def convert(self, task: str) -> None:
        path = TASKS / task / f"convert_for_{self.loader}.py"
        if path.exists():
            self.runner.run(path, self.folder / "work", [self.environment])

    def deliver(self, task: str, *environments: dict) -> list[dict]:
        """All that its script handed to the model: one after another, where it is run with several."""
        several = [{**self.environment, **more} for more in environments or ({},)]
        self.printed = self.runner.run(TASKS / task / f"with_{self.loader}.py", self.folder / "work", several)
        return [json.loads(line) for line in self.printed if line.startswith("{")]


@pytest.fixture(params=LIBRARIES)
def place(request, runners, datasets, tmp_path):
    library = request.param
    if library not in runners:
        pytest.skip(f"{missing(library)} is not installed: see tools/peer-requirements.txt, tools/oracle-requirements.txt")
    shutil.copytree(datasets, tmp_path / "served" / "data", copy_function=os.link)
    with leat.testing.Bucket(tmp_path / "served", latency="1ms") as bucket:
        yield Place(runners[library], library, bucket, tmp_path)


def numbers(samples: list[dict]) -> list[int]:
    return [sample["photo"] for sample in samples]


def labels(samples: list[dict]) -> list[int]:
    return [sample["with"][0] for sample in samples]


def test_class_folders(place):
    place.convert("class_folders")
    samples = place.deliver("class_folders")

    first, second = (numbers(samples[start : start + data.PHOTOS]) for start in (0, data.PHOTOS))
    assert sorted(first) == sorted(second) == list(range(data.PHOTOS))
    assert first != second != sorted(second)
    assert labels(samples) == [CLASS_OF[number] for number in first + second]
    assert {(*sample["shape"], sample["dtype"]) for sample in samples} == {(3, 32, 32, "torch.float32")}


def test_image_and_mask(place):
    place.convert("image_and_mask")
    samples = place.deliver("image_and_mask")

    assert sorted(numbers(samples)) == list(range(data.PAIRS))
    assert numbers(samples) != sorted(numbers(samples))
    assert {(*sample["shape"], sample["dtype"]) for sample in samples} == {(3, 32, 32, "torch.float32")}
    for sample in samples:
        assert sample["with"][0]["fits"] > 0.95
        assert set(sample["with"][0]["classes"]) <= {0, 1 + CLASS_OF[sample["photo"]]}


def test_unequal_sizes(place):
    place.convert("unequal_sizes")
    samples = place.deliver("unequal_sizes")

    assert sorted(numbers(samples)) == list(range(data.WILD))
    assert numbers(samples) != sorted(numbers(samples))
    assert labels(samples) == [CLASS_OF[number] for number in numbers(samples)]
    assert [sample["shape"] for sample in samples] == [
        [3, *data.size_in_the_wild(number)] for number in numbers(samples)
    ]  # fmt: skip


def test_weighted_sampling(place):
    place.convert("weighted_sampling")
    samples = place.deliver("weighted_sampling")

    drawn = collections.Counter(labels(samples))
    assert drawn.total() == 480
    assert all(100 < drawn[kind] < 220 for kind in range(3))  # 160 are meant; by chance ±60 in 1 of 10**8.
    assert {(kind, number) for kind, number in zip(labels(samples), numbers(samples))} <= {
        (int(np.searchsorted(np.cumsum(data.RARE), number, side="right")), number) for number in range(sum(data.RARE))
    }  # fmt: skip


def test_mixed_datasets(place):
    place.convert("mixed_datasets")
    samples = place.deliver("mixed_datasets")

    by_night = [number >= data.NIGHT_FROM for number in numbers(samples)]
    assert len(samples) >= 48
    assert 0.65 < np.mean(by_night) < 1  # 0.9 is meant; in both as they lie it is 0.43.
    assert {label for label, night in zip(labels(samples), by_night) if night} == {2, 3}
    assert {label for label, night in zip(labels(samples), by_night) if not night} == {0, 1, 2}


def test_token_windows(place):
    place.convert("token_windows")
    windows = place.deliver("token_windows")

    tokens = data.tokens().astype(np.int64)
    meant = {int(tokens[start]): zlib.crc32(tokens[start + 1 : start + data.TOKENS])
             for start in range(0, data.WINDOWS * data.TOKENS, data.TOKENS)}  # fmt: skip
    assert len(windows) == data.WINDOWS
    assert {window["first"]: window["crc"] for window in windows} == meant
    assert [window["first"] for window in windows] != list(meant)


def test_resume(place):
    place.convert("resume")
    before = place.deliver("resume", {"PREEMPTED_AFTER_STEPS": "4"})
    samples = before + place.deliver("resume")

    assert len(before) == 32
    assert sorted(numbers(samples)) == list(range(data.PHOTOS))
    assert numbers(samples) != sorted(numbers(samples))
    assert labels(samples) == [CLASS_OF[number] for number in numbers(samples)]


def test_validate_two_ranks(place):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    world = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}

    place.convert("validate_two_ranks")
    samples = place.deliver("validate_two_ranks", *({**world, "RANK": rank, "LOCAL_RANK": rank} for rank in "01"))

    right = sum(CLASS_OF[number] == 0 for number in range(data.VAL))
    assert set(numbers(samples)) == set(range(data.VAL))
    assert place.printed.count(f"{right} right of {data.VAL}") == 2
    # Streaming gives ranks equal shares by repeating samples, which its script has to sort out.
    assert (len(samples) > data.VAL) == (place.loader == "streaming")


def test_captions(place):
    place.convert("captions")
    samples = place.deliver("captions")

    assert sorted(numbers(samples)) == list(range(data.PHOTOS))
    assert numbers(samples) != sorted(numbers(samples))
    assert labels(samples) == [data.caption_of(number) for number in numbers(samples)]
    assert {tuple(sample["shape"]) for sample in samples} == {(3, 32, 32)}


def test_own_transform(place):
    place.convert("own_transform")
    samples = place.deliver("own_transform")

    assert sorted(numbers(samples)) == list(range(data.PHOTOS))
    assert numbers(samples) != sorted(numbers(samples))
    assert labels(samples) == [CLASS_OF[number] for number in numbers(samples)]
    assert {(*sample["shape"], sample["dtype"], sample["corner"]) for sample in samples} == {
        (3, *data.SIDE, "torch.float32", 0)
    }
