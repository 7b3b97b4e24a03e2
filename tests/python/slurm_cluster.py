"""Slurm on this machine, by Debian's packages: one controller and one node, on free ports, in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo")
_START_SECONDS = 30.0

_CONFIG = """
ClusterName=leat
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/node
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@contextlib.contextmanager
def cluster(folder: pathlib.Path) -> Iterator[dict[str, str]]:
    """Starts it; gives the environment in which its commands find it. Skips the test where it cannot run."""
    missing = [name for name in PROGRAMS if _path(name) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: apt-get install slurmctld slurmd slurm-client munge")
    if os.getuid() != 0:
        pytest.skip("Slurm's node runs jobs as others, which needs root")
    for name in ("controller", "node"):
        (folder / name).mkdir()
    folder.chmod(0o755)
    host = socket.gethostname().partition(".")[0]
    ports = {"controller_port": _free_port(), "node_port": _free_port()}
    (folder / "slurm.conf").write_text(_CONFIG.format(host=host, folder=folder, **ports))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    with contextlib.ExitStack() as stack:
        _start_munge(folder, stack)
        for name, words in (("slurmctld", ["-D", "-i"]), ("slurmd", ["-D", "-N", host])):
            stack.enter_context(_running(folder, name, words, env))
        _wait_until_idle(folder, env)
        yield env


def _start_munge(folder: pathlib.Path, stack: contextlib.ExitStack) -> None:
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    words = ["--foreground", "--force", "--num-threads=2"]
    for option, name in (("socket", "munge.socket"), ("key-file", "munge.key"), ("pid-file", "munge.pid"),
                         ("log-file", "munge.log"), ("seed-file", "munge.seed")):  # fmt: skip
        words.append(f"--{option}={folder / name}")
    stack.enter_context(_running(folder, "munged", words, dict(os.environ)))
    end = time.monotonic() + _START_SECONDS
    while not (folder / "munge.socket").exists():
        assert time.monotonic() < end, (folder / "munged.out").read_text()
        time.sleep(0.02)


@contextlib.contextmanager
def _running(folder: pathlib.Path, name: str, words: list[str], env: dict[str, str]) -> Iterator[None]:
    with open(folder / f"{name}.out", "w") as out:
        words = [str(_path(name)), *words]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_idle(folder: pathlib.Path, env: dict[str, str]) -> None:
    end = time.monotonic() + _START_SECONDS
    while True:
        told = subprocess.run(["sinfo", "-h", "-o", "%T"], env=env, capture_output=True, text=True, check=False)
        if told.stdout.strip() == "idle":
            return
        if time.monotonic() > end:
            logs = "\n".join(path.read_text()[-3000:] for path in sorted(folder.glob("*.out")))
            pytest.fail(f"Slurm did not start: {told.stdout} {told.stderr}\n{logs}")
        time.sleep(0.1)


def _path(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
