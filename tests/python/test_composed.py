"""Mixes, schedules, filters, packing and balance together: one stream, at any number of ranks and after any stop.

The suite draws some compositions and stops each a few times. LEAT_COMPOSITIONS_STOPS=10 makes 200 stops of it,
LEAT_COMPOSITIONS=400 draws more compositions, and LEAT_COMPOSITIONS_SEED others.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import re
import subprocess
from dataclasses import replace

import pytest

import leat
from compositions import AXES, MANY, WORLDS, Composition, Streams, compositions, differs, run

COUNT = int(os.environ.get("LEAT_COMPOSITIONS", "20"))
SEED = int(os.environ.get("LEAT_COMPOSITIONS_SEED", "21"))
STOPS = int(os.environ.get("LEAT_COMPOSITIONS_STOPS", "4"))
"""For each composition."""
MOST_STATE_BYTES = 2048
ORDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "order.md"


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    return Streams(tmp_path_factory.mktemp("streams"))


def verify(*runs: pathlib.Path) -> str:
    """The words of `leat verify`, which has to agree."""
    done = subprocess.run([leat.testing.find_binary(), "verify", *runs], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("number", "composition"), list(enumerate(compositions(COUNT, SEED))), ids=str)
def test_any_number_of_ranks_and_any_stop_give_one_stream(streams, tmp_path, number, composition):
    draw = random.Random(composition.seed)
    worlds = [(draw.choice(WORLDS), draw.choice(WORLDS)) for _ in range(STOPS)]
    has_many = number % 4 == 0  # A few of 64 ranks run at a time here, so they take as long as 64.
    if has_many:
        worlds[-1] = (MANY, worlds[-1][1]) if number % 8 else (worlds[-1][0], MANY)
    (tmp_path / "whole").mkdir()
    whole = run(streams, composition, 1, log=tmp_path / "whole" / "run.order")
    assert len(whole.steps) >= 3 and len({row for step in whole.steps for row in step}) > 200
    for world in [*WORLDS[1:], *([MANY] if has_many else [])]:
        told = run(streams, composition, world)
        assert told == whole, f"{world} ranks: {differs(told.steps, whole.steps) or 'their states'}"
    for place, (before, after) in enumerate(worlds):
        stop = draw.randrange(1, len(whole.steps))
        log = tmp_path / f"stopped-{place}" / "run.order"
        log.parent.mkdir()
        begun = run(streams, composition, before, stop=stop, log=log)
        rest = run(streams, composition, after, state=begun.state, log=log)
        said = f"{before} ranks, stopped behind step {stop}, then {after} ranks: "
        assert len(json.dumps(begun.state)) <= MOST_STATE_BYTES
        assert begun.steps + rest.steps == whole.steps, said + differs(begun.steps + rest.steps, whole.steps)
        assert "the two runs saw one stream" in verify(tmp_path / "whole", log.parent)


def impossible() -> list[tuple[Composition, str]]:
    """Compositions that no loader can mean, each with words of the error."""
    row = Composition(data="documents", pack="best_fit")
    budget = Composition(pack="padded_budget", balance="tokens")
    by_source = 'composition="per_source"'
    found = [(replace(row, data=data), 'fields= names "tokens", but there are only') for data in ("objects", "shards")]
    for each, unit in ((row, "rows"), (budget, "micro-batches")):
        found += [(replace(each, filter=kind), f"{unit} are planned by") for kind in ("seen", "both")]
        found += [(replace(each, tail="pad"), f"has {unit}"), (replace(each, mix="per_source"), by_source)]
    return found


@pytest.mark.parametrize(("composition", "said"), impossible(), ids=str)
def test_what_cannot_be_meant_raises(streams, composition, said):
    assert not composition.is_possible
    with pytest.raises(leat.InvalidArgument, match=re.escape(said)):
        streams.loader(composition, streams.data(composition), rank=0, world_size=1)


def test_a_windowed_shuffle_of_a_budget_raises(streams):
    shards = streams.sources("shards")["web"]
    budget = leat.TokenBudget(100, shards.lengths("bin"))
    with pytest.raises(leat.InvalidArgument, match="shuffle='block' and sampler= both say the order"):
        leat.Loader(shards, shuffle="block", sampler=budget)


def test_the_page_names_what_is_drawn():
    """docs/order.md says what the property test shows: these axes, and no others."""
    section = ORDER.read_text().partition("## Compositions")[2].partition("\n## ")[0]
    told = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 2 and cells[0] in AXES:
            told[cells[0]] = tuple(cells[1].split(", "))
    assert told == AXES


def test_each_value_is_drawn():
    drawn = compositions(20, 21)
    for axis, values in AXES.items():
        assert {getattr(each, axis) for each in drawn} == set(values)
    assert len(set(drawn)) == 20


def test_a_state_of_a_packed_mix_does_not_go_on_with_other_weights(streams):
    """Its rows would be others: the loader says so, and never begins anew in silence."""

    def make(weight: float) -> leat.Loader:
        sources = streams.sources("documents")
        mix = leat.mix({"books": (sources["books"], weight), "web": (sources["web"], 1)}, samples=1000)
        return leat.Loader(mix, batch_size=8, train=True, sampler=leat.Pack(32), fields=("tokens",), output="numpy")

    with make(1) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with make(3) as loader:
        with pytest.raises(leat.InvalidArgument, match="within epoch 0 of another mix"):
            loader.load_state_dict(state)
