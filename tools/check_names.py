#!/usr/bin/env python3
"""Fails if two files define one qualified name.

Two headers that each define a class `leat::Endpoint` break the one-definition
rule as soon as one program links both. No compiler says so: the linker keeps one of
the two destructors. A source may break the rule too, with a class or a function that
stands in no anonymous namespace.

The script reads C++ by its tokens. It knows namespaces, classes, enumerations, aliases,
constants and free functions; overloads with other parameters are other names.
"""

from __future__ import annotations

import collections
import pathlib
import re
import sys
from typing import Iterator, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("leat", "python", "tests", "bench", "fuzz")
OF_A_PROGRAM = {"main"}  # Each program has its own.

TOKEN = re.compile(r"""
    (?P<skip> \s+ | //[^\n]* | /\*.*?\*/ | ^[ \t]*\#(?:[^\n\\]|\\.)* )
  | (?P<raw> (?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" )
  | (?P<text> (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*" | (?<![0-9a-zA-Z])'(?:[^'\\\n]|\\.)+' )
  | (?P<word> [A-Za-z_]\w* )
  | (?P<number> \.?\d(?:[\w.]|'(?=\w)|(?<=[eEpP])[+-])* )
  | (?P<sign> :: | \[\[ | \]\] | -> | . )
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

MACRO = re.compile(r"alignas|[A-Z][A-Z0-9_]+")  # With arguments, it says something of what follows.
CLASS_KEYS = {"class", "struct", "union", "enum"}
ACCESS = {"public", "protected", "private"}
NOT_SHARED = {"using", "typedef", "friend", "static", "static_assert"}
OPENING = {"(": ")", "[": "]", "{": "}", "[[": "]]"}


class Definition(NamedTuple):
    name: str  # Qualified; of a function with its parameters.
    line: int
    is_declaration: bool  # A function without its body, or an alias: no code comes of it.


class Token(NamedTuple):
    text: str
    line: int


def tokens_of(source: str) -> list[Token]:
    found, line = [], 1
    for match in TOKEN.finditer(source):
        if match.lastgroup != "skip":
            is_text = match.lastgroup in ("raw", "text", "mark")
            found.append(Token('""' if is_text else match[0], line))
        line += match[0].count("\n")
    return found


def end_of_group(tokens: list[Token], begin: int) -> int:
    """The index just behind the bracket that closes the one at `begin`."""
    depth = 0
    for at in range(begin, len(tokens)):
        if tokens[at].text in OPENING:
            depth += 1
        elif tokens[at].text in OPENING.values():
            depth -= 1
            if depth == 0:
                return at + 1
    return len(tokens)


def end_of_angles(head: list[str], begin: int) -> int:
    """The index just behind the `>` that closes the `<` at `begin`."""
    depth = 0
    for at in range(begin, len(head)):
        depth += {"<": 1, ">": -1}.get(head[at], 0)
        if depth == 0:
            return at + 1
    return len(head)


def without_attributes(head: list[str]) -> list[str]:
    """A declaration's words less templates' parameters, attributes and macros."""
    kept: list[str] = []
    at = 0
    while at < len(head):
        word = head[at]
        if word == "template" and head[at + 1:at + 2] == ["<"]:
            at = end_of_angles(head, at + 1)
        elif word == "[[":
            at = head.index("]]", at) + 1
        elif head[at + 1:at + 2] == ["("] and MACRO.fullmatch(word):
            at = end_of_parens(head, at + 1)
        else:
            kept.append(word)
            at += 1
    return kept


def end_of_parens(head: list[str], begin: int) -> int:
    depth = 0
    for at in range(begin, len(head)):
        depth += {"(": 1, ")": -1}.get(head[at], 0)
        if depth == 0:
            return at + 1
    return len(head)


def class_name(head: list[str]) -> str | None:
    """The name in `struct NAME`, `enum class NAME : T`, …; None: no such thing."""
    while head and head[0] in ("typedef", "static", "inline", "constexpr", "friend"):
        head = head[1:]
    if not head or head[0] not in CLASS_KEYS:
        return None
    while head and head[0] in CLASS_KEYS:
        head = head[1:]
    name = []
    for at, word in enumerate(head):
        if word in ("final", ":"):
            break
        if word == "<":
            name += head[at:end_of_angles(head, at)]
            break
        if not (word == "::" or re.fullmatch(r"\w+", word)):
            break
        name.append(word)
    return "".join(name)


def function_name(head: list[str]) -> str | None:
    """`name(parameters)` of a free function; None: it is no such thing."""
    if not head or head[0] in NOT_SHARED:
        return None
    for at, word in enumerate(head):
        if word == "=" and "operator" not in head[:at]:
            return None
        if word == "<" and "operator" not in head[:at]:
            continue
        if word == "(" and at > 0:
            if depth_of_angles(head[:at]) > 0:
                continue
            break
    else:
        return None
    name = head[at - 1]
    if name in OF_A_PROGRAM:
        return None
    if "operator" in head[:at]:
        name = "".join(head[head.index("operator"):at])
        if head[at:at + 2] == ["(", ")"] and name == "operator":
            return None
    elif not re.fullmatch(r"[A-Za-z_]\w*", name) or at < 2 or head[at - 2] == "::":
        return None
    return f"{name}({parameters_of(head[at + 1:end_of_parens(head, at) - 1])})"


def depth_of_angles(head: list[str]) -> int:
    return sum({"<": 1, ">": -1}.get(word, 0) for word in head)


def parameters_of(words: list[str]) -> str:
    """The types of a list of parameters, without names and default values."""
    lists: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += {"<": 1, "(": 1, "[": 1, "{": 1, ">": -1, ")": -1, "]": -1, "}": -1}.get(word, 0)
        if word == "," and depth == 0:
            lists.append([])
        else:
            lists[-1].append(word)
    return ", ".join(type_of(one) for one in lists if one)


def type_of(words: list[str]) -> str:
    words = words[:words.index("=")] if "=" in words else words
    words = [word for word in words if word not in ("const", "std", "leat", "::")]
    is_named = len(words) > 1 and re.fullmatch(r"[A-Za-z_]\w*", words[-1])
    return "".join(words[:-1] if is_named else words)


class Reader:
    """Walks over the declarations of one file."""

    def __init__(self, source: str) -> None:
        self.tokens = tokens_of(source)
        self.found: list[Definition] = []

    def scope(self, at: int, inside: str, in_class: bool) -> int:
        """Reads declarations until the `}` that ends this scope; returns the rest."""
        head: list[Token] = []
        while at < len(self.tokens):
            text = self.tokens[at].text
            if text == "}":
                return at + 1
            if text == ";":
                self.declaration(head, inside, in_class)
                head, at = [], at + 1
            elif text == "{":
                at = self.braces(head, at, inside, in_class)
                head = []
            elif text in ("(", "[", "[["):
                end = end_of_group(self.tokens, at)
                head += self.tokens[at:end]
                at = end
            elif in_class and text == ":" and len(head) == 1 and head[0].text in ACCESS:
                head, at = [], at + 1
            else:
                head.append(self.tokens[at])
                at += 1
        return at

    def braces(self, head: list[Token], at: int, inside: str, in_class: bool) -> int:
        """Reads the part that `head {` opens; returns the rest behind its
        `}`."""
        words = without_attributes([token.text for token in head])
        if words == ["extern", '""']:
            return self.scope(at + 1, inside, in_class)
        if "namespace" in words[:2]:
            name = "".join(words[words.index("namespace") + 1:])
            if not name:
                return end_of_group(self.tokens, at)  # Nobody else sees it.
            return self.scope(at + 1, f"{inside}{name}::", False)
        name = class_name(words)
        if name:
            line = head[0].line
            self.found.append(Definition(inside + name, line, False))
            if "enum" in words[:3]:
                return end_of_group(self.tokens, at)
            return self.scope(at + 1, f"{inside}{name}::", True)
        if name is None and not in_class:
            self.declaration(head, inside, in_class, has_body=True)
        return end_of_group(self.tokens, at)

    def declaration(self, head: list[Token], inside: str, in_class: bool,
                    has_body: bool = False) -> None:
        words = without_attributes([token.text for token in head])
        if not words or in_class or words[0] in ("extern", "namespace"):
            return  # A declaration alone, or a name for this file.
        if words[0] == "using" and "=" in words:
            self.found.append(Definition(inside + words[1], head[0].line, True))
            return
        if function := function_name(words):
            self.found.append(Definition(inside + function, head[0].line, not has_body))
            return
        name = self.constant(words, has_body)
        if name:
            self.found.append(Definition(inside + name, head[0].line, False))

    @staticmethod
    def constant(words: list[str], has_body: bool) -> str | None:
        """The name of a variable; one that is const is its file's alone unless inline."""
        if words[0] in NOT_SHARED | CLASS_KEYS:
            return None
        before = words[:words.index("=")] if "=" in words else words if has_body else []
        while before and before[-1] == "]":
            before = before[:len(before) - before[::-1].index("[") - 1]
        if "operator" in before or "(" in before or len(before) < 2 or before[-2] == "::":
            return None
        if ("constexpr" in before or "const" in before) and "inline" not in before:
            return None
        return before[-1] if re.fullmatch(r"[A-Za-z_]\w*", before[-1]) else None


def definitions_of(source: str) -> list[Definition]:
    reader = Reader(source)
    reader.scope(0, "", False)
    return reader.found


def clashes(files: dict[str, str]) -> Iterator[str]:
    """A complaint for each name that two of `files` (path: text) define."""
    homes: dict[str, dict[str, Definition]] = collections.defaultdict(dict)
    for path, text in sorted(files.items()):
        for found in definitions_of(text):
            if found.is_declaration and not path.endswith(".h"):
                continue
            known = homes[found.name].get(path)
            if known is None or known.is_declaration:
                homes[found.name][path] = found
    for name, places in sorted(homes.items()):
        headers = {path for path in places if path.endswith(".h")}
        bodies = {path for path, found in places.items() if not found.is_declaration}
        stand_ins = {path for path in bodies if path.startswith("tests/")} - headers
        if len(bodies) > len(stand_ins) == 1:
            bodies -= stand_ins  # A test links its own source in the place of one of ours.
        if len(headers) > 1 or len(bodies) > 1:
            where = " and ".join(f"{path}:{places[path].line}" for path in sorted(headers | bodies))
            yield f"{name} is defined in {where}: give each a name of its own"


def main() -> int:
    files = {path.relative_to(ROOT).as_posix(): path.read_text()
             for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))
             if path.suffix in (".h", ".cc")}
    complaints = list(clashes(files))
    print("\n".join(complaints), end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
