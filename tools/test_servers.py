#!/usr/bin/env python3
"""Runs the stores against servers that others wrote, beside our own: ./dev test-servers [NAME...]

Each server gets the conformance suite of stores, and the test that the order and the contents of two epochs are those
of a folder with the same files. A line for each says: passed, failed, or not installed and why. Everything that it
installs lies in build/servers, where the logs are, too. A server whose installing takes over two minutes is given up,
unless it is named.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOME = ROOT / "build/servers"
PROGRAMS = ROOT / "build/release"
PINS = ROOT / "tools/servers-requirements.txt"
AZURITE = "azurite@3.37.0"
MOST_INSTALL_SECONDS = 120.0
MOST_START_SECONDS = 30.0
MOST_TEST_SECONDS = 300.0
KEYS = "AKTEST:SKTESTSECRET"  # As tests/rgw/start.sh gives them.

Environment = dict[str, str]


class NotInstalledError(Exception):
    """Why a server is not there; it says how to get it."""


class Failed(Exception):
    """Says in a line what went wrong."""


# --- processes ----------------------------------------------------------------


def find_program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def need_programs(*names: str, apt: str) -> None:
    if any(find_program(name) is None for name in names):
        raise NotInstalledError(f"apt-get install {apt}")


def end_group(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_logged(
    command: list, log: pathlib.Path, most_seconds: float, environment: Environment
) -> tuple[int | None, str]:
    """The exit status, None if it ran too long, and all that it said."""
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            env={**os.environ, **environment}, cwd=ROOT, start_new_session=True,
        )  # fmt: skip
        try:
            code: int | None = process.wait(most_seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end_group(process)
    return code, log.read_text(errors="replace")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_it_listens(process: subprocess.Popen, port: int, log: pathlib.Path) -> None:
    until = time.monotonic() + MOST_START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise Failed(f"it did not start; {log.relative_to(ROOT)} has what it said")


@contextlib.contextmanager
def serving(folder: pathlib.Path, port: int, *command: object) -> Iterator[str]:
    """The URL of a server, which ends with the context."""
    log = folder / "server.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            cwd=folder, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until_it_listens(process, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        end_group(process)


# --- installing ---------------------------------------------------------------


def install(name: str, stamp: str, most_seconds: float, *commands: list) -> None:
    """Runs the commands, unless they have been run for this stamp."""
    done = HOME / f"{name}.stamp"
    if done.is_file() and done.read_text().partition("\n")[0] == stamp:
        return
    began = time.monotonic()
    for number, command in enumerate(commands):
        left = began + most_seconds - time.monotonic()
        log = HOME / f"{name}-install-{number}.log"
        code, _ = run_logged(command, log, left, {})
        if code is None:
            raise NotInstalledError(
                f"it takes over {most_seconds:.0f} s to install; to wait for it: ./dev test-servers {name}"
            )
        if code != 0:
            raise NotInstalledError(f"{command[0]} failed; {log.relative_to(ROOT)} has what it said")
    seconds = time.monotonic() - began
    print(f"{name} was installed in {seconds:.0f} s", file=sys.stderr)
    done.write_text(f"{stamp}\n{seconds:.0f} s\n")


def install_from_pypi(name: str, packages: tuple[str, ...], most_seconds: float) -> None:
    place = HOME / f"{name}-venv"
    pip = [place / "bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--retries", "1"]
    install(
        name, f"{sys.version_info[:2]} {packages} {PINS.read_text()!r}", most_seconds,
        [sys.executable, "-m", "venv", "--clear", place], [*pip, "--constraint", PINS, *packages],
    )  # fmt: skip


def install_azurite(most_seconds: float) -> None:
    need_programs("node", "npm", apt="nodejs npm")
    install(
        "azurite", AZURITE, most_seconds,
        ["npm", "install", "--prefix", HOME / "node", "--no-audit", "--no-fund", AZURITE],
    )  # fmt: skip


# --- the servers --------------------------------------------------------------


@contextlib.contextmanager
def start_nothing(folder: pathlib.Path) -> Iterator[Environment]:
    yield {}


@contextlib.contextmanager
def start_bucket(folder: pathlib.Path) -> Iterator[Environment]:
    (folder / "buckets").mkdir()
    port = free_port()
    command = (PROGRAMS / "bin/leat", "bucket", folder / "buckets", "--port", port, "--credentials", KEYS)
    with serving(folder, port, *command) as url:
        yield {"LEAT_TEST_S3": url}


NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root {folder}/served;
  }}
}}
"""


