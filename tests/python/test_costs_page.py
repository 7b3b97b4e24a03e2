"""The derivations of docs/howto/what-does-it-cost.md, computed anew, are what the program says."""

from __future__ import annotations

import json
import math
import pathlib
import re
import subprocess

import pytest

from leat import testing

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/what-does-it-cost.md").read_text()
SECTIONS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^###? )", PAGE, re.MULTILINE | re.DOTALL))
# A way's cells end like this, and are these dollars of the program.
DOLLARS = ("gets", "hours", "waiting", "nat", "memory", "disk", "total")


def cells_of(section: str) -> dict[str, float]:
    """Computes the cells of a table, each by its formula, and checks the page's values."""
    cells: dict[str, float] = {}
    for name, formula, value in re.findall(r"^\| `(\w+)` \| `(.+?)` \| (\S+) \|$", section, re.MULTILINE):
        cells[name] = eval(formula, {"__builtins__": {}, "floor": math.floor, "round": round}, dict(cells))
        assert cells[name] == pytest.approx(float(value), rel=1e-5), f"{name} of the page"
    return cells


@pytest.fixture(scope="module")
def told() -> dict[str, dict]:
    done = subprocess.run(
        [testing.find_binary(), "plan", "--simulate", str(ROOT / "examples/break_even.toml"), "--json"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return {run["name"]: run for run in json.loads(done.stdout)["break_even"]}


def test_the_page_works_out_all_trainings_of_the_file(told) -> None:
    assert list(SECTIONS) == list(told)
    assert len(told) == 6
    assert len([name for name in told if name.startswith("DELI")]) == 2


@pytest.mark.parametrize("name", list(SECTIONS))
def test_a_derivation_by_hand_is_what_the_program_says(name: str, told) -> None:
    cells = cells_of(SECTIONS[name])
    # A simulated epoch also waits for the first batch, with nothing to compute before it.
    tolerance = 0.02 if name == "small objects" else 1e-6
    compared = set()
    totals = {}
    for way in told[name]["ways"]:
        for cell, value in cells.items():
            owner, _, kind = cell.partition("_")
            if owner == way["name"] and kind in DOLLARS:
                assert way["dollars"][kind] == pytest.approx(value, rel=tolerance), cell
                compared.add(cell)
        totals[way["name"]] = cells[way["name"] + "_total"]

    assert {f"{way}_total" for way in totals} <= compared
    assert told[name]["cheapest"] == min(totals, key=lambda way: totals[way])
    begins = {run["way"]: run["from"] for run in told[name]["by_epochs"]}
    if "copy_from" in cells:
        assert begins["copy"] == cells["copy_from"]


def test_long_epochs_over_large_objects_never_pay_for_a_copy(told) -> None:
    assert told["tokens"]["by_epochs"] == [{"from": 1, "way": "bucket"}]


def test_at_an_even_price_both_ways_cost_the_same(told, tmp_path) -> None:
    [even] = [even for even in told["DELI, CIFAR-10"]["even"]
              if (even["with"], even["price"]) == ("bucket", "get_per_1000")]  # fmt: skip
    text = (ROOT / "examples/break_even.toml").read_text()
    priced = text.replace("node_per_hour = 0.64", f"node_per_hour = 0.64, get_per_1000 = {even['at']!r}")
    (tmp_path / "priced.toml").write_text(priced)
    done = subprocess.run([testing.find_binary(), "plan", "--simulate", str(tmp_path / "priced.toml"), "--json"],
                          capture_output=True, text=True, timeout=120, check=True)  # fmt: skip

    ways = {way["name"]: way["dollars"]["total"] for way in json.loads(done.stdout)["break_even"][0]["ways"]}
    assert ways["bucket"] == pytest.approx(ways["deli"])
