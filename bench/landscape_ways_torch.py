"""Adapters of bench/landscape_way.py: torch's DataLoader over a map-style dataset, with several clients for S3."""

from __future__ import annotations

import concurrent.futures
import functools
import os
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from landscape_chain import SEED, finished, is_kept, number_of

Get = Callable[[str], bytes]
Told = dict[str, Any]


def boto3_client(told: Told, connections: int = 64) -> Any:
    import boto3
    import botocore.config

    config = botocore.config.Config(max_pool_connections=connections, s3={"addressing_style": "path"})
    return boto3.client("s3", endpoint_url=told["url"], config=config)


def obstore_of(told: Told) -> Any:
    from obstore.store import S3Store

    return S3Store(
        told["bucket"], endpoint=told["url"], region="us-east-1",
        virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip


def listed(told: Told) -> list[str]:
    """The keys, as a user lists them: by the file system, or by boto3."""
    if told["store"] == "files":
        keys = sorted(entry.name for entry in os.scandir(told["folder"]))
    else:
        pages = boto3_client(told).get_paginator("list_objects_v2").paginate(Bucket=told["bucket"])
        keys = [one["Key"] for page in pages for one in page.get("Contents", [])]
    return keys if told["keep"] == 1 else [key for key in keys if is_kept(number_of(key), told["keep"])]


def mine(told: Told, keys: list[str]) -> list[str]:
    """A rank's share."""
    return keys[told["rank"] :: told["ranks"]]


def getter(told: Told) -> Get:
    """Bytes of a key, by one client of this process."""
    if told["store"] == "files":
        folder = pathlib.Path(told["folder"])
        return lambda key: (folder / key).read_bytes()
    if told["client"] == "obstore":
        import obstore

        store = obstore_of(told)
        return lambda key: bytes(obstore.get(store, key).bytes())
    client, bucket = boto3_client(told), told["bucket"]
    return lambda key: client.get_object(Bucket=bucket, Key=key)["Body"].read()


class Objects:
    """A dataset as torch's users write it: (number, tensor) of each object."""

    def __init__(self, told: Told) -> None:
        self._told = {name: value for name, value in told.items() if name != "state_of"}
        self._keys = listed(told)

    def __len__(self) -> int:
        return len(self._keys)

    @functools.cached_property
    def _get(self) -> Get:  # In the worker that uses it: clients do not survive a fork.
        return getter(self._told)

    def __getitem__(self, index: int) -> tuple[int, Any]:
        import torch

        key = self._keys[index]
        data = self._get(key)
        return 0 if self._told["numbered"] is None else number_of(key), torch.from_numpy(
            finished(self._told["task"], data)
        )


class ObjectsByThreads(Objects):
    """A batch's objects at once, by threads of the worker."""

    @functools.cached_property
    def _pool(self) -> concurrent.futures.Executor:
        return concurrent.futures.ThreadPoolExecutor(self._told["setting"]["threads"])

    def __getitems__(self, indices: list[int]) -> list[tuple[int, Any]]:
        return list(self._pool.map(self.__getitem__, indices))


class Rest:
    """The rest of a stopped epoch: the sampler that a user of torch writes to go on."""

    def __init__(self, count: int, seen: int) -> None:
        import torch

        self._order = torch.randperm(count, generator=torch.Generator().manual_seed(SEED)).tolist()[seen:]

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)


def loader_over(dataset: Any, told: Told) -> Any:
    from torch.utils.data import DataLoader, DistributedSampler

    warnings.filterwarnings("ignore", message="This DataLoader will create")
    sampler = None
    if told["ranks"] > 1:
        sampler = DistributedSampler(dataset, told["ranks"], told["rank"], shuffle=True, seed=SEED)
    elif told["figure"] == "resume":
        sampler = Rest(len(dataset), told["state"] or 0)
        told["state_of"] = lambda seen: seen
    workers = told["setting"]["workers"]
    return DataLoader(dataset, told["batch"], shuffle=sampler is None, sampler=sampler, num_workers=workers,
                      persistent_workers=workers > 0 and told["epochs"] > 1)  # fmt: skip


def epochs_of(make: Callable[[Told], Any], told: Told) -> Iterator[Any]:
    import torch  # noqa: F401

    if told["store"] == "bucket":
        __import__(told["client"])
    yield None
    loader = loader_over(make(told), told)
    for _ in range(told["epochs"]):
        yield loader


def torch_plain(told: Told) -> Iterator[Any]:
    yield from epochs_of(Objects, _with(told, "boto3"))


def torch_obstore(told: Told) -> Iterator[Any]:
    yield from epochs_of(ObjectsByThreads, _with(told, "obstore"))


def _with(told: Told, client: str) -> Told:
    told["client"] = client  # In place: "state_of" is told back.
    return told


class FromReader:
    """A transform of the S3 Connector's reader; of a module, so that workers find it."""

    def __init__(self, told: Told) -> None:
        self._task, self._numbered = told["task"], told["numbered"]

    def __call__(self, reader: Any) -> tuple[int, Any]:
        import torch

        data = reader.read()
        return 0 if self._numbered is None else number_of(reader.key), torch.from_numpy(finished(self._task, data))


def s3torchconnector(told: Told) -> Iterator[Any]:
    def make(told: Told) -> Any:
        from s3torchconnector import S3ClientConfig, S3MapDataset

        return S3MapDataset.from_prefix(
            f"s3://{told['bucket']}/", region="us-east-1", endpoint=told["url"], transform=FromReader(told),
            s3client_config=S3ClientConfig(force_path_style=True),
        )  # fmt: skip

    yield from epochs_of(make, _with(told, "s3torchconnector"))


ADAPTERS = {"torch": torch_plain, "torch-obstore": torch_obstore, "s3torchconnector": s3torchconnector}
