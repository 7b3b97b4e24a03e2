"""The report of `leat profile`: as its schema says, and as a page that draws every figure."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import chromium
import leat
import schema

FIGURES = ["parts", "timeline", "waits", "recommendation",
           *(f"what-if-{knob}" for knob in ("cached", "workers", "cores", "bandwidth", "latency", "accelerator", "devices", "nodes"))]  # fmt: skip
SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs/reference/profile-report.schema.json").read_text())
BLOCK = re.compile(r'(<script type="application/json" id="report">)(.*?)(</script>)', re.DOTALL)


def profile(folder: pathlib.Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(script)
    return subprocess.run(
        ["leat", "profile", "--json", "--html", "page.html", "--no-scratch", "--steps", "10", "--warmup", "2",
         "--repeats", "1", "--", sys.executable, "train.py", "</script><b>"],
        cwd=folder, capture_output=True, text=True, env={**os.environ, **variables}, timeout=110,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ten_steps(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("profiled")
    (folder / "store/b").mkdir(parents=True)
    for number in range(120):
        (folder / "store/b" / f"{number:03}").write_bytes(os.urandom(2000))
    with leat.testing.Bucket(folder / "store", latency="5ms") as bucket:
        done = profile(folder, "import leat, time\n"
                       "for batch in leat.Loader('s3://b', batch_size=4, shuffle=True, fields=('data',)): time.sleep(0.01)\n",
                       **bucket.env())  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder / "report.json").write_text(done.stdout)
    return folder


def report_in(page: pathlib.Path) -> dict:
    return json.loads(BLOCK.search(page.read_text())[2])


def with_report(page: pathlib.Path, name: str, report: dict) -> pathlib.Path:
    """The same page, of another report."""
    text = json.dumps(report).replace("<", "\\u003c")
    other = page.with_name(name)
    other.write_text(BLOCK.sub(lambda found: found[1] + text + found[3], page.read_text()))
    return other


def test_a_report_is_as_its_schema_says(ten_steps):
    report = json.loads((ten_steps / "report.json").read_text())

    assert schema.problems(report, SCHEMA, SCHEMA) == []
    assert report["timeline"]["steps"] == len(report["timeline"]["bins"]) == sum(report["waits"]["counts"]) == 10
    assert report["fetch_a_batch"]["gets"] >= 3
    assert report["fetch_a_batch"]["bytes"] == pytest.approx(2000 * report["fetch_a_batch"]["gets"], rel=0.05)
    assert 0.5 < report["fetch_a_batch"]["latency_share"] <= 1
    assert report["supply_cpu_seconds"] > 0

    for spoil in (lambda r: r.pop("cores"), lambda r: r.update(more=1), lambda r: r["parts"]["fetch"].update(fraction=2)):
        spoilt = copy.deepcopy(report)
        spoil(spoilt)
        assert len(schema.problems(spoilt, SCHEMA, SCHEMA)) == 1


def test_what_if_says_of_a_report_what_profile_said(ten_steps):
    told = subprocess.run(["leat", "what-if", "report.json", "--json", "--html", "again.html"],
                          cwd=ten_steps, capture_output=True, text=True, check=True).stdout  # fmt: skip

    report = json.loads((ten_steps / "report.json").read_text())
    assert json.loads(told) == report["what_if"]
    assert report_in(ten_steps / "again.html") == report_in(ten_steps / "page.html") == report


@pytest.fixture(scope="module")
def tab():
    with chromium.browser() as browser, chromium.tab(browser) as one:
        yield one


def look(tab: chromium.Tab, page: pathlib.Path) -> dict[str, str]:
    """What each figure shows, on a desk, on a phone in the dark and in print."""
    for width, scheme, media in ((1200, "light", "screen"), (360, "dark", "screen"), (800, "dark", "print")):
        tab.show_as(width, scheme, media)
        tab.open(page)

        assert tab.errors == []
        assert tab.requests == [page.resolve().as_uri()]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light" or media == "print")
    # Marks that are within their figure and have a size; else the reason why there are none.
    return tab.evaluate("""Object.fromEntries([...document.querySelectorAll("figure")].map(figure => [figure.id,
      (figure.querySelector(".none") || {textContent: [...figure.querySelectorAll("svg rect, svg path, svg circle")]
        .filter(mark => mark.getBoundingClientRect().width > 0 && !mark.outerHTML.includes("NaN"))
        .map(mark => mark.tagName).join(" ")}).textContent]))""")


def test_ten_steps_are_drawn(tab, ten_steps):
    shown = look(tab, ten_steps / "page.html")

    assert sorted(shown) == sorted(FIGURES)
    assert "rect" in shown["parts"].split()
    assert shown["timeline"] == "path path"
    assert set(shown["waits"].split()) == {"rect"}
    for knob in ("cached", "cores", "bandwidth", "latency", "accelerator"):
        assert shown[f"what-if-{knob}"].split().count("circle") >= 9, knob
    assert "one node was run" in shown["what-if-nodes"]
    assert tab.evaluate("document.querySelectorAll('b').length") == 0  # A word of the command, not a tag.


def test_a_hundred_thousand_steps_are_drawn(tab, ten_steps):
    report = report_in(ten_steps / "page.html")
    bins = [[0.01, 0.02 + number / 1e4, 0.001, 0.002] for number in range(1000)]
    report["timeline"] = {"steps": 100_000, "steps_a_bin": 100, "bins": bins}
    assert schema.problems(report, SCHEMA, SCHEMA) == []

    shown = look(tab, with_report(ten_steps / "page.html", "long.html", report))

    assert shown["timeline"] == "path path path"
    assert "100,000 steps" in tab.evaluate("document.querySelector('#timeline figcaption').textContent")


def test_the_page_says_what_intervals_are_of_whose_prices_and_what_is_not_known(tab, ten_steps):
    report = report_in(ten_steps / "page.html")
    text = "document.querySelector('main').textContent"
    tab.open(ten_steps / "page.html")
    one = tab.evaluate(text)
    report["settings"]["repeats"] = 3
    report["proof"]["connects_to"] = ["data.example:80"]
    assert schema.problems(report, SCHEMA, SCHEMA) == []
    tab.open(with_report(ten_steps / "page.html", "three.html", report))
    three = tab.evaluate(text)

    assert "the intervals are of its steps" in one and "prices of requests and transfers3" in one
    assert "the intervals are of its steps" not in three
    assert "connects to data.example:80 by itself" in three and "by itself" not in one


def test_what_to_rent_is_drawn(tab, ten_steps):
    machines = pathlib.Path(__file__).parents[2] / "examples" / "machines.toml"
    subprocess.run(["leat", "recommend", "report.json", "--catalog", str(machines), "--on", "g5.xlarge",
                    "--steps", "1000", "--gradient-bytes", "1e8", "--html", "rent.html"],
                   cwd=ten_steps, check=True, capture_output=True)  # fmt: skip
    told = report_in(ten_steps / "rent.html")["recommendation"]

    shown = look(tab, ten_steps / "rent.html")

    assert schema.problems(report_in(ten_steps / "rent.html"), SCHEMA, SCHEMA) == []
    judged = [one for one in told["machines"] if one["hours"] is not None]
    assert shown["recommendation"].split().count("circle") == len(judged) > 10
    assert told["verdict"] in tab.evaluate("document.body.textContent")


def test_an_empty_run_says_so(tab, ten_steps):
    report = report_in(ten_steps / "page.html")
    for key in ("parts", "condition_seconds"):
        report[key] = {}
    report.update(step_seconds=0, timeline={"steps": 0, "steps_a_bin": 1, "bins": []})

    assert look(tab, with_report(ten_steps / "page.html", "empty.html", report)) == {}

    assert "No step was measured" in tab.evaluate("document.body.textContent")


def test_a_failed_run_says_why(tab, tmp_path):
    done = profile(tmp_path, "raise SystemExit('no such model')\n")

    assert done.returncode == 1
    assert schema.problems(report_in(tmp_path / "page.html"), SCHEMA, SCHEMA) == []
    assert look(tab, tmp_path / "page.html") == {}
    assert "no such model" in tab.evaluate("document.querySelector('main').textContent")
