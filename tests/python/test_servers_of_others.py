"""The same samples in the same order from servers that others wrote, which tools/test_servers.py starts and names."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
import urllib.parse

import pytest

import leat
import leat.testing
from emulators import put_at_azurite, put_at_gcs
from leat.ops import DecodeImage
from small_datasets import make_pictures

OPTIONS = {
    "global_batch_size": 32, "shuffle": True, "seed": 3, "ops": [DecodeImage()], "output": "numpy", "drop_last": False,
}  # fmt: skip
TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/test_servers.py"


def named_by(variable: str):
    reason = f"{variable} names no server; ./dev test-servers starts them"
    return pytest.mark.skipif(variable not in os.environ, reason=reason)


@pytest.fixture(autouse=True)
def _nobody_is_known(monkeypatch, tmp_path):
    """No credentials but the test's."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "GCS_", "GS_", "CLOUDSDK_", "STORAGE_EMULATOR", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("servers") / "odd & folder+1"
    make_pictures(folder, 130)
    return folder


def hashes(source, *, at_once: int = 64, **reach) -> list[tuple[str, str]]:
    with leat.Loader(source, **OPTIONS, max_in_flight=at_once, storage_options=reach) as loader:
        for _ in range(2):
            assert sum(1 for _ in loader) == len(loader)
        return [(epoch["order_hash"], epoch["content_hash"]) for epoch in loader.stats()]


@pytest.fixture(scope="module")
def expected(folder):
    return hashes(folder)


def pictures_in(folder: pathlib.Path) -> list[tuple[str, bytes]]:
    """Keys and bytes."""
    paths = sorted(folder.rglob("*.png"))
    assert len(paths) == 130
    return [(path.relative_to(folder.parent).as_posix(), path.read_bytes()) for path in paths]


@named_by("LEAT_TEST_S3")
def test_s3s_protocol(folder, expected, monkeypatch):
    """`leat bucket`, Ceph's gateway and moto, with the keys that tests/rgw/start.sh gives."""
    boto3 = pytest.importorskip("boto3")
    from botocore.config import Config

    url, bucket = os.environ["LEAT_TEST_S3"], f"leat-{os.getpid()}"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SKTESTSECRET")
    # Ceph 16 knows no checksums in trailers.
    config = Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required")
    client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", config=config)
    client.create_bucket(Bucket=bucket)
    for key, data in pictures_in(folder):
        client.put_object(Bucket=bucket, Key=key, Body=data)
    assert hashes(f"s3://{bucket}/{folder.name}", endpoint_url=url) == expected


@named_by("LEAT_TEST_HTTP")
def test_a_web_server(folder, expected):
    """It cannot list, so the catalogue lies beside the data."""
    name = f"leat-{os.getpid()}"
    served = pathlib.Path(os.environ["LEAT_TEST_HTTP_FOLDER"]) / name
    for key, data in pictures_in(folder):
        (served / key).parent.mkdir(parents=True, exist_ok=True)
        (served / key).write_bytes(data)
    index = [leat.testing.find_binary(), "index", served / folder.name, "--publish"]
    subprocess.run(index, check=True, capture_output=True)
    path = urllib.parse.quote(f"{name}/{folder.name}")
    assert hashes(f"{os.environ['LEAT_TEST_HTTP']}/{path}") == expected


@named_by("LEAT_TEST_GCS")
def test_googles_emulator(folder, expected, monkeypatch):
    url, bucket = os.environ["LEAT_TEST_GCS"], f"leat-{os.getpid()}"
    put_at_gcs(url, bucket, pictures_in(folder))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
    # gcp-storage-emulator serves one connection at a time, and resets those that find five waiting.
    assert hashes(f"gs://{bucket}/{folder.name}", at_once=4) == expected


@named_by("LEAT_TEST_AZURITE")
def test_azurite(folder, expected, monkeypatch):
    url, container = os.environ["LEAT_TEST_AZURITE"], f"leat-{os.getpid()}"
    put_at_azurite(url, container, pictures_in(folder))
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true")
    assert hashes(f"az://{container}/{folder.name}", endpoint_url=f"{url}/devstoreaccount1") == expected


# --- the tool -----------------------------------------------------------------


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("test_servers_tool", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses look for it there.
    spec.loader.exec_module(module)
    return module


def test_a_server_that_is_named_and_not_installed_fails_and_says_how_to_install_it(tool, monkeypatch, capsys):
    monkeypatch.setattr(tool, "find_program", lambda name: None)
    assert tool.main(["nginx"]) == 1
    assert "nginx     not installed: apt-get install nginx-light" in capsys.readouterr().out


def test_names_the_servers_where_one_is_unknown(tool, capsys):
    with pytest.raises(SystemExit):
        tool.main(["minio"])
    assert "azurite" in capsys.readouterr().err


@pytest.mark.parametrize("code, said, ran", [
    (0, "[  PASSED  ] 0 tests.", None),
    (0, "[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed below:", (1, 1)),
    (0, "[  PASSED  ] 20 tests.\n[  SKIPPED ] 3 tests, listed below:", (20, 3)),
    (1, "[  PASSED  ] 19 tests.\n[  FAILED  ] 1 test, listed below:", None),
    (0, "", None),
])  # fmt: skip
def test_a_suite_that_ran_nothing_has_not_passed(tool, code, said, ran):
    if ran is None:
        with pytest.raises(tool.Failed):
            tool.counted(code, said)
    else:
        assert tool.counted(code, said) == ran


@pytest.mark.parametrize("code, said", [(0, "1 skipped in 0.1s"), (5, "no tests ran"), (1, "1 failed in 2s")])
def test_hashes_that_nobody_compared_have_not_passed(tool, code, said):
    with pytest.raises(tool.Failed):
        tool.check_hashes(code, said)
    tool.check_hashes(0, "1 passed in 3.2s")
