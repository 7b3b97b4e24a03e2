"""The report of `leat profile`: as its schema says, and as a page that draws every figure."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import pytest

import chromium
import leat
import schema

AXE = pathlib.Path(__file__).parents[2] / "dashboard/node_modules/axe-core/axe.min.js"
KNOBS = ("cached", "workers", "cores", "bandwidth", "latency", "accelerator", "devices", "nodes")
SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs/reference/profile-report.schema.json").read_text())
BLOCK = re.compile(r'(<script type="application/json" id="report">)(.*?)(</script>)', re.DOTALL)


def profile(
    folder: pathlib.Path, script: str, page: str = "page.html", **variables: str
) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(script)
    return subprocess.run(
        ["leat", "profile", "--json", "--html", page, "--no-scratch", "--steps", "10", "--warmup", "2",
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


def test_a_page_that_cannot_be_written_takes_no_report_with_it(tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "data").mkdir()
    for number in range(120):
        (tmp_path / "data" / f"{number:03}").write_bytes(os.urandom(2000))

    done = profile(tmp_path, "import leat, shutil, time\n"
                   "shutil.rmtree('pages', ignore_errors=True)\n"
                   "for batch in leat.Loader('data', batch_size=4, shuffle=True, fields=('data',)): time.sleep(0.01)\n",
                   page="pages/page.html")  # fmt: skip

    assert done.returncode == 1
    assert "pages/page.html cannot be written" in done.stderr
    assert json.loads(done.stdout)["what_if"]


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
    assert report["batch_rows"] == 4  # The bytes have unequal lengths: a leat.Ragged.
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


SHOWN = """Object.fromEntries([...document.querySelectorAll("figure")].map(figure => {
  const canvas = figure.querySelector("canvas"), none = figure.querySelector(".none");
  if (none) return [figure.id, none.textContent];
  if (!canvas) return [figure.id, [...figure.querySelectorAll(".bar span")].filter(one => one.getBoundingClientRect().width > 0).length];
  const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Map();
  for (let i = 0; i < bytes.length; i += 4) {
    const color = [bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]].join();
    seen.set(color, (seen.get(color) || 0) + 1);
  }
  return [figure.id, [...seen].filter(([color, count]) => count > 100 && !color.endsWith(",0")).length];
}))"""
CUT_OFF = """[...document.querySelectorAll("td, th")].filter(cell => cell.offsetParent && getComputedStyle(cell.closest("thead") || cell).position !== "absolute")
  .filter(cell => cell.scrollWidth > cell.clientWidth + 1 || cell.getBoundingClientRect().right > innerWidth + 1).map(cell => cell.textContent)"""


def look(tab: chromium.Tab, page: pathlib.Path) -> dict[str, str | int]:
    """The content of each figure, on a desk, on a phone in the dark and in print:
    its parts or colours, or why there is nothing."""
    for width, scheme, media in ((1200, "light", "screen"), (360, "dark", "screen"), (800, "dark", "print")):
        tab.show_as(width, scheme, media)
        tab.open(page)

        assert tab.errors == []
        assert tab.requests == [page.resolve().as_uri()]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.evaluate(CUT_OFF) == []
        light = sum(map(int, tab.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)"))) > 384  # fmt: skip
        assert light == (scheme == "light" or media == "print")
    return tab.evaluate(SHOWN)


def test_ten_steps_are_drawn(tab, ten_steps):
    shown = look(tab, ten_steps / "page.html")

    assert shown["parts"] == len([one for one in report_in(ten_steps / "page.html")["parts"].values() if one["seconds"] > 0])
    for name in ("timeline", "waits", "what-if-curve"):
        assert shown[name] >= 2, name
    assert "One rank was run" in shown["ranks"]
    assert "Not asked for" in shown["recommendation"]
    assert "one node was run" in shown["what-if-nodes"]
    sliders = tab.evaluate("[...document.querySelectorAll('input[type=range]')].map(one => one.id)")
    assert sliders == [f"knob-{knob}" for knob in ("cached", "cores", "bandwidth", "latency", "accelerator")]
    assert tab.evaluate("document.querySelectorAll('b').length") == 0  # A word of the command, not a tag.
    headings = tab.evaluate("[...document.querySelectorAll('h2')].map(one => one.textContent)")
    assert len(headings) >= 6 and all(one.endswith("?") for one in headings), "one figure a question"
    assert "A step takes" in tab.text(".headline")


def test_a_hundred_thousand_steps_are_drawn(tab, ten_steps):
    report = report_in(ten_steps / "page.html")
    bins = [[0.01, 0.02 + number / 1e4, 0.001, 0.002] for number in range(1000)]
    report["timeline"] = {"steps": 100_000, "steps_a_bin": 100, "bins": bins}
    assert schema.problems(report, SCHEMA, SCHEMA) == []

    shown = look(tab, with_report(ten_steps / "page.html", "long.html", report))

    assert shown["timeline"] >= 4
    assert "100,000 steps" in tab.evaluate("document.querySelector('#timeline figcaption').textContent")


def test_ranks_are_shown_beside_each_other(tab, ten_steps):
    report = report_in(ten_steps / "page.html")
    report["ranks"] = [
        {"rank": rank, "steps_a_bin": 1, "bins": [[0.1, 0.01 + 0.03 * (rank == 2)] for _ in range(50)]} for rank in range(4)
    ]
    assert schema.problems(report, SCHEMA, SCHEMA) == []

    shown = look(tab, with_report(ten_steps / "page.html", "ranks.html", report))

    assert shown["ranks"] >= 3
    assert "Rank 2 waits most, 40 % of its time; rank 0 least, 10 %." in tab.text("main")


def test_one_bar_does_not_fill_its_frame(tab, ten_steps):
    report = report_in(ten_steps / "page.html")
    lower = [0, *(1e-6 * 2**power for power in range(18))]
    report["waits"].update(lower=lower, counts=[0] * 18 + [10])
    tab.show_as(1200)
    tab.open(with_report(ten_steps / "page.html", "one.html", report))

    filled = tab.evaluate("""(() => {
      const canvas = document.querySelector("#waits canvas"), context = canvas.getContext("2d"), y = Math.floor(canvas.height / 2);
      const row = context.getImageData(0, y, canvas.width, 1).data, blue = getComputedStyle(document.documentElement);
      let count = 0;
      for (let i = 0; i < row.length; i += 4) if (row[i + 3] > 0 && row[i + 2] > row[i] + 60) ++count;
      return count / canvas.width;
    })()""")
    assert 0.02 < filled < 0.25


def test_sliders_move_the_steps_bar(tab, ten_steps):
    tab.show_as(1200, motion="reduce")  # Else the bar is on its way.
    tab.open(ten_steps / "page.html")
    then = "#what-if-accelerator"
    assert tab.text("#foretold").startswith("Move a slider")
    report = report_in(ten_steps / "page.html")

    tab.evaluate("""(() => {
      const slider = document.querySelector("#knob-accelerator");
      slider.value = "-1";
      slider.dispatchEvent(new Event("input"));
    })()""")

    half = subprocess.run(["leat", "what-if", "report.json", "--with", "accelerator=0.5", "--json"],
                          cwd=ten_steps, capture_output=True, text=True, check=True).stdout  # fmt: skip
    told = json.loads(half)["asked"]
    assert tab.text(f"{then} output") == "×0.5"
    bars = tab.evaluate("[...document.querySelectorAll('.steps')].at(-1).innerText")
    assert "As measured" in bars and "Then" in bars
    widths = tab.evaluate("[...document.querySelectorAll('.what-if .bar')].map(bar => [...bar.children].reduce((sum, one) => sum + one.getBoundingClientRect().width, 0))")
    assert widths[0] / widths[1] == pytest.approx(report["step_seconds"] / told["step_seconds"], rel=0.02)
    assert "times the samples a second" in tab.text("#foretold")
    tab.click("#as-measured")
    assert tab.text("#foretold").startswith("Move a slider")
    assert tab.errors == []


FACTORS = (0.25, 0.5, 2, 4, 8)  # Not 1: there stands the stroke of the present setting.
CURVE = """(() => {
  const figure = document.querySelector("#what-if-curve"), canvas = figure.querySelector("canvas");
  const outer = canvas.getBoundingClientRect(), inner = figure.querySelector(".u-over").getBoundingClientRect();
  const context = canvas.getContext("2d"), scale = canvas.width / outer.width;
  const probe = document.body.appendChild(document.createElement("i"));
  const color = name => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).map(Number); };
  const rows = (x, wanted) => {  // From the bottom of the plot up, where that column has the colour.
    const at = Math.min(Math.max(x, 1), inner.width - 2) + inner.left - outer.left, top = inner.top - outer.top;
    const bytes = context.getImageData(Math.round(at * scale), Math.round(top * scale), 1, Math.round(inner.height * scale)).data;
    const found = [];
    for (let y = 0; y < inner.height * scale; ++y) {
      const [red, green, blue, alpha] = bytes.slice(4 * y, 4 * y + 4);
      if (alpha > 100 && Math.abs(red - wanted[0]) + Math.abs(green - wanted[1]) + Math.abs(blue - wanted[2]) < 40) found.push(inner.height - y / scale);
    }
    return found;
  };
  const work = color("--work"), soft = color("--soft"), place = factor => (Math.log2(factor) + 2) / 5 * inner.width;
  return {
    width: inner.width, height: inner.height,
    line: FACTORS.map(factor => rows(place(factor), work)),
    strokes: [-1, 0, 1].map(x => rows(place(1) + x, soft).length / inner.height / scale),
  };
})()""".replace("FACTORS", str(list(FACTORS)))


def test_the_curves_points_lie_where_their_factors_are(tab, ten_steps):
    """A point for x0.25 was drawn at x0.5, and so the curve began with a vertical stroke."""
    report = report_in(ten_steps / "page.html")
    for name, part in report["parts"].items():
        part["seconds"] = 0.1 if name == "compute" else 0
    # A step computes for 100 ms, and its supply takes 20: it can be five times as fast, and no faster.
    report.update(supply_seconds={"warm": 0.02, "cold": 0.02}, supply_cpu_seconds=0.001)
    assert schema.problems(report, SCHEMA, SCHEMA) == []
    tab.show_as(1200)
    tab.open(with_report(ten_steps / "page.html", "curve.html", report))

    curve = tab.evaluate(CURVE)

    most = 5 * 1.08  # The top of the figure.
    for factor, rows in zip(FACTORS, curve["line"]):
        assert rows, f"no line at x{factor}"
        assert max(rows) - min(rows) < 8, f"a vertical stroke at x{factor}"
        assert sum(rows) / len(rows) == pytest.approx(min(factor, 5) / most * curve["height"], abs=2.5), factor
    assert max(curve["strokes"]) > 0.3, "the present setting is marked at x1"
    place = tab.page.locator("#what-if-curve .u-over")
    for at, factor in enumerate((0.25, 0.5, 1, 2, 4, 8)):
        x = min(max(at / 5 * curve["width"], 1), curve["width"] - 2)
        place.hover(position={"x": x, "y": curve["height"] / 2})
        speed = min(factor, 5)
        assert tab.text("#what-if-curve .readout") == f"Speed of the accelerator ×{factor}: {speed} times the samples a second"


def drawn(seed: int) -> tuple[dict, dict]:
    """A report that could be, and something that could be otherwise."""
    draw = random.Random(seed)
    seconds = lambda: draw.choice((0.0, draw.uniform(0, 0.4)))  # noqa: E731
    has_warm = draw.random() < 0.8
    parts = {"compute": draw.uniform(0.01, 0.5), "interconnect": seconds(), "network": seconds()}
    parts |= {"preparation": seconds(), "fetch": seconds()} if has_warm else {"input": seconds()}
    devices, nodes = draw.choice((1, 2, 4)), draw.choice((1, 2))
    workers = draw.choice((None, 0, 1, 4))
    cores, supply = draw.choice((1, 4, 16)), {"warm": seconds(), "cold": seconds()}
    # At the point where the supply is as much as the cores have, the model takes
    # another branch.
    nearly = max(supply["warm"], parts.get("preparation", 0)) * cores / devices
    cpu = draw.choice((None, draw.uniform(0.001, 1), nearly * draw.uniform(0.5, 1.1)))
    share = draw.choice((None, draw.uniform(0, 1)))
    report = {
        "leat_profile": 1, "cores": cores, "loader": draw.choice(("leat.Loader", "torch.DataLoader")),
        **draw.choice(({}, {"is_pipelined": True, "loads_ahead": True}, {"is_pipelined": False, "loads_ahead": True})),
        "workers": workers, "settings": {"nodes": nodes, "nproc_per_node": devices},
        "parts": {name: {"seconds": value} for name, value in parts.items()},
        "supply_seconds": supply, "supply_cpu_seconds": cpu,
        "fetch_a_batch": {"gets": 2, "lists": 0, "bytes": 10, "latency_share": share},
    }  # fmt: skip
    may = {"load_ahead": lambda: 1, "accelerator": lambda: draw.uniform(0.25, 8)}
    if has_warm:
        may["cached"] = draw.random
    if has_warm and cpu is not None:
        may["cores"] = lambda: draw.uniform(0.25, 8)
    if has_warm and share is not None:
        may |= {"latency": lambda: draw.uniform(0.1, 4), "bandwidth": lambda: draw.uniform(0.1, 8)}
    if workers is not None:
        may["workers"] = lambda: draw.randrange(0, 17)
    if devices > 1:
        may["devices"] = lambda: draw.choice((1, 2, 8))
    if nodes > 1:
        may["nodes"] = lambda: draw.choice((1, 2, 8))
    chosen = draw.sample(sorted(may), draw.randrange(1, len(may) + 1))
    return report, {name: may[name]() for name in chosen}


def test_the_pages_model_is_that_of_what_if(tab, ten_steps, tmp_path):
    tab.open(ten_steps / "page.html")
    seen = set()
    for seed in range(150):
        report, setting = drawn(seed)
        (tmp_path / "report.json").write_text(json.dumps(report))
        asked = ["--with", *(f"{name}={value!r}" for name, value in setting.items())]
        done = subprocess.run(["leat", "what-if", "report.json", "--json", *asked], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (seed, setting, done.stderr)
        told = json.loads(done.stdout)["asked"]

        page = tab.evaluate(f"leatProfile.predict({json.dumps(report)}, {json.dumps(setting)})")

        assert page["step_seconds"] == pytest.approx(told["step_seconds"], rel=1e-9), (seed, setting)
        assert page["speedup"] == pytest.approx(told["speedup"], rel=1e-9), (seed, setting)
        for name, value in told["parts"].items():
            assert page["parts"][name] == pytest.approx(value, rel=1e-9, abs=1e-12), (seed, name, setting)
        seen |= setting.keys()
    assert seen == {"load_ahead", *KNOBS}


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


def test_a_small_change_is_not_told_as_none(tab, ten_steps):
    report = report_in(ten_steps / "page.html")
    changes = [{"change": "latency", "value": 0.996, "step_seconds": 0.1}, {"change": "bandwidth", "value": 1.004, "step_seconds": 0.1}]
    report["what_if"]["removals"] = [{"part": "fetch", "seconds": 0.01, "changes": changes}]
    tab.open(with_report(ten_steps / "page.html", "small.html", report))

    told = tab.text("#removals")
    assert "0.4 % less latency" in told and "0.4 % more bandwidth" in told
    assert "1/1" not in told and "1 times" not in told


def test_what_to_rent_is_drawn(tab, ten_steps):
    machines = pathlib.Path(__file__).parents[2] / "examples" / "machines.toml"
    subprocess.run(["leat", "recommend", "report.json", "--catalog", str(machines), "--on", "g5.xlarge",
                    "--steps", "1000", "--gradient-bytes", "1e8", "--html", "rent.html"],
                   cwd=ten_steps, check=True, capture_output=True)  # fmt: skip
    told = report_in(ten_steps / "rent.html")["recommendation"]

    shown = look(tab, ten_steps / "rent.html")

    assert schema.problems(report_in(ten_steps / "rent.html"), SCHEMA, SCHEMA) == []
    judged = [one for one in told["machines"] if one["hours"] is not None]
    assert shown["recommendation"] >= 3
    assert f"{len(judged)} choices" in tab.text("#recommendation figcaption")
    assert len(judged) > 10
    assert told["verdict"] in tab.evaluate("document.body.textContent")


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (360, "light")])
def test_axe_finds_nothing(tab, ten_steps, width, scheme):
    if not AXE.exists():
        chromium.without("no axe-core: tools/check_dashboard.sh (./dev check --all) gets it")
    tab.show_as(width, scheme)
    tab.open(ten_steps / "page.html")

    tab.evaluate(AXE.read_text() + "; 0")
    found = json.loads(tab.evaluate("axe.run().then(found => JSON.stringify({rules: found.passes.length, bad: "
        "found.violations.map(one => [one.id, one.nodes.map(node => node.html)])}))"))  # fmt: skip

    assert found["bad"] == []
    assert found["rules"] > 15


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
