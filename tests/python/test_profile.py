"""`leat profile` finds the waits of a training, and leaves nothing behind."""

from __future__ import annotations

import collections.abc
import contextlib
import os
import pathlib
import subprocess
import sys
import threading
import time
import typing
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import leat
from profiling import profile, report_of, skip_without_scratch, told_by_processes

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

import delayed_link  # noqa: E402

TRAINING = str(pathlib.Path(__file__).parent / "profiled_training.py")
PARTS = ("compute", "interconnect", "network", "preparation", "fetch", "input")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    for number in range(400):
        (folder / f"{number:03}").write_bytes(os.urandom(1024))
    return folder


@pytest.fixture
def project(tmp_path) -> pathlib.Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "checkpoint").write_text("of last week")
    return folder


@pytest.fixture
def notes(tmp_path) -> pathlib.Path:
    """Outside of the folders that a scratch layer covers, so what a training writes there stays."""
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as opened:
        yield opened


# Long enough that a busy machine's delay of a sleep is little of a step.
MIXTURES = {
    "one process": (
        (), {"fetch": 80, "decode": 60, "compute": 120},
        {"compute": 120, "preparation": 120, "fetch": 160},
    ),
    "two processes": (
        ("--nproc-per-node", "2"), {"fetch": 80, "compute": 120, "interconnect": 160},
        {"compute": 120, "interconnect": 160, "preparation": 0, "fetch": 160},
    ),
    "two nodes": (
        ("--nproc-per-node", "1"), {"decode": 60, "compute": 100, "network": 100},
        # The page cache of another node is not the profiler's to make warm or cold.
        {"compute": 100, "network": 100, "input": 120},
    ),
    "hidden by workers": (
        # The batches that the worker has made ahead are used up before the
        # steps that count.
        ("--warmup", "9"), {"fetch": 160, "decode": 40, "compute": 240, "workers": 1},
        {"compute": 240, "preparation": 0, "fetch": 160},
    ),
}  # fmt: skip


@contextlib.contextmanager
def two_nodes() -> Iterator[tuple[list[str], dict[str, str]]]:
    """Flags and variables for two nodes: namespaces a millisecond apart, if they can
    be made."""
    with contextlib.ExitStack() as stack:
        try:
            enter = stack.enter_context(delayed_link.nodes(2, delay=0.001, bytes_per_second=100e6))
        except (OSError, RuntimeError, subprocess.CalledProcessError) as failed:
            warnings.warn(f"both nodes are this machine as it is, for there can be no namespaces: {failed}", stacklevel=2)
            yield ["--bucket-writes", "--node", "env", "--node", "env", "--master-addr", "localhost"], {}
            return
        prefixes = [word for node in range(2) for word in ("--node", " ".join(enter(node)))]
        flags = ["--bucket-writes", *prefixes, "--master-addr", delayed_link.address(0)]
        yield flags, {"GLOO_SOCKET_IFNAME": delayed_link.DEVICE}


def farthest_from_truth(report: dict, truth: dict[str, int]) -> tuple[float, dict[str, float]]:
    """The worst part's error as a share of the true step, and all parts in seconds."""
    found = {part: report["parts"].get(part, {"seconds": 0})["seconds"] for part in PARTS}
    assert sum(found.values()) == pytest.approx(report["step_seconds"])
    errors = (abs(found[part] - truth.get(part, 0) / 1e3) for part in PARTS)
    return max(errors) * 1e3 / sum(truth.values()), found


@pytest.mark.parametrize("name", MIXTURES)
def test_each_part_is_found_where_it_is(name, data, project, stack):
    """Once, and to a fifth of the step: more than a halt of the machine takes, less than any part here that goes astray.

    How near it is, `./dev bench profile` tells; the arithmetic has leat/profile/step_parts_test.cc.
    """
    how, sleeps, truth = MIXTURES[name]
    where, variables = stack.enter_context(two_nodes()) if name == "two nodes" else ([], {})
    flags = [word for key, value in sleeps.items() for word in (f"--{key}", str(value))]

    # Three steps are left out, since what is held out has read the files of the first four.
    report = report_of(profile(
        project, "--steps", "6", "--repeats", "1", *(how if "--warmup" in how else ("--warmup", "3", *how)), *where, "--",
        sys.executable, TRAINING, str(data), *flags, **variables,
    ))  # fmt: skip

    off, found = farthest_from_truth(report, truth)
    assert off <= 0.2, found
    assert ("behind --node" in report["proof"]["why_no_warm"]) == (name == "two nodes")
    assert all(share < 0.1 for share in report["proof"]["cold_resident"])
    assert all(share > 0.9 for share in report["proof"]["warm_resident"])
    assert report["loader"] == "torch.utils.data.dataloader.DataLoader"
    assert {path.name: path.read_text() for path in project.iterdir()} == {"checkpoint": "of last week"}, "nothing it wrote is left"


