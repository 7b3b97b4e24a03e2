"""The page: one file without a script, in which all that comes of the data is escaped."""

from __future__ import annotations

import base64
import html
import math
import pathlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leat._show._parts import Clip, Part, Picture, Plot, Words
from leat._show._pixels import color_of, fitted
from leat._show._samples import Group

MOST_PAGE_BYTES = 32 << 20
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:"
"""Nothing runs and nothing is fetched, whatever the data says."""
_SMALL = 160  # Pixels; smaller pictures are shown enlarged.
_LABEL = 12  # Pixels.
_MOST_GROUPS_LISTED = 60
_MOST_LABELS_LISTED = 12
_HIDDEN = ("Cc", "Cf", "Cs")
SHEET = pathlib.Path(__file__).parent / "show.css"


@dataclass
class Version:
    """A sample as it is seen in one way; `error`: why it cannot be."""

    name: str
    parts: Sequence[tuple[str, Part]]
    error: str = ""


@dataclass
class Card:
    """A sample."""

    key: str
    number: int | None
    versions: list[Version] = field(default_factory=list)


@dataclass
class Head:
    """All that the page says of the whole dataset."""

    title: str
    facts: Sequence[tuple[str, str]]
    by: str | None
    left_out: int
    versions: Sequence[str]
    seed: int


def text(value: object) -> str:
    """Escaped, and letters that would hide or turn others are spelt out."""
    shown = "".join(
        f"\\x{ord(letter):02x}" if unicodedata.category(letter) in _HIDDEN and letter not in "\n\t" else letter
        for letter in str(value)
    )
    return html.escape(shown, quote=True)


def page(head: Head, groups: Sequence[Group], cards: Mapping[int, Card]) -> str:
    """All of it. Cards beyond the page's largest size are left out, and that is said."""
    body, size, left_out = [], 0, 0
    has_masks = has_boxes = False
    for place, group in enumerate(groups):
        made = []
        for number in group.samples:
            if size > MOST_PAGE_BYTES:
                left_out += 1
                continue
            card = cards[number]
            pictures = [part for version in card.versions for _, part in version.parts if isinstance(part, Picture)]
            has_masks |= any(one.mask for one in pictures)
            has_boxes |= any(len(one.boxes) or len(one.points) for one in pictures)
            made.append(_card(card))
            size += len(made[-1])
        body.append(_group(place, group, made, head.by, max(1, len(head.versions))))
    cut = f'<p class="soft">{left_out} samples more are left out: the page is full.</p>' if left_out else ""
    return "\n".join([
        "<!doctype html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">', '<meta name="referrer" content="no-referrer">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">', '<link rel="icon" href="data:,">',
        f"<title>Samples of {text(head.title)}</title>", f"<style>\n{SHEET.read_text(encoding='utf-8')}</style>",
        "</head>", "<body>", _top(head, has_masks, has_boxes), "<main>", _list_of(groups, head), *body, cut, "</main>",
        "</body>", "</html>", "",
    ])  # fmt: skip


def _top(head: Head, has_masks: bool, has_boxes: bool) -> str:
    facts = "".join(
        f'<div><dt>{text(name)}</dt><dd class="{"value" if value[:1].isdigit() else "wide"}">{text(value)}</dd></div>'
        for name, value in head.facts
    )
    boxes = "".join(
        f'<label><input type="checkbox" id="{name}" checked><span>{word}</span></label>'
        for name, word, is_there in (("masks", "Masks", has_masks), ("boxes", "Boxes and points", has_boxes))
        if is_there
    )
    legend = '<legend class="hidden">Draw over pictures</legend>'
    controls = f'<fieldset class="controls">{legend}{boxes}</fieldset>' if boxes else ""
    return (
        f'<header><div class="top"><h1><span class="brand">Leat</span> {text(head.title)}</h1>{controls}</div>'
        f'<dl class="facts">{facts}</dl></header>'
    )


def _list_of(groups: Sequence[Group], head: Head) -> str:
    """The groups and their sizes, with links."""
    if head.by is None:
        return ""
    most = max(group.total for group in groups)
    rows = "".join(
        f'<li><a class="name" href="#group-{place}">{text(group.name)}</a>'
        f'<span class="bar"><span style="width:{100 * group.total / most:.2f}%"></span></span>'
        f'<span class="number">{group.total:,}</span></li>'
        for place, group in enumerate(groups[:_MOST_GROUPS_LISTED])
    )
    others = head.left_out + max(0, len(groups) - _MOST_GROUPS_LISTED)
    more = f'<p class="soft">and {others:,} more</p>' if others else ""
    return f'<section><h2>Samples by {text(head.by)}</h2><ul class="rows">{rows}</ul>{more}</section>'


def _group(place: int, group: Group, cards: Sequence[str], by: str | None, columns: int) -> str:
    name = f'<span class="soft">{text(by)}</span> {text(group.name)}' if by is not None else "Samples"
    count = f'<span class="soft">{len(cards):,} of {group.total:,}</span>'
    return (
        f'<section id="group-{place}"><div class="heading"><h2>{name}</h2>{count}</div>'
        f'<div class="cards" style="--columns:{columns}">{"".join(cards)}</div></section>'
    )


