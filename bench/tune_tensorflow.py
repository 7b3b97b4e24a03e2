"""tf.data over the objects of bench/tune_bench.py; that bench runs it with a Python
that has TensorFlow.

    PYTHON bench/tune_tensorflow.py

The first line on stdin says what to read: {"url": ..., "kind": ..., "reads": [[path, offset, bytes], ...], ...}.
Answers each further one, a JSON object, with one on stdout:

    {"verify": true}                    -> {"digest": ..., "gets": n}   every read once; the bytes that came
    {"calls": 64, "settle": 8, "seconds": 3} -> {"rate": samples/s, "gets": n}   trained for so long
    "calls" is AUTOTUNE, or this many calls of map() at once

A rate is of samples that were trained on, but of no more than the bytes that came in that time make: hundreds of
calls at once hold so much that was read before that they would outdo the store for longer than is measured.

As the guide to tf.data's performance has it: map(AUTOTUNE) for reading and for decoding, in any order, then
batch and prefetch(AUTOTUNE). TensorFlow reads no S3 by itself: a read is a function of Python, a GET over a
connection that its thread keeps. They wait in threads of the pipeline's own, since of those that TensorFlow
makes, one for each core, two calls that wait would hold all.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import sys
import tarfile
import threading
import time
import urllib.parse
from typing import Any

import numpy as np
import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
MODULUS = 1 << 128
# For calls that wait for the store; more calls have as many.
THREADS = 256
PORTION = 1 << 18
SHUFFLED = 512  # The samples to shuffle, if a read brings many.


class Reads:
    """GETs, counted, over connections that are kept."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._of_thread = threading.local()
        self._lock = threading.Lock()
        self.begun = self.ended = 0
        self.received = 0  # Bytes, counted as they come.

    def get(self, path: bytes, offset: int, size: int) -> bytes:
        connection = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(self._host, self._port)
            connection.connect()
            self._of_thread.connection = connection
        with self._lock:
            self.begun += 1
        connection.request("GET", path.decode(), headers={"Range": f"bytes={offset}-{offset + size - 1}"})
        reply = connection.getresponse()
        parts = []
        while part := reply.read(PORTION):
            parts.append(part)
            with self._lock:
                self.received += len(part)
        body = b"".join(parts)
        if reply.status != 206 or len(body) != size:
            raise OSError(f"{path!r}: status {reply.status}, {len(body)} bytes of {size}")
        with self._lock:
            self.ended += 1
        return body

    def wait_for_all(self) -> int:
        """How many there were, once none is under way: those of an iterator that was dropped go on."""
        while True:
            with self._lock:
                if self.begun == self.ended:
                    return self.ended
            time.sleep(0.01)


def text_of(values: list[bytes]) -> np.ndarray:
    """NumPy's own bytes drop zeros at the end."""
    return np.array(values, dtype=object)


def members(tar: bytes) -> np.ndarray:
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        return text_of([tar[m.offset_data : m.offset_data + m.size] for m in archive])


def cropped(jpeg: tf.Tensor) -> tf.Tensor:
    """RandomResizedCrop(64), decoding what is kept alone."""
    whole = tf.image.extract_jpeg_shape(jpeg)
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        whole, tf.zeros([1, 0, 4]), area_range=(0.08, 1.0), aspect_ratio_range=(3 / 4, 4 / 3),
        use_image_if_no_bounding_boxes=True,
    )  # fmt: skip
    y, x, _ = tf.unstack(begin)
    height, width, _ = tf.unstack(size)
    pixels = tf.image.decode_and_crop_jpeg(jpeg, tf.stack([y, x, height, width]), channels=3)
    return tf.cast(tf.image.resize(pixels, [64, 64]), tf.uint8)


def normalized(jpeg: tf.Tensor) -> tf.Tensor:
    """Decoded at half the size, as Leat does it: more than 224 pixels stay."""
    pixels = tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3, ratio=2), [224, 224], antialias=True)
    return (pixels / 255 - 0.5) / 0.5


