"""docs/landscape.md and its pictures, of what `./dev bench landscape --publish` has kept.

There is no page without a whole run: `page` gives None then. A row in which Leat by default settings is not half as
fast again as a peer has to have its reason in REASONS, or the page is not made.
"""

from __future__ import annotations

import html
import json
import pathlib
import sys
from typing import Any

from landscape_regimes import REGIMES

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples"))
import demo_picture

Rows = list[dict[str, Any]]
PAGE = pathlib.Path(__file__).parent.parent / "docs/landscape.md"
PICTURES = PAGE.parent / "landscape"
AHEAD = 1.5
VERSIONS = "versions"  # The title of that table.
# "regime" or "regime/way": why Leat is not ahead by half there. Written by hand after a run, from what was measured.
REASONS: dict[str, str] = {}

HEAD = """# The field side by side

Each loader runs in a process of its own, with its packages in a venv of its own, at the best of a sweep of its
settings; Leat runs by default settings (`leat`) and at the best of a sweep (`leat-tuned`). The bucket is `leat
bucket`, as the command says. Time runs from before the dataset is opened until the last batch, with the listing and
the start of workers. Figures are medians ± median absolute deviation of interleaved runs. All bytes were hashed as
they came and compared with what was written; pictures were counted, since chains differ. *GETs* are the server's
count, a sample. CPU is that of all processes of the way. *Leat over* is Leat by default over that way. [More on the
method, and every option](../bench/README.md#the-field-side-by-side-dev-bench-landscape).
"""


def page(published: pathlib.Path) -> str | None:
    """None if no whole run is published."""
    file = published / "landscape.json"
    if not file.is_file():
        return None
    kept = json.loads(file.read_text())
    tables = {one["title"].partition(":")[0]: one["rows"] for one in kept["tables"]}
    machine, versions = kept["machine"], tables.pop(VERSIONS, [])
    parts = [HEAD, f"`{kept['command']}`, {kept['date']}, {machine['cpu']}, {machine['cpus']} CPUs, "
                   f"Python {machine['python']}, commit {machine['commit']}.\n"]  # fmt: skip
    parts += [
        behind(tables),
        failed(tables),
        "## Versions\n\n" + lines(versions, {"way": "", "packages": "packages"}) + "\n",
    ]
    parts += [section(name, rows) for name, rows in tables.items()]
    return "\n".join(parts)


def pictures(published: pathlib.Path) -> dict[str, str]:
    """The bars of each regime by the name of its file."""
    file = published / "landscape.json"
    if not file.is_file():
        return {}
    kept = json.loads(file.read_text())
    drawn = {}
    for one in kept["tables"]:
        name = one["title"].partition(":")[0]
        if name != VERSIONS and any(is_measured(row) for row in one["rows"]):
            drawn[f"{name}.svg"] = bars(
                name, one["rows"], f"{kept['date']}, {kept['machine']['cpu']}, {kept['machine']['cpus']} CPUs"
            )
    return drawn


def write(published: pathlib.Path) -> None:
    text = page(published)
    if text is None:
        return
    PAGE.write_text(text)
    PICTURES.mkdir(exist_ok=True)
    for name, picture in pictures(published).items():
        (PICTURES / name).write_text(picture)


def is_measured(row: dict[str, Any]) -> bool:
    return "failed" not in row


def figure_of(row: dict[str, Any]) -> float:
    return float(row["seconds"] if "seconds" in row else row["samples_per_s"])


