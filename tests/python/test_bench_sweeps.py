"""The opponents of benches: a sweep's best is not its end, and each worker has its batches."""

from __future__ import annotations

import pathlib
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("boto3", reason="boto3 is not installed")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
import deli_ways  # noqa: E402
import dlio_bench  # noqa: E402
import dropin_bench  # noqa: E402
import measure  # noqa: E402
import tune_opponent  # noqa: E402


@pytest.mark.parametrize(("best", "counts"), [(0, [0, 1, 2, 4]), (1, [0, 1, 2, 4]), (16, [0, 1, 2, 4]), (2, [4, 8]), (64, [32])])
def test_a_sweep_goes_on_while_its_best_is_at_an_end(best, counts):
    assert measure.sweep("case", lambda count: -abs(count - best), counts, 256) == best


def test_each_case_of_local_data_has_torch_at_its_best(tmp_path, monkeypatch):
    epochs = []

    def epoch(kind, dataset, *, num_workers=0, **arguments):
        epochs.append((kind, len(dataset), num_workers))
        return 1 / (1 + (num_workers == 8)), 0.1, f"{len(dataset)}"  # torch is best with 8.

    monkeypatch.setattr(dropin_bench, "epoch", epoch)
    ways = dropin_bench.local_ways(tmp_path, 2, False, None)
    for case in ("files", "pictures", "python"):
        ways[f"{case}: torch at its best, 8 workers"]()

    batches = 20 * dropin_bench.BATCH
    assert all(size >= batches * workers for _, size, workers in epochs)
    assert {workers for _, _, workers in epochs} == {0, 1, 2, 4, 8, 16}
    assert list(dropin_bench.local_ways(tmp_path, 2, True, "files")) == [
        "files: torch, 0 workers", "files: torch, 2 workers", "files: torch at its best, 2 workers",
        "files: leat, 0 workers", "files: leat, 2 workers", "files: leat, 2 processes",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("best", "most"), [(64, 1024), (16, 1024), (256, 1024), (1024, 1024), (4, 1024), (1, 1024), (256, 256), (16, 16), (300, 300), (2, 10)]
)
def test_the_sweep_of_tensorflow_goes_on_while_its_best_is_at_an_end(best, most):
    tried = []

    def rate_of(calls):
        tried.append(calls)
        return -abs(calls - best)

    assert tune_opponent.sweep_calls(rate_of, most) == best
    assert max(tried) <= most and len(set(tried)) == len(tried)
    assert best in (1, most) or min(tried) < best < max(tried)


@pytest.mark.parametrize(("best", "counts"), [(1, [2, 4, 8]), (4, [2, 4, 8]), (16, [2, 4, 8]), (32, [2, 4, 8]), (1, [1, 2, 4])])
def test_the_sweep_of_readers_goes_on_while_its_best_is_at_an_end(best, counts):
    tried = []

    def rate_of(count):
        tried.append(count)
        return -abs(count - best)

    assert measure.sweep("case", rate_of, counts, 32) == best
    assert best in (1, 32) or min(tried) < best < max(tried)


def test_each_of_torchs_workers_has_its_batches_where_arrays_are_read():
    pytest.importorskip("h5py", reason="h5py is not installed")
    import arrays_bench

    job = {"samples": 4096, "batch": 32, "epochs": 3}
    for workers in (1, 2, 4, 8, 16):
        epochs = arrays_bench.with_workers(job, workers, 4)["epochs"]
        assert epochs >= 3 and epochs * 32 >= 20 * workers
    assert arrays_bench.with_workers(job, 16, 4)["epochs"] == 10


@pytest.mark.parametrize("name", dlio_bench.WORKLOADS)
def test_each_of_dlios_workers_has_its_batches(name):
    work = dlio_bench.WORKLOADS[name]
    for workers in (0, 1, 2, 4, 8, 16, 32):
        longer = dlio_bench.long_enough(work, workers)
        assert longer.epochs >= work.epochs and longer.steps * longer.epochs >= 20 * workers


def test_the_server_of_deli_has_one_hand_as_its_model():
    busy, most = [0], [0]

    class Watched(deli_ways.Deli):
        def _serve(self, missing):
            busy[0] += 1
            most[0] = max(most[0], busy[0])
            super()._serve(missing)
            busy[0] -= 1

    job = {"fetch": 2, "threshold": 16, "items": 64, "start_seconds": 0.02, "sample_seconds": 0, "is_our_engine": False}
    deli = Watched(job, lambda sample: b"%d" % sample)
    assert [sample for batch in deli.epoch(list(range(32)), 8) for sample, _ in batch] == list(range(32))
    deli.end()
    assert most == [1] and busy == [0]
