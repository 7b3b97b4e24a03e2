"""How deli_bench.py's ways read: each is a process of its own, with a bucket of its own.

    python bench/deli_ways.py JSON      what to run, as deli_bench.py says it; prints JSON
"""

from __future__ import annotations

import collections
import concurrent.futures
import http.client
import itertools
import json
import pathlib
import queue
import resource
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import leat
from leat.testing import content_hash

Batch = list[tuple[int, bytes]]  # Sample ids, and what was read.
THREADS = 64  # The threads of the concurrent loop without prefetch.
IN_FLIGHT = 128  # Leat's requests in flight, unless told otherwise.


class Client:
    """GETs of the bucket over connections that each thread keeps."""

    def __init__(self, endpoint: str, bucket: str) -> None:
        self._address = urllib.parse.urlsplit(endpoint)
        self._bucket = bucket
        self._own = threading.local()

    def get(self, sample: int) -> bytes:
        if not hasattr(self._own, "connection"):
            assert self._address.hostname is not None
            self._own.connection = http.client.HTTPConnection(
                self._address.hostname, self._address.port
            )
        self._own.connection.request("GET", f"/{self._bucket}/{sample:05}.bin")
        reply = self._own.connection.getresponse()
        body: bytes = reply.read()
        if reply.status != 200:
            raise OSError(f"GET of {sample} answered {reply.status}")
        return body


class FifoCache:
    """The newest `items`, by when they came."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._held: collections.OrderedDict[int, bytes] = collections.OrderedDict()
        self._lock = threading.Lock()
        self.most_bytes = 0

    def find(self, sample: int) -> bytes | None:
        with self._lock:
            return self._held.get(sample)

    def insert(self, samples: dict[int, bytes]) -> None:
        with self._lock:
            for sample, body in samples.items():
                self._held.setdefault(sample, body)
                if len(self._held) > self._items:
                    self._held.popitem(last=False)
            self.most_bytes = max(self.most_bytes, sum(map(len, self._held.values())))


class Deli:
    """DELI's sampler, cache and server (cake-lab/DELI, IC2E 2021).

    A request to the server fetches what is not cached, a thread each, and inserts it
    together; it takes `start` and `each` a sample, as theirs did, and at least as long
    as its GETs. The server has one hand, as the one of `leat plan --simulate` has: a
    request waits for the one before it; with our engine in its place it has 16. A miss is
    one GET, and is not inserted.
    """

    def __init__(self, job: dict[str, Any], get: Callable[[int], bytes]) -> None:
        self._fetch, self._threshold = job["fetch"], job["threshold"]
        self._start, self._each = job["start_seconds"], job["sample_seconds"]
        self._get = get
        self.cache = FifoCache(job["items"])
        self.misses = 0
        most = IN_FLIGHT if job["is_our_engine"] else max(2 * self._fetch, 8)
        self._threads = concurrent.futures.ThreadPoolExecutor(most)
        self._server = concurrent.futures.ThreadPoolExecutor(16 if job["is_our_engine"] else 1)
        self._requests: list[concurrent.futures.Future[None]] = []

    def epoch(self, order: list[int], batch: int) -> Iterator[Batch]:
        draws = self._sampler(iter(order))
        while drawn := list(itertools.islice(draws, batch)):
            yield [(sample, self._read(sample)) for sample in drawn]

    def end(self) -> None:
        for request in self._requests:
            request.result()

    def _sampler(self, order: Iterator[int]) -> Iterator[int]:
        drawn: collections.deque[int] = collections.deque()
        is_left = True
        while True:
            if is_left and len(drawn) <= self._threshold:
                wanted = list(itertools.islice(order, self._fetch))
                is_left = len(wanted) == self._fetch
                drawn.extend(wanted)
                missing = [sample for sample in wanted if self.cache.find(sample) is None]
                self._requests.append(self._server.submit(self._serve, missing))
            if not drawn:
                return
            yield drawn.popleft()

    def _serve(self, missing: list[int]) -> None:
        began = time.perf_counter()
        bodies = dict(zip(missing, self._threads.map(self._get, missing)))
        took = time.perf_counter() - began
        time.sleep(max(0.0, self._start + self._each * len(missing) - took))
        self.cache.insert(bodies)

    def _read(self, sample: int) -> bytes:
        body = self.cache.find(sample)
        if body is None:
            self.misses += 1
            body = self._get(sample)
        return body


def in_batches(order: list[int], batch: int) -> Iterator[list[int]]:
    for begin in range(0, len(order), batch):
        yield order[begin : begin + batch]


def reads(job: dict[str, Any], found: dict[str, Any]) -> Callable[[int, list[int]], Iterator[Batch]]:
    """The way's epochs; `found` is filled in as they run."""
    way, size = job["way"], job["batch"]
    client = Client(job["endpoint"], job["bucket"])
    if way == "deli":
        reach = {"endpoint_url": job["endpoint"], "no_sign_request": True}
        dataset = leat.Dataset(f"s3://{job['bucket']}", storage_options=reach)
        get = (lambda n: bytes(dataset[n]["data"])) if job["is_our_engine"] else client.get
        deli = Deli(job, get)
        found["deli"] = deli
        return lambda _, order: deli.epoch(order, size)
    if way == "cache":
        cache = FifoCache(job["items"])
        found["cache"] = cache

        def cached(sample: int) -> bytes:
            body = cache.find(sample)
            if body is None:
                found["misses"] = found.get("misses", 0) + 1
                body = client.get(sample)
                cache.insert({sample: body})
            return body

        return lambda _, order: ([(n, cached(n)) for n in ids] for ids in in_batches(order, size))
    if way == "concurrent":
        threads = concurrent.futures.ThreadPoolExecutor(THREADS)
        return lambda _, order: (
            list(zip(ids, threads.map(client.get, ids))) for ids in in_batches(order, size)
        )
    folder = pathlib.Path(job["folder"])
    read = {
        "sequential": client.get,
        "disk": lambda n: (folder / f"{n:05}.bin").read_bytes(),
    }.get(way)
    if read is None:  # No I/O.
        memory = [path.read_bytes() for path in sorted(folder.iterdir())]
        read = memory.__getitem__
    return lambda _, order: ([(n, read(n)) for n in ids] for ids in in_batches(order, size))


