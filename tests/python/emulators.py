"""Puts objects into the emulators of clouds that others wrote."""

from __future__ import annotations

import base64
import email.utils
import hmac
import json
import urllib.parse
import urllib.request
from collections.abc import Iterable

DEVELOPMENT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
BYTES = "application/octet-stream"


def _ask(url: str, data: bytes | None, headers: dict[str, str], method: str) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30) as reply:
        reply.read()


def put_at_gcs(url: str, bucket: str, objects: Iterable[tuple[str, bytes]]) -> None:
    """Makes the bucket, and puts the objects, by the JSON API."""
    body = json.dumps({"name": bucket}).encode()
    _ask(f"{url}/storage/v1/b?project=p", body, {"Content-Type": "application/json"}, "POST")
    for key, data in objects:
        name = urllib.parse.quote(key, safe="")
        to = f"{url}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
        _ask(to, data, {"Content-Type": BYTES}, "POST")


def put_at_azurite(url: str, container: str, objects: Iterable[tuple[str, bytes]]) -> None:
    """Makes the container, and puts the objects, as Azurite's account, whose key is published."""
    _put_signed(url, f"/{container}", "?restype=container")
    for key, data in objects:
        own = {"x-ms-blob-type": "BlockBlob", "Content-Type": BYTES}
        _put_signed(url, f"/{container}/{urllib.parse.quote(key)}", data=data, **own)


def _put_signed(url: str, path: str, query: str = "", data: bytes = b"", **headers: str) -> None:
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06", **headers}
    own = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers) if name.startswith("x-ms-"))
    length = str(len(data)) if data else ""
    signed = (f"PUT\n\n\n{length}\n\n{headers.get('Content-Type', '')}\n\n\n\n\n\n\n{own}"
              f"/devstoreaccount1/devstoreaccount1{path}{query.replace('?', chr(10)).replace('=', ':')}")
    digest = hmac.digest(base64.b64decode(DEVELOPMENT_KEY), signed.encode(), "sha256")
    headers["Authorization"] = f"SharedKey devstoreaccount1:{base64.b64encode(digest).decode()}"
    _ask(f"{url}/devstoreaccount1{path}{query}", data or None, headers, "PUT")