def told(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def lines(rows: Rows, heads: dict[str, str]) -> str:
    made = ["| " + " | ".join(heads.values()) + " |", "|---" * len(heads) + "|"]
    made += ["| " + " | ".join(str(row.get(name, "")) for name in heads) + " |" for row in rows]
    return "\n".join(made)


def section(name: str, rows: Rows) -> str:
    regime = REGIMES[name]
    measured = sorted((row for row in rows if is_measured(row)), key=figure_of, reverse=not regime.is_better_low)
    shown = [
        {**row, "figure": f"{told(figure_of(row))} ± {told(row['mad'])}", "cpu": told(row["cpu_us"])}
        for row in measured
    ]
    heads = {"way": "", "figure": "seconds" if regime.is_better_low else "samples/s", "leat_over": "Leat over",
             "first_batch_s": "first batch, s", "gets_a_sample": "GETs", "cpu": "CPU, µs a sample", "peak_mb": "MB",
             "setting": "at its best", "whole": "whole epochs"}  # fmt: skip
    picture = f"![{regime.about}](landscape/{name}.svg)\n\n" if measured else ""
    return f"## {regime.about}\n\n{picture}{lines(shown, heads)}\n"


def behind(tables: dict[str, Rows]) -> str:
    """The rows in which Leat by default is not ahead by half, each with its reason."""
    found = []
    for name, rows in tables.items():
        for row in rows:
            if row["way"].startswith("leat") or "leat_over" not in row or float(row["leat_over"]) >= AHEAD:
                continue
            reason = REASONS.get(f"{name}/{row['way']}") or REASONS.get(name)
            if REGIMES[name].nobody_wins:
                reason = "training computes for longer than loading takes, and nobody may win"
            if reason is None:
                raise KeyError(
                    f"{name}/{row['way']}: Leat is {row['leat_over']} times as fast; "
                    "landscape_page.REASONS has to say why"
                )
            found.append({"regime": REGIMES[name].about, "way": row["way"], "over": row["leat_over"], "reason": reason})
    title = f"## Rows that Leat does not win by {AHEAD}\n\n"
    return (
        title
        + (lines(found, {"regime": "", "way": "", "over": "Leat over", "reason": "why"}) if found else "None.")
        + "\n"
    )


def failed(tables: dict[str, Rows]) -> str:
    found = [
        {"regime": REGIMES[name].about, **row} for name, rows in tables.items() for row in rows if not is_measured(row)
    ]
    shown = lines(found, {"regime": "", "way": "", "failed": "why"}) if found else "Nothing."
    return f"## Failed\n\n{shown}\n"


def bars(name: str, rows: Rows, made: str) -> str:
    """A bar for each way, the best first, in the style of the demo's picture."""
    regime, of = REGIMES[name], demo_picture
    measured = sorted((row for row in rows if is_measured(row)), key=figure_of, reverse=not regime.is_better_low)
    scale = (of.WIDTH - of.LEFT - of.RIGHT) / max(max(map(figure_of, measured)), 1e-9)
    drawn = []
    for number, row in enumerate(measured):
        y, wide = of.TOP + of.ROW * number, figure_of(row) * scale
        colour = of.OURS if row["way"].startswith("leat") else of.TRAINS
        unit = " s" if regime.is_better_low else "/s"
        drawn.append(
            f'<text x="{of.LEFT - 10}" y="{y + 14}" text-anchor="end">{html.escape(row["way"])}</text>\n'
            f'<rect x="{of.LEFT}" y="{y}" width="{wide:.1f}" height="{of.BAR}" fill="{colour}"/>\n'
            f'<text x="{of.LEFT + wide + 8:.1f}" y="{y + 14}">{told(figure_of(row))}{unit}</text>'
        )
    foot = of.TOP + of.ROW * len(measured) + 14
    told_of = "Seconds: less is better." if regime.is_better_low else "Samples a second: more is better."
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {of.WIDTH} {foot + 14}" role="img" '
        f'aria-label="{html.escape(regime.about)}">',
        f"<style>{of.STYLE}</style>",
        f'<rect class="page" width="{of.WIDTH}" height="{foot + 14}"/>',
        f'<text class="title" x="16" y="26">{html.escape(regime.about)}</text>',
        f'<text class="small" x="16" y="46">{told_of}</text>',
        *drawn,
        f'<text class="small" x="16" y="{foot}">{html.escape(f"./dev bench landscape, {made}")}</text>',
        "</svg>\n",
    ])  # fmt: skip
