"""Reads objects with one client, for clients_bench.py, in a process of its own, whose CPU is the client's.

    python clients_peer.py WAY URL CONCURRENCY SECONDS < KEYS

The first pass over the keys is not timed: it opens connections, and gives the sum of the objects' BLAKE2b digests. Then
passes follow until SECONDS are over, and only lengths are looked at. Prints a JSON object: gets (those timed), seconds,
cpu_seconds, digest, passes (all), bytes_right.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import hashlib
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator

import faults_peer

BUCKET = faults_peer.BUCKET
# Azurite's, which is published.
DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
Pass = Callable[[], Iterable[bytes]]


def connection_string(url: str) -> str:
    """For Azurite's account, whose key is published."""
    return (f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={DEVELOPMENT_KEY};"
            f"BlobEndpoint={url}/devstoreaccount1;")  # fmt: skip


# --- Leat -----------------------------------------------------------------------


def leat_at(source: str, reach: dict, concurrency: int, keys: list[str]) -> Pass:
    """An epoch of a loader, which goes on to the next one while it is read."""
    import leat

    loader = leat.Loader(
        source, batch_size=50, shuffle=True, output="numpy", batch="dict", drop_last=False,
        max_in_flight=concurrency, storage_options=reach,
    )  # fmt: skip
    assert len(loader) * 50 >= len(keys)
    return lambda: (memoryview(one) for batch in loader for one in batch["data"])


def leat_s3(url: str, concurrency: int, keys: list[str]) -> Pass:
    return leat_at(f"s3://{BUCKET}", {"endpoint_url": url, "no_sign_request": True}, concurrency, keys)


def leat_gcs(url: str, concurrency: int, keys: list[str]) -> Pass:
    return leat_at(f"gs://{BUCKET}", {"endpoint_url": url, "no_sign_request": True}, concurrency, keys)


def leat_azure(url: str, concurrency: int, keys: list[str]) -> Pass:
    os.environ["AZURE_STORAGE_CONNECTION_STRING"] = connection_string(url)
    return leat_at(f"az://{BUCKET}", {}, concurrency, keys)


# --- clients that block: threads --------------------------------------------------


def in_threads(get: Callable[[str], bytes], concurrency: int, keys: list[str]) -> Pass:
    pool = concurrent.futures.ThreadPoolExecutor(concurrency)
    return lambda: pool.map(get, keys)


def of_faults(way: str, url: str, concurrency: int, keys: list[str]) -> Pass:
    return in_threads(faults_peer.WAYS[way](url, concurrency, keys), concurrency, keys)


# --- clients that do not: tasks ------------------------------------------------------


def in_tasks(get: Callable, concurrency: int, keys: list[str]) -> Pass:
    """Each task takes the next key, so that `concurrency` requests are in flight."""
    runner = asyncio.Runner() if sys.version_info >= (3, 11) else None
    run = runner.run if runner else asyncio.run

    async def read_all() -> list[bytes]:
        left, found = iter(keys), []

        async def take() -> None:
            for key in left:
                found.append(await get(key))

        await asyncio.gather(*(take() for _ in range(concurrency)))
        return found

    return lambda: run(read_all())


def obstore_store(kind: str, url: str):
    import obstore.store as stores

    if kind == "s3":
        return stores.S3Store(BUCKET, endpoint=url, region=faults_peer.REGION, skip_signature=True,
                              virtual_hosted_style_request=False, client_options={"allow_http": True})  # fmt: skip
    if kind == "gcs":
        account = {"gcs_base_url": url, "disable_oauth": True}
        account |= {"client_email": "", "private_key": "", "private_key_id": ""}
        return stores.GCSStore(BUCKET, service_account_key=json.dumps(account), client_options={"allow_http": True})
    return stores.AzureStore(BUCKET, account_name="devstoreaccount1", account_key=DEVELOPMENT_KEY,
                             endpoint=f"{url}/devstoreaccount1", client_options={"allow_http": True})  # fmt: skip


def obstore_threads(kind: str, url: str, concurrency: int, keys: list[str]) -> Pass:
    import obstore

    store = obstore_store(kind, url)
    return in_threads(lambda key: bytes(obstore.get(store, key).bytes()), concurrency, keys)


def obstore_tasks(kind: str, url: str, concurrency: int, keys: list[str]) -> Pass:
    import obstore

    store = obstore_store(kind, url)

    async def get(key: str) -> bytes:
        reply = await obstore.get_async(store, key)
        return bytes(await reply.bytes_async())

    return in_tasks(get, concurrency, keys)


def in_bulk(fs, concurrency: int, keys: list[str]) -> Pass:
    """Fsspec's own call for many objects."""
    paths = [f"{BUCKET}/{key}" for key in keys]
    return lambda: fs.cat(paths, batch_size=concurrency).values()


def gcsfs(url: str, concurrency: int, keys: list[str]) -> Pass:
    # Else it asks Google's own address, over gRPC, of which kind the bucket is.
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    import gcsfs

    return in_bulk(gcsfs.GCSFileSystem(endpoint_url=url, token="anon", project="p"), concurrency, keys)


def adlfs(url: str, concurrency: int, keys: list[str]) -> Pass:
    import adlfs

    return in_bulk(adlfs.AzureBlobFileSystem(connection_string=connection_string(url)), concurrency, keys)


WAYS: dict[str, Callable[[str, int, list[str]], Pass]] = {
    "s3: leat": leat_s3,
    "s3: boto3": functools.partial(of_faults, "boto3"),
    "s3: s3torchconnector": functools.partial(of_faults, "s3torchconnector"),
    "s3: obstore": functools.partial(obstore_threads, "s3"),
    "s3: obstore async": functools.partial(obstore_tasks, "s3"),
    "gcs: leat": leat_gcs,
    "gcs: obstore": functools.partial(obstore_threads, "gcs"),
    "gcs: obstore async": functools.partial(obstore_tasks, "gcs"),
    "gcs: gcsfs": gcsfs,
    "azure: leat": leat_azure,
    "azure: obstore": functools.partial(obstore_threads, "azure"),
    "azure: obstore async": functools.partial(obstore_tasks, "azure"),
    "azure: adlfs": adlfs,
}


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def digest_of(parts: Iterable[bytes]) -> Iterator[int]:
    return (int.from_bytes(hashlib.blake2b(part, digest_size=8).digest(), "little") for part in parts)


def main() -> int:
    way, url, concurrency, most_seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    keys = sys.stdin.read().split()
    one_pass = WAYS[way](url, concurrency, keys)
    first = list(one_pass())
    digest, size = sum(digest_of(first)), sum(map(len, first))
    del first
    gets, sizes_right, began, cpu = 0, True, time.perf_counter(), cpu_seconds()
    for passes in itertools.count(1):
        gets += len(keys)
        sizes_right &= sum(map(len, one_pass())) == size
        seconds = time.perf_counter() - began
        if seconds >= most_seconds:
            break
    print(json.dumps({
        "gets": gets, "seconds": seconds, "cpu_seconds": cpu_seconds() - cpu, "digest": digest, "passes": passes + 1,
        "bytes_right": sizes_right,
    }), flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # Some clients' own threads outlive main().
