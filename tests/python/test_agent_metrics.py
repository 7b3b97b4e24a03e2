"""Prometheus's own verdict on the agent's metrics."""

import shutil
import subprocess

import pytest

import sample_node


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus")
@pytest.mark.parametrize("words", ["at 0", "at 700", "hostile"])
def test_promtool_finds_nothing_to_say(words):
    with sample_node.serve() as node:
        node.tell(words)
        metrics = node.get("/metrics")

    checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True, text=True)

    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
