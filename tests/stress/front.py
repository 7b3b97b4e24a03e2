"""A server before a bucket, which looks at each request and answers some by itself, as S3 would."""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import http.server
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Optional


class Asked(NamedTuple):
    method: str
    headers: Mapping[str, str]

    @property
    def region(self) -> str:
        """By the scope of its signature: "…Credential=KEY/DATE/REGION/s3/aws4_request, …"."""
        return self.headers["Authorization"].split("Credential=")[1].split("/")[2]


class Answer(NamedTuple):
    status: int
    code: str
    inside: str = ""
    headers: Mapping[str, str] = {}


Judge = Callable[[Asked], Optional[Answer]]


class _Relay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    judge: Judge
    behind: str
    disable_nagle_algorithm = True

    def log_message(self, *_words: object) -> None:
        pass

    def do_GET(self) -> None:
        answer = self.judge(Asked(self.command, self.headers))
        if answer is not None:
            self._answer(answer)
            return
        with contextlib.closing(http.client.HTTPConnection(self.behind)) as onward:
            # Unsigned: what is behind checks nothing.
            kept = {name: self.headers[name] for name in ("Range", "If-Match") if name in self.headers}
            onward.request(self.command, self.path, headers=kept)
            reply = onward.getresponse()
            body = reply.read()
        self.send_response_only(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ("connection", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", reply.getheader("Content-Length", "0"))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def _answer(self, answer: Answer) -> None:
        text = f"<Error><Code>{answer.code}</Code><Message>as a test asked</Message>{answer.inside}</Error>"
        body = b"" if self.command == "HEAD" else text.encode()
        self.send_response_only(answer.status)
        for name, value in {"Date": email.utils.formatdate(usegmt=True), **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, *_words: object) -> None:
        """A client that leaves is none."""


@contextlib.contextmanager
def front(bucket_url: str, judge: Judge) -> Iterator[str]:
    """The URL of a server that passes on to a bucket what `judge` does not answer."""
    behind = urllib.parse.urlsplit(bucket_url).netloc
    relay = type("Relay", (_Relay,), {"judge": staticmethod(judge), "behind": behind})
    server = _Server(("127.0.0.1", 0), relay)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
