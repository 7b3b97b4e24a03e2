"""Reference pages are what the program prints."""

import pathlib
import subprocess

from leat import testing

ROOT = pathlib.Path(__file__).parents[2]


def test_the_metrics_page_is_the_programs() -> None:
    printed = subprocess.run(
        [testing.find_binary(), "docs", "metrics"], capture_output=True, text=True, check=True
    ).stdout

    page = ROOT / "docs" / "reference" / "metrics.md"
    assert page.read_text() == printed, "renew it: leat docs metrics > docs/reference/metrics.md"
