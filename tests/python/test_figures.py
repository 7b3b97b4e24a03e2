"""docs/performance.md is what the published rows of the benches make, and no more."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import publish  # noqa: E402

MOST_WORDS = 1500


def test_the_page_is_what_was_published() -> None:
    assert publish.PAGE.read_text() == publish.page(publish.PUBLISHED), "run: ./dev bench --publish"


def test_the_page_is_short() -> None:
    assert len(publish.PAGE.read_text().split()) <= MOST_WORDS


@pytest.mark.parametrize("file", sorted(publish.PUBLISHED.glob("*.json")), ids=lambda file: file.stem)
def test_each_file_says_its_command_its_day_and_its_machine(file: pathlib.Path) -> None:
    kept = json.loads(file.read_text())

    assert kept["command"].startswith(f"./dev bench {file.stem}")
    assert "--quick" not in kept["command"]
    assert kept["date"] and kept["machine"]["cpu"] and kept["machine"]["commit"] != "unknown"
    assert file.stem in {figure.bench for figure in publish.FIGURES}


def test_a_quick_run_is_not_published() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench/run.py", "clocks", "--quick", "--publish"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "--quick" in done.stderr


def test_a_row_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match="leat 100k 256"):
        publish.row_of([{"way": "leat 4k 64"}], "leat 100k 256")
