#!/usr/bin/env python3
"""Fails if a class has more than 40 data members and methods together.

A class that grows past that cannot be held in mind. Counted are, in headers and sources
of leat/ outside tests: data members, and member functions but constructors,
destructors, assignments and what is defaulted or deleted; constants, types and
friends are not. Overloads count each.

    check_classes.py            fails over the limit, but for EXCEPTIONS
    check_classes.py --no-exceptions  fails over the limit
    check_classes.py --all [N]  prints the N largest
"""

from __future__ import annotations

import pathlib
import re
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 40
MOST_EXCEPTIONS = 5

EXCEPTIONS: dict[str, str] = {
}
"""Name of a class: why it is as large as it is."""

# A raw string is matched first: what looks like a comment in it is none.
_NOISE = re.compile(
    r'R"(?P<end>[^()\s\\]{0,16})\((?:.|\n)*?\)(?P=end)"'
    r"|//[^\n]*|/\*(?:.|\n)*?\*/"
    r'|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\.)*\''
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|\S")
_OPEN, _CLOSE = {"(": ")", "{": "}", "[": "]"}, {")", "}", "]"}
_ANNOTATION = re.compile(r"(?:LEAT_[A-Z_]+|alignas)$")
_NOT_MEMBERS = {"using", "typedef", "friend", "static_assert", "enum"}


class Counted(NamedTuple):
    name: str
    place: str
    data: int
    methods: int

    @property
    def total(self) -> int:
        return self.data + self.methods


def tokens_of(text: str) -> list[str]:
    text = _NOISE.sub(lambda found: ' "" ' if found[0][-1] in "\"'" else " ", text)
    return _TOKEN.findall(_DIRECTIVE.sub("", text))


def end_of(tokens: list[str], start: int) -> int:
    """The place of what closes the bracket at `start`."""
    depth = 0
    for place in range(start, len(tokens)):
        if tokens[place] in _OPEN:
            depth += 1
        elif tokens[place] in _CLOSE:
            depth -= 1
            if depth == 0:
                return place
    return len(tokens)


def end_of_angle(tokens: list[str], start: int) -> int:
    """The place of the > that closes the < at `start`."""
    depth, place = 0, start
    while place < len(tokens):
        if tokens[place] in _OPEN:
            place = end_of(tokens, place)
        elif tokens[place] == "<":
            depth += 1
        elif tokens[place] == ">":
            depth -= 1
            if depth == 0:
                return place
        place += 1
    return len(tokens)


def plain(statement: list[str]) -> list[str]:
    """A declaration without annotations, attributes and template parameters."""
    kept, place = [], 0
    while place < len(statement):
        token = statement[place]
        after = statement[place + 1] if place + 1 < len(statement) else ""
        if _ANNOTATION.match(token) and after == "(":
            place = end_of(statement, place + 1)
        elif _ANNOTATION.match(token):
            pass
        elif token == "[" and after == "[":
            place = end_of(statement, place)
        elif token == "<" and "operator" not in kept[-1:] and "=" not in kept:
            place = end_of_angle(statement, place)
        elif token != "template":
            kept.append(token)
        place += 1
    return kept


def count_of(statement: list[str], name: str) -> tuple[int, int]:
    """How many data members and methods a declaration adds."""
    words = plain(statement)
    if not words or words[0] in _NOT_MEMBERS or words[0] == "concept":
        return 0, 0
    if "operator" in words:
        is_special = words[-1] in ("delete", "default") or (
            words[words.index("operator") + 1] == "=" and words[words.index("operator") + 2] == "(")
        return 0, 0 if is_special else 1
    begin = next((at for at, word in enumerate(words) if word in "({=:" or word == "["), len(words))
    if begin < len(words) and words[begin] == "(":
        called = words[begin - 1]
        is_special = called == name or words[-1] in ("delete", "default")
        return 0, 0 if is_special else 1
    if "static" in words[:begin] and "constexpr" in words[:begin]:
        return 0, 0
    if begin < 2 and words[0] != "{":
        return 0, 0  # A macro, or the name of a type alone.
    # "int a, b = 1;": as many as names at the top.
    depth, count = 0, 1
    for word in words:
        depth += (word in _OPEN) - (word in _CLOSE)
        count += word == "," and depth == 0
    return count, 0


def members_of(body: list[str], name: str) -> tuple[int, int]:
    """The counts of all that stands between the braces of a class."""
    data = methods = place = 0
    statement: list[str] = []

    def take() -> None:
        nonlocal data, methods
        more = count_of(statement, name)
        data, methods = data + more[0], methods + more[1]
        statement.clear()

    while place < len(body):
        token = body[place]
        if token in ("public", "protected", "private") and body[place + 1 : place + 2] == [":"]:
            statement.clear()
            place += 1
        elif token == ";":
            take()
        elif token == "{":
            end = end_of(body, place)
            head = plain(statement)
            if any(word in ("class", "struct", "union", "enum") for word in head[:1]):
                # A type of its own; "struct {…} name;" is a member too.
                statement[:] = []
                if body[end + 1 : end + 2] not in ([";"], []):
                    statement += ["type"]
            elif "(" in head and "=" not in head[: head.index("(")]:
                initializers = body[end + 1 : end + 2] in ([","], ["{"])
                if not initializers:  # Else a member's initial value: the body follows.
                    take()
            else:
                statement += ["{", "}"]
            place = end
        else:
            statement.append(token)
            if token in "([":
                end = end_of(body, place)
                statement += body[place + 1 : end + 1]
                place = end
        place += 1
    return data, methods


def classes_in(tokens: list[str], place_of: str) -> list[Counted]:
    found = []
    for place, token in enumerate(tokens):
        if token not in ("class", "struct") or tokens[place - 1 : place] in (["enum"], ["friend"]):
            continue
        head = place + 1
        name = ""
        while head < len(tokens) and tokens[head] not in ("{", ";", ")", "=", "&", "*", ">", ","):
            if tokens[head] == ":":
                # Bases: up to the brace, whatever their parameters.
                while head < len(tokens) and tokens[head] not in ("{", ";"):
                    head += 1
                break
            if _ANNOTATION.match(tokens[head]) and tokens[head + 1] == "(":
                head = end_of(tokens, head + 1)
            elif tokens[head] == "<":
                head = end_of_angle(tokens, head)
            elif re.match(r"[A-Za-z_]", tokens[head]) and tokens[head] != "final":
                name = tokens[head] if tokens[head - 1] != "::" else f"{name}::{tokens[head]}"
            head += 1
        if head >= len(tokens) or tokens[head] != "{" or not name:
            continue
        body = tokens[head + 1 : end_of(tokens, head)]
        found.append(Counted(name, place_of, *members_of(body, name.rpartition("::")[2])))
    return found


def all_classes() -> list[Counted]:
    found = []
    for path in sorted((ROOT / "leat").rglob("*.[ch]*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in (".h", ".cc") or "/testing/" in name or name.endswith("_test.cc"):
            continue
        found += classes_in(tokens_of(path.read_text()), name)
    return sorted(found, key=lambda each: (-each.total, each.name, each.place))


def main() -> int:
    found = all_classes()
    if sys.argv[1:2] == ["--all"]:
        for each in found[: int(sys.argv[2]) if len(sys.argv) > 2 else None]:
            print(f"{each.total:4} = {each.data:2} + {each.methods:2}  {each.name}  {each.place}")
        return 0
    allowed = {} if sys.argv[1:2] == ["--no-exceptions"] else EXCEPTIONS
    bad = 0
    over = [each for each in found if each.total > MOST]
    for each in over:
        if each.name not in allowed:
            print(f"{each.place}: {each.name} has {each.data} data members and {each.methods} methods; "
                  f"at most {MOST} together: give some of them an owner of their own")
            bad += 1
    for name in sorted(set(allowed) - {each.name for each in over}):
        print(f"tools/check_classes.py: {name} is no exception any more")
        bad += 1
    if len(allowed) > MOST_EXCEPTIONS:
        print(f"tools/check_classes.py: {len(allowed)} exceptions; at most {MOST_EXCEPTIONS}")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
