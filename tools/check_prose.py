#!/usr/bin/env python3
"""Fails if a sentence begins as only a question should, or stumbles, or is ragged.

    check_prose.py [PATH...]      files and folders; all that git knows by default

A sentence names its subject first. One that begins with What, Who, Whose, Whom,
Of, Where, Whoever, Whatever or Wherever hides it, unless it is a question. Some
turns of phrase make readers stumble; comments and documents do without them. The
check reads Markdown, comments (C++, Python, TypeScript, CMake, shell), docstrings
and strings, so help texts and log messages too. Headings may begin as they like.

In Markdown, a line of a paragraph that ends far short of the longest one is ragged.
"""

from __future__ import annotations

import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPENERS = re.compile(
    r"(?:What|Who|Whose|Whom|Of|Where|Whoever|Whatever|Wherever)\b(?!\s+course\b)")
STUMBLES = {  # The phrase: a plain one.
    re.compile(r"\b[Ss]o many (?!that\b|as\b)"): "this many",
    re.compile(r"^As [a-z][\w:]*\(\),"): "Like f(),",
    re.compile(r"\b(?:is|are) (?:said|told) (?:once|so|wrong)\b"): "is logged once",
    re.compile(r"\bif it is none\b(?! of)"): "if it is not one",
    re.compile(r", for (?:it|they|nobody|others|(?:a|the) \w+) (?:is|are|may|has|have|can|must)\b"): "because",
}
SENTENCE_END = re.compile(r"(?<=[.!?])[\"'`)\]*_]*\s+(?=[\"'`(\[*_]*[A-Z])")
LEAD_IN = re.compile(r"\*\*[^*]+\*\*[:.]?\s*")  # **Bold.** heads a paragraph.
LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
BAD_ON_PURPOSE = "tests/python/test_check_prose.py"  # Its examples are such sentences.
SHORTEST_LINE = 0.6  # Relative to the longest line of its paragraph.


class Text(typing.NamedTuple):
    """A run of prose and the line that it begins at."""
    line: int
    words: str
    is_label: bool = False  # Without a full stop it is a heading or a caption.


def bad_sentences(text: Text):
    """Each sentence of `text` that begins as a question and is none."""
    for sentence in SENTENCE_END.split(text.words):
        bare = sentence.strip().lstrip("\"'`([*_").rstrip("\"'`)]*_")
        is_other = bare.endswith("?") or text.is_label and not bare.endswith(".")
        if OPENERS.match(bare) and not is_other:
            yield bare


def stumbles(text: Text):
    """(phrase, a plain one) of each sentence of a comment or a document."""
    for sentence in () if text.is_label else SENTENCE_END.split(text.words):
        for pattern, plain in STUMBLES.items():
            if match := pattern.search(sentence.strip()):
                yield match.group().strip(" ,"), plain


# --- Markdown ---------------------------------------------------------------

def markdown_paragraphs(source: str):
    """(line number, its lines) for each paragraph, list item and table row."""
    fence, begin, lines = "", 0, []
    for number, line in enumerate([*source.splitlines(), ""], start=1):
        mark = line.strip()[:3]
        if fence:
            fence = "" if mark == fence else fence
            continue
        opens = mark in ("```", "~~~")
        alone = line.startswith(("#", "|", "    ", "<"))
        if lines and (opens or alone or not line.strip() or LIST_ITEM.match(line)):
            yield begin, lines
            lines = []
        if opens:
            fence = mark
        elif line.startswith("|"):
            yield number, [line]
        elif line.strip() and not (alone and not lines):
            begin = begin if lines else number
            lines = [*lines, line]


def markdown_texts(source: str):
    rows = source.splitlines()
    for number, lines in markdown_paragraphs(source):
        if lines[0].startswith("|"):
            if re.match(r"\|[\s:|-]+$", rows[number] if number < len(rows) else ""):
                continue  # The head of a table.
            for cell in lines[0].strip("| ").split("|"):
                yield Text(number, cell.strip())
        else:
            words = " ".join(line.strip() for line in lines)
            words = LIST_ITEM.sub("", words, count=1) if LIST_ITEM.match(words) else words
            yield Text(number, LEAD_IN.sub("", words, count=1)
                       if LEAD_IN.match(words) else words)


