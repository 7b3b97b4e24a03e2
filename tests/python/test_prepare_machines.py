"""`leat prepare` on several machines at once: claims, the units of a dead machine, the page, and the watch."""

from __future__ import annotations

import dataclasses
import errno
import html.parser
import itertools
import json
import os
import pathlib
import random
import subprocess
import threading
import time
import types
from collections import deque

import pytest

import leat
from leat._prepare import _claims, _flow, _page, _rounds, _steps
from leat._prepare._claims import Claims
from leat._prepare._state import State
from leat.testing import find_binary
from prepare_flows import (
    FLOW, check_whole, done, ended, files_in, flow_in, here, kill, log_of, notes_of, printed, refused, started,
)  # fmt: skip
from small_datasets import make_blobs, make_pictures, make_shards, tar_of, write

SHORT = FLOW.split('[[step]]\ndo = "warm"')[0]
"""Without the step that starts another program."""


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("source")
    make_pictures(folder, 60)
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, source) -> pathlib.Path:
    flow = flow_in(tmp_path_factory.mktemp("undisturbed"), source)
    done(flow)
    return flow


def state_in(folder: pathlib.Path, source: object = "in") -> State:
    flow = _flow.read(str(flow_in(folder, source, text=SHORT)))
    return State(flow)


def begun(flow: pathlib.Path) -> list[tuple[str, int]]:
    return [(event["step"], event["unit"]) for event in log_of(flow) if event["event"] == "begin"]


