"""The agent's page, through a browser: its figures, its memory, its texts and its
controls."""

from __future__ import annotations

import json
import pathlib

import pytest

import chromium
import sample_node

DASHBOARD = pathlib.Path(__file__).parents[2] / "dashboard"
AXE = DASHBOARD / "node_modules/axe-core/axe.min.js"


@pytest.fixture(scope="module")
def browser():
    with chromium.browser() as one:
        yield one


@pytest.fixture
def blank(browser):
    with chromium.tab(browser) as one:
        yield one


@pytest.fixture
def node():
    with sample_node.serve(5) as served:
        yield served


@pytest.fixture
def tab(blank, node):
    """The page of five jobs, 120 s after they began, in a light scheme."""
    blank.show_as(1280)
    open_page(blank, node)
    return blank


def open_page(tab: chromium.Tab, node: sample_node.SampleNode) -> None:
    tab.open(node.url + "/")
    tab.eventually("document.getElementById('status').dataset.state === 'live'")


def rows(tab: chromium.Tab, selector: str) -> list[list[str]]:
    return tab.evaluate(f"[...document.querySelectorAll('{selector} tbody tr')].map(row => "
                        "[...row.children].map(cell => cell.textContent))")  # fmt: skip


def paths(tab: chromium.Tab) -> list[str]:
    """The page's requests, without the server's name."""
    origin = tab.evaluate("location.origin")
    assert all(url.startswith(origin) for url in tab.requests), tab.requests
    return [url.removeprefix(origin) for url in tab.requests]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")])