@contextlib.contextmanager
def start_nginx(folder: pathlib.Path) -> Iterator[Environment]:
    served = folder / "served"
    served.mkdir()
    port = free_port()
    settings = folder / "nginx.conf"
    settings.write_text(NGINX.format(folder=folder, port=port))
    with serving(folder, port, find_program("nginx"), "-c", settings, "-e", folder / "error.log") as url:
        yield {"LEAT_TEST_HTTP": url, "LEAT_TEST_HTTP_FOLDER": str(served)}


@contextlib.contextmanager
def start_rgw(folder: pathlib.Path) -> Iterator[Environment]:
    scripts, state = ROOT / "tests/rgw", folder / "state"
    ports = [free_port()]
    while not all(is_free(ports[0] + more) for more in (0, 1, 2)):
        ports[0] = free_port()
    try:
        code, said = run_outside(scripts / "start.sh", state, ports[0], log=folder / "start.log")
        if code != 0:
            raise Failed(f"it did not start; {(folder / 'start.log').relative_to(ROOT)} has what it said")
        url = said.split()[-1]
        yield {"LEAT_RGW_URL": url, "LEAT_TEST_S3": url}
    finally:
        subprocess.run([scripts / "stop.sh", state], check=False)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        with contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return True
    return False


def run_outside(*command: object, log: pathlib.Path) -> tuple[int, str]:
    """Runs what leaves daemons behind; stop.sh ends these."""
    with log.open("w") as file:
        done = subprocess.run(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            timeout=MOST_TEST_SECONDS, check=False,
        )  # fmt: skip
    return done.returncode, log.read_text(errors="replace")


@contextlib.contextmanager
def start_moto(folder: pathlib.Path) -> Iterator[Environment]:
    port = free_port()
    with serving(folder, port, HOME / "moto-venv/bin/moto_server", "-H", "127.0.0.1", "-p", port) as url:
        yield {"LEAT_RGW_URL": url, "LEAT_TEST_S3": url}


@contextlib.contextmanager
def start_gcs(folder: pathlib.Path) -> Iterator[Environment]:
    port = free_port()
    program = HOME / "gcs-venv/bin/gcp-storage-emulator"
    options = ("--host", "127.0.0.1", "--port", port, "--in-memory", "--quiet")
    with serving(folder, port, program, "start", *options) as url:
        yield {"LEAT_TEST_GCS": url}


@contextlib.contextmanager
def start_azurite(folder: pathlib.Path) -> Iterator[Environment]:
    port = free_port()
    command = (find_program("node"), HOME / "node/node_modules/.bin/azurite-blob", "--blobPort", port)
    options = ("--inMemoryPersistence", "--skipApiVersionCheck", "--silent")
    with serving(folder, port, *command, *options) as url:
        yield {"LEAT_TEST_AZURITE": url}


@dataclass(frozen=True)
class Server:
    """A server, or a driver that needs none."""

    name: str
    program: str  # In build/release; it runs the conformance suite.
    start: Callable[[pathlib.Path], AbstractContextManager[Environment]] = start_nothing
    install: Callable[[float], None] = lambda most_seconds: None
    hashes: str = ""  # The test of tests/python/test_servers_of_others.py.
    suite: str = "*StoreConformanceTest*"
    # Tests that the server cannot pass, and in what it differs from the service.
    left_out: tuple[tuple[str, str], ...] = ()


