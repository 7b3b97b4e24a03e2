"""A bucket that behaves like a cloud's, for users' own tests.

    with leat.testing.Bucket("data", latency="55ms", faults=["503:1%"]) as bucket:
        loader = leat.Loader(
            bucket.s3_url("photos"), batch_size=8, train=False,
            storage_options={"endpoint_url": bucket.url},
        )
        ...
        assert bucket.counters()["repeated_keys"] == 0

Needs the `leat` command and nothing else.
"""

from __future__ import annotations

import json
import os
import pathlib
import select
import shutil
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Optional, Union

from leat._arguments import checks_names

__all__ = ["Bucket", "content_hash", "find_binary"]

_START_SECONDS = 30.0
_END_SECONDS = 5.0
_GREETING = "listening on "
_REGION = "us-east-1"


def find_binary() -> str:
    """The `leat` command: LEAT_BINARY, else the package's own, else PATH's."""
    named = os.environ.get("LEAT_BINARY")
    if named:
        return named
    own = pathlib.Path(__file__).parent / "bin" / "leat"
    if own.exists():
        return str(own)
    found = shutil.which("leat")
    if found is None:
        from leat._cli import remedy

        raise FileNotFoundError(
            "the leat command was not found: set LEAT_BINARY to its path, put it "
            f"on PATH, or {remedy()}"
        )
    return found


def content_hash(epoch: int, sample: int, fields: Mapping[str, Any]) -> int:
    """The hash of one delivered sample, given its arrays by name, in their order.

    The sum of these hashes over an epoch, modulo 2**128, is the `content_hash` of
    `Loader.stats()`. Use it to prove that another loader delivers the same samples.
    """
    from leat import _native  # Here, so that a Bucket needs the command alone.

    return _native.hash_of_sample(epoch, sample, list(fields.items()))


@checks_names()
class Bucket:
    """Serves the folder `path` with `leat bucket` while it is entered.

    The folders in `path` are the buckets. The options are those of the command: `latency`
    is "55ms" or "lognormal:110ms,0.5"; `bandwidth` (of a connection) and `total_bandwidth`
    are like "90MB/s"; `faults` are like "503:1%"; `fault_script` is the text of a fault
    script; `credentials` is a pair of access key and secret (without it, requests need no
    signature); `repeat` is like "bucket/x.bin:1000000", which serves one file as many
    objects; `most_gets` is the GETs a second that are served, the others get 503; `retry_after`
    is the seconds that its 429s and 503s ask clients to wait; with `checksums` it gives whole
    objects' CRC64NVME to clients that ask for it; `names` are host names by which
    the server may be asked. The server ends with the block, and at the latest with this process.
    """

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        latency: str = "55ms",
        bandwidth: Optional[str] = None,
        total_bandwidth: Optional[str] = None,
        faults: Sequence[str] = (),
        credentials: Optional[tuple[str, str]] = None,
        tls: bool = False,
        seed: Optional[int] = None,
        *,
        fault_script: Optional[str] = None,
        session_token: Optional[str] = None,
        expired_token: Optional[str] = None,
        repeat: Optional[str] = None,
        threads: int = 1,
        most_gets: Optional[int] = None,
        retry_after: Optional[int] = None,
        checksums: bool = False,
        names: Sequence[str] = (),
    ) -> None:
        self._credentials = credentials
        self._session_token = session_token
        self._tls = tls
        self._fault_script = fault_script
        self._options = [str(path), "--latency", latency, "--threads", str(threads)]
        for name, value in (
            ("bandwidth", bandwidth),
            ("total-bandwidth", total_bandwidth),
            ("credentials", ":".join(credentials) if credentials else None),
            ("seed", seed),
            ("session-token", session_token),
            ("expired-token", expired_token),
            ("repeat", repeat),
            ("most-gets", most_gets),
            ("retry-after", retry_after),
        ):
            if value is not None:
                self._options += [f"--{name}", str(value)]
        if checksums:
            self._options.append("--checksums")
        for fault in faults:
            self._options += ["--fault", fault]
        for name in names:
            self._options += ["--name", name]
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._folder: Optional[tempfile.TemporaryDirectory[str]] = None
        self._url = ""

    @property
    def url(self) -> str:
        """The endpoint, such as "http://127.0.0.1:40123"."""
        if self._process is None:
            raise RuntimeError("the bucket serves only inside its with block")
        return self._url

    @property
    def pid(self) -> int:
        """The server's process."""
        if self._process is None:
            raise RuntimeError("the bucket serves only inside its with block")
        return self._process.pid

    @property
    def certificate(self) -> Optional[str]:
        """With tls, a PEM file with which clients can verify the server."""
        if not self._tls or self._folder is None:
            return None
        return os.path.join(self._folder.name, "certificate.pem")

    def s3_url(self, bucket: str, prefix: str = "") -> str:
        """The URL of a bucket of this server, or of a prefix in it."""
        return f"s3://{bucket}/{prefix}".rstrip("/")

    def env(self) -> dict[str, str]:
        """The environment variables by which AWS's tools, and ours, find this server.

        Add them to an environment that has no other AWS_ variables.
        """
        key, secret = self._credentials or ("anonymous", "anonymous")
        variables = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": _REGION,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        if self._session_token is not None:
            variables["AWS_SESSION_TOKEN"] = self._session_token
        if self.certificate is not None:
            variables["AWS_CA_BUNDLE"] = self.certificate
        return variables

    def counters(self) -> dict[str, Any]:
        """The server's counts since it began or was reset."""
        counters: dict[str, Any] = json.loads(self._ask("GET", "/_leat/counters"))
        return counters

    def reset_counters(self) -> None:
        """Sets all counters to zero, except those of requests in flight."""
        self._ask("POST", "/_leat/counters/reset")

    def __enter__(self) -> "Bucket":
        if self._process is not None:
            raise RuntimeError("the bucket is serving already")
        self._folder = tempfile.TemporaryDirectory(prefix="leat-bucket-")
        try:
            self._start(self._folder.name)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._end()

    def _start(self, folder: str) -> None:
        command = [find_binary(), "bucket", *self._options, "--exit-with-stdin"]
        if self.certificate is not None:
            command += ["--tls", "--tls-cert-out", self.certificate]
        if self._fault_script is not None:
            script = os.path.join(folder, "faults")
            pathlib.Path(script).write_text(self._fault_script)
            command += ["--fault-script", script]
        with open(os.path.join(folder, "errors"), "w+b") as errors:
            # Standard input is never written to: its end is the sign to leave,
            # and comes also if this process is killed.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # Ctrl-C is for this process; it ends the server in its own time.
                start_new_session=True,
            )
            greeting = self._read_greeting()
            if not greeting.startswith(_GREETING):
                errors.seek(0)
                reason = errors.read().decode(errors="replace").strip()
                raise RuntimeError(f"leat bucket did not start: {reason or greeting}")
        self._url = greeting[len(_GREETING) :]

    def _read_greeting(self) -> str:
        assert self._process is not None and self._process.stdout is not None
        stdout = self._process.stdout
        ready, _, _ = select.select([stdout], [], [], _START_SECONDS)
        if not ready:
            return f"it said nothing for {_START_SECONDS:.0f} seconds"
        return stdout.readline().decode().strip()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def _ask(self, method: str, path: str) -> bytes:
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.certificate is not None:
            context = ssl.create_default_context(cafile=self.certificate)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        request = urllib.request.Request(self.url + path, method=method)
        opener = urllib.request.build_opener(*handlers)
        with opener.open(request, timeout=_START_SECONDS) as reply:
            body: bytes = reply.read()
            return body
