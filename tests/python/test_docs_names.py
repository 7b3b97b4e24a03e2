"""Keywords and options that the docs name exist in signatures and in the command."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pathlib
import pkgutil
import re
import subprocess
from collections.abc import Iterator

import pytest

import leat
import leat.ops
import leat.testing

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
IDS = [str(page.relative_to(ROOT)) for page in PAGES]
FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
OF_OTHERS = ("/docs/coming-from/", "/docs/design/")
"""These pages name keywords of other libraries, or of former times: only calls of ours are checked."""
KEYWORDS_OF_OTHERS = {"ignore_data_skip", "steps_per_epoch", "item_loader", "compression", "compression_level"}
OPTIONS_OF_OTHERS = {
    "--reset-attention-mask", "--reset-position-ids", "--eod-mask-loss", "--data-path", "--train-data-path",
    "--seq-length", "--train-iters", "--global-batch-size", "--split",
}  # fmt: skip
"""Megatron's, which docs/howto/tokens.md explains ours by."""


def code_of(page: pathlib.Path) -> tuple[list[tuple[str, str]], list[str]]:
    """The (language, text) of a page's blocks, and its inline pieces of code."""
    text = page.read_text()
    blocks = [(match[1], match[2]) for match in FENCED.finditer(text)]
    indented = "\n".join(re.findall(r"^ {4,}(.*)$", FENCED.sub("", text), re.MULTILINE))
    inline = [" ".join(piece.split()) for piece in INLINE.findall(FENCED.sub("", text))]
    return [*blocks, ("", indented)], inline


# --- Python -----------------------------------------------------------------


def public_modules() -> Iterator[tuple[str, object]]:
    """(prefix, module) of each way in which pages call what is public."""
    yield from (("leat.", leat), ("", leat.ops), ("ops.", leat.ops))
    for found in pkgutil.iter_modules(leat.__path__):
        if found.name[0] != "_":
            yield f"leat.{found.name}.", importlib.import_module(f"leat.{found.name}")


def public_things() -> dict[str, object]:
    """Every public callable by the names that pages call it by."""
    things: dict[str, object] = {}
    for prefix, module in public_modules():
        for name in dir(module):
            thing = getattr(module, name)
            if name[0] == "_" or not callable(thing) or not getattr(thing, "__module__", "").startswith("leat"):
                continue
            things[prefix + name] = thing
            for method, function in inspect.getmembers(thing, inspect.isroutine):
                if method[0] != "_" and inspect.isclass(thing):
                    things[f"{prefix}{name}.{method}"] = function
    return things


THINGS = public_things()


def parameters_of(thing: object) -> tuple[set[str], bool]:
    """The names of its parameters, and whether it takes any others."""
    parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    return {one.name for one in parameters}, takes_any


def unknown_keywords(code: str) -> Iterator[str]:
    """`thing(keyword=)` for calls of ours in `code` that has no such parameter."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or (name := ast.unparse(call.func)) not in THINGS:
            continue
        if not has_signature(THINGS[name]):  # An exception, which takes its text.
            continue
        known, takes_any = parameters_of(THINGS[name])
        for keyword in call.keywords:
            if keyword.arg is not None and keyword.arg not in known and not takes_any:
                yield f"{name}({keyword.arg}=)"


@functools.cache
def all_parameters() -> set[str]:
    return set().union(*(parameters_of(thing)[0] for thing in THINGS.values() if has_signature(thing)))


def has_signature(thing: object) -> bool:
    try:
        inspect.signature(thing)  # type: ignore[arg-type]
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_each_keyword_is_in_a_signature(page: pathlib.Path) -> None:
    blocks, inline = code_of(page)
    unknown = [what for _, code in blocks for what in unknown_keywords(code)]
    unknown += [what for code in inline for what in unknown_keywords(code)]
    if not any(folder in page.as_posix() for folder in OF_OTHERS):
        named = (re.match(r"([a-z_]+)=", code) for code in inline)
        known = all_parameters() | KEYWORDS_OF_OTHERS
        unknown += [match[0] for match in named if match and match[1] not in known]

    assert unknown == []


def test_a_keyword_that_is_not_there_is_found() -> None:
    assert list(unknown_keywords('leat.Loader("a", shufle=True, seed=1)')) == ["leat.Loader(shufle=)"]
    assert list(unknown_keywords("x = [Resize(8, antialiasing=1)]")) == ["Resize(antialiasing=)"]


# --- the command ------------------------------------------------------------

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@functools.cache
def flags_of_scripts() -> set[str]:
    """The options of ./dev, the benchmarks and the examples."""
    scripts = [ROOT / "dev", *(ROOT / "bench").glob("*.py"), *(ROOT / "examples").rglob("*.py")]
    return {flag for script in scripts for flag in FLAG.findall(script.read_text())}


@functools.cache
def help_of(*words: str) -> str:
    run = subprocess.run([leat.testing.find_binary(), *words, "--help"], capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else ""


@functools.cache
def flags_of(command: str) -> set[str]:
    """The options of a command and of its sub-commands; none: there is no such command."""
    text = help_of(command)
    listed = re.findall(r"^  ([a-z][a-z-]*)  ", text, re.MULTILINE)
    return set(FLAG.findall(text)).union(*(FLAG.findall(help_of(command, one)) for one in listed))


@functools.cache
def commands() -> set[str]:
    return set(re.findall(r"^  ([a-z][a-z-]*)  ", help_of(), re.MULTILINE))


def unknown_flags(line: str) -> Iterator[str]:
    """The options that a command of ours in `line` does not have."""
    for call in re.finditer(r"\bleat ([a-z][a-z-]+)((?: (?!--? )[^|;&#]*)?)", line):
        if call[1] not in commands():
            continue
        ours = re.split(r" -- ", call[2])[0]
        for flag in FLAG.findall(ours):
            if flag not in flags_of(call[1]):
                yield f"leat {call[1]} {flag}"


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_each_option_is_one_of_the_command(page: pathlib.Path) -> None:
    blocks, inline = code_of(page)
    lines = [line for language, code in blocks if language in ("", "sh", "bash")
             for line in re.sub(r"\\\n\s*", "", code).splitlines()]  # fmt: skip
    unknown = [what for line in [*lines, *inline] for what in unknown_flags(line)]
    if not any(folder in page.as_posix() for folder in OF_OTHERS):
        known = set().union(*map(flags_of, commands())) | flags_of_scripts() | OPTIONS_OF_OTHERS
        unknown += [code for code in inline if code.startswith("--") and FLAG.match(code)[0] not in known]

    assert unknown == []


def test_an_option_that_is_not_there_is_found() -> None:
    assert len(commands()) > 10
    assert list(unknown_flags("leat bench s3://b --thread 4 --seed 1 | tee x")) == ["leat bench --thread"]