def test_without_a_scratch_layer_neither_finally_nor_atexit_runs(data, project):
    report_of(profile(
        project, "--no-scratch", "--steps", "5", "--warmup", "1", "--repeats", "1", "--",
        sys.executable, TRAINING, str(data), "--compute", "2",
    ))  # fmt: skip

    assert [path.name for path in project.iterdir()] == ["checkpoint"]
    assert (project / "checkpoint").read_text() == "epoch 0"


@pytest.mark.parametrize("workers", ["0", "1"])
def test_where_a_script_reads_by_itself_the_report_says_so(data, project, workers):
    """Its own HTTP client: in the warm runs it waits for the network, too. The report passes over connections before it trains."""
    (project / "train.py").write_text(
        "import http.client, http.server, pathlib, sys, threading, time\n"
        "from torch.utils.data import DataLoader, Dataset\n"
        "class Slow(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        time.sleep(0.02); self.send_response(200); self.end_headers(); self.wfile.write(b'x')\n"
        "    def log_message(self, *words): pass\n"
        "def get(address):\n"
        "    client = http.client.HTTPConnection(*address); client.request('GET', '/')\n"
        "    return len(client.getresponse().read())\n"
        "before, meanwhile = (http.server.ThreadingHTTPServer((f'127.0.0.{number}', 0), Slow) for number in (2, 1))\n"
        "for server in (before, meanwhile): threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "get(before.server_address)\n"
        "class Rows(Dataset):\n"
        "    def __len__(self): return 400\n"
        "    def __getitem__(self, i):\n"
        f"        (pathlib.Path({str(data)!r}) / f'{{i:03}}').read_bytes()\n"
        "        return get(meanwhile.server_address)\n"
        "for batch in DataLoader(Rows(), batch_size=2, num_workers=int(sys.argv[1])): time.sleep(0.01)\n"
    )

    report = report_of(profile(
        project, "--steps", "6", "--warmup", "2", "--repeats", "1", "--", sys.executable, "train.py", workers,
    ))  # fmt: skip

    assert report["proof"]["why_no_warm"] == ""
    assert [place.startswith("127.0.0.1:") for place in report["proof"]["connects_to"]] == [True]


def test_a_script_that_reads_with_leat_is_profiled_as_it_is(data, project):
    script = project / "train.py"
    script.write_text(
        "import leat, time\n"
        f"loader = leat.Loader({str(data)!r}, batch_size=4, shuffle=True, fields=('data',))\n"
        "for batch in loader:\n"
        "    time.sleep(0.1)\n"
    )

    report = report_of(profile(
        project, "--steps", "8", "--warmup", "2", "--repeats", "1", "--",
        sys.executable, str(script),
    ))  # fmt: skip

    assert report["loader"] == "leat.Loader"
    assert report["parts"]["compute"]["seconds"] >= 0.1
    seconds = [part["seconds"] for part in report["parts"].values()]
    assert sum(seconds) == pytest.approx(report["step_seconds"])
    # Leat opens its files by itself, and tells which.
    assert report["proof"]["files"] >= 11 * 4
    assert {"preparation", "fetch"} <= report["parts"].keys()
    assert all(share < 0.1 for share in report["proof"]["cold_resident"])
    assert all(share > 0.9 for share in report["proof"]["warm_resident"])


def test_words_that_are_no_utf8_end_no_profile(data, project, tmp_path):
    """The kernel takes any bytes for a name, JSON does not: the runs would be lost at their end."""
    named = project / os.fsdecode(b"data\xff")
    named.symlink_to(data)
    temporary = tmp_path / os.fsdecode(b"tmp\xff")
    temporary.mkdir()

    report = report_of(profile(
        project, "--steps", "5", "--warmup", "1", "--repeats", "1", "--", sys.executable, TRAINING, str(named), "--compute", "2",
        TMPDIR=str(temporary),
    ))  # fmt: skip

    assert report["command"][2].endswith("data\ufffd")
    assert report["proof"]["files"] > 0


