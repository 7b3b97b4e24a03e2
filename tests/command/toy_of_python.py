"""`leat toy-python`: a command that no user wants, added as leat/cli/README.md says."""

from __future__ import annotations

import argparse

from leat.errors import InvalidArgument


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.description = "Says hello from Python."
    parser.add_argument("name", metavar="NAME", help="who is greeted")
    parser.epilog = "Example:\n  leat toy-python bear"


def run(options: argparse.Namespace) -> None:
    """Does it."""
    if not options.name:
        raise InvalidArgument("NAME is empty")
    print(f"hello {options.name}")
