"""Adapters of bench/landscape_way.py for libraries that run graphs of their own: tf.data, DALI, Ray Data."""

from __future__ import annotations

import concurrent.futures
import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from landscape_chain import MEAN, SEED, SIDE, STD, finished, number_of
from landscape_ways_torch import Told, getter, listed, mine

DALI_THREADS = 32  # Requests at once of each of DALI's Python workers.


def tensorflow(told: Told) -> Iterator[Any]:
    """As the guide to tf.data's performance has it. TensorFlow itself reads no S3: a read is a function of Python."""
    import tensorflow as tf

    told["client"] = "boto3"
    if told["store"] == "bucket":
        __import__("boto3")
    yield None
    keys, calls = mine(told, listed(told)), told["setting"]["calls"]
    numbers = [0 if told["numbered"] is None else number_of(key) for key in keys]
    if told["store"] == "files":
        names = [os.path.join(told["folder"], key) for key in keys]
        read = tf.io.read_file
    else:
        names, get = keys, getter(told)

        def read(name: Any) -> Any:
            return tf.numpy_function(lambda key: get(key.decode()), [name], tf.string)

    def finish(data: Any) -> Any:
        return tensorflow_pixels(tf, data) if told["task"] == "pixels" else tf.io.decode_raw(data, tf.uint8)

    options = tf.data.Options()
    options.threading.private_threadpool_size = max(calls, 2)  # Calls that wait hold their threads.
    dataset = tf.data.Dataset.from_tensor_slices((numbers, names)).shuffle(len(names), seed=SEED)
    dataset = dataset.map(lambda number, name: (number, finish(read(name))), calls, deterministic=False)
    dataset = dataset.with_options(options)
    if told["epochs"] > 1:
        dataset = dataset.cache(told["cache"])
    dataset = dataset.batch(told["batch"]).prefetch(tf.data.AUTOTUNE)
    for _ in range(told["epochs"]):
        yield ((number.numpy(), rows.numpy()) for number, rows in dataset)


def tensorflow_pixels(tf: Any, jpeg: Any) -> Any:
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(jpeg), tf.zeros([1, 0, 4]), area_range=(0.08, 1.0),
        aspect_ratio_range=(3 / 4, 4 / 3),
        use_image_if_no_bounding_boxes=True,
    )  # fmt: skip
    y, x, _ = tf.unstack(begin)
    high, wide, _ = tf.unstack(size)
    pixels = tf.image.decode_and_crop_jpeg(jpeg, tf.stack([y, x, high, wide]), channels=3)
    values = (tf.image.resize(pixels, [SIDE, SIDE]) - MEAN) / STD
    return tf.transpose(values, [2, 0, 1])


class DaliBatches:
    """The source that DALI's Python workers call: the objects of a batch at once, by threads."""

    def __init__(self, told: Told, keys: list[str]) -> None:
        self._told = {**told, "client": "boto3"}
        self._told.pop("state_of", None)
        self._keys = keys
        self._pool: Any = None

    def __call__(self, info: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
        first = info.iteration * self._told["batch"]
        keys = self._keys[first : first + self._told["batch"]]
        if len(keys) < self._told["batch"]:
            raise StopIteration
        if self._pool is None:
            self._pool, self._get = concurrent.futures.ThreadPoolExecutor(DALI_THREADS), getter(self._told)
        rows = [np.frombuffer(data, np.uint8) for data in self._pool.map(self._get, keys)]
        return rows, [np.array([0 if self._told["numbered"] is None else number_of(key)]) for key in keys]


def dali(told: Told) -> Iterator[Any]:
    from nvidia.dali import fn, pipeline_def, types

    yield None
    keys = mine(told, listed(told))
    random.Random(SEED).shuffle(keys)
    setting = told["setting"]

    @pipeline_def
    def graph() -> Any:
        if told["store"] == "files":
            data, numbers = fn.readers.file(
                file_root=told["folder"], files=keys, labels=[number_of(key) for key in keys], name="read",
                prefetch_queue_depth=setting["ahead"], random_shuffle=False,
            )  # fmt: skip
        else:
            data, numbers = fn.external_source(
                DaliBatches(told, keys), num_outputs=2, batch=True, parallel=True, prefetch_queue_depth=setting["ahead"]
            )
        if told["task"] == "pixels":
            data = fn.decoders.image_random_crop(data, device="cpu", output_type=types.RGB)
            data = fn.resize(data, device="cpu", resize_x=SIDE, resize_y=SIDE)
            data = fn.crop_mirror_normalize(
                data, device="cpu", dtype=types.FLOAT, output_layout="CHW", mean=MEAN.tolist(), std=STD.tolist()
            )
        return data, numbers

    pipeline = graph(batch_size=told["batch"], num_threads=setting["threads"], device_id=None, seed=SEED,
                     py_num_workers=setting["workers"], py_start_method="spawn")  # fmt: skip
    pipeline.build()
    for _ in range(told["epochs"]):
        yield dali_batches(pipeline, len(keys) // told["batch"])
        pipeline.reset()


def dali_batches(pipeline: Any, count: int) -> Iterator[Any]:
    for _ in range(count):
        data, numbers = pipeline.run()
        yield np.asarray(numbers.as_array()), data.as_array()


def ray(told: Told) -> Iterator[Any]:
    import pyarrow.fs
    import ray
    import ray.data

    workers = max(1, told["setting"]["workers"])
    ray.init(
        num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error", _temp_dir=short_folder()
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield None
    if told["store"] == "files":
        place, files = [os.path.join(told["folder"], key) for key in listed(told)], None
    else:
        place = told["bucket"]
        files = pyarrow.fs.S3FileSystem(
            endpoint_override=told["url"].split("://")[1], scheme=told["url"].split("://")[0], region="us-east-1",
            access_key=os.environ["AWS_ACCESS_KEY_ID"], secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        )  # fmt: skip
    dataset = ray.data.read_binary_files(place, filesystem=files, include_paths=True, shuffle="files",
                                         override_num_blocks=told["setting"]["blocks"])  # fmt: skip
    if told["task"] == "pixels":
        dataset = dataset.map(lambda row: {"path": row["path"], "bytes": finished("pixels", row["bytes"])})
    for _ in range(told["epochs"]):
        yield (ray_batch(told, one) for one in dataset.iter_batches(batch_size=told["batch"], prefetch_batches=2))
    ray.shutdown()


def ray_batch(told: Told, batch: Any) -> tuple[np.ndarray, Any]:
    numbers = [0 if told["numbered"] is None else number_of(path) for path in batch["path"]]
    return np.array(numbers), list(batch["bytes"]) if told["task"] == "bytes" else batch["bytes"]


def short_folder() -> str:
    """Ray makes sockets there, whose paths are short."""
    import tempfile

    return tempfile.mkdtemp(prefix="ray-", dir="/tmp")


ADAPTERS = {"tf.data": tensorflow, "dali": dali, "ray": ray}