def test_what_is_python_or_the_systems_is_told_from_data_by_whole_names(monkeypatch):
    from leat._profile import hook

    monkeypatch.setattr(sys, "prefix", "/project")
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    ours = hook.no_data("/tmp/run")

    for path in ("/processed/a", "/system/a", "/devices/a", "/usr/src/app/data/a", "/project/data/a", "/project/library", "/tmp/run2/a"):
        assert not path.startswith(ours), path
    for path in ("/proc/cpuinfo", "/sys/block", "/usr/lib/os.py", "/project/lib/python3/site-packages/a", "/tmp/run/spec.json"):
        assert path.startswith(ours), path


def test_replayed_batches_have_the_rows_of_the_whole_job(data, project, notes):
    """In a script whose own sitecustomize still runs."""
    own = project / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os; os.environ['MINE'] = 'ran'\n")
    script = project / "train.py"
    script.write_text(
        "import os, sys, torch\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "assert os.environ['MINE'] == 'ran'\n"
        "world = int(os.environ.get('WORLD_SIZE', '1'))\n"
        "told = open(f'{sys.argv[1]}/{os.getpid()}', 'a', buffering=1)\n"
        "for x, y in DataLoader(TensorDataset(torch.zeros(600, 3), torch.zeros(600)), 8 // world):\n"
        "    print(world, len(x), len(y), file=told)\n"
    )

    report = report_of(profile(
        project, "--steps", "8", "--warmup", "2", "--repeats", "1", "--nproc-per-node", "2", "--",
        sys.executable, str(script), str(notes), PYTHONPATH=str(own),
    ))  # fmt: skip

    assert report["batch_rows"] == 4
    # A process alone, which draws 8 rows by itself, is given those of one of two.
    assert {line for lines in told_by_processes(notes).values() for line in lines} == {"1 4 4", "2 4 4"}


class Pair(typing.NamedTuple):
    first: object
    second: object


def test_a_batch_that_is_given_again_is_as_new():
    import torch

    from leat._profile import hook

    kept = {"x": torch.ones(3), "pair": Pair(np.ones(2), [1, 2]), "label": 7, "wide": torch.zeros(1 << 20)}
    replay = hook.Replay([kept], None, 1, 3, None)
    for batch in replay:
        assert batch.pop("label") == 7
        batch["x"] *= 2
        batch["pair"].first[0] += 1
        batch["pair"].second.append(3)
        assert batch["x"].tolist() == [2, 2, 2]
        assert batch["pair"].first.tolist() == [2, 1] and batch["pair"].second == [1, 2, 3]
        assert type(batch["pair"]) is Pair
        assert batch["wide"] is kept["wide"], "a copy of much would be part of the step"


class Columns(collections.abc.MutableMapping):
    """As a TensorDict: iterating over it gives its rows."""

    def __init__(self, columns):
        self._columns = dict(columns)

    def __copy__(self):
        return Columns(self._columns)

    def __len__(self):
        return len(next(iter(self._columns.values())))

    def __iter__(self):
        return zip(*self._columns.values())

    def keys(self):
        return self._columns.keys()

    def __getitem__(self, name):
        return self._columns[name]

    def __setitem__(self, name, column):
        self._columns[name] = column

    def __delitem__(self, name):
        del self._columns[name]


def test_batches_of_any_class_are_given_again():
    import torch

    from leat._profile import hook

    kept = {"columns": Columns({"x": np.ones(3)}), "ragged": leat.Ragged(np.ones(3), np.array([0, 1, 3])),
            "sparse": torch.eye(3).to_sparse()}  # fmt: skip
    with pytest.raises(RuntimeError):
        _ = kept["sparse"].nbytes
    for batch in hook.Replay([kept], None, 1, 3, None):
        batch["columns"]["x"] *= 2
        batch["ragged"].values *= 2
        assert batch["columns"]["x"].tolist() == batch["ragged"].values.tolist() == [2, 2, 2]
        assert list(batch["ragged"].offsets) == [0, 1, 3] and batch["ragged"].shapes is None
        assert batch["sparse"] is kept["sparse"]


