"""The place at which `leat agent` listens by default."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]


def listening(made: str, **variables: str) -> str:
    """The output of an agent that has a /run and a /tmp of its own, as `made`
    describes them."""
    agent = f'exec 9< "$1" && {made} && exec "$0" agent 9<&-'
    environment = {k: v for k, v in os.environ.items() if k not in ("LEAT_AGENT", "XDG_RUNTIME_DIR")}
    process = subprocess.Popen(
        [*NAMESPACE, agent, shutil.which("leat"), ROOT], env=environment | variables,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        return process.stdout.readline()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


@pytest.fixture(autouse=True)
def namespaces():
    if subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs `unshare --user --mount` (user namespaces: sysctl user.max_user_namespaces), for a /run of its own: "
                    "the machine's is no place for a test")


# A checkout in /tmp is there again.
OWN = ("mount -t tmpfs none /run && mkdir /run/user && mount -t tmpfs none /tmp && "
       '{ test -e "$0" || { mkdir -p "$1" && mount --no-canonicalize --bind /proc/self/fd/9 "$1"; }; }')  # fmt: skip


def test_where_its_user_keeps_sockets():
    assert listening(OWN, XDG_RUNTIME_DIR="/run/user") == "listening on /run/user/leat/agent.sock\n"


def test_where_that_is_missing_in_run():
    assert listening(OWN, XDG_RUNTIME_DIR="/run/gone") == "listening on /run/leat/agent.sock\n"
    assert listening(OWN) == "listening on /run/leat/agent.sock\n"


def test_where_run_is_not_its_to_write_in_tmp():
    sealed = OWN + " && mount -o remount,ro none /run"
    assert listening(sealed) == "listening on /tmp/leat-0/agent.sock\n"


def test_where_none_may_be_it_says_what_to_give():
    said = listening(OWN + " && mount -o remount,ro none /run && mount -o remount,ro none /tmp")
    assert "/tmp/leat-0/agent.sock" in said and "give --socket" in said


def test_a_place_that_was_given_is_the_only_one():
    sealed = OWN + " && mount -o remount,ro none /run"
    said = listening(sealed, LEAT_AGENT="/run/mine/agent.sock")
    assert "/run/mine/agent.sock" in said and "give --socket" in said
