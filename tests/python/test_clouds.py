"""The same samples in the same order from every cloud, and no secret in what Leat says."""

from __future__ import annotations

import json
import os
import shutil

import pytest

import leat
from fake_clouds import GoogleHandler, serving
from leat.ops import DecodeImage
from small_datasets import make_pictures

OPTIONS = {"global_batch_size": 32, "shuffle": True, "seed": 3, "ops": [DecodeImage()], "output": "numpy", "drop_last": False}


@pytest.fixture(autouse=True)
def _nobody_is_known(monkeypatch, tmp_path):
    """No credentials but the test's."""
    for name in list(os.environ):
        if name.startswith(("GOOGLE_", "GCS_", "GS_", "CLOUDSDK_", "STORAGE_EMULATOR", "AZURE_", "HF_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clouds") / "odd & folder+1"
    make_pictures(folder, 130)
    return folder


def hashes(loader) -> list[tuple[str, str]]:
    with loader:
        for _ in range(2):
            assert sum(1 for _ in loader) == len(loader)
        return [(epoch["order_hash"], epoch["content_hash"]) for epoch in loader.stats()]


@pytest.fixture(scope="module")
def expected(folder):
    return hashes(leat.Loader(folder, **OPTIONS))


@pytest.fixture
def as_user(monkeypatch, tmp_path):
    """as_user(cloud): what `gcloud auth application-default login` leaves, with a token endpoint of the cloud's."""

    def log_in(cloud, refresh_token="REFRESHSECRET") -> None:
        file = tmp_path / "adc.json"
        file.write_text(json.dumps({
            "type": "authorized_user", "client_id": "id", "client_secret": "CLIENTSECRET",
            "refresh_token": refresh_token, "token_uri": f"{cloud.url}/token",
        }))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))

    return log_in


def test_google(folder, expected, as_user):
    with serving(GoogleHandler, folder.parent) as cloud:
        as_user(cloud)
        reach = {"storage_options": {"endpoint_url": cloud.url}}
        assert hashes(leat.Loader(f"gs://photos/{folder.name}", **OPTIONS, **reach)) == expected
        assert cloud.tokens_given <= 3  # One for each store that was open: to look, to list, to read.


def test_google_over_s3s_protocol(folder, expected, monkeypatch, tmp_path):
    shutil.copytree(folder, tmp_path / "root/photos/a b")
    with leat.testing.Bucket(tmp_path / "root", latency="0", credentials=("GOOGKEY", "HMACSECRET")) as bucket:
        monkeypatch.setenv("GS_ACCESS_KEY_ID", "GOOGKEY")
        monkeypatch.setenv("GS_SECRET_ACCESS_KEY", "HMACSECRET")
        reach = {"storage_options": {"endpoint_url": bucket.url}}
        assert hashes(leat.Loader("gs://photos/a b", **OPTIONS, **reach)) == expected

        monkeypatch.setenv("GS_SECRET_ACCESS_KEY", "ANOTHERSECRET")
        with pytest.raises(leat.PermissionDenied, match="gs://photos.*GS_SECRET_ACCESS_KEY") as raised:
            leat.Loader("gs://photos/a b", **OPTIONS, storage_options={"endpoint_url": bucket.url})
        assert "ANOTHERSECRET" not in str(raised.value)


def test_google_refuses_and_no_secret_is_said(folder, as_user):
    with serving(GoogleHandler, folder.parent) as cloud:
        as_user(cloud, refresh_token="STALESECRET")
        with pytest.raises(leat.PermissionDenied, match="invalid_grant.*gcloud auth") as raised:
            leat.Loader("gs://photos", **OPTIONS, storage_options={"endpoint_url": cloud.url})
        assert "SECRET" not in str(raised.value)


def test_google_without_credentials_says_where_it_looked():
    with pytest.raises(leat.PermissionDenied, match="GOOGLE_APPLICATION_CREDENTIALS is not set.*no_sign_request"):
        leat.Loader("gs://some-bucket", **OPTIONS)