def test_no_batch_is_fetched_in_a_step_that_counts_as_compute(data, project, notes):
    script = project / "train.py"
    script.write_text(
        "import os, sys, time\n"
        "from torch.utils.data import DataLoader, Dataset\n"
        "told = open(f'{sys.argv[1]}/{os.getpid()}', 'a', buffering=1)\n"
        "class Slow(Dataset):\n"
        "    def __len__(self): return 100\n"
        "    def __getitem__(self, index):\n"
        "        time.sleep(0.1)\n"
        "        print('fetch', file=told)\n"
        "        return index\n"
        "for _ in DataLoader(Slow()): print('step', file=told)\n"
    )

    report = report_of(profile(
        project, "--steps", "4", "--warmup", "1", "--replayed", "4", "--repeats", "1", "--",
        sys.executable, str(script), str(notes),
    ))  # fmt: skip

    assert report["step_seconds"] >= 0.1 and "input" in report["parts"]
    # The runs for compute are those of which steps come without a fetch: all that count.
    runs = [lines for lines in told_by_processes(notes).values() if lines.count("step") > lines.count("fetch")]
    assert runs
    for lines in runs:
        assert lines[::-1].index("fetch") >= 4, lines


@pytest.mark.parametrize("script, says", [
    ("raise SystemExit('no such model')", "no such model"),
    ("raise SystemExit(3)", "the script failed with status 3"),
    ("import sys\nfor _ in range(70): sys.stdout.write('y' * 2**20)\nraise SystemExit('told at last')", "told at last"),
    ("print('hello')", "without iterating over a torch.utils.data.DataLoader"),
    ("from torch.utils.data import DataLoader\nfor _ in DataLoader([1, 2, 3]): pass", "gave 3 batches"),
    ("from torch.utils.data import DataLoader\nloader = DataLoader([1])\nfor _ in range(9):\n    for _ in loader: pass",
     "got 9 batches, and 0 of the 5 steps"),
    ("import os; os.environ['LOCAL_RANK']", "It takes its rank from torchrun: give --nproc-per-node 1"),
    ("import time; time.sleep(60)", "did not end within 3 s"),
])  # fmt: skip
def test_a_script_that_cannot_be_profiled_says_why(script, says, data, project):
    (project / "train.py").write_text(script)

    done = profile(project, "--steps", "5", "--warmup", "1", "--limit",
                   "3s" if "sleep" in script else "1min", "--", sys.executable, "train.py")  # fmt: skip

    if "no scratch file system can be mounted" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == (2 if "batches" in says or "without" in says else 1)
    assert says in done.stderr
    assert [path.name for path in project.iterdir() if path.name != "train.py"] == ["checkpoint"]


RANKS_OF_ITS_OWN = """
import os, sys
import torch.distributed, torch.multiprocessing
from torch.utils.data import DataLoader

def run(rank):
    torch.distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("ranks"), rank=rank, world_size=2)
    for _ in range(99):
        for _ in DataLoader(list(range(50))): pass

if __name__ == "__main__":
    torch.multiprocessing.spawn(run, nprocs=2)
    open(sys.argv[1], "w").close()
"""


def test_a_script_that_starts_its_ranks_itself_is_told_what_to_do(project, tmp_path_factory):
    (project / "train.py").write_text(RANKS_OF_ITS_OWN)
    after = tmp_path_factory.mktemp("after") / "training"

    done = profile(project, "--steps", "5", "--warmup", "1", "--no-scratch", "--", sys.executable, "train.py", str(after))

    assert done.returncode == 2
    assert "joined 2 ranks where 1 was to be run" in done.stderr
    assert "--nproc-per-node 2" in done.stderr
    assert not after.exists()


def test_a_command_that_starts_its_ranks_itself_is_told_what_to_do(data, project):
    """Without a run of one process, as under `torchrun`, the exchange between ranks
    would count as compute."""
    done = profile(
        project, "--steps", "5", "--", sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        TRAINING, str(data),
    )  # fmt: skip

    skip_without_scratch(done.stderr)
    assert done.returncode == 2
    assert "WORLD_SIZE is 2 where 1 was to be run" in done.stderr
    assert "--nproc-per-node 2" in done.stderr