def ragged_lines(source: str):
    """(line number, length) of lines that end far short of their paragraph."""
    for number, lines in markdown_paragraphs(source):
        longest = max(map(len, lines))
        for offset, line in enumerate(lines[:-1]):
            following = lines[offset + 1].split()[0]
            if line.endswith(("  ", "\\")):
                continue
            if max(len(line), len(line) + 1 + len(following)) < SHORTEST_LINE * longest:
                yield number + offset, len(line)


# --- comments and strings ---------------------------------------------------

C_TOKEN = re.compile(
    r'//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/'
    r'|R"(?P<tag>[^(\s]*)\((?P<raw>.*?)\)(?P=tag)"'
    r'|"(?P<string>(?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def joined(comments: typing.Iterable[tuple[int, int, str]]):
    """Texts of (line, column, words): one for comments below each other."""
    begin, last, column, words = 0, -1, -1, []
    for line, at, body in [*comments, (-1, -1, "")]:
        goes_on = line == last + 1 and at == column and body.strip()
        if words and (not goes_on or LIST_ITEM.match(body)):
            yield Text(begin, " ".join(words))
            words = []
        last, column = line, at
        if body.strip():
            begin = begin if words else line
            words.append(LIST_ITEM.sub("", body, count=1).strip()
                         if LIST_ITEM.match(body) else body.strip())


def c_like_texts(source: str):
    comments, string, end = [], Text(0, "", is_label=True), 0
    for match in C_TOKEN.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        column = match.start() - source.rfind("\n", 0, match.start())
        if match["line"] is not None:
            comments.append((line, column, match["line"].lstrip("/!<")))
        elif match["block"] is not None:
            for offset, body in enumerate(match["block"].splitlines()):
                comments.append((line + offset, -2, body.strip().lstrip("*")))
        elif (words := match["string"]) is not None:
            goes_on = string.words and not source[end:match.start()].strip()
            if string.words and not goes_on:
                yield string
            string = (Text(string.line, string.words + words, is_label=True) if goes_on
                      else Text(line, words, is_label=True))
            end = match.end()
    if string.words:
        yield string
    yield from joined(comments)


def python_texts(source: str):
    comments = [(*token.start, token.string.lstrip("#!"))
                for token in tokenize.generate_tokens(io.StringIO(source).readline)
                if token.type == tokenize.COMMENT]
    yield from joined(comments)
    tree = ast.parse(source)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            line = node.lineno
            for paragraph in re.split(r"(\n\s*\n)", node.value):
                yield Text(line, " ".join(paragraph.split()), is_label=id(node) not in docs)
                line += paragraph.count("\n")


def hash_texts(source: str):
    comments = [(number, line.index("#"), line[line.index("#"):].lstrip("#!"))
                for number, line in enumerate(source.splitlines(), start=1)
                if re.match(r"\s*#|.*\s# ", line)]
    yield from joined(comments)


READERS = {
    ".md": markdown_texts, ".py": python_texts, ".pyi": python_texts,
    ".h": c_like_texts, ".cc": c_like_texts, ".ts": c_like_texts, ".tsx": c_like_texts,
    ".cmake": hash_texts, ".sh": hash_texts, ".toml": hash_texts, ".txt": hash_texts,
}


def complaints_of(path: pathlib.Path, source: str):
    """(line number, complaint) for a file of this name and content."""
    try:
        texts = list(READERS[path.suffix](source))
    except (SyntaxError, tokenize.TokenError) as error:
        yield getattr(error, "lineno", 1), f"is no Python: {error}"
        return
    for text in texts:
        for sentence in bad_sentences(text):
            yield text.line, f"begins as a question: {sentence[:70]}"
        for phrase, plain in stumbles(text):
            yield text.line, f"says {phrase!r}: say {plain!r}"
    if path.suffix == ".md":
        for line, length in ragged_lines(source):
            yield line, f"the line ends at column {length}: wrap the paragraph anew"


def files_of(names: list[str]) -> list[pathlib.Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--",
         *(str(pathlib.Path(name).resolve()) for name in names)],
        cwd=ROOT, text=True, capture_output=True, check=True).stdout
    return [path for name in sorted(filter(None, listed.split("\0")))
            if name != BAD_ON_PURPOSE and (path := ROOT / name).suffix in READERS and path.is_file()]


def main() -> int:
    bad = 0
    for path in files_of(sys.argv[1:]):
        for line, what in sorted(complaints_of(path, path.read_text())):
            print(f"{path.relative_to(ROOT)}:{line}: {what}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