def wait_for(what, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_calls_on_several_machines_share_the_units(source, undisturbed, tmp_path):
    flow = flow_in(tmp_path, source)
    calls = [started(flow, machine=tmp_path / f"machine-{number}") for number in range(3)]
    for call in calls:
        ended(call)

    check_whole(flow, undisturbed)
    units = begun(flow)
    assert len(units) == len(set(units)) == len(notes_of(flow))
    assert len({event["pid"] for event in log_of(flow)}) > 1


def test_calls_that_are_killed_again_and_again_lose_nothing(source, undisturbed, tmp_path):
    """Three calls at a time, of which one is killed and another one started; on one machine, so that its locks tell."""
    flow = flow_in(tmp_path, source)
    rng = random.Random(3)
    calls = [started(flow) for _ in range(3)]
    for kills in range(5):
        wanted = len(notes_of(flow)) + rng.randint(1, 5)
        wait_for(lambda wanted=wanted: len(notes_of(flow)) >= wanted or all(call.poll() is not None for call in calls))
        kill(calls.pop(rng.randrange(3)), rng.choice(["all", "first"]))
        calls.append(started(flow))
    for call in calls:
        ended(call)

    check_whole(flow, undisturbed)


def test_units_of_a_machine_without_a_sign_of_life_are_done_by_others(source, tmp_path):
    """Its lock is elsewhere, so that only its silence tells; a live one keeps its units for as long as it lives."""
    flow = flow_in(tmp_path, source, text=SHORT)
    state = State(_flow.read(str(flow)))
    state.claim()
    silent, lively = Claims(state, 1.0), Claims(state, 1.0)
    assert silent.take("2-verify/000000") and lively.take("2-verify/000001")
    with lively:
        at = time.time()
        call = started(flow, "--lease", "1", machine=tmp_path / "elsewhere")
        wait_for(lambda: ("2-verify", 0) in begun(flow))
        taken = [event["time"] for event in log_of(flow) if (event.get("step"), event.get("unit")) == ("2-verify", 0)]
        assert taken[0] - at > 1.0
        time.sleep(1.5)
        assert call.poll() is None and ("2-verify", 1) not in begun(flow)
    ended(call)
    assert ("2-verify", 1) in begun(flow) and len(begun(flow)) == len(set(begun(flow)))


def test_the_lock_of_a_dead_call_tells_at_once(source, tmp_path):
    flow = flow_in(tmp_path, source, text=SHORT)
    state = State(_flow.read(str(flow)))
    state.claim()
    dead = Claims(state, 3600)
    assert dead.take("1-index/000000")
    for file in dead.locks:
        os.close(file)

    done(flow)


def test_a_worker_that_slept_over_its_lease_signs_on_anew(tmp_path, monkeypatch):
    """Others hold it for dead, for ever; what it claims from now on must not look like a dead one's."""
    state = state_in(tmp_path)
    now = [100.0]
    monkeypatch.setattr(_claims, "_since_boot", lambda: now[0])
    one, other = Claims(state, 10), Claims(state, 10)

    assert one.take("a") and not other.take("a")
    now[0] += 9
    assert one.take("b")
    assert len(state.names("alive/")) == 2
    now[0] += 2
    assert one.take("c") and not other.take("c")
    assert len(state.names("alive/")) == 4


def test_silence_counts_only_while_somebody_listens(tmp_path, monkeypatch):
    """A machine that slept itself does not take the others for dead."""
    state = state_in(tmp_path)
    silent, other = Claims(state, 40), Claims(state, 40)
    assert silent.take("a") and not other.take("a")
    now = [time.monotonic()]
    monkeypatch.setattr(_claims.time, "monotonic", lambda: now[0])

    now[0] += 1000
    assert not other.take("a")
    for _ in range(3):
        now[0] += 9
        assert not other.take("a")
    now[0] += 9
    assert other.take("a")


def test_a_name_is_created_once(tmp_path):
    state = state_in(tmp_path)
    for name in map(str, range(20)):
        found = in_threads(8, lambda number, name=name: state.create(name, {"by": number}))
        [winner] = [number for number, is_ours in enumerate(found) if is_ours]
        assert state.note(name) == {"by": winner}


def in_threads(count: int, what) -> list:
    found: list = [None] * count
    gate = threading.Barrier(count)

    def one(number: int) -> None:
        gate.wait()
        found[number] = what(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.fixture
def bucket(tmp_path):
    make_shards(tmp_path / "bucket/in", 2, 10, 300)
    write(tmp_path / "bucket/keep", b"")
    with leat.testing.Bucket(tmp_path, latency="2ms") as bucket:
        yield bucket


def flow_of_bucket(bucket, tmp_path) -> pathlib.Path:
    text = f'state = "s3://bucket/state"\n[store]\nendpoint_url = "{bucket.url}"\nno_sign_request = true\n' + SHORT
    return flow_in(tmp_path, "s3://bucket/in", "s3://bucket/out", text.replace("2kB", "4kB") + 'fields = ["bin"]\n')


def test_a_name_in_a_bucket_is_created_once(bucket, tmp_path):
    flow = _flow.read(str(flow_of_bucket(bucket, tmp_path)))
    states = [State(flow) for _ in range(4)]

    found = in_threads(4, lambda number: states[number].create("a", {"by": number}))
    assert sorted(found) == [False, False, False, True]
    assert states[0].note("a")["by"] == found.index(True)
    assert not states[0].create("a", {})


@pytest.mark.parametrize("of", ["a folder", "a bucket"])
def test_a_note_is_read_whole_while_its_writer_replaces_it(of, bucket, tmp_path):
    stop = threading.Event()
    state = state_in(tmp_path) if of == "a folder" else State(_flow.read(str(flow_of_bucket(bucket, tmp_path))))
    state.write("alive/a", {"count": 0})

    def replace():
        for count in itertools.count(1):
            if stop.is_set():
                return
            state.write("alive/a", {"count": count, "more": "x" * (count % 50)})
            stop.wait(0.005)  # A thousand times as often as calls do, and yet some reads are between two writes.

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        found = [(state.note("alive/a") or {})["count"] for _ in range(400)]
    finally:
        stop.set()
        writer.join()

    assert found == sorted(found) and found[-1] > 0


def test_a_write_to_a_bucket_that_came_late_claims_nothing(bucket, tmp_path, monkeypatch):
    """Another call may have claimed the same meanwhile; after a lease without a note of it, it is free."""
    state = State(_flow.read(str(flow_of_bucket(bucket, tmp_path))))
    claims = Claims(state, 10)
    with monkeypatch.context() as patch:
        patch.setattr("leat._prepare._state._SETTLES", 0.0)
        assert not claims.take("a")
    assert not claims.take("a")
    now = time.monotonic() + 11
    monkeypatch.setattr(_claims.time, "monotonic", lambda: now)
    assert claims.is_free("a")


def test_calls_share_a_state_in_a_bucket(bucket, tmp_path):
    flow = flow_of_bucket(bucket, tmp_path)
    calls = [started(flow, machine=tmp_path / f"machine-{number}") for number in range(2)]
    told = [ended(call) for call in calls]

    assert all("3 steps are done" in one for one in told)
    store = {"endpoint_url": bucket.url, "no_sign_request": True}
    after = leat.Dataset("s3://bucket/out", storage_options=store)
    before = leat.Dataset("s3://bucket/in", storage_options=store)
    assert [after[i]["bin"] for i in range(20)] == [before[i]["bin"] for i in range(20)]


# --- the page ---------------------------------------------------------------


class Reader(html.parser.HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def test_a_page_of_progress_is_written(source, tmp_path):
    flow = flow_in(tmp_path, source, text=SHORT)
    page = tmp_path / "page.html"
    done(flow, "--page", str(page))

    read = Reader(page.read_text())
    assert {"script", "link", "img"} & {tag for tag, attrs in read.tags if attrs.get("href") != "data:,"} == set()
    assert not any(attrs.get("http-equiv") == "refresh" for _, attrs in read.tags)
    units = len(notes_of(flow))
    assert f"Units done{units} of {units}" in read.text and "Statedone" in read.text
    assert not list(tmp_path.glob("page.html.*"))


def test_a_page_that_cannot_be_written_leaves_no_draft(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    flow, nobody = _flow.read(str(flow_in(tmp_path, "in", text=SHORT))), types.SimpleNamespace(workers=list)
    page = _page.Page(str(tmp_path / "page.html"), flow, State(flow), nobody, ["1-index"])
    monkeypatch.setattr(_page.os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        page.__enter__()
    assert not list(tmp_path.glob("page.html*"))


def test_the_page_tells_why_a_unit_failed(tmp_path):
    make_blobs(tmp_path / "in", 6, 1000)
    subprocess.run([find_binary(), "index", tmp_path / "in", "--snapshot"], check=True, capture_output=True)
    make_blobs(tmp_path / "in", 9, 1000)
    text = '[source]\nurl = "in"\nas_of = "2999-01-01"\n[[step]]\ndo = "verify"\n'
    flow = flow_in(tmp_path, "in", text=text)
    page = tmp_path / "page.html"
    refused(flow, "--page", str(page), code=1)

    text = Reader(page.read_text()).text
    assert "Failed1" in text and "the file changed since it was indexed" in text and "Stateended: " in text


def test_the_page_shows_what_runs_and_escapes_what_others_wrote():
    steps = [_page.StepSeen("1-verify", 30, 40), _page.StepSeen("2-pack")]
    workers = [
        {"host": "<script>alert(1)</script>", "pid": 7, "lives": True,
         "running": [{"step": "1-verify", "unit": 31, "since": 990.0}], "failed": []},
        {"host": "other", "pid": 8, "lives": False, "running": [{"step": "1-verify", "unit": 9, "since": 1.0}],
         "failed": [{"step": "1-verify", "unit": 5, "error": "a <b> reason"},
                    {"step": "1-verify", "unit": 6, "error": "mended"}]},
    ]  # fmt: skip
    seen = _page.Seen("flow.toml", steps, workers, 1000.0, 2.0, 5.0, done=frozenset({("1-verify", 6)}))
    text = _page.page(seen)
    read = Reader(text)

    assert "script" not in {tag for tag, _ in read.tags} and "<b>" not in text
    assert any(attrs.get("http-equiv") == "refresh" for _, attrs in read.tags)
    facts = ("30 of 40", "waits", "2 units/s", "00:16:45 UTC, in 5 s", "a <b> reason", "1 on 1 machines", "Failed1")
    for said in facts:
        assert said in read.text
    assert "mended" not in read.text and "<td class=\"value\">9</td>" not in text


@pytest.mark.parametrize(("seen", "rate", "left"), [
    ([(0, 3)], None, None), ([(0, 3), (10, 3)], None, None), ([(0, 3), (10, 23)], 2.0, 38.5),
    ([(0, 0), (100, 3), (190, 50), (200, 53)], 0.5, 94.0),
])  # fmt: skip
def test_the_rate_is_that_of_the_last_minute(seen, rate, left):
    history = deque(seen)
    found = _page.rate_of(history, 100)
    assert found == (rate, left) or found == (pytest.approx(0.3), pytest.approx(47 / 0.3))


# --- a watch ----------------------------------------------------------------


def test_a_watch_does_the_flow_for_what_is_new(tmp_path):
    make_pictures(tmp_path / "in", 12)
    flow = flow_in(tmp_path, "in", text=SHORT)
    call = started(flow, "--watch", "0.2")
    assert call.stdout is not None
    assert call.stdout.readline() == "round 1: 12 new samples, 3 steps are done\n"
    first = files_in(tmp_path / "out")
    for number in range(5):
        write(tmp_path / f"in/bee/new-{number}.png", b"\x89PNG more bytes %d" % number)
    told = call.stdout.readline()
    while told.startswith("round"):
        if len(leat.Dataset(tmp_path / "out")) == 17:
            break
        told = call.stdout.readline()
    call.terminate()
    assert "17 samples" in ended(call)

    after, before = leat.Dataset(tmp_path / "out"), leat.Dataset(tmp_path / "in")
    assert sorted((s["png"], s["cls"]) for s in after) == sorted((s["data"], b"%d" % s["label"]) for s in before)
    assert {name: data for name, data in files_in(tmp_path / "out").items() if name in first} == first
    assert "is the state of another flow" in refused(flow)

    write(tmp_path / "in/bee/new-0.png", b"something else, longer")
    assert "new-0.png was written again" in refused(flow, "--watch", "0.2")


def test_a_round_of_other_content_is_refused(tmp_path, monkeypatch):
    """The first sample of a round decides how its files end, and so what the field is called."""
    make_pictures(tmp_path / "in", 12)
    flow = _flow.read(str(flow_in(tmp_path, "in", text=SHORT)))
    rounds = _rounds.Rounds(flow)
    dataset = flow.listed()
    assert rounds.add(dataset, _rounds.rows_of(dataset)) and len(list(rounds.read())) == 1
    write(tmp_path / "in/bee/a.png", b"no picture")
    dataset = flow.listed()
    new = {key: row for key, row in _rounds.rows_of(dataset).items() if key not in rounds.rows}

    with pytest.raises(leat.InvalidArgument, match="'data': 'bin'"):
        rounds.add(dataset, new)


def test_a_new_class_does_not_renumber_labels_of_earlier_rounds(tmp_path):
    make_pictures(tmp_path / "in", 12)
    flow = flow_in(tmp_path, "in", text=SHORT)
    call = started(flow, "--watch", "0.2")
    assert call.stdout is not None and call.stdout.readline().startswith("round 1")
    write(tmp_path / "in/aardvark/0.png", b"\x89PNG first in the alphabet")
    _, err = call.communicate(timeout=60)
    assert call.returncode == 2 and "labels of earlier rounds would mean" in err


@pytest.mark.parametrize("is_begun", [False, True])
@pytest.mark.parametrize("name", ["aardvark", "zebra"])
def test_a_class_that_comes_during_a_round_is_nothing_to_it(tmp_path, name, is_begun):
    make_pictures(tmp_path / "in", 12)
    flow = flow_in(tmp_path, "in", text=SHORT)
    rounds = _rounds.Rounds(_flow.read(str(flow)))
    before = leat.Dataset(tmp_path / "in")
    assert rounds.add(before, _rounds.rows_of(before))
    [of_round] = rounds.read()
    if is_begun:
        assert len(_steps.step_of(of_round, State(of_round), 0).dataset) == 12
    write(tmp_path / f"in/{name}/0.png", b"\x89PNG of another class")

    call = started(flow, "--watch", "0.2")
    assert call.stdout is not None and call.stdout.readline().startswith("round 1: 12 new samples")
    after = leat.Dataset(tmp_path / "out/round-000001")
    assert [(s["png"], s["cls"]) for s in after] == [(s["data"], b"%d" % s["label"]) for s in before]
    if name == "aardvark":
        _, err = call.communicate(timeout=60)
        assert call.returncode == 2 and "labels of earlier rounds would mean" in err
    else:
        assert call.stdout.readline().startswith("round 2: 1 new samples")
        assert [s["cls"] for s in leat.Dataset(tmp_path / "out/round-000002")] == [b"%d" % len(before.classes)]
        call.terminate()
        ended(call)


def test_a_watch_refuses_samples_of_one_key(tmp_path):
    for number in range(2):
        write(tmp_path / f"in/{number}.tar", tar_of([("k.txt", b"the same")]))

    said = refused(flow_in(tmp_path, "in", text=SHORT), "--watch", "0.2")

    assert "two samples have the key 'k', one in 0.tar and one in 1.tar" in said


def test_a_round_that_was_killed_is_finished_first(source, undisturbed, tmp_path):
    flow = flow_in(tmp_path, source, text=SHORT)
    call = started(flow, "--watch", "0.2")
    wait_for(lambda: list((tmp_path / "out").glob("round-000001/*.tar")))
    kill(call, "all")
    call = started(flow, "--watch", "0.2")
    assert call.stdout is not None and call.stdout.readline().startswith("round 1: 60 new samples")
    call.terminate()
    ended(call)

    def shards(folder: pathlib.Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.glob("*.tar")}

    assert shards(tmp_path / "out/round-000001") == shards(undisturbed.parent / "out")


@pytest.mark.parametrize(("words", "says"), [
    (["--watch", "0"], "--watch 0"), (["--lease", "0.1"], "--lease 0.1"),
    (["--watch", "9", "--json"], "--watch goes on"),
    (["--tasks", "3"], "--tasks goes with"), (["--on", "slurm", "--image", "x"], "--image goes with"),
    (["--on", "ray", "--print"], "--print goes with"),
])  # fmt: skip
def test_options_that_do_not_go_together_are_refused(tmp_path, words, says):
    code, _, err = here(flow_in(tmp_path, "in"), *words)
    assert code == 2 and says in err


def test_the_state_of_the_flow_tells_who_is_at_work(tmp_path):
    make_pictures(tmp_path / "in", 12)
    flow = flow_in(tmp_path, "in", text=SHORT)
    state = State(_flow.read(str(flow)))
    state.claim()
    with Claims(state, 60):
        told = json.loads(printed(flow, "--status", "--json"))
        assert [one["pid"] for one in told["working"]] == [os.getpid()]
    assert json.loads(printed(flow, "--status", "--json"))["working"] == []


def test_a_round_is_no_part_of_a_flow_that_is_not_watched(tmp_path):
    flow = _flow.read(str(flow_in(tmp_path, "in", text=SHORT)))
    assert dataclasses.replace(flow, chosen="x").digest != flow.digest
