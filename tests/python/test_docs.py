"""Reference pages are what the program prints, and links lead somewhere."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

import sample_node
from leat import testing

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["metrics", "agent-metrics"])
def test_a_metrics_page_is_the_programs(name: str) -> None:
    printed = subprocess.run(
        [testing.find_binary(), "docs", name], capture_output=True, text=True, check=True
    ).stdout

    page = ROOT / "docs" / "reference" / f"{name}.md"
    assert page.read_text() == printed, f"renew it: leat docs {name} > docs/reference/{name}.md"


def test_the_table_of_bottlenecks_has_each_word_of_the_tuner() -> None:
    words = (ROOT / "leat/tune/explain.cc").read_text().partition("std::string_view to_string(Bottleneck")[2]
    told = re.findall(r'return "([^"]+)";', words.partition("\n}\n")[0])
    table = (ROOT / "docs/howto/tuning.md").read_text().partition("| bottleneck | what is full | remedy |")[2]

    assert set(told) - {"unknown"} == set(re.findall(r"(?m)^\| `([^`]+)` \|", table))


def test_the_table_of_tasks_counts_the_scripts_that_are_there() -> None:
    tool = [sys.executable, str(ROOT / "tools/count_task_lines.py")]
    checked = subprocess.run([*tool, "--check"], capture_output=True, text=True, check=False)
    folder = ROOT / "docs/coming-from/tasks"
    scripts = {path.relative_to(folder).as_posix() for path in folder.glob("*/*.py")}
    page = (folder.parent / "README.md").read_text()

    assert checked.returncode == 0, checked.stdout
    assert scripts == set(re.findall(r"\(tasks/([\w/]+\.py)\)", page)) - {"model.py"}
    assert len([script for script in scripts if "/with_" in script]) == 40
    for script in scripts:
        assert max(map(len, (folder / script).read_text().splitlines())) <= 120, script


def names_in(value: object) -> set[str]:
    """Every name of a member, but for the causes of stalls."""
    if isinstance(value, list):
        return set().union(*map(names_in, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(names_in(inner) for name, inner in value.items() if name != "stalls"))


def test_the_page_about_the_agents_view_names_all_of_it() -> None:
    with sample_node.serve() as node:
        names = names_in(node.view()) | names_in(json.loads(node.get("/api/trace?job=job-1")))

    page = (ROOT / "docs/reference/agent-view.md").read_text()
    assert len(names) > 40
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_the_page_draws_counters_that_the_agent_tells() -> None:
    types = (ROOT / "dashboard/src/view.ts").read_text()
    with sample_node.serve() as node:
        [job, *_] = node.view()["jobs"]

    for part in ("ledger", "cache"):
        [drawn] = re.findall(rf"^  {part}: Totals<(.*)>;$", types, re.MULTILINE)
        names = re.findall(r"\w+(?=:|\")", drawn)
        assert names
        assert set(names) <= set(job[part])


def anchors_of(page: pathlib.Path) -> set[str]:
    """The headings as GitHub names them in links."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_files_and_headings() -> None:
    folders = ("docs", "examples", "leat", "python", "tests")
    pages = [*ROOT.glob("*.md"), *(page for name in folders for page in (ROOT / name).rglob("*.md"))]
    broken = []
    for page in pages:
        prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", prose):
            path, _, anchor = link.partition("#")
            if "://" in link:
                continue
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and anchor not in anchors_of(target)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")

    assert len(pages) > 20
    assert broken == []


def test_each_promise_names_a_test_that_is_there() -> None:
    page = (ROOT / "docs/promises.md").read_text()
    named = re.findall(r"`((?:tests|leat)/[\w/]+\.(?:py|cc))((?:::[\w.]+)*)`", page)

    assert len(named) > 200
    for file, within in named:
        text = re.sub(r"\s+", " ", (ROOT / file).read_text())
        assert within, f"{file}: which of its tests?"
        *classes, test = within.strip(":").split("::")
        suite, _, name = test.rpartition(".")
        defined = [rf"TEST(_F|_P)?\( ?{suite}, {name}\)"] if suite else [*(f"class {of}[(:]" for of in classes), rf"def {test}\("]
        for each in defined:
            assert re.search(each, text), f"{file} has no {within}"


def test_each_promise_is_guarded_by_a_test() -> None:
    """A row names its tests; "the same" are those of the row above."""
    rows = re.findall(r"^\|.*\|$", (ROOT / "docs/promises.md").read_text(), re.MULTILINE)
    last = [row.rstrip(" |").rpartition(" | ")[2] for row in rows if not re.fullmatch(r"[|-]+", row)]

    assert len(last) > 150
    assert [cell for cell in last if "`" not in cell and cell not in ("the same", "the test", "the tests")] == []
