#!/usr/bin/env python3
"""Counts the lines of the scripts in docs/coming-from/tasks, for the table of docs/coming-from/README.md.

    count_task_lines.py            renews the table
    count_task_lines.py --check    fails if it is not what the scripts are

Counted is each line that has code: no blank lines, comments and docstrings.
"""

from __future__ import annotations

import ast
import io
import pathlib
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "coming-from" / "README.md"
TASKS = PAGE.parent / "tasks"
BEGIN, END = "<!-- counted by tools/count_task_lines.py -->\n", "<!-- end -->\n"
LIBRARIES = {"leat": "Leat", "torch": "PyTorch", "litdata": "LitData", "streaming": "Streaming"}
ORDER = (
    "class_folders", "image_and_mask", "unequal_sizes", "weighted_sampling", "mixed_datasets",
    "token_windows", "captions", "own_transform", "resume", "validate_two_ranks",
)  # fmt: skip
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
            tokenize.ENCODING, tokenize.ENDMARKER)  # fmt: skip


def docstrings_of(tree: ast.AST) -> set[int]:
    """The lines that docstrings take."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            lines.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def lines_of_code(text: str) -> int:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings_of(ast.parse(text)))


def count(path: pathlib.Path) -> int:
    return lines_of_code(path.read_text()) if path.exists() else 0


def counts_of(task: str) -> dict[str, tuple[int, int]]:
    """By library: lines to train, lines to convert the data before."""
    return {name: (count(TASKS / task / f"with_{name}.py"), count(TASKS / task / f"convert_for_{name}.py"))
            for name in LIBRARIES}  # fmt: skip


def title_of(task: str) -> str:
    return ast.get_docstring(ast.parse((TASKS / task / "with_leat.py").read_text())).rstrip(".")


def cell(task: str, name: str, lines: tuple[int, int], least: int) -> str:
    train, convert = lines
    text = f"[{train}](tasks/{task}/with_{name}.py)"
    if convert:
        text += f" + [{convert}](tasks/{task}/convert_for_{name}.py)"
    return f"**{text}**" if train + convert == least else text


def table() -> str:
    rows = ["| task | " + " | ".join(LIBRARIES.values()) + " |", "|---" * (1 + len(LIBRARIES)) + "|"]
    sums = {name: [0, 0] for name in LIBRARIES}
    for task in ORDER:
        counts = counts_of(task)
        least = min(map(sum, counts.values()))
        rows.append(f"| {title_of(task)} | " + " | ".join(cell(task, n, c, least) for n, c in counts.items()) + " |")
        for name, lines in counts.items():
            sums[name] = [a + b for a, b in zip(sums[name], lines)]
    told = (f"{train} + {convert}" if convert else str(train) for train, convert in sums.values())
    rows.append("| all ten | " + " | ".join(told) + " |")
    return "\n".join(rows) + "\n\n" + as_short_without_converting()


def as_short_without_converting() -> str:
    found = []
    for task in ORDER:
        counts = counts_of(task)
        ours = counts["leat"][0]
        found += [f"{LIBRARIES[name]}'s `{task}` ({lines} against {ours})"
                  for name, (lines, _) in counts.items() if name != "leat" and lines <= ours]  # fmt: skip
    return f"As short as Leat's, or shorter, if what converts is not counted: {', '.join(found) or 'none'}.\n"


def renewed(page: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE}: has not both {BEGIN.strip()} and {END.strip()}")
    return before + begin + table() + end + after


def main() -> int:
    page = PAGE.read_text()
    new = renewed(page)
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(new)
    elif new != page:
        print(f"{PAGE}: the scripts are other than its table; renew it with {sys.argv[0]}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
