"""Reads objects of a bucket with another library, in threads, for faults_bench.py.

    python faults_peer.py WAY ENDPOINT THREADS < KEYS

Writes eight zero bytes once it is ready, and then the 8-byte BLAKE2b digest of each object, as it comes. An exception
ends it, with its name on standard error.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import sys
from collections.abc import Callable

BUCKET = "objects"
REGION = "us-east-1"
Get = Callable[[str], bytes]


def boto3(endpoint: str, threads: int, keys: list[str]) -> Get:
    import boto3
    import botocore
    import botocore.config

    client = boto3.client(
        "s3", endpoint_url=endpoint, region_name=REGION,
        config=botocore.config.Config(
            signature_version=botocore.UNSIGNED, max_pool_connections=threads,
            retries={"mode": "standard", "total_max_attempts": 10}, s3={"addressing_style": "path"},
        ),
    )  # fmt: skip
    return lambda key: client.get_object(Bucket=BUCKET, Key=key)["Body"].read()


def obstore(endpoint: str, threads: int, keys: list[str]) -> Get:
    import obstore
    from obstore.store import S3Store

    store = S3Store(
        BUCKET, endpoint=endpoint, region=REGION, skip_signature=True,
        virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip
    return lambda key: bytes(obstore.get(store, key).bytes())


def s3torchconnector(endpoint: str, threads: int, keys: list[str]) -> Get:
    from s3torchconnector import S3ClientConfig, S3MapDataset

    dataset = S3MapDataset.from_objects(
        [f"s3://{BUCKET}/{key}" for key in keys], region=REGION, endpoint=endpoint,
        transform=lambda reader: reader.read(),
        s3client_config=S3ClientConfig(unsigned=True, force_path_style=True),
    )  # fmt: skip
    numbers = {key: number for number, key in enumerate(keys)}
    return lambda key: dataset[numbers[key]]


WAYS = {one.__name__: one for one in (boto3, obstore, s3torchconnector)}


def main() -> int:
    way, endpoint, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    keys = sys.stdin.read().split()
    get = WAYS[way](endpoint, threads, keys)
    sys.stdout.buffer.write(bytes(8))
    sys.stdout.buffer.flush()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        try:
            for part in pool.map(get, keys):
                sys.stdout.buffer.write(hashlib.blake2b(part, digest_size=8).digest())
                sys.stdout.buffer.flush()
        except Exception as error:  # Each library has its own.
            pool.shutdown(wait=False, cancel_futures=True)
            print(type(error).__name__, file=sys.stderr, flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
