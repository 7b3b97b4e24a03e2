"""`leat show`: the page as a file, or served to this machine."""

from __future__ import annotations

import argparse
import copy
import importlib
import importlib.util
import inspect
import json
import pathlib
import sys
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from leat import _native, ops as _ops
from leat._progress import Progress
from leat._show._html import POLICY
from leat.errors import InvalidArgument

_HERE = {"localhost", "127.0.0.1", "[::1]"}


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    from leat._commands import add_source, add_store

    parser.description = "Makes a page of samples: pictures with masks and boxes, sound, texts, arrays, tokens."
    add_source(parser, "the dataset: a URL, a path or a pattern; or several", several=True)
    option = parser.add_argument
    option("--out", metavar="FILE", default="leat-show.html", help="the page (leat-show.html)")
    option("--serve", action="store_true", help="serve it on this machine, instead of writing a file")
    option("--port", type=int, default=0, metavar="N", help="the port for --serve; 0, the default, picks one")
    option("--samples", type=int, default=24, metavar="N", help="about how many samples (24)")
    option("--sample", type=int, action="append", metavar="I",
           help="the number of a sample to show, in place of a choice; may be repeated")  # fmt: skip
    option("--by", metavar="FIELD", default="auto",
           help="the field that makes groups, or none; by default classes, or sources")  # fmt: skip
    option("--ops", action="append", metavar="OPS", default=[],
           help="ops to show beside what is stored: module:name or file.py:name, a list of leat.ops; or words, "
                "as of leat bench; NAME=OPS gives a heading; may be repeated")  # fmt: skip
    option("--epochs", type=int, default=1, metavar="N", help="the draws of this many epochs, side by side (1)")
    option("--seed", type=int, default=0, metavar="N", help="decides the samples, and what random ops draw (0)")
    option("--decode", metavar="FUNCTION", help="module:name or file.py:name: makes a text of a sample's tokens")
    option("--json", action="store_true", help="print JSON: the page, its samples and bytes")
    add_store(parser)
    parser.epilog = "Example:\n  leat show s3://bucket/photos --ops augment.py:train --epochs 2 --out photos.html"


def run(options: argparse.Namespace) -> None:
    """Does it."""
    from leat._commands import source_of, store_of
    from leat._show import show

    with Progress("making the page"):
        page = show(
            source_of(options, store_of(options)), ops=_chains_of(options.ops), count=options.samples,
            by=None if options.by == "none" else options.by, samples=options.sample, seed=options.seed,
            epochs=options.epochs,
            decode=None if options.decode is None else _function_named(options.decode),
        )  # fmt: skip
    if options.serve:
        _serve(page.html.encode(), options.port, is_json=options.json)
        return
    path = page.save(options.out)
    told = {"page": str(path), "samples": page.samples, "bytes": path.stat().st_size}
    print(json.dumps(told) if options.json else f"{path}: {page.samples} samples, {told['bytes']:,} bytes")


def _chains_of(given: Sequence[str]) -> Any:
    """The chains that --ops names, by their headings."""
    chains = {}
    for text in given:
        name, mark, rest = text.partition("=")
        if not mark or not name.isidentifier() or ":" in name:
            name, rest = "", text
        chain = _chain_named(rest)
        name = name or (rest if len(given) > 1 else "with these ops")
        if name in chains:
            raise InvalidArgument(f"--ops {text}: there are two called {name}; write NAME=OPS")
        chains[name] = chain
    return chains


def _chain_named(text: str) -> list[_ops.Op]:
    is_file = text.partition(":")[0].endswith(".py")
    if is_file or not _is_words(text):
        found = _object_named("--ops", text)
        found = found() if inspect.isfunction(found) else found
        if not isinstance(found, (list, tuple)) or not all(isinstance(op, _ops.Op) for op in found):
            raise InvalidArgument(f"--ops {text}: {found!r} is no list of leat.ops")
        return [_in_threads(op) for op in found] if is_file else list(found)
    classes = _classes()
    chain = []
    for name, params in _native.ops_of_words(text):
        values = json.loads(params)
        op = classes[name].__new__(classes[name])
        _ops.Op.__init__(op, values, values.pop("field", None), values.pop("to", None))
        chain.append(op)
    return chain


def _in_threads(op: _ops.Op) -> _ops.Op:
    """The op of a file: another process would not find the module that this one has made of it."""
    if not isinstance(op, _ops.Python) or op.workers == "threads":
        return op
    made = copy.copy(op)
    made.workers = "threads"
    return made


def _is_words(text: str) -> bool:
    """Whether it begins with the name of an op, as `leat ops` lists them."""
    first = text.partition(",")[0].partition(":")[0].partition("(")[0].strip()
    return first in _classes()


def _classes() -> dict[str, type[_ops.Op]]:
    """The classes of ops, by the names that the engine has for them."""
    classes = [one for one in vars(_ops).values() if isinstance(one, type) and issubclass(one, _ops.Op)]
    return {one._name: one for one in classes if one._name}


def _object_named(option: str, text: str) -> Any:
    """An object of a module, or of a file."""
    place, mark, name = text.rpartition(":")
    if not mark or not place or not name:
        raise InvalidArgument(f"{option} {text}: write module:name or file.py:name")
    try:
        module: Any
        if place.endswith(".py"):
            path = pathlib.Path(place).resolve()
            # A name that hides no other module.
            spec = importlib.util.spec_from_file_location(f"_leat_show_{path.stem}", path)
            assert spec is not None and spec.loader is not None
            sys.path.insert(0, str(path.parent))  # For what it imports from beside itself.
            module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # Dataclasses look there.
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, "")
            module = importlib.import_module(place)
        for part in name.split("."):
            module = getattr(module, part)
        return module
    except (ImportError, OSError, AttributeError) as error:
        raise InvalidArgument(f"{option} {text}: {error}") from error


def _function_named(text: str) -> Callable[[Any], str]:
    found = _object_named("--decode", text)
    if not callable(found):
        raise InvalidArgument(f"--decode {text}: {found!r} is no function")
    return found


def _serve(page: bytes, port: int, *, is_json: bool) -> None:
    """Until Ctrl-C or SIGTERM; to this machine alone."""
    if not 0 <= port < 65536:
        raise InvalidArgument(f"--port {port}; it is from 0 to 65535")

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "leat", ""

        def do_GET(self) -> None:
            # Another site may give its name this machine's address, and read the answer.
            host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
            is_known = self.path == "/" and host in _HERE
            self.send_response(200 if is_known else 404)
            body = page if is_known else b"not found\n"
            self.send_header("Content-Type", f"text/{'html' if is_known else 'plain'}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", f"{POLICY}; frame-ancestors 'none'")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        print(json.dumps({"url": url}) if is_json else f"listening on {url}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
