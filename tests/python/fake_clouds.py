"""Small servers in the place of clouds: each speaks the part of its service's documented API that Leat uses.

They serve a folder as one bucket, and answer nobody who does not show the token or signature that they gave.
"""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import json
import pathlib
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

PAGE = 50


class Cloud:
    """The objects of a folder, and what was asked of them."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.objects = {
            path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
        }
        self.tokens_given = 0
        self.requests: list[str] = []
        self.url = ""
        self.cdn = ""
        self.tokens_astray = 0

    def version(self, key: str) -> str:
        return str(int(hashlib.md5(self.objects[key]).hexdigest()[:12], 16) + 1)

    def page(self, query: dict[str, str], after: str) -> tuple[list[str], list[str], str]:
        """Keys, folders and the last name of a page that begins after `after`."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        names: dict[str, bool] = {}
        for key in sorted(self.objects):
            if not key.startswith(prefix) or key < query.get("startOffset", ""):
                continue
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            name = key if cut < 0 else key[: cut + 1]
            if name > after:
                names[name] = cut < 0
        shown = list(names)[:PAGE]
        keys = [name for name in shown if names[name]]
        return keys, [name for name in shown if not names[name]], shown[-1] if len(names) > PAGE else ""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cloud: Cloud

    def log_message(self, *args) -> None:
        pass

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_range(self, key: str, **headers: str) -> None:
        data = self.cloud.objects[key]
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        part = data[int(first) : int(last) + 1]
        if not part:
            return self.reply(416)
        span = f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
        self.reply(206, part, Content_Range=span, **headers)

    def asked(self) -> tuple[str, dict[str, str]]:
        parts = urllib.parse.urlsplit(self.path)
        self.cloud.requests.append(f"{self.command} {parts.path}")
        return parts.path, dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))


class GoogleHandler(Handler):
    """Google Cloud Storage's JSON API for the bucket `photos`, and the token endpoint of OAuth 2.0."""

    def resource(self, key: str) -> dict:
        return {"name": key, "size": str(len(self.cloud.objects[key])), "generation": self.cloud.version(key),
                "updated": "2024-02-29T12:00:00Z"}

    def answer(self, value: dict, status: int = 200) -> None:
        self.reply(status, json.dumps(value).encode(), Content_Type="application/json")

    def refuse(self, status: int, reason: str, message: str) -> None:
        self.answer({"error": {"code": status, "message": message, "errors": [{"reason": reason}]}}, status)

    def do_POST(self) -> None:
        path, query = self.asked()
        form = dict(urllib.parse.parse_qsl(self.body().decode()))
        if path != "/token" or form.get("refresh_token") != "REFRESHSECRET":
            return self.answer({"error": "invalid_grant", "error_description": f"not {form}"}, 400)
        self.cloud.tokens_given += 1
        self.answer({"access_token": "BEARERSECRET", "expires_in": 3600, "token_type": "Bearer"})

    def do_GET(self) -> None:
        path, query = self.asked()
        if self.headers.get("Authorization") != "Bearer BEARERSECRET":
            return self.refuse(401, "authError", f"not {self.headers.get('Authorization')}")
        if path == "/storage/v1/b/photos/o":
            keys, folders, last = self.cloud.page(query, query.get("pageToken", ""))
            more = {"nextPageToken": last} if last else {}
            return self.answer({"items": [self.resource(key) for key in keys], "prefixes": folders, **more})
        key = urllib.parse.unquote(path.removeprefix("/storage/v1/b/photos/o/"))
        if key not in self.cloud.objects:
            return self.refuse(404, "notFound", f"No such object: photos/{key}")
        if query.get("alt") != "media":
            return self.answer(self.resource(key))
        if query.get("ifGenerationMatch", self.cloud.version(key)) != self.cloud.version(key):
            return self.reply(412, b"Precondition Failed")
        self.send_range(key, x_goog_generation=self.cloud.version(key))