def _card(card: Card) -> str:
    number = "" if card.number is None else f'<span class="soft">{card.number:,}</span>'
    is_compared = len(card.versions) > 1
    columns = "".join(_version(version, card.key, is_compared) for version in card.versions)
    return (
        f'<article class="card{" compared" if is_compared else ""}"><h3><span title="{text(card.key)}">{text(card.key)}'
        f'</span>{number}</h3><div class="versions">{columns}</div></article>'
    )


def _version(version: Version, key: str, is_compared: bool) -> str:
    name = f"<h4>{text(version.name)}</h4>" if is_compared else ""
    if version.error:
        return f'<div class="version">{name}<p class="bad">{text(version.error)}</p></div>'
    pictures = [_picture(field, part, key) for field, part in version.parts if isinstance(part, Picture)]
    others = [(field, part) for field, part in version.parts if not isinstance(part, Picture)]
    rows = "".join(f"<dt>{text(field)}</dt><dd>{_other(field, part, key)}</dd>" for field, part in others)
    return f'<div class="version">{name}{"".join(pictures)}{f"<dl>{rows}</dl>" if rows else ""}</div>'


def _picture(name: str, part: Picture, key: str) -> str:
    height, width = fitted(part.height, part.width)
    larger = max(1, math.ceil(_SMALL / max(height, width)))
    kind = ' class="small"' if larger > 1 else ""
    layers = [f'<img{kind} alt="{text(name)} of {text(key)}" src="{_data("image/png", part.png)}">']
    if part.mask:
        small = " small" if larger > 1 else ""
        layers.append(f'<img class="mask{small}" alt="" src="{_data("image/png", part.mask)}">')
    if len(part.boxes) or len(part.points):
        layers.append(_drawing(part, part.width / (width * larger)))
    style = f"width:{width * larger}px;aspect-ratio:{width}/{height}"
    return (
        f'<figure><div class="stack" style="{style}">{"".join(layers)}</div>{_labels(part)}'
        f'<figcaption class="soft">{text(name)}{f" · {text(part.note)}" if part.note else ""}</figcaption></figure>'
    )


def _labels(part: Picture) -> str:
    """The labels of a mask, by their colours."""
    there = [label for label in part.labels if label != 0]
    chips = "".join(f'<span class="chip" style="background:{_mask_color(label)}">{label}</span>'
                    for label in there[:_MOST_LABELS_LISTED])  # fmt: skip
    more = f" and {len(there) - _MOST_LABELS_LISTED} more" if len(there) > _MOST_LABELS_LISTED else ""
    return f'<p class="labels">{chips}{more}</p>' if chips else ""


def _mask_color(label: int) -> str:
    return "#707070" if label >= 255 or label < 0 else color_of(label)


def _drawing(part: Picture, unit: float) -> str:
    """Boxes and points in the picture's own coordinates, of which `unit` is a pixel on the page."""
    drawn = []
    for place, (box, label) in enumerate(part.boxes):
        if not all(map(math.isfinite, box)):
            continue
        left, top, right, bottom = box
        color = color_of(label if isinstance(label, int) and label > 0 else 1 if label is None else place + 1)
        drawn.append(
            f'<rect x="{left:.2f}" y="{top:.2f}" width="{max(0.0, right - left):.2f}" '
            f'height="{max(0.0, bottom - top):.2f}" stroke="{color}"/>'
        )
        if label is not None:
            size = _LABEL * unit
            drawn.append(
                f'<text x="{left + 0.3 * size:.2f}" y="{top + 1.05 * size:.2f}" font-size="{size:.2f}" '
                f'stroke-width="{0.2 * size:.2f}" fill="{color}">{text(label)}</text>'
            )
    for point in part.points:
        if all(map(math.isfinite, point[:2])) and (len(point) < 3 or point[2] > 0):
            drawn.append(f'<circle cx="{point[0]:.2f}" cy="{point[1]:.2f}" r="{3 * unit:.2f}"/>')
    return f'<svg class="drawn" viewBox="0 0 {part.width} {part.height}" aria-hidden="true">{"".join(drawn)}</svg>'


def _other(name: str, part: Part, key: str) -> str:
    note = f'<span class="soft">{text(part.note)}</span>' if part.note else ""
    if isinstance(part, Clip):
        source = f'aria-label="{text(name)} of {text(key)}" src="{_data(part.kind, part.data)}"'
        return f'<{part.tag} controls preload="metadata" {source}></{part.tag}>{note}'
    if isinstance(part, Plot):
        return _line(part.points, f"{name} of {key}") + note
    assert isinstance(part, Words)
    if not part.text:
        return note
    shown = f"<pre>{text(part.text)}</pre>" if part.is_code else f'<span class="words">{text(part.text)}</span>'
    return shown + note


def _line(points: Sequence[float], name: str) -> str:
    low, high = min(points), max(points)
    span = (high - low) or 1.0
    last = max(1, len(points) - 1)
    path = " ".join(f"{220 * i / last:.1f},{44 - 40 * (y - low) / span:.1f}" for i, y in enumerate(points))
    line = f'<polyline points="{path}"/>'
    return f'<svg class="line" viewBox="0 0 220 48" role="img" aria-label="{text(name)}">{line}</svg>'


def _data(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
