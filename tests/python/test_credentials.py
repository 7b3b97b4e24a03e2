"""SSO through botocore, end to end: a profile, a cached login, a fake of the portal."""

import datetime
import hashlib
import http.server
import json
import subprocess
import sys
import threading

import pytest

import leat
import leat.testing
from leat import _credentials
from small_datasets import make_pictures

pytest.importorskip("botocore")

ACCESS_TOKEN = "PLANTEDACCESSTOKEN"
SECRET = "PLANTEDSECRETKEY"
SESSION_TOKEN = "PLANTEDSESSIONTOKEN"
START_URL = "https://corp.example/start"


@pytest.fixture
def portal():
    """A portal that gives roles to users who have logged in; counts who was
    let in."""

    class Portal(http.server.BaseHTTPRequestHandler):
        given = 0

        def do_GET(self):
            good = self.headers.get("x-amz-sso_bearer_token") == ACCESS_TOKEN
            in_an_hour = datetime.datetime.now(datetime.timezone.utc).timestamp() + 3600
            body = json.dumps({"roleCredentials": {
                "accessKeyId": "ASIASSO", "secretAccessKey": SECRET,
                "sessionToken": SESSION_TOKEN, "expiration": int(in_an_hour * 1000),
            }} if good else {"message": "no"}).encode()
            Portal.given += good
            self.send_response(200 if good else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Portal)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Portal, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def logged_in(monkeypatch, tmp_path, portal):
    """A home folder with an SSO profile `corp` whose login is still good."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AWS_CONFIG_FILE")
    monkeypatch.delenv("AWS_SHARED_CREDENTIALS_FILE")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSO", portal[1])
    (tmp_path / ".aws" / "sso" / "cache").mkdir(parents=True)
    (tmp_path / ".aws" / "config").write_text(
        f"[profile corp]\nsso_start_url = {START_URL}\nsso_region = us-east-1\n"
        "sso_account_id = 123456789012\nsso_role_name = reader\n")
    ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=8)
    name = hashlib.sha1(START_URL.encode()).hexdigest()
    login = tmp_path / ".aws" / "sso" / "cache" / f"{name}.json"
    login.write_text(json.dumps({
        "startUrl": START_URL, "region": "us-east-1", "accessToken": ACCESS_TOKEN,
        "expiresAt": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}))
    return login


def test_a_loader_reads_with_an_sso_profile(tmp_path, logged_in, portal):
    make_pictures(tmp_path / "data" / "own", 12)
    with leat.testing.Bucket(tmp_path / "data", latency="0",
                             credentials=("ASIASSO", SECRET),
                             session_token=SESSION_TOKEN) as bucket:
        dataset = leat.Dataset("s3://own", refresh="always",
                               storage_options={"endpoint_url": bucket.url, "profile": "corp"})  # fmt: skip
        loader = leat.Loader(dataset, global_batch_size=4, shuffle=True)
        assert sum(len(batch["label"]) for batch in loader) == 12
    assert portal[0].given >= 1


def test_a_login_that_has_ended_says_so_and_shows_no_secret(tmp_path, logged_in):
    logged_in.unlink()
    (tmp_path / "data" / "own").mkdir(parents=True)
    with leat.testing.Bucket(tmp_path / "data", credentials=("A", "B")) as bucket:
        with pytest.raises(leat.PermissionDenied) as raised:
            leat.Dataset("s3://own", storage_options={"endpoint_url": bucket.url, "profile": "corp"},
                         refresh="always")
    message = str(raised.value)
    assert "through botocore" in message
    assert "sso" in message.lower()
    assert "PLANTED" not in message


def test_the_helper_prints_what_a_credential_process_prints(logged_in):
    ran = subprocess.run([sys.executable, _credentials.__file__, "--profile", "corp"],
                         capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    printed = json.loads(ran.stdout)
    assert printed["Version"] == 1
    assert printed["SessionToken"] == SESSION_TOKEN
    ends = datetime.datetime.fromisoformat(printed["Expiration"])
    assert ends > datetime.datetime.now(datetime.timezone.utc)


def test_without_botocore_there_is_no_helper(monkeypatch):
    assert _credentials.__file__ in _credentials.helper_command()
    monkeypatch.setattr(_credentials.importlib.util, "find_spec", lambda name: None)
    assert _credentials.helper_command() == ""