@pytest.mark.parametrize("words, says", [
    (["--nproc-per-node", "2", "--", "./train.sh"], "is not python"),
    (["--nproc-per-node", "0", "--", "python", "x.py"], "--nproc-per-node: 0 is not"),
    (["--node", "a", "--node", "b", "--", "python", "x.py"], "--master-addr"),
    (["--node", "a", "--node", "b", "--master-addr", "a", "--", "python", "x.py"], "pass --bucket-writes"),
    (["--nodes", "gpu5", "--", "python", "x.py"], "pass --bucket-writes"),
    (["--steps", "1", "--", "python", "x.py"], "--steps: 1 is not"),
    (["--html", "nowhere/page.html", "--", "python", "x.py"], "--html nowhere/page.html: cannot be written"),
    (["--outputs", "nowhere", "--", "python", "x.py"], "--outputs nowhere: no folder is there"),
    (["--nodes=-oProxyCommand=touch${IFS}checkpoint2", "--", "python", "x.py"], "no name of a node"),
    (["--nodes=a,-v", "--", "python", "x.py"], '"-v", which is no name of a node'),
    (["--nodes", "-v", "--", "python", "x.py"], "no name of a node"),
])  # fmt: skip
def test_wrong_usage_is_said_before_anything_runs(words, says, project):
    done = profile(project, *words)

    assert done.returncode == 2
    assert says in done.stderr


def test_how_a_loader_makes_its_batches_is_told_by_what_it_does(data):
    from torch.utils.data import DataLoader

    import leat.torch
    from leat._profile import hook

    def ways(module: str, loader) -> tuple[bool, bool, int | None]:
        tally = hook.Tally(None)
        hook.note_ways(tally, module, loader)
        return tally.loads_ahead, tally.is_pipelined, tally.workers

    torchs, ours, items = "torch.utils.data.dataloader", "leat.torch._loader", list(range(8))
    assert ways(torchs, DataLoader(items)) == (False, False, 0)
    assert ways(torchs, DataLoader(items, num_workers=2)) == (True, False, 2)
    assert ways(ours, leat.torch.DataLoader(items, threads=1)) == (False, False, 0)
    assert ways(ours, leat.torch.DataLoader(items)) == (False, False, None), "threads make a batch while next() waits"
    assert ways(ours, leat.torch.DataLoader(items, num_workers=2)) == (True, True, None)
    assert ways(ours, leat.torch.DataLoader(items, num_workers=2, workers="processes")) == (True, False, 2)
    assert ways(ours, leat.torch.DataLoader(leat.Dataset(str(data)), batch_size=2)) == (True, True, None)
    assert ways("leat._loader", leat.Loader(str(data), batch_size=2, train=False)) == (True, True, None)


def test_the_cpu_time_of_a_batch_does_not_end_with_the_workers(monkeypatch):
    from leat._profile import hook

    used = iter([10.0, 10.5, 11.5, 3.0, 4.5])
    monkeypatch.setattr(hook, "cpu_seconds", lambda: next(used))

    assert hook.drain(iter(range(5)), 6, lambda: iter(range(5)))[1] == 1, "of the fourth, the fifth, and other workers'"


def test_a_loader_is_begun_again_until_enough_batches_came():
    from leat._profile import hook

    def slow():
        for _ in range(2):
            time.sleep(0.02)
            yield

    seconds, _ = hook.drain(iter(()), 7, slow)

    assert len(seconds) == 7 and min(seconds) >= 0.02
    assert hook.drain(iter(range(5)), 6, lambda: iter(())) == ([], None), "those that came may have been made before"

    def once():
        raise RuntimeError("it is for one epoch alone")

    assert hook.drain(iter(range(5)), 6, once) == ([], None)


def test_an_epoch_that_ends_with_the_steps_does_not_make_batches_free(project):
    """The rest of it, once the steps are over, was made ahead, or is nothing."""
    (project / "train.py").write_text(
        "import time\n"
        "from torch.utils.data import DataLoader, Dataset\n"
        "class Slow(Dataset):\n"
        "    def __len__(self): return 2 * (2 + 8 + 1)\n"
        "    def __getitem__(self, index): time.sleep(0.05); return index\n"
        "for _ in range(3):\n"
        "    for _ in DataLoader(Slow(), batch_size=2, num_workers=1): time.sleep(0.05)\n"
    )

    report = report_of(profile(
        project, "--steps", "8", "--warmup", "2", "--repeats", "1", "--", sys.executable, "train.py",
    ))  # fmt: skip

    assert 0.09 < report["supply_seconds"]["cold"] < 0.2, "a batch is made of two sleeps"


