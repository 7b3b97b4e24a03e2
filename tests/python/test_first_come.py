"""The example of a parameter server: consumers take batches first come, first served, and each is done once."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import leat
from small_datasets import encoded, write

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "first_come.py"
N, BATCH, EPOCHS = 48, 4, 2
USUAL = {"batch_size": BATCH, "train": True, "seed": 2, "ids": True, "batch": "dict", "output": "numpy", "epochs": EPOCHS}


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("first_come", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pictures whose brightness is their class."""
    folder = tmp_path_factory.mktemp("first") / "pictures"
    for number in range(N):
        kind = number % 3
        write(folder / "abc"[kind] / f"{number:02}.png", encoded(np.full((4, 4, 3), 40 + 80 * kind, np.uint8)))
    return folder


def whole(folder) -> list[list[int]]:
    with leat.Loader(folder, **USUAL) as loader:
        return [batch["index"].tolist() for _ in range(EPOCHS) for batch in loader]


def test_the_quick_take_more_and_each_batch_is_done_once(example, folder):
    done: list[list[int]] = []
    taken = [0, 0, 0]
    with leat.Loader(folder, **USUAL) as loader:
        batches = example.FirstCome(loader, EPOCHS)

        def consume(number: int) -> None:
            while (step := batches.take()) is not None:
                taken[number] += 1
                time.sleep(0.001 + 0.05 * (number == 0))
                is_done = not (number == 1 and taken[1] == 3)
                if is_done:
                    done.append(step.batch["index"].tolist())
                batches.end(step, is_done=is_done)
                if not is_done:
                    return  # It dies with its third batch.

        consumers = [threading.Thread(target=consume, args=(number,)) for number in range(3)]
        for consumer in consumers:
            consumer.start()
        for consumer in consumers:
            consumer.join(60)

    assert sorted(done) == sorted(whole(folder)) and batches.is_done
    assert taken[2] > 2 * taken[0] and taken[1] == 3


@pytest.mark.parametrize("stop", [3, 11, 12, 17])
def test_a_run_that_ends_goes_on_with_the_batches_that_were_not_done(example, folder, stop):
    with leat.Loader(folder, **USUAL) as loader:
        batches = example.FirstCome(loader, EPOCHS)
        given = [batches.take() for _ in range(stop)]
        lost = given[-2:]  # Two consumers are at work on these.
        for step in given[:-2]:
            batches.end(step, is_done=True)
        state = json.loads(json.dumps(batches.state()))
    done = [step.batch["index"].tolist() for step in given[:-2]]

    with leat.Loader(folder, **USUAL) as loader:
        batches = example.FirstCome(loader, EPOCHS, state)
        while (step := batches.take()) is not None:
            done.append(step.batch["index"].tolist())
            batches.end(step, is_done=True)

    assert [step.batch["index"].tolist() for step in lost] == done[stop - 2 : stop]
    assert done == whole(folder) and len(json.dumps(state)) < 2048


def test_the_example_learns(folder):
    done = subprocess.run([sys.executable, str(EXAMPLE), str(folder), "3"], capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stderr
    losses = [float(line.rsplit(maxsplit=1)[1]) for line in done.stdout.splitlines()]
    assert len(losses) == 3 and losses[-1] < 0.9 * losses[0]
