"""Energy and CO2 in the ledger; the costs of runs side by side; codecarbon beside both."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

import chromium
import leat
from leat import testing

ROOT = pathlib.Path(__file__).parents[2]
WITHOUT = "codecarbon is not here, since it takes 263 MB with what it needs: pip install codecarbon==3.3.2"


def run(*words: str, code: int = 0, **variables: str) -> str:
    done = subprocess.run([testing.find_binary(), *words], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **variables})  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture
def report(tmp_path):
    """The report of a bench over some files, modelled unless this machine's energy can be read."""
    (tmp_path / "data").mkdir()
    for number in range(60):
        (tmp_path / "data" / f"{number:03}").write_bytes(bytes(1000))
    told = run("bench", str(tmp_path / "data"), "--json", "--global-batch-size", "10", "--step-time", "20ms",
               "--core-watts", "25", "--memory-watts", "10", "--grid", "DEU",
               LEAT_CACHE_DIR=str(tmp_path / "cache"))  # fmt: skip
    (tmp_path / "run.json").write_text(told)
    return tmp_path / "run.json"


def test_a_bench_tells_its_energy_and_says_if_it_is_modelled(report) -> None:
    ledger = json.loads(report.read_text())["ledger"]

    assert ledger["seconds"] >= 6 * 0.02
    assert abs(ledger["began"] - time.time()) < 60
    processors = ledger.get("processor_joules", 25 * ledger["processor_seconds"])
    assert ledger["processor_energy"] == ("measured" if "processor_joules" in ledger else "modelled")
    joules = processors + 10 * ledger["seconds"] + ledger.get("accelerator_joules", 0)
    assert ledger["kwh"] == pytest.approx(joules / 3.6e6)
    assert ledger["grid"] == "DEU"
    assert ledger["co2_grams"] == pytest.approx(ledger["kwh"] * 380.95)
    assert "ourworldindata" in ledger["carbon_source"]


def test_without_a_grid_nothing_is_said_about_co2(report, tmp_path) -> None:
    variables = {name: value for name, value in os.environ.items() if name != "LEAT_GRID"}
    done = subprocess.run([testing.find_binary(), "bench", str(tmp_path / "data"), "--json",
                           "--global-batch-size", "10"], capture_output=True, text=True, timeout=60, check=True,
                          env=variables)  # fmt: skip

    assert not {"co2_grams", "grid", "grams_per_kwh"} & set(json.loads(done.stdout)["ledger"])


def test_the_appendix_has_both_runs_and_latex_takes_it(report, tmp_path) -> None:
    (tmp_path / "other_run.json").write_text(report.read_text())
    run("ledger", str(report), str(tmp_path / "other_run.json"), "--grid", "FRA",
        "--latex", str(tmp_path / "t.tex"), "--html", str(tmp_path / "t.html"))  # fmt: skip

    latex, html = (tmp_path / "t.tex").read_text(), (tmp_path / "t.html").read_text()
    rows = [line for line in latex.splitlines() if line.endswith("\\\\")]
    assert all(row.count(" & ") == 2 for row in rows), "a column for each run"
    assert "other\\_run.json" in latex and "other_run" in html
    assert "grid & FRA & FRA" in latex
    assert html.count("<td>FRA</td>") == 2


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_of_costs_is_as_wide_as_its_screen(report, tmp_path, width) -> None:
    (tmp_path / "a-run-with-a-longer-name.json").write_text(report.read_text())
    run("ledger", str(report), str(tmp_path / "a-run-with-a-longer-name.json"), "--html", str(tmp_path / "costs.html"))
    with chromium.browser() as browser, chromium.tab(browser) as tab:
        tab.show_as(width, "dark")
        tab.open(tmp_path / "costs.html")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.evaluate("document.querySelector('div').scrollWidth <= document.querySelector('div').clientWidth")
        assert tab.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light dark"
        assert tab.errors == []


