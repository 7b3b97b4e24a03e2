"""A process runs out of descriptors in the middle of an epoch, and gets some again."""

from __future__ import annotations

import subprocess
import sys

from unwell_bucket import comings

RUN = """
import os, resource, sys, threading
import leat

loader = leat.Loader(
    "s3://objects", batch_size=20, shuffle=True, seed=3, epochs=1, output="numpy", max_in_flight=8,
    storage_options={"endpoint_url": sys.argv[1], "no_sign_request": True},
)
batches = iter(loader)
for _ in range(3):
    next(batches)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))  # What is open stays.
try:
    os.open("/dev/null", os.O_RDONLY)
except OSError as error:
    print("no descriptor:", error.strerror, flush=True)
threading.Timer(3, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))).start()
for _batch in batches:
    pass
print(loader.stats()[0]["content_hash"])
print(loader.metrics()["leat_store_retries_total"])
"""


def test_training_waits_for_them(objects, fresh_cache, right):
    with comings(objects.parent, "--latency", "20ms") as bucket:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, bucket.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "no descriptor: Too many open files\n"
        # All connections end: new ones need descriptors.
        bucket.end()
        bucket.begin()
        told, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    content, retried = told.split()
    assert content == right
    assert float(retried) > 0