SERVERS = (
    Server("memory", "leat/store/memory/leat_store_memory_test"),
    Server("file", "leat/store/file/leat_store_file_test"),
    Server("bucket", "tests/s3/leat_tests_s3", start_bucket, hashes="s3s_protocol"),
    Server(
        "nginx", "leat/store/http/leat_store_http_test", start_nginx,
        lambda _: need_programs("nginx", apt="nginx-light"), hashes="a_web_server",
    ),
    Server(
        "rgw", "tests/rgw/leat_tests_rgw", start_rgw,
        lambda _: need_programs("radosgw", "ceph-mon", "ceph-osd", apt="radosgw ceph-mon ceph-osd ceph-common"),
        hashes="s3s_protocol", suite="*",
    ),
    Server(
        "moto", "tests/rgw/leat_tests_rgw", start_moto,
        functools.partial(install_from_pypi, "moto", ("moto[s3]", "flask", "flask-cors")), hashes="s3s_protocol",
    ),
    Server(
        "gcs", "leat/store/gcs/leat_store_gcs_test", start_gcs,
        functools.partial(install_from_pypi, "gcs", ("gcp-storage-emulator",)), hashes="googles_emulator",
        left_out=(
            ("WritesWhatIsReadBack", "the emulator fails where an upload is empty"),
            ("TellsAReplacedObjectFromTheOldOne", "it neither heeds nor tells generations when it is read"),
            ("RefusesARangePastTheEnd", "it answers a range at an object's end with a 206 without bytes"),
        ),
    ),
    Server(
        "azurite", "leat/store/azure/leat_store_azure_test", start_azurite, install_azurite, hashes="azurite",
        left_out=(("RefusesARangePastTheEnd", "Azurite answers a range at an object's end with a 206 without bytes"),),
    ),
)  # fmt: skip


# --- running ------------------------------------------------------------------


def counted(code: int | None, said: str) -> tuple[int, int]:
    """How many tests of a suite passed, and how many were skipped."""
    passed = re.search(r"\[  PASSED  \] (\d+) test", said)
    skipped = re.search(r"\[  SKIPPED \] (\d+) test", said)
    if code != 0 or passed is None or passed[1] == "0":
        bad = sorted(set(re.findall(r"\[  FAILED  \] \S*?/StoreConformanceTest\.(\w+)", said)))
        raise Failed("the suite: " + (", ".join(bad) or "it ran too long, or not to its end"))
    return int(passed[1]), int(skipped[1]) if skipped else 0


def check_hashes(code: int | None, said: str) -> None:
    if code != 0 or re.search(r"\b[1-9]\d* passed", said) is None or "skipped" in said:
        raise Failed("order and content are not compared, or not those of the folder")


def run(server: Server) -> str:
    """Returns what was found. Raises Failed."""
    folder = HOME / "run" / server.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    suite = server.suite + "".join(
        f"{':' if number else '-'}*{test}*" for number, (test, _) in enumerate(server.left_out)
    )
    with server.start(folder) as environment:
        log = folder / "suite.log"
        command = [PROGRAMS / server.program, f"--gtest_filter={suite}"]
        passed, skipped = with_log(counted, log, *run_logged(command, log, MOST_TEST_SECONDS, environment))
        found = [f"{passed} tests"] + ([f"{skipped} of what it cannot do skipped"] if skipped else [])
        if server.hashes:
            log = folder / "hashes.log"
            name = f"tests/python/test_servers_of_others.py::test_{server.hashes}"
            command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", name]
            with_log(check_hashes, log, *run_logged(command, log, MOST_TEST_SECONDS, environment))
            found.append("order and content as from the folder")
    found += [f"without {test}: {why}" for test, why in server.left_out]
    return "; ".join(found)


def with_log(check: Callable, log: pathlib.Path, code: int | None, said: str):
    try:
        return check(code, said)
    except Failed as error:
        raise Failed(f"{error} ({log.relative_to(ROOT)})") from None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [server.name for server in SERVERS]
    parser.add_argument("name", nargs="*", choices=[*names, []], metavar="NAME", help=", ".join(names))
    named = parser.parse_args(arguments).name
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that servers end, too.
    HOME.mkdir(parents=True, exist_ok=True)
    lock = (HOME / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)  # Another run has the same folders.
    is_good = True
    for server in SERVERS:
        if named and server.name not in named:
            continue
        began = time.monotonic()
        try:
            server.install(1800 if server.name in named else MOST_INSTALL_SECONDS)
            outcome = f"passed: {run(server)}"
        except NotInstalledError as error:
            outcome = f"not installed: {error}"
            is_good &= server.name not in named
        except Failed as error:
            outcome = f"failed: {error}"
            is_good = False
        print(f"{server.name:9} {outcome}; {time.monotonic() - began:.0f} s", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