class AzureHandler(Handler):
    """Azure's Blob service for the container `ds` of an account, for whoever shows its SAS."""

    def refuse(self, status: int, code: str) -> None:
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>sig=SASSECRET</Message></Error>"
        self.reply(status, body.encode(), x_ms_error_code=code)

    def do_GET(self) -> None:
        path, query = self.asked()
        if query.get("sig") != "SASSECRET":
            return self.refuse(403, "AuthenticationFailed")
        if path == "/account/ds" and query.get("comp") == "list":
            return self.list(query)
        key = urllib.parse.unquote(path.removeprefix("/account/ds/"))
        if key not in self.cloud.objects:
            return self.refuse(404, "BlobNotFound")
        etag = f'"0x{self.cloud.version(key)}"'
        if self.headers.get("If-Match", etag) != etag:
            return self.refuse(412, "ConditionNotMet")
        if self.command == "HEAD":
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.cloud.objects[key])))
            self.send_header("ETag", etag)
            self.send_header("Last-Modified", email.utils.formatdate(time.time(), usegmt=True))
            return self.end_headers()
        self.send_range(key, ETag=etag)

    do_HEAD = do_GET

    def list(self, query: dict[str, str]) -> None:
        keys, folders, last = self.cloud.page(query, query.get("marker", ""))
        blobs = "".join(
            f"<Blob><Name>{escape(key)}</Name><Properties><Content-Length>{len(self.cloud.objects[key])}</Content-Length>"
            f"<Etag>0x{self.cloud.version(key)}</Etag></Properties></Blob>"
            for key in keys
        ) + "".join(f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>" for name in folders)
        self.reply(200, f"\ufeff<?xml version='1.0' encoding='utf-8'?><EnumerationResults><Blobs>{blobs}</Blobs>"
                        f"<NextMarker>{escape(last)}</NextMarker></EnumerationResults>".encode())


class HubHandler(Handler):
    """The Hugging Face Hub's API for the dataset `me/ds`; /cdn/ stands for the network that delivers its files."""

    def refuse(self, status: int, code: str) -> None:
        self.reply(status, b"", X_Error_Code=code)

    def hash_of(self, key: str) -> str:
        return hashlib.sha256(self.cloud.objects[key]).hexdigest()

    def entry(self, key: str) -> dict:
        size = len(self.cloud.objects[key])
        return {"type": "file", "path": key, "size": 130, "oid": "0" * 40, "lfs": {"oid": self.hash_of(key), "size": size}}

    def answer(self, value: list, **headers: str) -> None:
        self.reply(200, json.dumps(value).encode(), Content_Type="application/json", **headers)

    def do_POST(self) -> None:
        path, _ = self.asked()
        form = urllib.parse.parse_qs(self.body().decode())
        if self.headers.get("Authorization") != "Bearer HUBSECRET":
            return self.refuse(401, "RepoNotFound")
        self.answer([self.entry(key) for key in form["paths"] if key in self.cloud.objects])

    def do_GET(self) -> None:
        path, query = self.asked()
        if path.startswith("/cdn/"):
            self.cloud.tokens_astray += "Authorization" in self.headers
            return self.send_range(urllib.parse.unquote(path.removeprefix("/cdn/")))
        if self.headers.get("Authorization") != "Bearer HUBSECRET":
            return self.refuse(401, "RepoNotFound")
        tree = "/api/datasets/me/ds/tree/main"
        if path.startswith(tree):
            folder = urllib.parse.unquote(path.removeprefix(tree)).lstrip("/")
            within = {"prefix": folder + "/" if folder else ""}
            if query["recursive"] == "false":
                within["delimiter"] = "/"
            keys, folders, last = self.cloud.page(within, query.get("cursor", ""))
            if not keys and not folders:
                return self.refuse(404, "EntryNotFound")
            more = {"Link": f'<{self.cloud.url}{tree}?cursor={urllib.parse.quote(last, safe="")}>; rel="next"'} if last else {}
            return self.answer([self.entry(key) for key in keys]
                               + [{"type": "directory", "path": name.rstrip("/")} for name in folders], **more)
        key = urllib.parse.unquote(path.removeprefix("/datasets/me/ds/resolve/main/"))
        if key not in self.cloud.objects:
            return self.refuse(404, "EntryNotFound")
        self.reply(302, b"", Location=f"{self.cloud.cdn}/cdn/{urllib.parse.quote(key)}", X_Linked_ETag=f'"{self.hash_of(key)}"')


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # A loader opens many connections at once.


@contextlib.contextmanager
def serving(handler: type[Handler], folder: pathlib.Path) -> Iterator[Cloud]:
    """The folder in a cloud of its own at `Cloud.url`; `Cloud.cdn` is another server of the same."""
    cloud = Cloud(folder)
    servers = [Server(("127.0.0.1", 0), type("Bound", (handler,), {"cloud": cloud})) for _ in range(2)]
    cloud.url, cloud.cdn = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield cloud
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
