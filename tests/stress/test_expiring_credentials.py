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


def epoch(objects, serve, reader, content, is_good) -> tuple[str, int]:
    """The content, and how many requests were refused; `is_good` of a token and its age."""
    refused = []
    lock = threading.Lock()

    def judge(asked):
        token = asked.headers["x-amz-security-token"]
        if is_good(token, time.time() - float(token)):
            return None
        with lock:
            refused.append(asked.method)
        return Answer(400, "ExpiredToken")

    served = serve(objects, latency="80ms")
    with front(served.bucket.url, judge) as url:
        with reader(url, max_in_flight=8, storage={"no_sign_request": False}) as loader:
            return content(loader), len(refused)


def test_newer_ones_are_fetched(objects, serve, reader, content, right, bank, monkeypatch):
    monkeypatch.setenv("LEAT_TEST_LIFE", str(LIFE))
    found, refused = epoch(objects, serve, reader, content, lambda _token, age: age <= LIFE)
    assert found == right
    given = len(bank.read_text().splitlines())
    assert given >= 3
    # A refusal is of requests that were under way when their credentials ended.
    assert refused <= 8 * given


def test_those_that_end_sooner_than_they_said(objects, serve, reader, content, right, bank, monkeypatch):
    monkeypatch.setenv("LEAT_TEST_LIFE", "3600")
    first: list[float] = []

    def is_good(token, age):
        """The first ones end; those that were given out after that do not."""
        if not first:
            first.append(float(token))
        return float(token) > first[0] + LIFE or age <= LIFE

    found, refused = epoch(objects, serve, reader, content, is_good)
    assert found == right
    assert 1 <= refused <= 8
