"""The classes that DLIO loads in each of its ranks: a loader and readers, named by classes of this module.

`LeatLoader` takes the place of DLIO's loader. The readers take the place of DLIO's readers, under its own
torch DataLoader: from local files, by plain GETs over a connection that is kept, and by the S3 Connector.

DLIO's readers parse a file and then return a random array of the configured size; its compute sleeps. So here,
each way only brings all bytes of the samples and hashes them, once, where it has them. A process adds up what
it brought in a file of $DLIO_TALLY: samples, bytes, and the sum of the hashes, which is the same in any order.
"""

from __future__ import annotations

import http.client
import io
import os
import pathlib
import struct
from abc import abstractmethod
from typing import Any, Iterator

import numpy as np
import xxhash
from dlio_benchmark.common.enumerations import DataLoaderType
from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader
from dlio_benchmark.reader.reader_handler import FormatReader

ROW = 40  # int32 values of a row: a label, 13 dense and 26 categorical features.
_FACTORS = np.random.default_rng(40).integers(1 << 63, size=ROW // 2, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def hash_of_rows(rows: Any) -> int:
    """The sum of a hash of each row of int32, in any order of the rows."""
    words = np.ascontiguousarray(rows).view(np.uint64).reshape(-1, ROW // 2)
    with np.errstate(over="ignore"):
        mixed = (words * _FACTORS).sum(axis=1, dtype=np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(32))) * _FACTORS[0]
        return int(mixed.sum(dtype=np.uint64))


def hash_of_file(data: Any) -> int:
    return xxhash.xxh3_64_intdigest(data)


class Tally:
    """Counts what this process brought, in a file that outlives it. Forked workers begin anew."""

    def __init__(self) -> None:
        self._process = 0

    def add(self, samples: int, size: int, hashed: int) -> None:
        if self._process != os.getpid():
            self._process = os.getpid()
            self._samples = self._bytes = self._hash = 0
            path = pathlib.Path(os.environ["DLIO_TALLY"]) / str(self._process)
            self._file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
        self._samples += samples
        self._bytes += size
        self._hash = (self._hash + hashed) % 2**64
        os.pwrite(self._file, struct.pack("<QQQ", self._samples, self._bytes, self._hash), 0)


TALLY = Tally()


def is_of_rows() -> bool:
    return os.environ["DLIO_KIND"] == "rows"


class LeatLoader(BaseDataLoader):
    def __init__(self, format_type: Any, dataset_type: Any, epoch_number: int) -> None:
        super().__init__(format_type, dataset_type, epoch_number, DataLoaderType.PYTORCH)

    def read(self) -> None:
        import leat

        url = os.environ["DLIO_URL"]
        if is_of_rows():
            dataset: Any = leat.Dataset.tokens(url, dtype="int32", seq_len=ROW)
            fields = ("tokens",)
        else:
            dataset, fields = leat.Dataset(url), ("data",)
        self._loader = leat.Loader(
            dataset, batch_size=self.batch_size, shuffle=True, seed=self._args.seed, fields=fields, drop_last=True,
            output="numpy", rank=self._args.my_rank, world_size=self._args.comm_size, epochs=self._args.epochs,
        )  # fmt: skip

    def next(self) -> Iterator[Any]:
        for (batch,) in self._loader:
            if is_of_rows():
                TALLY.add(len(batch), batch.nbytes, hash_of_rows(batch))
            else:
                for sample in batch:
                    TALLY.add(1, len(sample), hash_of_file(memoryview(sample)))
            yield batch

    def finalize(self) -> None:
        pass


class _Reader(FormatReader):
    """Brings a file whole when its first sample is asked for; of files of rows, the last one stays."""

    def __init__(self, dataset_type: Any, thread_index: int, epoch: int) -> None:
        super().__init__(dataset_type, thread_index)
        self._held = ""

    @abstractmethod
    def fetch(self, path: str) -> bytes:
        """The bytes of a file, in the way that is measured."""

    def read_index(self, global_sample_idx: int, step: int) -> Any:
        path, _ = self.global_index_map[global_sample_idx]
        if is_of_rows() and path == self._held:
            return self._args.resized_image
        data = self.fetch(path)
        if is_of_rows():
            rows = np.load(io.BytesIO(data)).reshape(-1, ROW)
            TALLY.add(len(rows), rows.nbytes, hash_of_rows(rows))
            self._held = path
        else:
            TALLY.add(1, len(data), hash_of_file(data))
        return self._args.resized_image

    def open(self, filename: str) -> None:
        pass

    def close(self, filename: str) -> None:
        pass

    def get_sample(self, filename: str, sample_index: int) -> None:
        pass

    def next(self) -> Iterator[Any]:
        yield from super().next()

    def finalize(self) -> None:
        pass

    def is_index_based(self) -> bool:
        return True

    def is_iterator_based(self) -> bool:
        return False


class FileReader(_Reader):
    def fetch(self, path: str) -> bytes:
        return pathlib.Path(path).read_bytes()


def key_of(path: str) -> str:
    """Its place in the bucket, which serves the folder that DLIO lists."""
    return pathlib.Path(path).relative_to(os.environ["DLIO_ROOT"]).as_posix()


class GetReader(_Reader):
    _connection: http.client.HTTPConnection | None = None

    def fetch(self, path: str) -> bytes:
        if self._connection is None:
            host = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
            self._connection = http.client.HTTPConnection(host)
        self._connection.request("GET", f"/{key_of(path)}")
        answer = self._connection.getresponse()
        data = answer.read()
        assert answer.status == 200, (answer.status, data)
        return data


class ConnectorReader(_Reader):
    _objects: Any = None

    def fetch(self, path: str) -> bytes:
        if self._objects is None:
            from s3torchconnector import S3ClientConfig, S3MapDataset

            self._places = {str(file): number for number, file in enumerate(self._file_list)}
            self._objects = S3MapDataset.from_objects(
                [f"s3://{key_of(str(file))}" for file in self._file_list], region="us-east-1",
                endpoint=os.environ["AWS_ENDPOINT_URL"], s3client_config=S3ClientConfig(force_path_style=True),
            )  # fmt: skip
        with self._objects[self._places[path]] as stream:
            return stream.read()
