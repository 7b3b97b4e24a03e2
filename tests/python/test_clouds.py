"""The same samples in the same order from every cloud, and no secret in what Leat says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

import leat
import leat.testing
from fake_clouds import AzureHandler, GoogleHandler, HubHandler, serving
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


# --- Azure --------------------------------------------------------------------

@pytest.mark.parametrize("url", ["az://ds", "abfss://ds@account.dfs.core.windows.net"])
def test_azure(folder, expected, monkeypatch, url):
    with serving(AzureHandler, folder.parent) as cloud:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
        monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=SASSECRET")
        reach = {"storage_options": {"endpoint_url": f"{cloud.url}/account"}}
        assert hashes(leat.Loader(f"{url}/{folder.name}", **OPTIONS, **reach)) == expected


def test_azure_refuses_and_no_secret_is_said(folder, monkeypatch):
    with serving(AzureHandler, folder.parent) as cloud:
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING",
                           f"BlobEndpoint={cloud.url}/account;SharedAccessSignature=sig=STALESECRET")
        with pytest.raises(leat.PermissionDenied, match="az://ds.*AuthenticationFailed") as raised:
            leat.Loader("az://ds", **OPTIONS)
        assert "SECRET" not in str(raised.value)


def test_azure_without_an_account_says_what_to_set():
    with pytest.raises(leat.InvalidArgument, match="AZURE_STORAGE_ACCOUNT_NAME.*abfss://"):
        leat.Loader("az://container", **OPTIONS)


# --- the Hugging Face Hub -----------------------------------------------------


def test_hub(folder, expected, monkeypatch):
    with serving(HubHandler, folder.parent) as cloud:
        monkeypatch.setenv("HF_ENDPOINT", cloud.url)
        monkeypatch.setenv("HF_TOKEN", "HUBSECRET")
        assert hashes(leat.Loader(f"hf://datasets/me/ds/{folder.name}", **OPTIONS)) == expected
        assert hashes(leat.Loader(f"hf://datasets/me/ds@main/{folder.name}", **OPTIONS)) == expected
        assert cloud.tokens_astray == 0

        monkeypatch.setenv("HF_TOKEN", "ANOTHERSECRET")
        with pytest.raises(leat.PermissionDenied, match="hf://datasets/me/ds.*RepoNotFound") as raised:
            leat.Loader("hf://datasets/me/ds", **OPTIONS)
        assert "SECRET" not in str(raised.value)


def test_hub_reads_datasets_alone():
    with pytest.raises(leat.InvalidArgument, match="hf://datasets/OWNER/NAME"):
        leat.Loader("hf://openai/whisper", **OPTIONS)


# --- leat doctor --------------------------------------------------------------


def doctor(url: str, *options: str) -> tuple[int, dict[str, dict]]:
    done = subprocess.run(
        [leat.testing.find_binary(), "doctor", url, *options, "--json"], capture_output=True, text=True, timeout=60
    )
    assert "SECRET" not in done.stdout + done.stderr
    findings = {finding["check"]: finding for finding in json.loads(done.stdout)}
    return done.returncode, {name: findings[name] for name in ("credentials", "reach") if name in findings}


def test_doctor_knows_who_asks_google(folder, as_user, monkeypatch):
    with serving(GoogleHandler, folder.parent) as cloud:
        as_user(cloud)
        reach = ("--endpoint-url", cloud.url)
        code, told = doctor(f"gs://photos/{folder.name}", *reach)
        assert told["credentials"]["good"] and told["reach"]["good"] and code == 0, told
        assert "adc.json, good for another 0h59m" in told["credentials"]["found"]

        as_user(cloud, refresh_token="STALESECRET")
        code, told = doctor("gs://photos", *reach)
        assert not told["credentials"]["good"] and "invalid_grant" in told["credentials"]["found"] and code == 1


def test_doctor_knows_who_asks_azure(folder, monkeypatch):
    with serving(AzureHandler, folder.parent) as cloud:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
        monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "?se=2999-01-01T00%3A00%3A00Z&sig=SASSECRET")
        reach = ("--endpoint-url", f"{cloud.url}/account")
        code, told = doctor(f"az://ds/{folder.name}", *reach)
        assert told["credentials"]["good"] and told["reach"]["good"] and code == 0, told
        assert "a SAS, good for another" in told["credentials"]["found"]

        monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "?se=2024-01-01T00%3A00%3A00Z&sig=STALESECRET")
        code, told = doctor("abfss://ds@account.dfs.core.windows.net", *reach)
        assert not told["credentials"]["good"] and "has ended" in told["credentials"]["found"] and code == 1
        assert not told["reach"]["good"] and "AuthenticationFailed" in told["reach"]["found"]


def test_doctor_says_once_what_cannot_be():
    code, told = doctor("az://ds")
    assert code == 1 and "credentials" not in told
    assert "AZURE_STORAGE_ACCOUNT_NAME" in told["reach"]["found"] and told["reach"]["remedy"] == ""


def test_doctor_knows_who_asks_the_hub(folder, monkeypatch):
    with serving(HubHandler, folder.parent) as cloud:
        monkeypatch.setenv("HF_ENDPOINT", cloud.url)
        code, told = doctor("hf://datasets/me/ds")
        assert "HF_TOKEN is not set" in told["credentials"]["found"] and "RepoNotFound" in told["reach"]["found"]
        assert code == 1

        monkeypatch.setenv("HF_TOKEN", "HUBSECRET")
        code, told = doctor(f"hf://datasets/me/ds/{folder.name}")
        assert told["credentials"]["found"] == "the token of HF_TOKEN" and told["reach"]["good"] and code == 0, told
