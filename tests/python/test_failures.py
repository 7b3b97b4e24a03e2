"""Every failure is told as a typed error that names the thing, the cause and the
remedy; nothing hangs, nothing leaks, and delivered batches stay delivered."""

from __future__ import annotations

import contextlib
import functools
import gc
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tarfile
import threading
import time

import numpy as np
import pytest

import leat
from leat.ops import CenterCrop, DecodeImage, Resize
from small_datasets import encoded, make_pictures, make_shards, pixels, tar_of, write
from test_memory import assert_all_given_back

DECODE = [DecodeImage(layout="HWC")]
ORDERED = {"shuffle": False, "ids": True, "global_batch_size": 10}


@contextlib.contextmanager
def told(kind: type, *words: str, within: float = 20):
    """An error of exactly this kind comes, and its message has all the words."""
    begun = time.monotonic()
    with pytest.raises(leat.Error) as caught:
        yield caught
    assert time.monotonic() - begun < within
    assert type(caught.value) is kind, caught.value
    for word in words:
        assert word in str(caught.value)


@pytest.fixture
def few_tries(monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")


@pytest.fixture
def folder(tmp_path):
    """30 pictures of the test's own, to be spoilt."""
    make_pictures(tmp_path / "own", 30)
    return tmp_path / "own"


def spoil(folder, number: int, data: bytes | None) -> str:
    """Replaces a picture's bytes, or takes it away; returns its key."""
    path = next(folder.rglob(f"{number:05}.png"))
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    return path.relative_to(folder).as_posix()


def numbers(batch) -> list[int]:
    return batch["index"].tolist()


# --- where the data is ------------------------------------------------------


def test_no_such_bucket(pictures, serve):
    served = serve(pictures)
    with told(leat.NotFound, "s3://nowhere", "no bucket of this name", "check the name"):
        leat.Loader("s3://nowhere", global_batch_size=8, shuffle=True, **served.options)


def test_nothing_under_the_prefix(pictures, serve):
    served = serve(pictures)
    with told(leat.NotFound, f"{served.url}/dog"):
        leat.Loader(f"{served.url}/dog", global_batch_size=8, shuffle=True, **served.options)


def test_no_such_folder(tmp_path):
    with told(leat.NotFound, str(tmp_path / "nowhere")):
        leat.Loader(tmp_path / "nowhere", global_batch_size=8, shuffle=True)
    (tmp_path / "empty").mkdir()
    with told(leat.NotFound, str(tmp_path / "empty")):
        leat.Loader(tmp_path / "empty", global_batch_size=8, shuffle=True)


@pytest.mark.parametrize("url", ["s4://bucket", "s3://", "", "http://"])
def test_no_such_url(url):
    with told(leat.InvalidArgument):
        leat.Loader(url, global_batch_size=8, shuffle=True)


def test_plain_http_without_a_catalogue(pictures, serve):
    served = serve(pictures)
    with told(leat.NotFound, served.http_url, "leat index --publish"):
        leat.Loader(served.http_url, global_batch_size=8, shuffle=True)


def test_an_endpoint_that_is_down(few_tries):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with told(leat.Unavailable, f"127.0.0.1:{port}", "2 attempts", "Connection refused",
              "check that the server runs"):
        leat.Loader("s3://bucket", global_batch_size=8, shuffle=True, storage_options={"no_sign_request": True, "endpoint_url": f"http://127.0.0.1:{port}"})


def a_closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def never_there(endpoint: str, kind: type, *words: str) -> None:
    """A loader of such an endpoint fails within 3 s, with advice that fits."""
    with told(kind, *words, within=3) as caught:
        leat.Loader("s3://bucket", batch_size=8, train=False, storage_options={"no_sign_request": True, "endpoint_url": endpoint})
    assert "AWS_MAX_ATTEMPTS" not in str(caught.value)


def test_a_closed_port_is_told_soon():
    port = a_closed_port()
    never_there(f"http://127.0.0.1:{port}", leat.Unavailable, f"127.0.0.1:{port}", "not reached by",
                "check that the server runs")
    with told(leat.Unavailable, "not reached by", within=3):
        leat.Loader(f"http://127.0.0.1:{port}/data", batch_size=8, train=False)


def reach_of(url: str) -> tuple[int, dict]:
    """The exit code of `leat doctor`, and its finding about reach."""
    done = subprocess.run([leat.testing.find_binary(), "doctor", url, "--json"], capture_output=True, text=True, timeout=60)
    (reach,) = [finding for finding in json.loads(done.stdout) if finding["check"] == "reach"]
    return done.returncode, reach


def test_doctor_asks_a_plain_web_server(pictures, serve):
    code, reach = reach_of(f"http://127.0.0.1:{a_closed_port()}/data")
    assert code == 1 and not reach["good"] and "Connection refused" in reach["found"]

    served = serve(pictures)
    code, reach = reach_of(served.http_url)
    assert reach["good"] and "answers in" in reach["found"] and "no catalogue is published" in reach["found"]
    assert "leat index --publish" in reach["remedy"]


class _NothingBeside(http.server.SimpleHTTPRequestHandler):
    """Answers 403 for what is not there, as many hosts do."""

    def send_error(self, code, message=None, explain=None):
        super().send_error(403 if code == 404 else code, message, explain)

    def log_message(self, *words):
        pass


def test_doctor_asks_for_the_objects_that_are_named(tmp_path):
    for number in range(3):
        write(tmp_path / f"shard-{number:04}.tar", b"x" * 512)
    handler = functools.partial(_NothingBeside, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"

        code, reach = reach_of(f"{url}/shard-0000.tar")
        assert code == 0 and reach["good"] and "shard-0000.tar answers in" in reach["found"], reach
        code, reach = reach_of(f"{url}/shard-{{0000..0002}}.tar")
        assert code == 0 and reach["good"] and "the first of 3 objects" in reach["found"], reach
        code, reach = reach_of(f"{url}/shard-0003.tar")
        assert code == 1 and not reach["good"] and "shard-0003.tar" in reach["found"], reach
        server.shutdown()


def test_doctor_asks_a_bucket_for_the_object_that_is_named(tmp_path, monkeypatch):
    (tmp_path / "b").mkdir()
    write(tmp_path / "b/train.parquet", b"x" * 512)
    with leat.testing.Bucket(tmp_path, latency="0") as bucket:
        for name, value in bucket.env().items():
            monkeypatch.setenv(name, value)
        code, reach = reach_of("s3://b/train.parquet")
        assert code == 0 and reach["good"] and "train.parquet answers in" in reach["found"], reach
        code, reach = reach_of("s3://b/test.parquet")
        assert code == 1 and not reach["good"] and "test.parquet" in reach["found"], reach


def test_a_host_that_does_not_exist_is_told_soon():
    never_there("http://nowhere.invalid", leat.Unavailable, "nowhere.invalid", "DNS")


def test_tls_on_a_plain_port_is_told_soon(pictures, serve):
    served = serve(pictures)
    never_there(served.bucket.url.replace("http:", "https:"), leat.Unavailable,
                "http:// in the place of https://")


def test_plain_http_on_a_port_of_tls_is_told_soon(pictures):
    with leat.testing.Bucket(pictures.parent, latency="0", tls=True) as bucket:
        never_there(bucket.url.replace("https:", "http:"), leat.Unavailable,
                    "https:// in the place of http://")


def test_a_certificate_of_nobody_known_is_told_soon(pictures):
    with leat.testing.Bucket(pictures.parent, latency="0", tls=True) as bucket:
        never_there(bucket.url, leat.PermissionDenied, "SSL_CERT_FILE", "AWS_CA_BUNDLE")


def test_the_variable_that_such_an_error_names_serves_plain_https(pictures, monkeypatch):
    one = sorted(pictures.rglob("*.png"))[0].relative_to(pictures.parent)
    with leat.testing.Bucket(pictures.parent, latency="0", tls=True) as bucket:
        url = f"{bucket.url}/{one}"
        monkeypatch.setenv("AWS_CA_BUNDLE", bucket.certificate)  # For s3:// alone.
        with told(leat.PermissionDenied, "name its PEM file in SSL_CERT_FILE (for s3:// also in AWS_CA_BUNDLE)", within=3):
            leat.Dataset(url)
        monkeypatch.setenv("SSL_CERT_FILE", bucket.certificate)
        assert len(leat.Dataset(url)) == 1


def test_another_protocol_is_told_soon():
    with socket.create_server(("127.0.0.1", 0)) as server:
        def greet() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                    client.close()

        threading.Thread(target=greet, daemon=True).start()
        never_there(f"http://127.0.0.1:{server.getsockname()[1]}", leat.Unavailable,
                    "check that host and port are right")
        server.shutdown(socket.SHUT_RDWR)


def raised_by(endpoint: str, errors: dict[str, Exception]) -> None:
    try:
        leat.Dataset("s3://bucket", storage_options={"no_sign_request": True, "endpoint_url": endpoint})
    except leat.Error as error:
        errors[endpoint] = error


def test_a_server_that_never_answers_is_said_before_a_start_gives_up(caplog):
    """One that takes a request, and one that takes the first words of TLS. Both hang up once that
    is said, so that the test need not wait until Leat gives up."""
    errors: dict[str, Exception] = {}
    with contextlib.ExitStack() as servers:
        endpoints = []
        for scheme in ("http", "https"):  # The kernel accepts, and nobody reads.
            server = servers.enter_context(socket.create_server(("127.0.0.1", 0)))
            endpoints.append(f"{scheme}://127.0.0.1:{server.getsockname()[1]}")
        asking = [threading.Thread(target=raised_by, args=(endpoint, errors)) for endpoint in endpoints]
        begun = time.monotonic()
        for thread in asking:
            thread.start()

        def said() -> list[str]:
            return [r.getMessage() for r in caplog.records if r.levelname == "WARNING" and "never answered" in r.getMessage()]

        while len(said()) < 2 and time.monotonic() - begun < 25:
            time.sleep(0.05)
        assert len(said()) >= 2
    for thread in asking:
        thread.join()
    for endpoint in endpoints:
        assert any(f"s3://bucket/ at {endpoint}/bucket: " in each and "firewalls and security groups" in each for each in said())
        assert "AWS_MAX_ATTEMPTS" not in str(errors[endpoint])


@pytest.mark.parametrize(("url", "words"), [
    ("https://account.blob.core.windows.net/container", ("az://", "abfss://")),
    ("wasbs://container@account.blob.core.windows.net/data", ("az://", "AZURE_STORAGE_ACCOUNT_NAME")),
    ("gcs://bucket/data", ("write gs://",)),
])
def test_urls_of_other_systems_say_how_they_are_written_here(url, words):
    with told(leat.InvalidArgument, *words, within=1):
        leat.Dataset(url)


def drain(batches) -> None:
    with contextlib.suppress(leat.Error):
        list(batches)


def test_a_server_that_dies_in_mid_epoch_is_said_every_10_seconds(folder, caplog):
    def said():
        return [r for r in caplog.records if "no request has been answered" in r.getMessage()]

    bucket = leat.testing.Bucket(folder.parent, latency="100ms")  # All of it is read after 3 s alone.
    with bucket:
        loader = leat.Loader("s3://own", storage_options={"endpoint_url": bucket.url, "no_sign_request": True},
                             max_in_flight=1, memory="40KB", ops=DECODE, **ORDERED)
        batches = iter(loader)
        next(batches)
    begun = time.monotonic()
    waiting = threading.Thread(target=drain, args=(batches,))
    waiting.start()
    while not said() and time.monotonic() - begun < 60:
        time.sleep(0.05)
    assert time.monotonic() - begun < 20  # A busy machine may be late.
    while len(said()) < 2 and time.monotonic() - begun < 60:
        time.sleep(0.05)
    loader.close()
    waiting.join()
    first, second = said()
    assert 9 < second.created - first.created < 20
    for line in (first, second):
        assert line.levelname == "WARNING"
        assert re.search(r"s3://own.*: no request has been answered for \d+ s, and \d+ (is|are) under way; "
                         r"Leat waits up to 300 s for it \(patience=\)\. The last failure: .*127\.0\.0\.1:.*refused",
                         line.getMessage())


def test_an_endpoint_that_goes_down(folder, few_tries):
    bucket = leat.testing.Bucket(folder.parent, latency="100ms")
    with bucket:
        loader = leat.Loader("s3://own", storage_options={"endpoint_url": bucket.url, "no_sign_request": True},
                             max_in_flight=1, memory="40KB", ops=DECODE, **ORDERED)
        batches = iter(loader)
        assert numbers(next(batches)) == list(range(10))
    with told(leat.Unavailable, "s3://own", "2 attempts"):
        list(batches)
    with told(leat.Unavailable):  # It stays so.
        next(batches)
    assert loader.state_dict()["position"] % 10 == 0 and loader.state_dict()["position"] >= 10
    loader.close()
    assert_all_given_back(loader)


# --- who is asking ----------------------------------------------------------


@pytest.mark.parametrize(("given", "words"), [
    (("key", "another"), ("AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch")),
    (("nobody", "s3cr3t"), ("AWS_ACCESS_KEY_ID", "InvalidAccessKeyId")),
    (None, ("not signed", "no_sign_request")),
])
def test_the_wrong_credentials(pictures, monkeypatch, given, words):
    with leat.testing.Bucket(pictures.parent, latency="0", credentials=("key", "s3cr3t")) as bucket:
        if given is not None:
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", given[0])
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", given[1])
        with told(leat.PermissionDenied, f"s3://{pictures.name}", *words) as caught:
            leat.Loader(f"s3://{pictures.name}", global_batch_size=8, shuffle=True, storage_options={"endpoint_url": bucket.url, "no_sign_request": given is None})
    assert "s3cr3t" not in str(caught.value) and "another" not in str(caught.value)


def test_no_credentials_at_all(pictures, serve):
    served = serve(pictures)
    with told(leat.PermissionDenied, "AWS_ACCESS_KEY_ID", "no_sign_request"):
        leat.Loader(served.url, global_batch_size=8, shuffle=True, storage_options={"endpoint_url": served.bucket.url})


def test_an_expired_token(pictures, monkeypatch):
    bucket = leat.testing.Bucket(pictures.parent, latency="0", credentials=("key", "s3cr3t"),
                                 session_token="new-one", expired_token="old-one")
    with bucket:
        for name, value in bucket.env().items():
            monkeypatch.setenv(name, value)
        leat.Loader(f"s3://{pictures.name}", global_batch_size=8, shuffle=True).close()
        monkeypatch.setenv("AWS_SESSION_TOKEN", "old-one")
        with told(leat.PermissionDenied, "ExpiredToken", "AWS_SESSION_TOKEN") as caught:
            leat.Dataset(f"s3://{pictures.name}", refresh="always")
    assert "old-one" not in str(caught.value)


def test_permission_that_is_taken_away_is_not_a_bad_sample(folder, serve):
    served = serve(folder, fault_script="after 0 GET bee/ 403 x*")
    with served.loader(ops=DECODE, on_error="substitute", **ORDERED) as loader:
        batches = iter(loader)
        assert numbers(next(batches)) == list(range(10))
        with told(leat.PermissionDenied, "bee/", "give credentials"):
            next(batches)


# --- objects that are not what they were ------------------------------------


@pytest.mark.parametrize("place", ["file", "s3"])
@pytest.mark.parametrize("harm", ["vanished", "changed", "grown", "cut"])
def test_an_object_that_vanishes_or_changes(folder, serve, place, harm):
    served = serve(folder)
    make = served.loader if place == "s3" else lambda **options: leat.Loader(folder, **options)
    options = {**ORDERED, "ops": DECODE}
    loader = make(**options)
    good = next(folder.rglob("00015.png")).read_bytes()
    time.sleep(0.02)  # So that the clock of the file system moves on.
    harmed = {
        "vanished": None,
        "changed": encoded(pixels(99))[: len(good)].ljust(len(good), b"\0"),
        "grown": good + b"more",
        "cut": good[:-5],
    }[harm]
    key = spoil(folder, 15, harmed)
    batches = iter(loader)
    assert numbers(next(batches)) == list(range(10))
    kind, words = (leat.NotFound, ()) if harm == "vanished" else (leat.Corrupt, ("index again",))
    with told(kind, key, "sample 15", *words):
        next(batches)
    assert loader.state_dict()["position"] == 10  # Nothing half done.
    write(folder / key, good)
    loader.close()
    assert_all_given_back(loader)

    with make(**options, on_error="substitute") as loader:
        state = loader.state_dict()
        assert [numbers(b) for b in loader][0] == list(range(10))
        loader.load_state_dict(state)


def test_what_was_mended_goes_on_from_the_state(folder, serve):
    served = serve(folder)
    with served.loader(**ORDERED, ops=DECODE) as loader:
        path = next(folder.rglob("00015.png"))
        good, was = path.read_bytes(), path.stat()
        key = spoil(folder, 15, None)
        batches = iter(loader)
        next(batches)
        with told(leat.NotFound, key):
            next(batches)
        # Put back with its time, so that it is the same version.
        write(folder / key, good)
        os.utime(folder / key, ns=(was.st_atime_ns, was.st_mtime_ns))
        loader.load_state_dict(loader.state_dict())
        assert [i for batch in loader for i in numbers(batch)] == list(range(10, 30))


def test_a_shard_that_was_replaced(tmp_path, serve):
    make_shards(tmp_path / "sh", shards=3, samples=10, size=5000)
    served = serve(tmp_path / "sh")
    loader = served.loader(**ORDERED)
    data = (tmp_path / "sh/001.tar").read_bytes()
    time.sleep(0.02)
    (tmp_path / "sh/001.tar").write_bytes(data[::-1])
    batches = iter(loader)
    next(batches)
    with told(leat.Corrupt, "001.tar", "index again"):
        next(batches)
    loader.close()
    assert_all_given_back(loader)


# --- objects that were never right ------------------------------------------


def png_that_claims(width: int, height: int) -> bytes:
    import struct
    import zlib

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
            + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b""))


