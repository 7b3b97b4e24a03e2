"""The command `leat` before a command is chosen."""

from __future__ import annotations

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def leat(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["leat", *words], capture_output=True, text=True)


def test_without_words_it_tells_of_every_command_by_purpose():
    done = leat()

    told = re.findall(r"^  (\S+)  +\S", done.stdout, re.MULTILINE)
    there = re.findall(r"extern const Command k(\w+)Command;", (ROOT / "leat/cli/commands.h").read_text())
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(told) == sorted(re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower() for name in there)
    assert len(re.findall(r"^\S.*:$", done.stdout, re.MULTILINE)) >= 4
    assert max(map(len, done.stdout.splitlines())) < 80


def test_it_names_the_command_that_may_have_been_meant():
    done = leat("bnech", "s3://b")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "leat: no command 'bnech'; did you mean 'bench'?\n"
