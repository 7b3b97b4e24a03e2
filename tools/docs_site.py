#!/usr/bin/env python3
"""Makes the site of the docs with MkDocs: ./dev docs

    tools/docs_site.py [--to DIR]

Gathers the Markdown files of the repository, and the files that they link to, into
build/docs/pages, laid out as they are in the repository, so that one link serves a reader of
the source and of the site. MkDocs then builds the site; a warning (a page that the table of
contents leaves out, a link that leads nowhere) is an error.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).parents[1]


def pages() -> list[pathlib.Path]:
    """The Markdown files that git knows, or would know, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()
    return sorted(pathlib.Path(name) for name in listed if (ROOT / name).is_file())


def linked_files(page: pathlib.Path) -> Iterator[pathlib.Path]:
    """The files of the repository, other than pages, that a page links to or shows."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", prose):
        target = (ROOT / page.parent / link).resolve()
        if "://" not in link and target.is_file() and target.suffix != ".md":
            yield target.relative_to(ROOT)


def title_of(page: pathlib.Path) -> str:
    found = re.search(r"^# (.*)$", (ROOT / page).read_text(), re.MULTILINE)
    return found[1].replace("`", "") if found else page.stem


def expanded(nav: list[Any], known: list[pathlib.Path]) -> list[Any]:
    """The table of contents, each `FOLDER/*` replaced by the pages below that folder."""
    whole: list[Any] = []
    for entry in nav:
        (title, value), = entry.items()
        if isinstance(value, list):
            whole.append({title: expanded(value, known)})
        elif value.endswith("/*"):
            below = [page for page in known if page.is_relative_to(value[:-2])]
            whole.append({title: [{title_of(page): str(page)} for page in below]})
        else:
            whole.append({title: value})
    return whole


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=pathlib.Path, default=ROOT / "build/docs", help="default: build/docs")
    folder = parser.parse_args().to.resolve()
    known = pages()
    gathered = folder / "pages"
    shutil.rmtree(gathered, ignore_errors=True)
    for file in {*known, *(file for page in known for file in linked_files(page))}:
        (gathered / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, gathered / file)
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    settings |= {"docs_dir": str(gathered), "site_dir": str(folder / "site"), "nav": expanded(settings["nav"], known)}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False))
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", folder / "mkdocs.yml"], check=False
    )
    if built.returncode == 0:
        print(f"{len(known)} pages: {folder / 'site/README.html'}")
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
