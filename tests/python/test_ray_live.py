"""Workers of Ray Train: rank and world size come from its context."""

from __future__ import annotations

import json
import sys
import types

import pytest

import leat
from small_datasets import make_blobs, run_python

N = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray") / "blobs"
    make_blobs(folder, N, 100)
    return folder


class Context:
    """As Ray Train's in a worker."""

    def __init__(self, rank: int, world_size: int, experiment: str | None = "run") -> None:
        self.get_world_rank = lambda: rank
        self.get_world_size = lambda: world_size
        self.get_experiment_name = lambda: experiment


@pytest.fixture
def ray_says(monkeypatch):
    def says(get_context):
        train = types.ModuleType("ray.train")
        train.get_context = get_context
        monkeypatch.setitem(sys.modules, "ray.train", train)

    return says


def place(folder, **options) -> tuple[int, int]:
    with leat.Loader(folder, batch_size=2, train=True, **options) as loader:
        return loader.rank, loader.world_size


def test_a_worker_has_the_rank_of_its_context(folder, ray_says, monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "0")  # Slurm started Ray, on each of three nodes.
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "3")
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    assert place(folder) == (0, 3)

    ray_says(lambda: Context(2, 4))
    assert place(folder) == (2, 4)
    assert place(folder, rank=0, world_size=2) == (0, 2)
    assert (leat.Mesh({"dp": 2, "tp": 2}).rank, place(folder, rank=leat.Mesh({"dp": 2, "tp": 2}))) == (1, (1, 2))

    ray_says(lambda: Context(0, 1))  # A run of one worker.
    assert place(folder) == (0, 1)


def test_a_mesh_of_another_size_is_refused(ray_says):
    ray_says(lambda: Context(2, 4))

    with pytest.raises(leat.InvalidArgument, match="Ray Train has 4"):
        leat.Mesh({"dp": 2})
    with pytest.raises(leat.InvalidArgument, match="Ray says 2"):
        leat.Mesh({"dp": 4}, rank=1)


@pytest.mark.parametrize("error", [RuntimeError("cannot be used outside"), DeprecationWarning("use ray.tune")])
def test_a_driver_is_alone(folder, ray_says, error):
    def fails():
        raise error

    ray_says(fails)
    assert place(folder) == (0, 1)
    ray_says(lambda: Context(0, 1, experiment=None))  # Older Ray's, of no run.
    assert place(folder) == (0, 1)


def test_nobody_imports_ray(folder):
    done = run_python(
        "import sys, leat\n"
        f"loader = leat.Loader({str(folder)!r}, batch_size=2, train=True)\n"
        "list(loader); loader.close(); print('ray' in sys.modules)"
    )
    assert done.stdout.strip() == "False", done.stderr


RUN = """
import json, os, sys
import ray
from ray.train import RunConfig, ScalingConfig
try:
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
except ImportError:
    from ray.train.data_parallel_trainer import DataParallelTrainer

url, place = sys.argv[1:]

def train(config):  # Without torch.distributed.
    import leat
    with leat.Loader(url, global_batch_size=8, train=True, seed=3, ids=True, batch="dict", output="numpy") as loader:
        steps = [batch["index"].tolist() for batch in loader]
    with open(os.path.join(place, f"{loader.rank}.json"), "w") as file:
        json.dump([loader.world_size, steps], file)

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1", runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}})
trainer = DataParallelTrainer(
    train, scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),
    run_config=RunConfig(storage_path=os.path.join(place, "run")),
)
trainer.fit()
ray.shutdown()
"""


def test_workers_of_a_local_ray_read_all_samples_once(folder, tmp_path):
    pytest.importorskip("ray.train", reason="Ray Train is not installed: pip install 'ray[train]'")
    with leat.Loader(folder, global_batch_size=8, train=True, seed=3, ids=True, batch="dict", output="numpy",
                     rank=0, world_size=1) as loader:  # fmt: skip
        whole = [batch["index"].tolist() for batch in loader]

    done = run_python(RUN, str(folder), str(tmp_path), timeout=200, RAY_USAGE_STATS_ENABLED="0")

    assert done.returncode == 0, done.stderr
    ranks = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert [size for size, _ in ranks] == [2, 2]
    assert [a + b for a, b in zip(ranks[0][1], ranks[1][1])] == whole
