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


def test_so_is_the_page_of_a_store_that_is_unwell() -> None:
    assert publish.RELIABILITY.read_text() == publish.reliability(publish.PUBLISHED), "run: ./dev bench --publish"


def test_the_page_is_short() -> None:
    assert len(publish.PAGE.read_text().split()) <= MOST_WORDS


@pytest.mark.parametrize("file", sorted(publish.PUBLISHED.glob("*.json")), ids=lambda file: file.stem)
def test_each_file_says_its_command_its_day_and_its_machine(file: pathlib.Path) -> None:
    kept = json.loads(file.read_text())

    assert kept["command"].startswith(f"./dev bench {file.stem}")
    assert "--quick" not in kept["command"]
    assert kept["date"] and kept["machine"]["cpu"] and kept["machine"]["commit"] != "unknown"
    assert file.stem in {"landscape", *(figure.bench for figure in (*publish.FIGURES, *publish.RELIABILITY_FIGURES))}


def test_a_quick_run_is_not_published() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench/run.py", "clocks", "--quick", "--publish"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "--quick" in done.stderr


def test_jobs_say_their_room_their_epochs_and_the_checks_before_the_tables(tmp_path: pathlib.Path) -> None:
    title = "jobs by smooth: 3 on 512 photographs of 500 x 375, 37 KB, 3 epochs, 55 MB of cache"
    row = {"way": "shared", "makespan_s": "2.2", "of_torch": "8.75 x", "gets": "1.03", "decoded": "0.99"}
    kept = {"command": "./dev bench jobs", "date": "2026-11-25", "machine": {"cpu": "a", "cpus": 2, "commit": "b"},
            "tables": [{"title": title, "rows": [row]}]}  # fmt: skip
    (tmp_path / "jobs.json").write_text(json.dumps(kept))

    page = publish.page(tmp_path)

    about, _, table = page.partition(f"{title}:")
    assert "40 % of the size in which the pictures are kept" in about and "40 % of their decoded size" in about
    assert "how many jobs, photographs and epochs" in about
    assert "each photograph came once" in about and "the pixels of a loader without a cache" in about
    assert "| shared | 2.2 | 8.75 x |  | 1.03 | 0.99 |" in table


def test_a_row_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match="leat 100k 256"):
        publish.row_of([{"way": "leat 4k 64"}], "leat 100k 256")
