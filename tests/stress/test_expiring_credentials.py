"""Credentials expire again and again while an epoch is read."""

from __future__ import annotations

import threading
import time

import pytest
from front import Answer, front

LIFE = 2.0  # Seconds. With ten, the epoch would have to last a minute.


@pytest.fixture
def bank(tmp_path, monkeypatch):
    """A command that gives out credentials which are good for LIFE seconds. It tells when they end, if it says so."""
    program = tmp_path / "credentials.sh"
    program.write_text(
        "#!/bin/sh\n"
        'now=$(date +%s.%N)\n'
        f'echo "$now" >> {tmp_path}/given\n'
        f'end=$(date -u -d "@$(echo "$now $LEAT_TEST_LIFE" | awk \'{{print int($1 + $2)}}\')" +%Y-%m-%dT%H:%M:%SZ)\n'
        'printf \'{"Version": 1, "AccessKeyId": "AKID", "SecretAccessKey": "SECRET", "SessionToken": "%s", '
        '"Expiration": "%s"}\' "$now" "$end"\n'
    )
    program.chmod(0o755)
    config = tmp_path / "config"
    config.write_text(f"[default]\nregion = us-east-1\ncredential_process = {program}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    return tmp_path / "given"


@pytest.mark.parametrize("told", [LIFE, 3600], ids=["and say so", "and do not say so"])
def test_newer_ones_are_fetched(objects, serve, reader, content, right, bank, monkeypatch, told):
    monkeypatch.setenv("LEAT_TEST_LIFE", str(told))
    refused = []
    lock = threading.Lock()

    def judge(asked):
        if time.time() - float(asked.headers["x-amz-security-token"]) <= LIFE:
            return None
        with lock:
            refused.append(asked.method)
        return Answer(400, "ExpiredToken")

    served = serve(objects, latency="80ms")
    with front(served.bucket.url, judge) as url:
        with reader(url, max_in_flight=8, storage={"no_sign_request": False}) as loader:
            assert content(loader) == right
    given = len(bank.read_text().splitlines())
    assert given >= 3
    # A refusal is of requests that were under way when their credentials ended.
    assert len(refused) <= 8 * given
