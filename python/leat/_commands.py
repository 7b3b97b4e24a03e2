"""The commands of `leat` that are written in Python; the program itself starts them.

The module of each has `add(parser)`, which declares the options, and `run(options)`. leat/cli/commands.cc names it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import select
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

from leat import _native
from leat.errors import Error, InvalidArgument

_LEFT = {"leat-pack", "leat-prepare", "leat-show"}
"""Names of threads that a command may leave behind, since they wait for a store."""


class Parser(argparse.ArgumentParser):
    """Refuses wrong usage in one line, as the program's other commands do."""

    def error(self, message: str) -> NoReturn:
        """Prints the line and ends with 2."""
        self.exit(2, f"leat: {message}; see {self.prog} --help\n")


def add_store(parser: argparse.ArgumentParser) -> None:
    """The options that say how to reach a store."""
    group = parser.add_argument_group("how to reach the store")
    group.add_argument("--endpoint-url", metavar="URL", help="the endpoint, for stores that are not AWS's")
    for name, meaning in _native.scheme_options():
        group.add_argument(f"--{name.replace('_', '-')}", metavar="NAME", help=meaning)
    group.add_argument("--no-sign-request", action="store_true", help="ask without credentials, of public buckets")


def add_source(parser: argparse.ArgumentParser, meaning: str, *, several: bool = False) -> None:
    """The dataset, and the options that say how to read it."""
    parser.add_argument("url", metavar="URL", nargs="+" if several else None, help=meaning)
    group = parser.add_argument_group("what lies there, if it does not tell by itself")
    group.add_argument("--manifest", metavar="NAME=COLUMN", action="append", default=[],
                       help="a table: the field NAME has the objects, or the values, of COLUMN; may be repeated")  # fmt: skip
    group.add_argument("--tokens", metavar="DTYPE:SEQ_LEN", help="windows of tokens, such as uint16:2049")
    group.add_argument("--megatron", action="store_true", help="a corpus of Megatron-LM, .bin and .idx")


def source_of(options: argparse.Namespace, store: Any, as_of: str | None = None) -> Any:
    """The dataset that the options name; of a snapshot, if `as_of` says which.

    Raises:
        leat.InvalidArgument: options that do not go together.
    """
    from leat._dataset import Dataset

    several = isinstance(options.url, list) and len(options.url) > 1
    url = options.url[0] if isinstance(options.url, list) and not several else options.url
    if bool(options.manifest) + bool(options.tokens) + options.megatron > 1:
        raise InvalidArgument("--manifest, --tokens and --megatron: URL is one of these")
    if as_of is not None and (options.manifest or options.tokens or options.megatron):
        raise InvalidArgument("--as-of goes with a folder, and not with --manifest, --tokens or --megatron")
    if options.manifest:
        pairs = [word.partition("=") for word in options.manifest]
        for word, (name, _, column) in zip(options.manifest, pairs):
            if not name or not column:
                raise InvalidArgument(f"--manifest {word}: write NAME=COLUMN")
        return Dataset.from_manifest(url, fields={name: column for name, _, column in pairs}, storage_options=store)
    if options.tokens:
        dtype, _, length = options.tokens.partition(":")
        if not length.isdecimal():
            raise InvalidArgument(f"--tokens {options.tokens}: write DTYPE:SEQ_LEN, such as uint16:2049")
        return Dataset.tokens(url, dtype=dtype, seq_len=int(length), storage_options=store)
    return Dataset.megatron(url, storage_options=store) if options.megatron else Dataset(
        url, as_of=as_of, storage_options=store
    )  # fmt: skip


def store_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options, as `storage_options=` takes them."""
    named = ("endpoint_url", *(name for name, _ in _native.scheme_options()), "no_sign_request")
    return {name: getattr(options, name) for name in named if getattr(options, name)}


def _is_reader_gone() -> bool:
    """Tells whether nobody reads standard output any more, as behind `head`."""
    output = select.poll()
    output.register(1, select.POLLOUT)
    return any(state & (select.POLLERR | select.POLLHUP) for _, state in output.poll(0))


def _shown(text: str) -> str:
    """A key within an error cannot write on the terminal."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1] for letter in text
    )  # fmt: skip


def run(words: Sequence[str]) -> int:
    """Runs a command: its module, its name, its words. Returns the exit code, as leat/cli/README.md says."""
    module, name, *rest = words
    try:
        command = importlib.import_module(module)
        parser = Parser(prog=f"leat {name}", formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
        command.add(parser)
        command.run(parser.parse_args(rest))
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("leat: stopped", file=sys.stderr)
        return 1
    except BrokenPipeError as error:
        if not _is_reader_gone():
            print(f"leat: {error}", file=sys.stderr)
            return 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Else Python tells of it as it ends.
        return 141  # 128 + SIGPIPE, as the program's other commands.
    except (Error, OSError) as error:
        print(f"leat: {_shown(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, InvalidArgument) else 1
    return 0


def main() -> None:
    """For the program, whose words follow the interpreter's."""
    code = run(sys.argv[1:])
    if any(thread.name.partition("_")[0] in _LEFT for thread in threading.enumerate()):
        # Python cannot end beneath a thread that waits in a read or a write.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
