"""`leat profile --nodes`: hosts by ssh and nodes of a Slurm allocation, by programs that stand in for both."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

import pytest

from profiling import profile, report_of, skip_without_scratch, told_by_processes

# In the user's home, by the user's shell, with an environment of its own.
SSH = """#!/bin/sh
[ "$1 $2" = "-o BatchMode=yes" ] || exit 255
echo "$3" >> "$STAND_INS/ssh"
cd "$STAND_INS/home"
exec env -i HOME="$STAND_INS/home" PATH=/usr/bin:/bin LD_LIBRARY_PATH="$LD_LIBRARY_PATH" sh -c "$4"
"""
SRUN = """#!/bin/sh
while :; do
  case "$1" in
    --nodelist=*) echo "$1" >> "$STAND_INS/srun"; shift ;;
    --cpus-per-task=*) echo "$1" >> "$STAND_INS/cores"; shift ;;
    --*) shift ;;
    *) break ;;
  esac
done
exec "$@"
"""
# Each node's rank writes a file, and reads what the working directory holds.
TRAINING = """
import os, pathlib, sys, time, torch.distributed
from torch.utils.data import DataLoader
torch.distributed.init_process_group("gloo")
assert pathlib.Path("here").read_text() == "here"
pathlib.Path(f"checkpoint{os.environ['RANK']}").touch()
(pathlib.Path(sys.argv[1]) / str(os.getpid())).write_text(os.environ["WORLD_SIZE"])
together = torch.zeros(1)
for _ in DataLoader(list(range(1000)), batch_size=2):
    time.sleep(0.05 if os.environ["WORLD_SIZE"] == "1" else 0.2)
    torch.distributed.all_reduce(together)
"""


@pytest.fixture
def stand_ins(tmp_path) -> dict[str, str]:
    """Variables for which ssh and srun are programs that run the command here."""
    folder = tmp_path / "stand-ins"
    (folder / "home").mkdir(parents=True)
    for name, text in {"ssh": SSH, "srun": SRUN}.items():
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    return {"STAND_INS": str(folder), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


@pytest.fixture
def project(tmp_path) -> pathlib.Path:
    # A name that a shell would take apart.
    folder = tmp_path / "it's a project"
    folder.mkdir()
    (folder / "here").write_text("here")
    (folder / "train.py").write_text(TRAINING)
    return folder


@pytest.fixture
def worlds(tmp_path) -> pathlib.Path:
    """A folder in which each rank writes how many there are."""
    folder = tmp_path / "worlds"
    folder.mkdir()
    return folder


def check(report: dict, project: pathlib.Path, worlds: pathlib.Path) -> None:
    assert report["settings"]["nodes"] == 2
    parts = {name: part["seconds"] for name, part in report["parts"].items()}
    assert parts.keys() == {"compute", "network", "input"}
    assert parts["compute"] >= 0.05 and report["step_seconds"] >= 0.2
    assert sum(parts.values()) == pytest.approx(report["step_seconds"])
    # The network's part is told from a rank alone.
    assert {line for lines in told_by_processes(worlds).values() for line in lines} == {"1", "2"}
    assert sorted(path.name for path in project.iterdir()) == ["here", "train.py"], "what nodes write goes away"


def told(stand_ins: dict[str, str], name: str) -> list[str]:
    return pathlib.Path(stand_ins["STAND_INS"], name).read_text().split()


def test_nodes_of_an_allocation_are_started_by_srun(project, stand_ins, worlds):
    report = report_of(profile(
        project, "--bucket-writes", "--nodes", "slurm", "--master-addr", "localhost", "--nproc-per-node", "1",
        "--steps", "4", "--warmup", "1", "--repeats", "1", "--", sys.executable, "train.py", str(worlds),
        **stand_ins, SLURM_JOB_NODELIST="node[01-02]", SLURM_JOB_CPUS_PER_NODE="4,2",
    ))  # fmt: skip

    check(report, project, worlds)
    nodes = told(stand_ins, "srun")
    # A look and a cold run on both, alone on the first, replayed on both.
    assert set(nodes) == {"--nodelist=node01", "--nodelist=node02"}
    assert nodes.count("--nodelist=node01") == nodes.count("--nodelist=node02") + 1
    assert set(told(stand_ins, "cores")) == {"--cpus-per-task=4", "--cpus-per-task=2"}


def test_hosts_are_reached_by_ssh(project, stand_ins, worlds):
    report = report_of(profile(
        project, "--bucket-writes", "--nodes", "me@node[1-2]", "--master-addr", "localhost", "--nproc-per-node", "1",
        "--steps", "4", "--warmup", "1", "--repeats", "1", "--", pathlib.Path(sys.executable).name, "train.py", str(worlds),
        **{**stand_ins, "PATH": f"{stand_ins['PATH']}:{pathlib.Path(sys.executable).parent}"},
    ))  # fmt: skip

    check(report, project, worlds)
    assert set(told(stand_ins, "ssh")) == {"me@node1", "me@node2"}


@pytest.mark.parametrize("host", ["gpu5", "gpu5,gpu6"])
def test_a_script_elsewhere_is_given_no_endpoint_on_the_loopback_of_this_machine(host, project, stand_ins, worlds):
    (project / "train.py").write_text(
        "import os\nassert not {'AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3'} & os.environ.keys()\n" + TRAINING
    )

    report = report_of(profile(
        project, "--bucket-writes", "--nodes", host, "--master-addr", "localhost", "--nproc-per-node", "1",
        "--steps", "2", "--warmup", "1", "--repeats", "1", "--", sys.executable, "train.py", str(worlds), **stand_ins,
    ))  # fmt: skip

    assert "input" in report["parts"] and "behind --node" in report["proof"]["why_no_warm"]


def test_a_node_that_fails_is_named_while_the_others_wait_for_it(project, stand_ins):
    """As ssh ends if nothing answers: with 255, at once."""
    (pathlib.Path(stand_ins["STAND_INS"]) / "bin" / "ssh").write_text(
        '#!/bin/sh\n[ "$3" = gpu6 ] || exec sleep 1000\necho "gpu6 is down" >&2\nexit 255\n'
    )

    done = profile(
        project, "--bucket-writes", "--nodes", "gpu5,gpu6", "--limit", "2min", "--", sys.executable, "train.py",
        **stand_ins,
    )  # fmt: skip

    skip_without_scratch(done.stderr)
    assert done.returncode == 1
    assert "on node 1 (ssh -o BatchMode=yes gpu6) with status 255" in done.stderr
    assert "gpu6 is down" in done.stderr


@pytest.mark.parametrize("words, says", [
    (["--nodes", "slurm"], "SLURM_JOB_NODELIST is not set"),
    (["--nodes", "node[3-1]"], "no range of numbers"),
    (["--nodes", "-oProxyCommand=x,b"], "is no name of a node"),
    (["--nodes", "a,b", "--node", "ssh c"], "give one of the two"),
])  # fmt: skip
def test_nodes_that_cannot_be_are_wrong_usage(words, says, project):
    done = profile(project, *words, "--", sys.executable, "train.py")

    assert done.returncode == 2
    assert says in done.stderr


def test_a_machine_without_srun_is_told_so(project, tmp_path):
    leat = pathlib.Path(shutil.which("leat")).resolve().parent
    done = profile(
        project, "--no-scratch", "--nodes", "slurm", "--", sys.executable, "train.py",
        SLURM_JOB_NODELIST="a", PATH=str(leat),
    )  # fmt: skip

    assert done.returncode == 2
    assert "srun cannot be started" in done.stderr