class Watch:
    """A training loop: waits for a batch, computes (sleeps), and so on."""

    def __init__(self, compute: float, box: float) -> None:
        self._compute, self._box = compute, box
        self.samples, self.wait, self.first = 0, 0.0, 0.0
        self._began: float | None = None
        self.after_first = 0.0

    def run(self, batches: Iterator[Any], size_of: Callable[[Any], int]) -> None:
        while self.after_first < self._box:
            asked = time.perf_counter()
            batch = next(batches, None)
            now = time.perf_counter()
            if self._began is None:
                self._began, self.first = now, now - asked
            self.wait += now - asked
            if batch is None:
                break
            self.samples += size_of(batch)
            time.sleep(self._compute * size_of(batch))
            self.after_first = time.perf_counter() - self._began


def run_leat(job: dict[str, Any], watch: Watch) -> dict[str, Any]:
    held = 0
    with leat.Loader(
        f"s3://{job['bucket']}", seed=job["seed"],
        storage_options={"endpoint_url": job["endpoint"], "no_sign_request": True},
        global_batch_size=job["batch"], shuffle=True, drop_last=False, fields=["data"], batch="dict", epochs=job["epochs"],
        memory=job["memory"],
    ) as loader:  # fmt: skip
        for _ in range(job["epochs"]):

            def sizes() -> Iterator[int]:
                nonlocal held
                for batch in loader:
                    held = max(held, loader.metrics()["leat_runtime_reserved_bytes"])
                    yield len(batch["data"])

            watch.run(sizes(), int)
        stats = loader.stats()
    return {"hash": sum(int(epoch["content_hash"], 16) for epoch in stats) % 2**128,
            "held_bytes": held, "lookahead": stats[-1]["lookahead"]}  # fmt: skip


def run_python(job: dict[str, Any], watch: Watch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    epoch_of = reads(job, found)
    seen: queue.SimpleQueue[tuple[int, Batch]] = queue.SimpleQueue()
    for epoch, order in enumerate(job["orders"]):

        def kept(epoch: int = epoch, order: list[int] = order) -> Iterator[Batch]:
            for batch in epoch_of(epoch, order):
                seen.put((epoch, batch))
                yield batch

        watch.run(kept(), len)
    result: dict[str, Any] = {"hash": 0}
    if "deli" in found:
        found["deli"].end()
        result |= {"misses": found["deli"].misses, "held_bytes": found["deli"].cache.most_bytes}
    if "cache" in found:
        result |= {"misses": found["misses"], "held_bytes": found["cache"].most_bytes}
    while not seen.empty():  # After the clock has stopped.
        epoch, batch = seen.get()
        for sample, body in batch:
            result["hash"] += content_hash(epoch, sample, {"data": np.frombuffer(body, np.uint8)})
    result["hash"] %= 2**128
    return result


def main() -> None:
    job = json.loads(sys.argv[1])
    job["orders"] = json.loads(pathlib.Path(job["orders"]).read_text())
    watch = Watch(job["compute"], job["box"])
    result = run_leat(job, watch) if job["way"] == "leat" else run_python(job, watch)
    result["hash"] = f"{result['hash']:032x}"
    result |= {
        "samples": watch.samples, "wait": watch.wait, "first": watch.first,
        "after_first": watch.after_first,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip
    print(json.dumps(result))


if __name__ == "__main__":
    main()
