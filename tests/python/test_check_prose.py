"""tools/check_prose.py: sentences that it complains of, and those that it lets pass."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check_prose():
    path = ROOT / "tools" / "check_prose.py"
    spec = importlib.util.spec_from_file_location("check_prose", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


BAD = {
    "a paragraph": ("x.md", "Leat reads it.\nWhat fails is sent again.\n", [1]),
    "a list item": ("x.md", "- good\n- Who waits is told.\n", [2]),
    "a sentence in bold": ("x.md", "It is **kept**. *Whatever* comes is kept.\n", [1]),
    "behind a bold lead-in": ("x.md", "**Tiers.** Where there is room, it is kept.\n", [1]),
    "a cell": ("x.md", "| a | b |\n|---|---|\n| c | What is kept. |\n", [3]),
    "a C++ comment": ("x.h", "int x;\n// Of a sample, the bytes that\n// are kept.\n", [2]),
    "a trailing comment": ("x.h", "int a;  ///< Of a rank.\n", [1]),
    "a block comment": ("x.ts", "/**\n * Whose turn it is.\n */\n", [2]),
    "a help text": ("x.cc", 'add_flag("--x", "Keeps it. " "What is kept is read.");\n', [1]),
    "the second paragraph of a comment": ("x.cc", "// Good.\n//\n// Whom it serves.\n", [3]),
    "a docstring": ("x.py", 'def f():\n    """What f does."""\n', [2]),
    "a later paragraph of a docstring": ("x.py", '"""Good.\n\nOf all of them, one.\n"""\n', [3]),
    "a log message": ("x.py", 'log.info("Where it went is not known.")\n', [1]),
    "a Python comment": ("x.py", "x = 1  # Whoever asks.\n", [1]),
    "a shell comment": ("x.sh", "# What it runs.\necho\n", [1]),
    "a phrase that stumbles": ("x.h", "/// The time of so many steps.\n", [1]),
    "a phrase in a docstring": ("x.py", '"""Good. It has run, for the machine is idle."""\n', [1]),
    "a phrase in a document": ("x.md", "A change is said once.\n", [1]),
    "a ragged line": ("x.md", f"{'word ' * 20}\nshort\n{'word ' * 20}\n", [2]),
    "Python that does not parse": ("x.pyi", "def f() -> int: ...\n    x: int\n", [2]),
}

GOOD = {
    "a question": ("x.md", "What is kept? The pixels. Who reads them?\n"),
    "a heading": ("x.md", "# What it costs\n\nLittle.\n"),
    "the head of a table": ("x.md", "| name | What it says |\n|---|---|\n| a | b |\n"),
    "code": ("x.md", "```sql\nWhere x = 1.\n```\n\n    Of a block.\n"),
    "of course": ("x.md", "Of course it works.\n"),
    "a word that begins alike": ("x.md", "Whether it fits is known. Office hours end.\n"),
    "within a sentence": ("x.h", "// The rank knows what it reads, and of whom.\n"),
    "a wrapped line": ("x.h", "// The rank knows\n// Of-course names.\n"),
    "code that only looks like it": ("x.cc", "x = Of(What); // Good.\nchar c = '\"'; // Fine.\n"),
    "a caption": ("x.ts", 'new Table("What each job was given");\n'),
    "a URL in a string": ("x.cc", 'f("https://a.b/c");  // The address.\n'),
    "a phrase that says how many": ("x.h", "// There are so many that each has one.\n"),
    "a phrase in a string": ("x.py", 'print("so many steps")\n'),
    "an even paragraph": ("x.md", f"{'word ' * 20}\n{'word ' * 19}\nend\n"),
    "a short line before a long word": ("x.md", f"{'word ' * 16}\nsee\n{'x' * 80}\n"),
}


@pytest.mark.parametrize("name", BAD)
def test_complains_of(check_prose, name: str) -> None:
    file, text, lines = BAD[name]
    found = list(check_prose.complaints_of(pathlib.Path(file), text))
    assert [line for line, _ in found] == lines, found


@pytest.mark.parametrize("name", GOOD)
def test_lets_pass(check_prose, name: str) -> None:
    file, text = GOOD[name]
    assert list(check_prose.complaints_of(pathlib.Path(file), text)) == []


def test_the_command_names_file_and_line(check_prose, tmp_path, monkeypatch, capsys) -> None:
    page = tmp_path / "page.md"
    page.write_text("Good.\n\nWhat is bad.\n")
    monkeypatch.setattr(check_prose, "ROOT", tmp_path)
    monkeypatch.setattr(check_prose, "files_of", lambda names: [page])
    monkeypatch.setattr(sys, "argv", ["check_prose.py"])

    assert check_prose.main() == 1
    assert capsys.readouterr().out.startswith("page.md:3: ")
    page.write_text("Good.\n")
    assert check_prose.main() == 0