def test_it_fits_and_asks_nobody_else(blank, node, width, scheme):
    blank.show_as(width, scheme)
    open_page(blank, node)

    assert blank.errors == []
    assert {path.partition("?")[0] for path in paths(blank)} <= {
        "/", "/assets/app.js", "/assets/app.css", "/assets/icon.svg", "/api/node"}  # fmt: skip
    assert blank.evaluate("document.documentElement.scrollWidth") <= width
    light = sum(map(int, blank.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)"))) > 384  # fmt: skip
    assert light == (scheme == "light")
    assert blank.evaluate("[...document.querySelectorAll('canvas')].every(one => one.width > 200)")


def test_it_shows_what_the_agent_says(tab, node):
    view = node.view()

    assert tab.text("h1") == "Leat node-7"
    assert tab.evaluate("document.title") == "node-7 · Leat"
    assert "22.2 of 32" in tab.text("#facts")
    assert "Read in all\n381 MiB/s\nof 954 MiB/s that it may be" in tab.text("#facts")
    assert "Read of s3://photos\n128 MiB/s\nof 256 MiB/s that it may be" in tab.text("#facts")
    jobs = rows(tab, "#jobs")
    assert [row[0] for row in jobs] == [f"{i + 1}{job['name']}{job['dataset']}" for i, job in enumerate(view["jobs"])]
    assert jobs[1][1:] == ["training", "671", "640", "80 %", "18 %", "$0.25", "$0.125", "7", "40", "any", "8 GiB", "any", "1 of 2", "grace", "2 min"]

    assert tab.evaluate("document.querySelectorAll('canvas').length") == 2
    assert [row[0] for row in rows(tab, "#shares")] == [f"{i + 1}{job['name']}" for i, job in enumerate(view["jobs"])]
    assert rows(tab, "#shares")[1] == ["2llm-tokens", "7", "4", "–"]
    assert rows(tab, "#speed")[1] == ["2llm-tokens", "671", "640", "+4.9 %", "80 %", "768"]
    assert rows(tab, "#waits")[1] == ["2llm-tokens", "18 %", "7.1 %", "11 %"]
    assert rows(tab, "#cache")[1] == ["2llm-tokens", "76,800", "50 %", "20 %", "10 %", "20 %", "2 GiB", "32 GiB"]
    decisions = rows(tab, "#decisions")
    assert len(decisions) == 12
    assert decisions[0][1:] == ["clip", "ram", "4 GiB → 8 GiB", "the second epoch reads the same again", "+40 %", "not yet"]
    assert decisions[1][1:] == ["llm-tokens", "threads", "4 → 6", "decode is the bottleneck: 4 threads at 97 %", "+40 %", "+37 %"]


def test_a_user_without_a_name_is_no_number(tab):
    assert [row[14] for row in rows(tab, "#jobs")] == ["ada", "grace", "–", "ada", "grace"]


def test_jobs_without_a_cache_have_read_all_the_same(tab, node):
    node.tell("uncached 120")
    gets = [job["ledger"]["gets"] for job in node.view()["jobs"]]

    tab.eventually("document.querySelector('#cache').innerText.includes('no cache')")

    assert "No job has read anything yet" not in tab.text("#cache")
    assert [row[1] for row in rows(tab, "#cache")] == [f"{count:,}" for count in gets]
    assert {tuple(row[2:6]) for row in rows(tab, "#cache")} == {("0 %", "0 %", "0 %", "100 %")}


def test_what_was_not_changed_stays(tab, node):
    node.tell("uncached 130")
    tab.eventually("document.querySelectorAll('#decisions tbody tr').length === 13")

    assert rows(tab, "#decisions")[0][3] == "stays at 3"
    assert tab.evaluate("document.getElementById('news').textContent").endswith(
        "threads stays at 3, nothing to gain: no other shares are faster.")  # fmt: skip
    assert not any(row[3] == "3 → 3" for row in rows(tab, "#decisions"))


@pytest.mark.parametrize("width", [360, 620])
def test_no_table_is_cut_off_where_the_screen_is_narrow(blank, node, width):
    blank.show_as(width)
    open_page(blank, node)
    blank.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")

    cut = blank.evaluate("""[...document.querySelectorAll("tbody td, tbody th")].filter(cell => cell.offsetParent)
      .filter(cell => cell.scrollWidth > cell.clientWidth + 1 || cell.getBoundingClientRect().right > innerWidth)
      .map(cell => cell.textContent)""")
    assert cut == []
    assert "Samples/s" in blank.evaluate("[...document.querySelectorAll('#jobs td')].map(one => one.dataset.label).join()")


def test_every_table_fits_a_screen_of_1200_pixels(blank, node):
    blank.show_as(1200)
    open_page(blank, node)
    blank.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")

    tables = blank.evaluate("[...document.querySelectorAll('.scroll')].map(one => [one.scrollWidth, one.clientWidth])")
    assert len(tables) >= 6 and all(width <= frame + 1 for width, frame in tables), tables


def test_every_figure_has_a_name_and_a_table_with_a_caption(tab):
    figures = tab.evaluate("[...document.querySelectorAll('[role=img]')].map(one => one.getAttribute('aria-label'))")
    assert len(figures) == 2 + 2 * 5 + 1
    assert any("Now: resnet50 6, llm-tokens 7, " in name for name in figures)
    assert any(name == "llm-tokens: storage 7.1 %, decode 11 %" for name in figures)
    for place in ("shares", "speed", "waits", "cache", "trace"):
        assert len(tab.evaluate(f"document.querySelector('#{place} details table caption').textContent")) > 10
    assert tab.evaluate("[...document.querySelectorAll('.chip')].every(one => /^[1-9]$/.test(one.textContent))")


def test_it_draws_what_is_there(tab):
    """A canvas that stays blank would pass everything else."""
    colors = tab.evaluate("""[...document.querySelectorAll('canvas')].map(canvas => {
      const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      const seen = new Map();
      for (let i = 0; i < bytes.length; i += 4) {
        const color = [bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]].join();
        seen.set(color, (seen.get(color) || 0) + 1);
      }
      return [...seen].filter(([color, count]) => count > 200 && !color.endsWith(',0')).map(([color]) => color);
    })""")
    assert len(colors[0]) >= 5, "one color for each job's share"
    assert len(colors[1]) >= 5, "one color for each job's line"


def test_it_follows_and_asks_only_for_what_is_new(tab, node):
    tab.evaluate("window.first = document.querySelector('#jobs tbody tr')")
    tab.requests.clear()
    assert tab.text("#news") == ""

    node.tell("at 131")

    tab.eventually("document.querySelectorAll('#decisions tbody tr').length === 13")
    assert rows(tab, "#decisions")[1][6] == "+37 %", "what was not found yet is found now"
    assert tab.evaluate("document.getElementById('news').textContent") == (
        "detector: threads from 4 to 6, decode is the bottleneck: 4 threads at 97 %.")
    assert tab.evaluate("document.getElementById('news').getAttribute('aria-live')") == "polite"
    assert tab.evaluate("window.first === document.querySelector('#jobs tbody tr')"), "rows are changed, not made anew"
    asked = [path for path in paths(tab) if path.startswith("/api/node")]
    assert asked[0] == f"/api/node?points_after={sample_node.BEGIN + 120}&decisions_after=11"
    tab.eventually("performance.now() > 0")
    assert tab.errors == []


def test_figures_move_on_and_are_read_with_the_pointer(tab, node):
    edge = tab.evaluate("""(() => {
      const over = document.querySelector('#shares .u-over');
      over.scrollIntoView({block: 'center'});
      const box = over.getBoundingClientRect();
      return [box.right - 1, box.top + 20];
    })()""")
    readout = "document.querySelector('#shares .readout').textContent"
    tab.page.mouse.move(*edge)
    tab.eventually(f"{readout}.startsWith(document.getElementById('clock').textContent)")
    assert "2 llm-tokens 7   3 clip 4" in tab.evaluate(readout)

    node.tell("at 141")  # The pointer rests; time goes on under it.

    tab.eventually("document.getElementById('clock').textContent.endsWith('02:21')")
    tab.eventually(f"{readout}.startsWith(document.getElementById('clock').textContent)")
    assert "2 llm-tokens 4   3 clip 5" in tab.evaluate(readout)


@pytest.mark.parametrize(("quantity", "said", "row"), [
    ("threads", "Threads of each job over time, one upon the other. Now: resnet50 6, llm-tokens 7, ", ["7", "4", "–"]),
    ("in_flight", "Requests in flight of each job over time, one upon the other. Now: resnet50 32, ", ["40", "40", "–"]),
    ("bytes_per_second", "Bandwidth of each job over time. Now: resnet50 9.5 MiB/s, ", ["14 MiB/s", "14 MiB/s", "–"]),
    ("ram_bytes", "RAM of the cache of each job over time, one upon the other. Now: resnet50 8 GiB, ", ["8 GiB", "8 GiB", "–"]),
    ("disk_bytes", "", ["–", "–", "–"]),
])  # fmt: skip
def test_each_share_is_drawn_over_time(tab, quantity, said, row):
    tab.choose("#quantity", quantity)

    figure = "document.querySelector('#shares .chart')"
    assert tab.evaluate(f"{figure}.hidden") == (not said)
    if said:
        assert tab.evaluate(f"{figure}.querySelector('[role=img]').getAttribute('aria-label')").startswith(said)
    else:
        assert "Disk of the cache: no job is bounded." in tab.text("#shares")
    assert rows(tab, "#shares")[1][1:] == row
    assert tab.errors == []


def test_it_shows_the_trace_of_the_job_that_is_chosen(tab, node):
    assert "Choose a job" in tab.text("#trace")
    assert tab.evaluate("[...document.querySelectorAll('#trace-job option')].map(one => one.textContent)") == [
        "none", *(job["name"] for job in node.view()["jobs"])]  # fmt: skip
    tab.requests.clear()

    tab.choose("#trace-job", "job-2")

    tab.eventually("document.querySelectorAll('#trace tbody tr').length === 12")
    assert "/api/trace?job=job-2" in paths(tab)
    assert tab.evaluate("[...document.querySelectorAll('.track .name')].map(one => one.textContent)") == [
        "fetch", "cache", "decode", "batch", "wait", "step"]  # fmt: skip
    # Four samples of each of twelve steps; training is not over with the last
    # step.
    assert tab.evaluate("[...document.querySelectorAll('.track .slices')].map(one => one.children.length)") == [48, 48, 48, 12, 12, 11]
    drawn = tab.evaluate("""[...document.querySelectorAll('.slices span')].map(one => {
      const [place, all] = [one.getBoundingClientRect(), one.parentElement.getBoundingClientRect()];
      return place.width >= 1 && place.left >= all.left - 1 && place.right <= all.right + 1 && place.bottom <= all.bottom + 1;
    })""")
    assert len(drawn) == 179 and all(drawn)
    name = tab.evaluate("document.querySelector('.timeline').getAttribute('aria-label')")
    assert name.startswith("How samples of llm-tokens travelled, steps 2400 to 2411 of epoch 1: fetch 48, cache 48,")
    first = tab.evaluate("[...document.querySelectorAll('#trace tbody tr:first-child > *')].map(one => one.textContent)")
    assert first == ["2400", "32", "2.5 ms", "0", "60 ms", "3 ms", "30 ms", "2 ms", "50 ms"]

    node.tell("at 125")  # It follows.

    tab.eventually("document.querySelector('#trace tbody th').textContent === '2500'")
    assert tab.errors == []


def test_a_job_that_has_not_told_of_a_step_says_so_and_nobody_asks_for_none(tab):
    tab.choose("#trace-job", "job-5")
    tab.eventually("document.getElementById('trace').innerText.includes('has not told of a step yet')")

    tab.choose("#trace-job", "")

    assert "Choose a job" in tab.text("#trace")
    tab.requests.clear()
    tab.eventually("performance.now() > 0")
    tab.wait(2.2)
    assert not [path for path in paths(tab) if path.startswith("/api/trace")]
    assert [path for path in paths(tab) if path.startswith("/api/node")], "it goes on"


def test_an_agent_that_began_anew_is_shown_from_its_beginning(tab, node):
    node.tell("at 30")

    tab.eventually("document.querySelectorAll('#decisions tbody tr').length === 3")
    assert rows(tab, "#shares")[0][3] == "–", "of its history, a minute ago is no longer known"


def test_a_job_that_has_gone_keeps_its_name(tab, node):
    node.tell("left 131")

    tab.eventually("document.querySelectorAll('#jobs tbody tr').length === 4")
    tab.eventually("document.querySelectorAll('#decisions tbody tr').length === 13")
    assert "detector" in {row[1] for row in rows(tab, "#decisions")}
    assert "Requests given out\nany\n" in tab.text("#facts")


def test_it_stops_when_paused(tab, node):
    tab.click("#pause")
    assert tab.text("#status-word") == "Paused"
    before = tab.text("#clock")
    node.tell("at 140")
    tab.requests.clear()
    tab.wait(2.5)
    assert (tab.text("#clock"), tab.requests) == (before, [])

    tab.click("#pause")

    tab.eventually(f"document.getElementById('clock').textContent !== '{before}'")
    assert tab.text("#status-word") == "Live"


def test_it_says_when_the_agent_does_not_answer_and_finds_it_again(tab):
    tab.page.context.set_offline(True)
    tab.eventually("document.getElementById('status-word').textContent === 'The agent does not answer'")
    assert len(rows(tab, "#jobs")) == 5, "what was known stays"

    tab.page.context.set_offline(False)
    tab.eventually("document.getElementById('status-word').textContent === 'Live'")


def test_words_of_jobs_are_only_words(blank, node):
    node.tell("hostile")
    open_page(blank, node)

    assert blank.text("#node-name") == "</script><script>alert(1)</script>"
    assert blank.evaluate("document.querySelectorAll('main img, main b, script').length") == 1
    shown = blank.evaluate("document.body.textContent")
    assert "<img src=x onerror=alert(1)>" in shown
    assert not any(secret in shown for secret in ("hunter2", "AKIA", "sec/ret", "feed"))
    assert rows(blank, "#jobs")[1][2] == "–", "a rate that is no number"
    assert blank.errors == []


def test_an_empty_node_says_so(blank):
    with sample_node.serve(0) as empty:
        open_page(blank, empty)

        assert "No job is registered" in blank.text("#jobs")
        for place in ("shares", "speed", "waits", "cache", "decisions"):
            assert len(blank.text(f"#{place}")) > 10
            assert blank.evaluate(f"[...document.querySelectorAll('#{place} > *')].filter(one => !one.hidden).length") == 1
        assert blank.errors == []


def test_light_and_dark_are_chosen_and_remembered(tab, node):
    def ground() -> str:
        return tab.evaluate("getComputedStyle(document.body).backgroundColor")

    light = ground()
    tab.click("#theme label:has([value=dark])")
    dark = ground()
    assert dark != light
    open_page(tab, node)
    assert ground() == dark
    assert tab.evaluate("document.querySelector('#theme [value=dark]').checked")

    tab.click("#theme label:has([value=system])")
    assert ground() == light
    tab.show_as(1280, "dark")
    assert ground() == dark
    tab.click("#theme label:has([value=light])")
    assert ground() == light


FOCUSED = """(() => {
  const at = document.activeElement;
  const ring = getComputedStyle(at.matches('input') ? at.nextElementSibling : at);
  return {place: [...document.querySelectorAll('*')].indexOf(at), what: at === document.body ? 'BODY' : at.id || at.value || at.textContent.trim(),
          ring: ring.outlineStyle !== 'none' && parseFloat(ring.outlineWidth) >= 2};
})()"""


def test_a_click_brings_a_job_out_and_another_lets_it_go(tab):
    tab.click("button[value=job-2]")
    assert tab.page.locator("button[value=job-2]").get_attribute("aria-pressed") == "true"
    assert tab.page.locator("#waits .faint").count() == 4

    tab.click("button[value=job-2]")
    assert tab.page.locator("button[value=job-2]").get_attribute("aria-pressed") == "false"
    assert tab.page.locator("#waits .faint").count() == 0


def test_everything_can_be_done_with_the_keyboard(tab):
    reached = {}
    for _ in range(60):
        tab.press("Tab")
        focused = tab.evaluate(FOCUSED)
        if focused["place"] in reached or focused["what"] == "BODY":
            break
        assert focused["ring"], f"no ring about {focused['what']}"
        reached[focused["place"]] = focused["what"]
        if focused["what"] == "job-2":
            tab.press("Space")
        if focused["what"] == "quantity":
            tab.press("ArrowDown")
        if focused["what"] == "trace-job":
            tab.press("ArrowDown")
        if focused["what"] == "pause":
            tab.press("Enter")
            tab.press("Enter")
    assert [what for what in ("pause", "system", "job-1", "job-5", "quantity", "trace-job", "As a table", "JSON") if what not in reached.values()] == []
    assert tab.evaluate("document.querySelector('button[value=job-2]').getAttribute('aria-pressed')") == "true"
    tab.eventually("document.querySelector('.timeline').getAttribute('aria-label')?.startsWith('How samples of resnet50')")
    assert tab.evaluate("document.querySelectorAll('#waits .faint').length") == 4
    assert "Requests in flight of each job" in tab.evaluate("document.querySelector('#shares [role=img]').getAttribute('aria-label')")


def test_nothing_moves_for_who_wants_no_motion(tab):
    duration = "getComputedStyle(document.querySelector('.bar span')).transitionDuration"
    assert tab.evaluate(duration) == "0.3s"
    tab.show_as(1280, motion="reduce")
    assert tab.evaluate(duration) == "0s"


@pytest.mark.parametrize(("scheme", "words"), [("light", "at 120"), ("dark", "at 120"), ("light", "hostile"), ("dark", "at 0")])
def test_axe_finds_nothing(blank, node, scheme, words):
    if not AXE.exists():
        chromium.without("no axe-core: tools/check_dashboard.sh (./dev check --all) gets it")
    blank.show_as(1760, scheme)  # It cannot judge what is scrolled out of sight.
    node.tell(words)
    open_page(blank, node)
    blank.choose("#trace-job", "job-1")
    blank.eventually("!document.querySelector('.timeline').hidden")
    blank.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")

    blank.evaluate(AXE.read_text() + "; 0")
    found = json.loads(blank.evaluate("axe.run().then(found => JSON.stringify({rules: found.passes.length, bad: "
        "found.violations.map(one => [one.id, one.nodes.map(node => node.html)]), "
        "open: found.incomplete.map(one => [one.id, one.nodes.map(node => node.html)])}))"))  # fmt: skip

    assert found["bad"] == []
    assert found["rules"] > 20
    assert found["open"] == [], "what axe could not decide"
