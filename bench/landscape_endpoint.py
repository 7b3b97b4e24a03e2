"""An S3 server of the user's own in the place of `leat bucket`: the forms of the data are uploaded to it once."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
from typing import Any

from landscape_child import Failed
from landscape_regimes import DATA

UPLOADS = 16  # At once.
MADE = "leat-landscape-made"  # The bucket whose objects say which of the others are whole.


class Endpoint:
    """Looks like a Bucket of leat.testing, but nobody counts its GETs. Credentials are those of the environment."""

    def __init__(self, url: str, root: pathlib.Path) -> None:
        self.url = url
        self._root = root
        self._there: set[str] = set()

    def env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        return {"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", **kept, "AWS_ENDPOINT_URL": self.url}

    def reset_counters(self) -> None:
        """Does nothing: there are none."""

    def counters(self) -> dict[str, None]:
        return {"get": None, "bytes": None}

    def upload(self, form: str, data: str) -> None:
        """The folder of that form, as a bucket of its name, unless it is there: the stamp's text says which."""
        if DATA[data].kind == "many":
            raise Failed("only `leat bucket` serves one file as this many objects")
        stamp = (self._root / f"{form}.made").read_text()
        if form in self._there:
            return
        client = self._client()
        if not self._is_made(client, form, stamp):
            if form not in [one["Name"] for one in client.list_buckets()["Buckets"]]:
                client.create_bucket(Bucket=form)
            files = [path for path in (self._root / form).rglob("*") if path.is_file()]
            names = [path.relative_to(self._root / form).as_posix() for path in files]
            with concurrent.futures.ThreadPoolExecutor(UPLOADS) as pool:
                list(pool.map(lambda path, name: client.upload_file(str(path), form, name), files, names))
            client.put_object(Bucket=MADE, Key=form, Body=stamp.encode())
        self._there.add(form)

    def tidy(self, form: str) -> None:
        """Removes the index that LitData writes beside raw samples."""
        if form.endswith("-raw"):
            self._client().delete_object(Bucket=form, Key="index.json.zstd")

    def _client(self) -> Any:
        import boto3
        import botocore.config

        config = botocore.config.Config(max_pool_connections=2 * UPLOADS, s3={"addressing_style": "path"})
        return boto3.client("s3", endpoint_url=self.url, region_name=self.env()["AWS_REGION"], config=config)

    def _is_made(self, client: Any, form: str, stamp: str) -> bool:
        """The stamps are in a bucket of their own, since loaders list the others."""
        if MADE not in [one["Name"] for one in client.list_buckets()["Buckets"]]:
            client.create_bucket(Bucket=MADE)
        try:
            return bool(client.get_object(Bucket=MADE, Key=form)["Body"].read().decode() == stamp)
        except client.exceptions.NoSuchKey:
            return False