def test_a_grid_of_the_users_has_hours(report, tmp_path) -> None:
    hours = ", ".join(str(100 + 10 * hour) for hour in range(24))
    (tmp_path / "mine.toml").write_text(f'[mine]\nsource = "the meter"\n[mine.grams_per_kwh]\nhere = [{hours}]\n')
    began = json.loads(report.read_text())["ledger"]["began"]

    told = json.loads(run("ledger", str(report), "--grid", "here", "--carbon", str(tmp_path / "mine.toml"), "--json"))

    hour = int(began // 3600) % 24
    ledger = told["runs"][0]["ledger"]
    assert 100 + 10 * hour <= ledger["grams_per_kwh"] <= 100 + 10 * (hour + 1) or hour == 23
    assert "the meter" in told["note"]


@pytest.mark.parametrize("words", [("--grid", "atlantis"), ("--grid", "DEU", "--carbon", "/no/such.toml")])
def test_a_grid_that_nobody_knows_is_refused(words, report) -> None:
    wrong = run("ledger", str(report), *words, code=2 if len(words) == 2 else 1)

    assert words[-1] in wrong


def test_a_loader_refuses_watts_that_are_none(report, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LEAT_CORE_WATTS", "many")

    with pytest.raises(leat.InvalidArgument, match="LEAT_CORE_WATTS=many"):
        leat.Loader(str(tmp_path / "data"), batch_size=5, shuffle=True)


def test_the_shipped_grams_are_codecarbons() -> None:
    pytest.importorskip("codecarbon", reason=WITHOUT)
    from codecarbon.core.emissions import Emissions
    from codecarbon.core.units import Energy
    from codecarbon.external.geography import CloudMetadata, GeoMetadata
    from codecarbon.input import DataSource

    emissions = Emissions(DataSource())
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
    tables = tomllib.loads((ROOT / "leat/engine/carbon.toml").read_text())
    one = Energy.from_energy(kWh=1)
    for country, grams in tables["countries"]["grams_per_kwh"].items():
        theirs = emissions.get_country_emissions(one, GeoMetadata(country_iso_code=country, country_name=country))
        assert grams == pytest.approx(1000 * theirs, rel=0.001), country
    for region, grams in tables["gcp"]["grams_per_kwh"].items():
        if region == "me-central1":  # They misspell it.
            continue
        theirs = emissions.get_cloud_emissions(one, CloudMetadata(provider="gcp", region=region))
        assert grams == pytest.approx(1000 * theirs, rel=0.001), region


SAME_RUN = """
import json, logging, os, sys, time
import leat
from codecarbon import OfflineEmissionsTracker
from codecarbon.core.util import count_cpus
cores = count_cpus()
os.environ.update(LEAT_CORE_WATTS="30", LEAT_MEMORY_WATTS="12", LEAT_GRID="DEU")
loader = leat.Loader(sys.argv[1], batch_size=10, shuffle=True, fields=("data",))
measured = loader.ledger().get("processor_energy") == "measured"
known = {} if measured else {"force_cpu_power": 30 * cores}
tracker = OfflineEmissionsTracker(country_iso_code="DEU", force_ram_power=12, measure_power_secs=5, save_to_file=False,
                                  tracking_mode="machine" if measured else "process", log_level="error", **known)
tracker.start()
before = loader.ledger()  # Within the time of the tracker, whose measurements lose what they take: few of them.
ends = time.monotonic() + 12
while time.monotonic() < ends:
    for batch in loader:
        sum(range(100_000))
after = loader.ledger()
grams = 1000 * tracker.stop()
print(json.dumps({"leat": after["co2_grams"] - before["co2_grams"], "codecarbon": grams}))
"""


def test_the_co2_of_a_run_is_codecarbons_within_5_per_cent(report, tmp_path) -> None:
    pytest.importorskip("codecarbon", reason=WITHOUT)

    done = subprocess.run([sys.executable, "-c", SAME_RUN, str(tmp_path / "data")], capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["leat"] == pytest.approx(told["codecarbon"], rel=0.05)
