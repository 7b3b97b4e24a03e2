"""The bench for a card: on a device that sleeps, and the parts of it that need no card."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import gpu_bench  # noqa: E402
import gpu_devices  # noqa: E402
import leat  # noqa: E402
from gpu_devices import Copies, Fake, Held, Measured, Nvml, copies_of, hidden_share  # noqa: E402

STEP = 0.05


def batches(count: int, size: int = 8) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.zeros((size, 1000), np.float32), np.full(size, number)) for number in range(count)]


def test_the_whole_bench_on_a_device_that_sleeps():
    done = subprocess.run(
        [sys.executable, str(BENCH / "run.py"), "gpu", "--fake", "--quick", "--json"], capture_output=True, text=True,
        check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    rows = {(row["training"], row["way"]): row for row in json.loads(done.stdout)["rows"]}
    assert {way for _, way in rows} == {"the step alone", "files", "bucket"} and len(rows) == 6
    for (training, way), row in rows.items():
        if way == "the step alone":  # 8 samples in 20 ms, and late by what a busy machine makes it.
            assert 100 < float(row["samples_per_s"]) < 420
            continue
        busy, of_roofline = (float(row[key].split(" ± ")[0]) for key in ("busy", "of_roofline"))
        assert 0.05 < busy <= 1.01 and of_roofline > 0.05, row
        assert row["hidden"].endswith("%") and row["pinned"] == ""
        gets = 0 if way == "files" else float(row["gets"].split(" ± ")[0])
        assert gets >= {"files": 0, "bucket": 48 if training == "resnet50" else 1}[way]


def test_steps_run_one_after_another_and_hold_the_loop_back():
    device = Fake({"gpt": STEP})
    begin = time.perf_counter()
    device.begin("gpt")
    given = []
    for batch in batches(6):
        device.step(batch)
        given.append(time.perf_counter() - begin)
    busy, checksum = device.finish()
    took = time.perf_counter() - begin

    assert busy == pytest.approx(6 * STEP) and took >= 6 * STEP
    assert checksum == 8 * sum(range(6))
    assert given[5] >= 3 * STEP, "the sixth waits until the third is done"
    assert given[gpu_devices.AHEAD] < given[5] - STEP, "the first are taken at once"


def test_a_device_that_waits_for_batches_is_not_busy():
    def slowly():
        for batch in batches(6):
            time.sleep(3 * STEP)
            yield batch

    told = Fake({"gpt": STEP}).train("gpt", slowly())

    assert told.samples == 48
    full = Fake({"gpt": STEP}).train("gpt", batches(6))
    assert told.busy < 0.5 < full.busy
    assert told.sampled is not None and full.sampled is not None and told.sampled < full.sampled


def test_copies_are_hidden_behind_steps_but_the_first():
    slow = Fake({"gpt": STEP}, bandwidth=batches(1)[0][0].nbytes / (STEP / 2))  # A copy takes half a step.

    hidden = slow.trace("gpt", batches(10), 8).hidden
    assert hidden is not None and 0.5 < hidden < 0.9  # Seven of eight, on a machine with time.
    assert Fake({"gpt": STEP}).trace("gpt", [Held(batch) for batch in batches(2)], 2) == Copies(None, None)


def test_the_share_of_copies_in_which_a_step_ran():
    assert hidden_share([], [(0, 1)]) is None
    assert hidden_share([(0, 2)], []) == 0
    assert hidden_share([(0, 2), (4, 6)], [(1, 3), (2, 5)]) == pytest.approx(0.5)


def test_what_torchs_profiler_says_of_a_card():
    told = copies_of([
        ("Memcpy HtoD (Pinned -> Device)", (0, 3)), ("sm90_gemm", (1, 9)), ("Memcpy HtoD (Pageable -> Device)", (9, 10)),
        ("Memset (Device)", (9, 10)), ("Memcpy DtoD (Device -> Device)", (9, 10)),
    ])  # fmt: skip

    assert told == Copies(hidden=0.5, pinned=0.75)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"samples": 7}, "delivered 8 samples"), ({"checksum": 2}, "add up to 2"), ({"content": "b"}, "content differs"), ({"served": 3}, "counted 3"),
     ({"served": 12}, "counted 12")],
)  # fmt: skip
def test_a_training_that_got_something_else_ends_the_bench(changed, says):
    def check(samples=8, checksum=1, content="a", served=8):
        epochs = [{"content_hash": content, "samples": 8, "requests": {"get": 8}}]
        gpu_bench.check("way", Measured(1.0, samples, 1.0, None, checksum), epochs, served, {"content": ["a"], "checksum": 1})

    check()
    with pytest.raises(SystemExit, match=says):
        check(**changed)


def test_the_drivers_word_is_nvmls(tmp_path, monkeypatch):
    folder = pathlib.Path(leat.testing.find_binary()).resolve().parent.parent / "testing/nvml"
    if not (folder / "libnvidia-ml.so.1").exists():
        pytest.skip(f"the stand-in for NVML is built with the tests (./dev test): there is none in {folder}")
    (tmp_path / "devices").write_text("1500\nbusy 37\n")
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "devices"))
    library = str(folder / "libnvidia-ml.so.1")

    assert Nvml("GPU-1", library).usage() == 0.37
    assert Nvml("1", library).usage() == 0.37
    assert Nvml("GPU-0", library).usage() is None, "it does not tell"
    assert Nvml("GPU-7", library).usage() is None, "there is no such card"
    assert Nvml("GPU-1", str(tmp_path / "none.so")).usage() is None, "there is no driver"


def test_the_networks_are_those_that_they_are_called():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import gpu_models

    with torch.device("meta"):
        counts = [sum(one.numel() for one in network.parameters()) for network in (gpu_models.resnet50(), gpu_models.Gpt())]

    # torchvision's resnet50; GPT-2's 124,439,808 and the 47 rows that its vocabulary is rounded up by.
    assert counts == [25_557_032, 124_439_808 + 47 * 768]


@pytest.fixture
def one_thread():
    """Threads of torch wait for one another: on a busy machine small steps take minutes."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(before)


def test_they_learn(one_thread):
    import gpu_models

    torch = one_thread
    training = gpu_models.Training("gpt", torch.device("cpu"), context=16, layers=1, width=32, heads=2, vocabulary=64)
    tokens = torch.randint(0, 50, (4, 17), generator=torch.Generator().manual_seed(1)).to(torch.uint16)
    losses = [float(training.step(tokens).detach()) for _ in range(40)]
    assert losses[-1] < losses[0] - 0.3, losses

    pictures = gpu_models.Training("resnet50", torch.device("cpu"))
    images, labels = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1)), torch.tensor([3, 7])
    assert np.isfinite(float(pictures.step(images, labels).detach()))