def with_threads(calls: int) -> tf.data.Options:
    options = tf.data.Options()
    options.threading.private_threadpool_size = max(THREADS, calls)  # AUTOTUNE is below 0.
    return options


class Pipeline:
    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._reads = Reads(spec["url"])
        self._digest = 0
        self._lock = threading.Lock()

    def _read(self, path: bytes, offset: np.int64, size: np.int64) -> np.ndarray:
        body = self._reads.get(path, int(offset), int(size))
        return members(body) if self._spec["kind"] == "shards" else text_of([body])

    def _verified(self, path: bytes, offset: np.int64, size: np.int64) -> np.int64:
        body = self._reads.get(path, int(offset), int(size))
        digest = digest_of(path.decode(), int(offset), body)
        with self._lock:
            self._digest = (self._digest + digest) % MODULUS
        return np.int64(0)

    def _places(self) -> tf.data.Dataset:
        paths, offsets, sizes = zip(*self._spec["reads"])
        return tf.data.Dataset.from_tensor_slices(
            (tf.constant(paths), tf.constant(offsets, tf.int64), tf.constant(sizes, tf.int64))
        )

    def verify(self) -> dict[str, Any]:
        before = self._reads.ended
        self._digest = 0
        places = self._places().map(lambda *place: tf.numpy_function(self._verified, place, tf.int64), 64)
        for _ in places.with_options(with_threads(64)):
            pass
        return {"digest": f"{self._digest:032x}", "gets": self._reads.wait_for_all() - before}

    def dataset(self, calls: int) -> tf.data.Dataset:
        kind, places = self._spec["kind"], self._places()
        places = places.shuffle(len(self._spec["reads"]), seed=7).repeat()
        samples = places.map(
            lambda *place: tf.ensure_shape(tf.numpy_function(self._read, place, tf.string), [None]),
            num_parallel_calls=calls, deterministic=False,
        )  # fmt: skip
        if kind == "tokens":
            length = self._spec["seq_len"]
            samples = samples.map(lambda b: tf.reshape(tf.io.decode_raw(b[0], tf.uint16), [-1, length]), AUTOTUNE)
        samples = samples.unbatch()
        if kind in ("shards", "tokens"):
            samples = samples.shuffle(SHUFFLED, seed=7)
        work = {"images": cropped, "decode": normalized, "tiny": raw, "shards": raw}.get(kind)
        if work:
            samples = samples.map(work, num_parallel_calls=AUTOTUNE, deterministic=False)
        batches = samples.batch(self._spec["batch"], drop_remainder=True).prefetch(AUTOTUNE)
        return batches.with_options(with_threads(calls))

    def train(self, calls: int, settle: float, seconds: float) -> dict[str, Any]:
        gets = self._reads.ended
        batches = iter(self.dataset(calls))
        began = time.perf_counter()
        counted, received, since, now = 0, 0, 0.0, 0.0
        while not since or now < since + seconds:
            next(batches)
            time.sleep(self._spec["step"])
            now = time.perf_counter() - began
            if since:
                counted += self._spec["batch"]
            elif now >= settle:
                since, received = now, self._reads.received
        bytes_a_sample = sum(size for _, _, size in self._spec["reads"]) / self._spec["samples"]
        came = (self._reads.received - received) / bytes_a_sample
        del batches
        return {"rate": min(counted, came) / (now - since), "gets": self._reads.wait_for_all() - gets}


def raw(sample: tf.Tensor) -> tf.Tensor:
    return tf.io.decode_raw(sample, tf.uint8)


def digest_of(path: str, offset: int, body: bytes) -> int:
    """The digest of one read; their sum tells whether all came, in any
    order."""
    place = f"{path} {offset} ".encode()
    return int.from_bytes(hashlib.sha256(place + body).digest()[:16], "big")


def main() -> None:
    pipeline = Pipeline(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        told = json.loads(line)
        if told.get("verify"):
            answer = pipeline.verify()
        else:
            calls = AUTOTUNE if told["calls"] == "AUTOTUNE" else told["calls"]
            answer = pipeline.train(calls, told["settle"], told["seconds"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