def test_a_batch_of_values_of_unequal_length_is_cut_to_its_first_rows():
    from leat._profile import hook

    values = leat.Ragged(np.arange(6), np.array([0, 1, 3, 6]))
    batch = hook.first_rows({"tokens": values, "label": np.arange(3)}, 2)

    assert hook.rows_of({"tokens": values}) == 3
    assert batch["tokens"].tolist() == [[0], [1, 2]] and batch["label"].tolist() == [0, 1]


def command_lines() -> Iterator[bytes]:
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


def test_the_secret_of_the_endpoint_is_on_no_command_line(project):
    """Every user of the machine can read those, and whoever knows the secret asks as the user."""
    (project / "train.py").write_text(
        "import os\n"
        "from torch.utils.data import DataLoader\n"
        "assert os.environ['AWS_ENDPOINT_URL'].startswith('http://127.0.0.1:')\n"
        "for _ in DataLoader(list(range(99))): pass\n"
    )
    seen: set[bytes] = set()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            seen.update(command_lines())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        report_of(profile(
            project, "--steps", "4", "--warmup", "1", "--repeats", "1", "--", sys.executable, "train.py",
        ))  # fmt: skip
    finally:
        is_over.set()
        looking.join()

    ours = [line for line in seen if b"train.py" in line]
    assert any(b"unshare" in line or b"leat-scratch" in line for line in ours), "it was seen from its start on"
    assert not [line for line in ours if b"AWS_ENDPOINT_URL" in line]


BUCKET_TRAINING = """
import pathlib, sys, time, boto3, torch
from torch.utils.data import DataLoader, Dataset

class Objects(Dataset):
    def __init__(self):
        self.s3 = boto3.client("s3")
        self.keys = [one["Key"] for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket="b")
                     for one in page["Contents"]]
    def __len__(self):
        return len(self.keys)
    def __getitem__(self, index):
        body = bytearray(self.s3.get_object(Bucket="b", Key=self.keys[index])["Body"].read())
        return torch.frombuffer(body, dtype=torch.uint8)

data = Objects()
data.s3.put_object(Bucket="b", Key="checkpoint", Body=b"new")
for epoch in range(3):
    for batch in DataLoader(data, batch_size=2):
        time.sleep(0.02)
"""


def test_a_bucket_is_told_apart_into_preparation_and_fetch(tmp_path, project):
    pytest.importorskip("boto3")
    folder = tmp_path / "store" / "b"
    folder.mkdir(parents=True)
    for number in range(120):
        (folder / f"{number:03}").write_bytes(os.urandom(2000))
    (project / "train.py").write_text(BUCKET_TRAINING)

    with leat.testing.Bucket(folder.parent, latency="100ms") as bucket:
        report = report_of(profile(
            project, "--steps", "15", "--warmup", "2", "--repeats", "1", "--",
            sys.executable, "train.py", **bucket.env(),
        ))  # fmt: skip
        counters = bucket.counters()

    found = {part: one["seconds"] for part, one in report["parts"].items()}
    assert set(found) == {"compute", "preparation", "fetch"}
    assert max(found, key=found.get) == "fetch"
    assert found["fetch"] > 0.15, "two GETs of 100 ms, one after the other"
    warm, cold = report["proof"]["warm_reads"][0], report["proof"]["cold_reads"][0]
    assert warm["from_store"] == 0 and warm["from_memory"] >= 30
    assert cold["from_memory"] == 0 and cold["from_store"] >= 30
    assert warm["writes_kept_away"] == 1
    assert counters["put"] == 0 and not (folder / "checkpoint").exists()


def test_writes_of_every_kind_are_acknowledged_as_a_store_would(tmp_path, project):
    """A checkpoint of over 8 MB goes up in parts, under the name that the answer to the first request gives."""
    pytest.importorskip("boto3")
    folder = tmp_path / "store" / "b"
    folder.mkdir(parents=True)
    (folder / "kept").write_bytes(b"kept")
    (project / "train.py").write_text(
        "import io, boto3\n"
        "from torch.utils.data import DataLoader\n"
        "s3 = boto3.client('s3')\n"
        "s3.upload_fileobj(io.BytesIO(bytes(20 << 20)), 'b', 'a & b')\n"
        "assert s3.copy_object(Bucket='b', Key='copy', CopySource='b/kept')['CopyObjectResult']['ETag']\n"
        "assert not s3.delete_objects(Bucket='b', Delete={'Objects': [{'Key': 'kept'}]}).get('Errors')\n"
        "s3.delete_object(Bucket='b', Key='kept')\n"
        "for _ in DataLoader(list(range(99))): pass\n"
    )

    with leat.testing.Bucket(folder.parent) as bucket:
        report_of(profile(
            project, "--steps", "4", "--warmup", "1", "--repeats", "1", "--", sys.executable, "train.py",
            **bucket.env(),
        ))  # fmt: skip

    assert {path.name for path in folder.iterdir()} == {"kept"}


