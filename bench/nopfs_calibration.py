"""Measures the links of bench/nopfs_bench.py from a node, without Leat.

    nopfs_calibration.py ENDPOINT/BUCKET/ KEYS.json HOST:PORT

A GET of the bucket and a value of a memcached on another node: one after another (the
median), and as fast as they come. Prints JSON, as `times` of `leat plan --simulate`.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import pathlib
import socket
import statistics
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Sequence

ONE_BY_ONE = 40
CONNECTIONS = 32


def median_seconds(calls: Sequence[Callable[[], object]]) -> float:
    took = []
    for call in calls:
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


class Bucket:
    def __init__(self, url: str) -> None:
        self._url = urllib.parse.urlsplit(url)
        self._own = threading.local()

    def get(self, key: str) -> int:
        if not hasattr(self._own, "connection"):
            assert self._url.hostname is not None
            self._own.connection = http.client.HTTPConnection(self._url.hostname, self._url.port)
        self._own.connection.request("GET", self._url.path + key)
        return len(self._own.connection.getresponse().read())


def of_bucket(url: str, keys: list[str]) -> tuple[float, float]:
    bucket = Bucket(url)
    bucket.get(keys[0])  # Connects.
    latency = median_seconds([lambda key=key: bucket.get(key) for key in keys[:ONE_BY_ONE]])
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(bucket.get, keys[:CONNECTIONS]))  # Connect.
        began = time.perf_counter()
        read = sum(threads.map(bucket.get, keys))
        seconds = time.perf_counter() - began
    return latency, read / (seconds - latency)  # The first comes after that.


def of_peer(server: str, value: bytes, times: int) -> tuple[float, float]:
    host, _, port = server.partition(":")
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rb") as replies:
        connection.sendall(b"set calibration 0 0 %d\r\n%s\r\n" % (len(value), value))
        if replies.readline() != b"STORED\r\n":
            sys.exit("nopfs_calibration: the server did not take a value")

        def read() -> None:
            replies.readline()
            replies.read(len(value) + len("\r\nEND\r\n"))

        def get() -> None:
            connection.sendall(b"get calibration\r\n")
            read()

        latency = median_seconds([get] * ONE_BY_ONE)
        began = time.perf_counter()
        connection.sendall(b"get calibration\r\n" * times)
        for _ in range(times):
            read()
        seconds = time.perf_counter() - began
        connection.sendall(b"delete calibration\r\n")
        replies.readline()
    return latency, times * len(value) / (seconds - latency)


def main() -> None:
    url, keys_file, server = sys.argv[1:]
    keys = json.loads(pathlib.Path(keys_file).read_text())
    get, store = of_bucket(url, keys)
    size = Bucket(url).get(keys[0])
    peer, sends = of_peer(server, b"x" * size, len(keys))
    print(json.dumps({
        "get": get, "store_bytes_per_second": store, "peer": peer, "peer_bytes_per_second": sends,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
