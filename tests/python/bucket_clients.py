"""How the tests of `leat bucket` ask it: by boto3, aws-cli and plain HTTP."""

from __future__ import annotations

import http.client
import os
import pathlib
import subprocess
import sys
import time
import urllib.parse

import boto3
import pytest
from botocore.config import Config

from leat.testing import Bucket


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "photos").mkdir()
    return tmp_path


@pytest.fixture
def bucket(folder):
    with Bucket(folder, latency="0") as served:
        yield served


def client_of(served: Bucket, key=None, secret=None, token=None, retries=1, **options):
    env = served.env()
    return boto3.client(
        "s3",
        endpoint_url=served.url,
        aws_access_key_id=key or env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=secret or env["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=token,
        region_name=env["AWS_REGION"],
        verify=served.certificate,
        config=Config(
            s3={"addressing_style": "path"}, retries={"total_max_attempts": retries}, **options
        ),
    )


@pytest.fixture
def s3(bucket):
    return client_of(bucket)


def code_of(error) -> str:
    return error.value.response["Error"]["Code"]


def aws(served: Bucket, *words: str, succeeds=True) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    env.update(served.env(), PYTHONWARNINGS="ignore")
    done = subprocess.run(
        [sys.executable, "-m", "awscli", *words], env=env, capture_output=True, text=True
    )
    assert (done.returncode == 0) == succeeds, done.stdout + done.stderr
    return done.stdout + done.stderr


def get(served: Bucket, path: str, headers=None, method="GET"):
    """A plain HTTP request: status, headers, body."""
    at = urllib.parse.urlsplit(served.url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=10)
    try:
        connection.request(method, path, headers=headers or {})
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()
    finally:
        connection.close()


def until(is_true, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
