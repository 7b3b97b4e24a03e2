"""Draws what the demo measured: a bar a way, as an SVG that a page can show."""

from __future__ import annotations

import datetime
import html
import os
import pathlib
import platform
from typing import Any

LABELS = {
    "sequential": "one GET after another",
    "torch_2_workers": "torch DataLoader, 2 workers",
    "torch_best": "torch DataLoader, its best setting",
    "local": "torch DataLoader, local files, its best",
    "no_io": "no I/O at all",
    "leat_local": "Leat, local files",
    "leat": "Leat, the bucket",
}
WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 780, 265, 135, 64, 30, 18
TRAINS, WAITS, OURS = "#7a8ca3", "#d9b36c", "#2b7a78"
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .small { font-size: 11px; fill: #57606a; }
  .page { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .small { fill: #9198a1; } .page { fill: #0d1117; }
  }
"""


def machine() -> str:
    """Such as "AMD EPYC, 2 CPUs"."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(os.sched_getaffinity(0))} CPUs"


def bar(y: float, name: str, way: dict[str, Any], scale: float) -> str:
    """The part of the time that a way waits is the part of its bar in another colour."""
    whole = way["samples_per_second"] * scale
    waits = whole * min(max(way["wait_fraction"], 0.0), 1.0)
    label = html.escape(LABELS.get(name, name))
    told = f"{way['samples_per_second']:.0f}/s, waits {way['wait_fraction']:.0%}"
    colour = OURS if name.startswith("leat") else TRAINS
    return (
        f'<text x="{LEFT - 10}" y="{y + 14}" text-anchor="end">{label}</text>\n'
        f'<rect x="{LEFT}" y="{y}" width="{whole - waits:.1f}" height="{BAR}" fill="{colour}"/>\n'
        f'<rect x="{LEFT + whole - waits:.1f}" y="{y}" width="{waits:.1f}" height="{BAR}" fill="{WAITS}"/>\n'
        f'<text x="{LEFT + whole + 8:.1f}" y="{y + 14}">{told}</text>'
    )


def draw(report: dict[str, Any]) -> str:
    """The picture of what `./dev demo --json` prints."""
    ways = report["ways"]
    fastest = max(way["samples_per_second"] for way in ways.values())
    scale = (WIDTH - LEFT - RIGHT) / fastest if fastest > 0 else 0.0
    bars = [bar(TOP + ROW * i, name, way, scale) for i, (name, way) in enumerate(ways.items())]
    foot = TOP + ROW * len(ways) + 14
    made = f"./dev demo, {datetime.date.today().isoformat()}, {machine()}; batches of {report['batch']}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {foot + 14}" role="img" '
            f'aria-label="Samples a second of each way to train from a bucket {report["latency"]} away">',
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{WIDTH}" height="{foot + 14}"/>',
            f'<text class="title" x="16" y="26">Samples a second, training from a bucket {report["latency"]} away</text>',
            '<text class="small" x="16" y="46">The last part of each bar, in ochre, is the share of the time '
            "that the training waited for data.</text>",
            *bars,
            f'<text class="small" x="16" y="{foot}">{html.escape(made)}</text>',
            "</svg>\n",
        ]
    )