EIGHT_WORKERS = """
import multiprocessing, os, time, boto3
from torch.utils.data import DataLoader, Dataset

AHEAD = 8 * 2  # Batches: each worker's two.

class Objects(Dataset):
    def __init__(self):
        self.s3, self.pid = None, None
        self.read = multiprocessing.Value("i", 0)
        self.keys = [one["Key"] for page in self.client().get_paginator("list_objects_v2").paginate(Bucket="b")
                     for one in page["Contents"]]
    def client(self):
        if self.pid != os.getpid():  # A worker does not use the connections of others.
            self.s3, self.pid = boto3.client("s3"), os.getpid()
        return self.s3
    def __len__(self):
        return len(self.keys)
    def __getitem__(self, index):
        size = len(self.client().get_object(Bucket="b", Key=self.keys[index])["Body"].read())
        with self.read:
            self.read.value += 1
        return size
    def wait_for(self, count):
        # False once half a second passes without a read, as where batches are replayed.
        seen, since = -1, time.monotonic()
        while self.read.value < count:
            if self.read.value > seen:
                seen, since = self.read.value, time.monotonic()
            elif time.monotonic() - since > 0.5:
                return False
            time.sleep(0.001)
        return True

if __name__ == "__main__":
    objects, reads = Objects(), True
    for number, batch in enumerate(DataLoader(objects, batch_size=4, num_workers=8), start=1):
        time.sleep(0.03)
        # As many batches are ahead as each step ends, on a busy machine too.
        reads = reads and objects.wait_for(min(4 * (number + AHEAD), 600))
"""


def test_requests_are_those_of_the_batches_that_were_measured(tmp_path, project):
    """Not those of batches that were read ahead and never given, nor of the listing before the first step."""
    pytest.importorskip("boto3")
    folder = tmp_path / "store" / "b"
    folder.mkdir(parents=True)
    for number in range(600):
        (folder / f"{number:03}").write_bytes(os.urandom(1000))
    (project / "train.py").write_text(EIGHT_WORKERS)

    with leat.testing.Bucket(folder.parent, latency="5ms") as bucket:
        report = report_of(profile(
            project, "--steps", "80", "--warmup", "20", "--repeats", "1", "--", sys.executable, "train.py",
            **bucket.env(),
        ))  # fmt: skip

    asked = report["fetch_a_batch"]
    assert asked["gets"] == pytest.approx(4, rel=0.05)
    assert asked["bytes"] == pytest.approx(4000, rel=0.05)
    assert asked["lists"] == 0


def test_a_loader_of_ours_reads_the_same_bytes_through_the_relay(tmp_path, project):
    folder = tmp_path / "store" / "b"
    folder.mkdir(parents=True)
    for number in range(120):
        (folder / f"{number:03}").write_bytes(os.urandom(2000))
    (project / "train.py").write_text(
        "import leat, pathlib, time\n"
        "loader = leat.Loader('s3://b', batch_size=4, shuffle=True, fields=('data',), batch='dict')\n"
        "for batch in loader:\n"
        "    for row in batch['data']:\n"
        f"        assert row.tobytes() in {{p.read_bytes() for p in pathlib.Path({str(folder)!r}).iterdir()}}\n"
        "    time.sleep(0.01)\n"
    )

    with leat.testing.Bucket(folder.parent, latency="5ms", credentials=("KEY", "SECRET")) as bucket:
        report = report_of(profile(
            project, "--steps", "8", "--warmup", "1", "--repeats", "1", "--",
            sys.executable, "train.py", **bucket.env(),
        ))  # fmt: skip

    assert report["loader"] == "leat.Loader"
    assert report["proof"]["warm_reads"][0]["from_store"] == 0
    assert report["proof"]["cold_reads"][0]["from_memory"] == 0