JPEG = encoded(pixels(1, 64, 48), "JPEG", quality=90)
BAD = {
    "empty": (b"", "no bytes"),
    "text": (b"<html>no picture</html>", ""),
    "cut JPEG": (JPEG[: len(JPEG) // 2], ""),
    "cut PNG": (encoded(pixels(1))[:200], ""),
    "huge PNG": (png_that_claims(60_000, 60_000), "max_pixels"),
    "endless PNG": (png_that_claims(2**31 - 1, 2**31 - 1), ""),
    "only a head": (b"\xff\xd8\xff", ""),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_picture(folder, bad):
    data, word = BAD[bad]
    key = spoil(folder, 15, data)
    options = {**ORDERED, "ops": [DecodeImage(), Resize((10, 12))]}
    loader = leat.Loader(folder, **options)
    batches = iter(loader)
    next(batches)
    with told(leat.Corrupt, key, "sample 15", word, 'on_error="substitute"'):
        next(batches)
    loader.close()
    assert_all_given_back(loader)

    with leat.Loader(folder, **options, on_error="substitute") as loader:
        got = [numbers(batch) for batch in loader]
        # Samples that were made for the next epoch already are not counted
        # yet.
        assert loader.metrics()["leat_pipeline_substitutes_total"] == 1
        assert loader.stats()[0]["substituted"] == 1
    (place,) = [row for row, number in enumerate(got[1]) if number != 10 + row]
    assert place == 5 and got[1][5] != 15
    assert got[0] == list(range(10)) and got[2] == list(range(20, 30))


def test_an_empty_object_is_bytes_like_any_other(folder):
    spoil(folder, 15, b"")
    with leat.Loader(folder, **ORDERED) as loader:
        data = [sample for batch in loader for sample in batch["data"].tolist()]
    assert data[15] == b"" and all(data[:15]) and all(data[16:])


# --- substitutes ------------------------------------------------------------


def test_a_substitute_is_a_good_sample_in_full(folder):
    for number in (12, 13, 19):
        spoil(folder, number, b"bad")
    with leat.Loader(folder, ops=DECODE, on_error="substitute", **ORDERED) as loader:
        batches = list(loader)
        assert loader.metrics()["leat_pipeline_substitutes_total"] == 3
        assert len(batches) == len(loader) == 3
    got = numbers(batches[1])
    assert [number for row, number in enumerate(got) if row not in (2, 3, 9)] == [10, 11, 14, 15, 16, 17, 18]
    assert not {12, 13, 19} & set(got)
    for batch in batches:
        assert batch["image"].shape == (10, 10, 12, 3)
        for row, number in enumerate(numbers(batch)):
            np.testing.assert_array_equal(batch["image"][row], pixels(number))
            assert batch["key"][row].endswith(f"{number:05}.png")
            assert batch["label"][row] == number // 10


def test_substitutes_of_bytes_and_texts(tmp_path, serve):
    rng = np.random.default_rng(3)
    blobs = [rng.bytes(50 + 10 * number) for number in range(30)]
    for number, blob in enumerate(blobs):
        write(tmp_path / f"raw/{number:05}.png", blob)
    served = serve(tmp_path / "raw")
    loader = served.loader(on_error="substitute", **ORDERED)
    for number in (10, 11, 19):
        spoil(tmp_path / "raw", number, None)
    batches = list(loader)
    loader.close()
    got = [number for batch in batches for number in numbers(batch)]
    assert [number for place, number in enumerate(got) if place == number] == [
        number for number in range(30) if number not in (10, 11, 19)
    ]
    assert not {10, 11, 19} & set(got)
    # Each is longer or shorter than the bytes that were planned.
    assert [sample for batch in batches for sample in batch["data"].tolist()] == [blobs[number] for number in got]
    assert loader.metrics()["leat_pipeline_substitutes_total"] == 3


def test_ranks_without_a_bad_sample_see_no_difference(folder):
    options = {**ORDERED, "ops": DECODE, "world_size": 2, "on_error": "substitute"}
    before = []
    for rank in range(2):
        with leat.Loader(folder, **options, rank=rank) as loader:
            before.append([numbers(b) for b in loader])
    spoil(folder, 11, b"bad")  # A sample of rank 0.
    after = []
    for rank in range(2):
        with leat.Loader(folder, **options, rank=rank) as loader:
            after.append([numbers(b) for b in loader])
            assert loader.state_dict()["epoch"] == 1
    assert after[1] == before[1]
    assert after[0][1][0] == 10 and after[0][1][2:] == [12, 13, 14] and after[0][1][1] != 11


@pytest.mark.parametrize("ops", [DECODE, [DecodeImage(), CenterCrop(8)]])
def test_a_batch_without_a_good_sample_takes_all_from_elsewhere(folder, ops):
    """With fixed shapes, and with shapes that only the data tells."""
    for number in range(10, 20):
        spoil(folder, number, b"bad")
    with leat.Loader(folder, ops=ops, on_error="substitute", **ORDERED) as loader:
        got = [numbers(batch) for batch in loader]
    assert got[0] == list(range(10)) and got[2] == list(range(20, 30))
    assert len(got[1]) == 10 and not set(range(10, 20)) & set(got[1])


@pytest.mark.parametrize("ops", [DECODE, [DecodeImage(), CenterCrop(8)]])
def test_a_dataset_without_a_good_sample_raises(folder, ops):
    for number in range(30):
        spoil(folder, number, b"bad")
    with leat.Loader(folder, ops=ops, on_error="substitute", **ORDERED) as loader:
        with told(leat.Corrupt, "ant/00000.png", "1000 that were drawn for its place"):
            next(iter(loader))


@pytest.mark.parametrize("bad", [range(0, 1), range(0, 9), range(0, 29)])
def test_the_first_samples_are_bad_and_the_shape_is_not_known(folder, bad):
    for number in bad:
        spoil(folder, number, b"bad")
    with leat.Loader(folder, ops=DECODE, on_error="substitute", **ORDERED) as loader:
        got = [number for batch in loader for number in numbers(batch)]
        assert len(got) == 30 and not set(bad) & set(got)
        assert got[len(bad) :] == list(range(len(bad), 30))
    with leat.Loader(folder, ops=DECODE, **ORDERED) as loader:
        with told(leat.Corrupt, "ant/00000.png"):
            list(loader)


@pytest.mark.parametrize("fault", ["503", "reset", "truncate"])
def test_exhausted_retries_always_raise(folder, serve, few_tries, fault):
    served = serve(folder, fault_script=f"after 0 GET bee/00015 {fault} x*")
    with served.loader(ops=DECODE, on_error="substitute", **ORDERED) as loader:
        batches = iter(loader)
        next(batches)
        kind = leat.Throttled if fault == "503" else leat.Unavailable
        with told(kind, "bee/00015.png", "2 attempts", "AWS_MAX_ATTEMPTS"):
            next(batches)
        assert loader.metrics()["leat_pipeline_substitutes_total"] == 0
    assert_all_given_back(loader)


def test_a_fault_that_passes_is_not_noticed(folder, serve):
    served = serve(folder, fault_script="after 0 GET bee/00015 503 x3")
    with served.loader(ops=DECODE, epochs=1, **ORDERED) as loader:
        assert [i for batch in loader for i in numbers(batch)] == list(range(30))
        assert loader.stats()[0]["requests"]["retried"] == 3
        assert loader.stats()[0]["stalls"]["throttled"] > 0


# --- shards -----------------------------------------------------------------


def test_a_tar_cut_anywhere(tmp_path, fresh_cache):
    members = [(f"s{i}.bin", bytes([i]) * (300 + 700 * i)) for i in range(4)]
    whole = tar_of(members)
    folder = tmp_path / "cut"
    end = sum(512 + -(-len(data) // 512) * 512 for _, data in members)
    for size in {*range(0, len(whole), 61), *range(0, len(whole), 512)}:
        shutil.rmtree(folder, ignore_errors=True)
        write(folder / "good.tar", tar_of([("z.bin", b"good")]))
        write(folder / "cut.tar", whole[:size])
        try:
            loader = leat.Loader(leat.Dataset(folder, refresh="always"), global_batch_size=5, shuffle=False)
        except leat.Error as error:
            assert type(error) is leat.Corrupt and "cut.tar" in str(error), (size, error)
            assert size < end + 512
            continue
        with loader:  # Only some of the zeros at the end were missing.
            (batch,) = loader
            assert batch["bin"].tolist() == [data for _, data in members] + [b"good"]
            assert size >= end + 512


@pytest.mark.parametrize("name", ["../out.bin", "a/../../out.bin", "/etc/out.bin", "a/.."])
def test_a_tar_that_points_outside(tmp_path, name):
    folder = tmp_path / "in/side"
    write(folder / "bad.tar", tar_of([("fine.bin", b"1"), (name, b"2")]))
    with told(leat.Corrupt, "bad.tar", name):
        leat.Loader(folder, global_batch_size=1, shuffle=True)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["bad.tar"]


def test_shards_among_other_objects(tmp_path):
    write(tmp_path / "mixed/a.tar", tar_of([("a.bin", b"1")]))
    write(tmp_path / "mixed/b.png", b"1")
    with told(leat.InvalidArgument, "a.tar", "b.png"):
        leat.Loader(tmp_path / "mixed", global_batch_size=1, shuffle=True)


def test_a_sample_without_a_field(tmp_path):
    folder = tmp_path / "holes"
    write(folder / "a.tar", tar_of([("1.bin", b"1"), ("1.cls", b"0"), ("2.bin", b"2"),
                                    ("3.bin", b"3"), ("3.cls", b"1")]))
    with leat.Loader(folder, global_batch_size=3, shuffle=False) as loader:
        with told(leat.NotFound, "sample 1", '"2"', '"cls"'):
            next(iter(loader))
    with leat.Loader(folder, global_batch_size=3, shuffle=False, fields=["bin"], batch="dict") as loader:
        assert next(iter(loader))["bin"].tolist() == [b"1", b"2", b"3"]
    with leat.Loader(folder, global_batch_size=3, shuffle=False, on_error="substitute") as loader:
        batch = next(iter(loader))
        other = batch["bin"].tolist()[1]
        assert batch["bin"].tolist() == [b"1", other, b"3"] and other != b"2"
        assert batch["cls"].tolist() == [b"0", b"0" if other == b"1" else b"1", b"1"]


# --- catalogues -------------------------------------------------------------


@pytest.mark.parametrize("where", ["published", "cache"])
def test_a_catalogue_with_flipped_bytes(folder, fresh_cache, where):
    if where == "published":
        subprocess.run([leat.testing.find_binary(), "index", "--publish", folder],
                       check=True, capture_output=True, timeout=60)
        (catalogue,) = (folder / ".leat").iterdir()
        remedy = "leat index --publish"
    else:
        leat.Dataset(folder)
        (catalogue,) = fresh_cache.rglob("*.leatcat")
        remedy = "refresh"
    whole = catalogue.read_bytes()
    for place in {*range(0, len(whole), 41), *range(0, 200, 3), len(whole) - 1}:
        spoilt = bytearray(whole)
        spoilt[place] ^= 0x10
        catalogue.write_bytes(bytes(spoilt))
        try:
            leat.Loader(folder, global_batch_size=8, shuffle=True).close()
        except (leat.Corrupt, leat.InvalidArgument) as error:
            assert str(catalogue) in str(error) and remedy in str(error)
        else:  # Taken for one of another version: made again.
            assert where == "cache" and catalogue.read_bytes() == whole
    for size in {*range(1, len(whole), 97), len(whole) - 1}:
        catalogue.write_bytes(whole[:size])
        with told(leat.Corrupt, str(catalogue), remedy):
            leat.Loader(folder, global_batch_size=8, shuffle=True)
    catalogue.write_bytes(b"")
    if where == "published":
        with told(leat.Corrupt, str(catalogue), remedy):
            leat.Loader(folder, global_batch_size=8, shuffle=True)
    else:  # The rest of a process that was ended while it made one.
        leat.Loader(folder, global_batch_size=8, shuffle=True).close()
        assert catalogue.read_bytes() == whole
    if where == "cache":  # The remedy works.
        leat.Dataset(folder, refresh="always")
        leat.Loader(folder, global_batch_size=8, shuffle=True).close()


def test_a_cache_folder_that_cannot_be_written(pictures, monkeypatch, tmp_path, caplog):
    in_the_way = write(tmp_path / "file", b"")
    monkeypatch.setenv("LEAT_CACHE_DIR", str(in_the_way / "cache"))
    with leat.Loader(pictures, global_batch_size=8, train=True, drop_last=True) as loader:
        assert len(list(loader)) == 7
    (record,) = [r for r in caplog.records if r.name == "leat" and r.levelname == "WARNING"]
    warning = record.getMessage()
    assert str(in_the_way) in warning and "LEAT_CACHE_DIR" in warning
    assert in_the_way.read_bytes() == b""


# --- numbers that cannot be -------------------------------------------------


@pytest.mark.parametrize(("options", "words"), [
    ({"global_batch_size": 0}, ("batch size is 0", "global_batch_size=")),
    ({"batch_size": 0}, ("batch size is 0", "batch_size=")),
    ({"global_batch_size": 31}, ("30 samples", "31", "drop_last=False")),
    ({"global_batch_size": 31, "rank": 0, "world_size": 31}, ("world_size=31", "30 samples",
                                                             "fewer ranks")),
])
def test_numbers_that_cannot_be(folder, options, words):
    with told(leat.InvalidArgument, *words):
        leat.Loader(folder, **{"shuffle": True, **options})


def test_fewer_samples_than_a_batch_come_if_kept(folder):
    with leat.Loader(folder, global_batch_size=100, shuffle=True, drop_last=False, ids=True) as loader:
        (batch,) = loader
    assert sorted(numbers(batch)) == list(range(30))
    with leat.Loader(folder, global_batch_size=100, shuffle=True, drop_last="pad", ids=True) as loader:
        (batch,) = loader  # More padding than samples.
    assert len(numbers(batch)) == 100 and batch["valid"].sum() == 30
    assert numbers(batch)[30:60] == numbers(batch)[:30]


def test_one_batch_that_does_not_fit_into_memory(folder):
    with leat.Loader(folder, ops=DECODE, memory="9KB", **ORDERED) as loader:
        with told(leat.ResourceExhausted, "bytes at once", "raise memory=", "batch"):
            next(iter(loader))
    gc.collect()
    assert_all_given_back(loader)


# --- Names of any bytes ------------------------------------------------------


@pytest.fixture
def oddly_named(tmp_path, fresh_cache) -> pathlib.Path:
    """A folder with one file, whose name is no UTF-8."""
    folder = tmp_path / "odd"
    folder.mkdir()
    pathlib.Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.jpg")).write_bytes(b"no picture")
    return folder


def test_a_name_that_is_no_utf_8_comes_as_python_has_it(oddly_named):
    dataset = leat.Dataset(oddly_named)
    assert dataset.key(0) == "\udcff\udcfe.jpg" and dataset[0]["data"] == b"no picture"
    options = {"fields": ["data", "key"], "batch": "dict", "output": "numpy"}
    with leat.Loader(dataset, batch_size=1, train=False, **options) as loader:
        assert [batch["key"] for batch in loader] == [["\udcff\udcfe.jpg"]]


@pytest.mark.parametrize(("spoil", "kind"), [(lambda path: None, leat.Corrupt), (os.remove, leat.NotFound)])
def test_an_error_names_an_object_whose_name_is_no_utf_8(oddly_named, spoil, kind):
    dataset = leat.Dataset(oddly_named)
    spoil(next(oddly_named.iterdir()))
    with leat.Loader(dataset, batch_size=1, train=False, ops=DECODE) as loader:
        with pytest.raises(kind, match=r"\\xff\\xfe\.jpg"):
            next(iter(loader))


def test_a_function_that_fails_for_such_an_object_says_which(oddly_named):
    def fails(data: bytes) -> str:
        raise ValueError("\udcff")

    ops = [leat.ops.Python(fails, workers="threads")]
    with leat.Loader(oddly_named, batch_size=1, train=False, ops=ops) as loader:
        with pytest.raises(ValueError) as raised:
            next(iter(loader))
    assert any("\\xff\\xfe.jpg" in note for note in getattr(raised.value, "__notes__", ["\\xff\\xfe.jpg"]))


def test_a_field_whose_name_is_no_utf_8_is_in_nobodys_way(tmp_path, fresh_cache):
    with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in ("a.txt", "a.\udcff"):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"1"))
    assert sorted(leat.Dataset(tmp_path / "x.tar").fields) == ["\\xff", "txt"]
    with leat.Loader(tmp_path / "x.tar", batch_size=1, train=False, fields=["txt"], batch="dict") as loader:
        assert [list(batch) for batch in loader] == [["txt"]]
