"""Web servers that bear few connections, such as Python's own."""

from __future__ import annotations

import contextlib
import functools
import http.server
import logging
import subprocess
import threading
import time

import numpy as np
import pytest

import leat
from small_datasets import encoded, make_pictures, pixels, write

COUNT = 240


class _Counting(http.server.SimpleHTTPRequestHandler):
    """HTTP/1.0, which closes each connection; counts who waits for the one thread."""

    def log_message(self, *_args) -> None:
        pass


class _Keeping(_Counting):
    """HTTP/1.1: the one thread waits at a connection until that is closed."""

    protocol_version = "HTTP/1.1"
    timeout = 120  # So long a connection that starves would wait.


class _OneThread(http.server.HTTPServer):
    request_queue_size = 5  # socketserver's own.

    def __init__(self, folder, handler=_Counting) -> None:
        super().__init__(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
        self.most_waiting = 0

    def get_request(self):
        self.most_waiting = max(self.most_waiting, _waiting_at(self.server_address[1]))
        return super().get_request()


def _waiting_at(port: int) -> int:
    """Connections that the kernel holds for the process that listens there: the
    queue of the listening socket, as Linux tells it."""
    with open("/proc/net/tcp") as table:
        for line in table:
            words = line.split()
            if words[1].endswith(f":{port:04X}") and words[3] == "0A":
                return int(words[4].split(":")[1], 16)
    return 0


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    make_pictures(folder, COUNT)
    subprocess.run(["leat", "index", str(folder), "--publish"], check=True, capture_output=True)
    return folder


def test_a_server_without_ranges_is_read_again_by_a_kept_catalogue(tmp_path, fresh_cache):
    make_pictures(tmp_path / "pictures", 6)
    url_of = "http://127.0.0.1:{}/{{ant,bee,cat}}/0000{{0..5}}.png".format
    kept = []
    with serving(_OneThread(tmp_path / "pictures")) as server:
        for name in ("ant", "bee", "cat"):
            for number in range(6):
                if not (tmp_path / "pictures" / name / f"0000{number}.png").exists():
                    write(tmp_path / "pictures" / name / f"0000{number}.png", encoded(pixels(number)))
        for _ in range(2):  # The second time the catalogue is there, and access is checked.
            with leat.Loader(url_of(server.server_address[1]), batch_size=3, train=False, output="numpy", batch="dict",
                             ops=[leat.ops.DecodeImage(layout="HWC")]) as loader:  # fmt: skip
                kept.append([batch["image"].tobytes() for batch in loader])
    assert kept[0] == kept[1] and len(kept[0]) == 6


@contextlib.contextmanager
def serving(server):
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_server_of_one_thread_gets_few_requests_at_a_time(published, fresh_cache):
    with serving(_OneThread(published)) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with leat.Loader(url, batch_size=10, train=False, ids=True, ops=[leat.ops.DecodeImage(layout="HWC")],
                         batch="dict", output="numpy", max_in_flight=512) as loader:  # fmt: skip
            seen = 0
            for batch in loader:
                for number, image in zip(batch["index"], batch["image"]):
                    np.testing.assert_array_equal(image, pixels(int(number)))
                    seen += 1
            metrics = loader.metrics()
    assert seen == COUNT
    # The queue holds 6; later connections are dropped, and wait for a second.
    assert 1 <= server.most_waiting <= 6
    assert metrics["leat_store_retries_total"] == 0


def test_a_server_of_one_thread_that_keeps_connections_serves_each_in_turn(published, fresh_cache, caplog):
    with serving(_OneThread(published, _Keeping)) as server, caplog.at_level(logging.INFO, logger="leat"):
        began = time.monotonic()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with leat.Loader(url, batch_size=10, train=False, ids=True, ops=[leat.ops.DecodeImage(layout="HWC")],
                         batch="dict", output="numpy") as loader:  # fmt: skip
            for _ in range(2):
                seen = 0
                for batch in loader:
                    for number, image in zip(batch["index"], batch["image"]):
                        np.testing.assert_array_equal(image, pixels(int(number)))
                        seen += 1
                assert seen == COUNT
        assert time.monotonic() - began < _Keeping.timeout
    assert sum("leaves new connections waiting" in line for line in caplog.messages) == 1


def test_named_files_on_such_a_server_are_asked_for_and_read(tmp_path, fresh_cache, caplog):
    for number in range(12):
        write(tmp_path / f"{number:02}.bin", bytes([number]) * 1000)
    with serving(_OneThread(tmp_path, _Keeping)) as server, caplog.at_level(logging.INFO, logger="leat"):
        began = time.monotonic()
        url = f"http://127.0.0.1:{server.server_address[1]}/{{00..11}}.bin"
        for _ in range(2):  # The second time the catalogue is there, and each name is asked for.
            with leat.Loader(url, batch_size=4, train=False, batch="dict", output="numpy") as loader:
                assert [row[0] for batch in loader for row in batch["data"]] == list(range(12))
        assert time.monotonic() - began < _Keeping.timeout
    # The other stores know it from the first.
    assert sum("leaves new connections waiting" in line for line in caplog.messages) == 1


def test_warm_says_that_a_folder_keeps_nothing_without_versions(published, tmp_path):
    with serving(_OneThread(published)) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        done = subprocess.run(["leat", "warm", url, "--cache-disk", str(tmp_path / "cache")], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert f"0 reads are in {tmp_path / 'cache'}, {COUNT} are not: the store names no versions (ETags)" in done.stdout
