"""The example of federated clients: each sees its own part of one table, and together they learn."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

import digits  # noqa: E402


def test_clients_that_see_their_own_part_alone_learn_together(tmp_path):
    import train_clients

    folder = digits.make(tmp_path)
    train_clients.deal(folder)
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "train_clients.py"), str(folder / "clients.csv"), "--test", str(folder / "test"),
         "--rounds", "7"], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    found = [float(share) for share in re.findall(r"round \d+: ([\d.]+) %", done.stdout)]
    assert len(found) == 7
    assert found[-1] > 50 > found[0], "ten classes, of which a client has about two"
