"""`leat prepare`: flows that are killed anywhere, and end as if nobody had touched them."""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
import types

import pytest

import leat
from leat._prepare import _flow
from leat._prepare._crew import Crew
from leat._prepare._state import State
from leat._prepare._steps import step_of
from leat._shards import _plan
from leat.testing import find_binary
from prepare_flows import (
    FLOW,
    check_whole,
    done,
    files_in,
    flow_in,
    here,
    kill,
    living,
    log_of,
    notes_of,
    printed,
    refused,
    started,
    state_of,
)
from small_datasets import make_blobs, make_pictures, make_shards, write

KILLS = int(os.environ.get("LEAT_PREPARE_KILLS", "10"))
"""How often a flow is killed."""


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


def test_a_flow_does_all_its_steps_and_writes_the_manifest_last(undisturbed, source):
    told = json.loads((state_of(undisturbed) / "manifest.json").read_text())
    [index, verify, pack, warm] = told["steps"]
    events = log_of(undisturbed)

    before = leat.Dataset(source)
    what = {"digest": before.digest, "samples": 60, "bytes": before.nbytes}
    assert told["source"] == {**what, "versions": before._native.listed_versions}
    assert index["notes"] == [what]
    assert sum(note["samples"] for note in verify["notes"]) == 60 and verify["units"] > 5
    assert pack["shards"] == len(pack["sha256"]) > 5 and pack["samples"] == 60
    after = leat.Dataset(undisturbed.parent / "out")
    assert [after[i]["png"] for i in range(60)] == [before[i]["data"] for i in range(60)]
    assert warm["notes"][0]["url"] == str(undisturbed.parent / "out")
    assert sum(path.stat().st_size for path in (undisturbed.parent / "cache").rglob("*") if path.is_file()) > before.nbytes
    steps = [event["step"] for event in events if event["event"] == "done"]
    assert steps == sorted(steps) and len(steps) == len(notes_of(undisturbed))


def test_done_once_it_does_nothing_again(undisturbed):
    before, events = files_in(undisturbed.parent / "out"), len(log_of(undisturbed))

    assert "as they were before" in done(undisturbed)
    assert files_in(undisturbed.parent / "out") == before and len(log_of(undisturbed)) == events


def test_killed_anywhere_it_ends_as_if_undisturbed(undisturbed, source, tmp_path):
    """Nothing is lost and nothing done again: no unit that has a note begins once more, and all bytes are the same."""
    flow = flow_in(tmp_path, source)
    rng = random.Random(KILLS)
    kills = 0
    while kills < KILLS:
        if (state_of(flow) / "manifest.json").exists():  # All is done, so the rest of the kills have a flow of their own.
            check_whole(flow, undisturbed)
            (tmp_path / str(kills)).mkdir()
            flow = flow_in(tmp_path / str(kills), source)
        before, begun = notes_of(flow), len(log_of(flow))
        process = started(flow, "--processes", "2")
        pause = time.monotonic() + rng.choice([0.05, 0.4, 0.8, 60])
        wanted = len(before) + rng.randint(0, 8)
        while process.poll() is None and time.monotonic() < pause and not (pause > 50 and len(notes_of(flow)) >= wanted):
            time.sleep(0.002)
        kills += kill(process, rng.choice(["all", "first", "one"]))
        again = {(event["step"], event["unit"]) for event in log_of(flow)[begun:] if event["event"] == "begin"}
        assert again & before == set()
    done(flow)
    check_whole(flow, undisturbed)


@pytest.mark.parametrize(("to", "number"), [
    ("call", signal.SIGTERM), ("call", signal.SIGKILL), ("worker", signal.SIGKILL)
], ids=["the call is told to end", "the call is killed", "the worker is killed"])  # fmt: skip
def test_a_command_that_a_step_runs_ends_with_the_flow(tmp_path, to, number):
    make_pictures(tmp_path / "store/bucket", 6)
    text = '[source]\nurl = "s3://bucket"\n[store]\nendpoint_url = "{url}"\nno_sign_request = true\n'
    text += '[[step]]\ndo = "warm"\ncache_disk = "cache"\n'
    with leat.testing.Bucket(tmp_path / "store", latency="100s") as bucket:
        call = started(flow_in(tmp_path, "", text=text.replace("{url}", bucket.url)), "--retries", "0")
        try:
            warm = wait_for(lambda: commands_of(call, "warm"), 60)
            worker = pathlib.Path(f"/proc/{warm[0]}/stat").read_text().rpartition(")")[2].split()[1]
            os.kill(call.pid if to == "call" else int(worker), number)
            wait_for(lambda: not living(call.pid), 20)
            call.communicate()
        finally:
            kill(call, "all")


def test_ctrl_c_ends_it_in_an_outage_of_its_state(tmp_path):
    make_pictures(tmp_path / "in", 4)
    write(tmp_path / "store/bucket/keep", b"")
    text = 'state = "s3://bucket/state"\n[source]\nurl = "in"\n[store]\nno_sign_request = true\n'
    text += 'endpoint_url = "{url}"\n[[step]]\ndo = "index"\n'
    faults = "after 0 PUT state/claims/ 503 x*\nafter 1 PUT state/alive/ 503 x*"
    with leat.testing.Bucket(tmp_path / "store", latency="1ms", fault_script=faults) as bucket:
        call = started(flow_in(tmp_path, "", text=text.replace("{url}", bucket.url)), "--lease", "4")
        try:
            with pytest.raises(subprocess.TimeoutExpired):  # A claim and a sign of life wait for the store by now.
                call.wait(6)
            begun = time.monotonic()
            call.send_signal(signal.SIGINT)
            assert call.wait(60) == 1
            assert time.monotonic() - begun < 15
            assert call.communicate()[1].endswith("leat: stopped\n")
        finally:
            kill(call, "all")


class SlowHand:
    """Does a unit until it is closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()
        self.asks: list[bool] = []
        """Whether it was closed as each began."""

    def ask(self, asked):
        self.asks.append(self.closed.is_set())
        assert self.closed.wait(60)
        return {"error": "it was killed", "kind": "Unavailable", "again": True}

    def close(self) -> None:
        self.closed.set()


class Endless:
    """Has a unit for whoever asks, until it is stopped."""

    def __init__(self) -> None:
        self.given, self.is_over = 0, False

    def next(self):
        self.given += 1
        return None if self.is_over else self.given

    def did(self, unit) -> None:
        raise AssertionError(f"unit {unit} is done")

    def stop(self) -> None:
        self.is_over = True


def test_ctrl_c_lets_no_hand_begin_another_unit_and_is_no_units_failure():
    hands, left, said = [SlowHand(), SlowHand()], Endless(), []
    state = types.SimpleNamespace(is_folder=False, log=lambda event, **_: said.append(event))
    claims = types.SimpleNamespace(
        begins=lambda *_: None, ends=lambda _, unit, error: said.append(error) if error else None
    )

    def stop_it() -> None:
        wait_for(lambda: all(hand.asks for hand in hands) and left.given == 4, 60)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=stop_it)
    thread.start()
    with pytest.raises(KeyboardInterrupt), Crew(hands, state, claims, 3) as crew:
        crew.do(0, "1-index", left)
    thread.join()
    wait_for(lambda: not any(thread.name.startswith("leat-prepare_") for thread in threading.enumerate()), 60)
    assert [hand.asks for hand in hands] == [[False], [False]] and said == []


def commands_of(call: subprocess.Popen[str], word: str) -> list[int]:
    """The processes of a call whose first word is this one."""
    found = []
    for pid in living(call.pid):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found += [pid] if words[1:2] == [word.encode()] else []
    return found


def wait_for(what, seconds: float):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def test_processes_share_the_units(source, tmp_path, undisturbed):
    flow = flow_in(tmp_path, source)
    done(flow, "--processes", "3")

    check_whole(flow, undisturbed)
    assert len({event["pid"] for event in log_of(flow)}) == 3


def test_the_status_tells_how_far_it_is(undisturbed, source, tmp_path):
    told = json.loads(done(undisturbed, "--status", "--json"))
    assert told["is_done"] and all(step["done"] == step["units"] for step in told["steps"])

    flow = flow_in(tmp_path, source)
    told = json.loads(done(flow, "--status", "--json"))
    assert not told["is_done"] and [step["done"] for step in told["steps"]] == [0, 0, 0, 0]


def test_what_killed_writes_left_beside_the_shards_is_removed_at_the_end(source, tmp_path):
    most = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())
    drafts = [
        write(tmp_path / "out" / folder / f".leat-write-{most + 1}-3-0000abcd", b"half") for folder in ("", ".leat/pack")
    ]  # fmt: skip
    alive = write(tmp_path / f"out/.leat-write-{os.getpid()}-3-0000abcd", b"half")
    done(flow_in(tmp_path, source, text=FLOW.split('[[step]]\ndo = "warm"')[0]))
    assert alive.exists() and not any(draft.exists() for draft in drafts)


def test_the_status_of_a_flow_that_is_done_is_what_the_manifest_says(undisturbed, monkeypatch):
    """Another version of Leat has other plans, which are nothing to it any more."""
    before = printed(undisturbed, "--status", "--json")
    monkeypatch.setattr(_plan, "__version__", "0.0.7")
    assert printed(undisturbed, "--status", "--json") == before
    pack = json.loads(before)["steps"][2]
    assert pack["step"] == "3-pack" and pack["done"] == pack["units"] == len(list(undisturbed.parent.glob("out/*.tar")))


def test_the_status_only_reads(source, tmp_path):
    flow = flow_in(tmp_path, source)
    printed(flow, "--status")
    assert list(tmp_path.rglob("*")) == [flow]

    flow.write_text(flow.read_text().replace('shard_bytes = "2kB"', 'shard_bytes = "3kB"'))
    done(flow)
    assert json.loads(printed(flow, "--status", "--json"))["is_done"]

    flow.write_text(flow.read_text().replace('shard_bytes = "3kB"', 'shard_bytes = "4kB"'))
    before = files_in(tmp_path)
    code, _, told = here(flow, "--status")
    assert code == 2 and "is the state of another flow" in told
    assert files_in(tmp_path) == before


def test_a_flow_from_bucket_to_bucket(tmp_path):
    make_shards(tmp_path / "bucket/in", 2, 10, 300)
    write(tmp_path / "bucket/keep", b"")
    text = FLOW.split("[[step]]\ndo = \"warm\"")[0] + "fields = [\"bin\"]\n"
    with leat.testing.Bucket(tmp_path, latency="0ms") as bucket:
        text = f'state = "s3://bucket/state"\n[store]\nendpoint_url = "{bucket.url}"\nno_sign_request = true\n' + text
        flow = flow_in(tmp_path, "s3://bucket/in", "s3://bucket/out", text)
        store = {"endpoint_url": bucket.url, "no_sign_request": True}
        done(flow)
        assert "as they were before" in done(flow)
        after = leat.Dataset("s3://bucket/out", storage_options=store)
        before = leat.Dataset("s3://bucket/in", storage_options=store)
        assert [after[i]["bin"] for i in range(20)] == [before[i]["bin"] for i in range(20)]
    assert not state_of(flow).exists()


def test_a_unit_whose_store_does_not_answer_is_tried_again(tmp_path, monkeypatch):
    """The store fails for good while one process reads, and is well again for the next try."""
    text = '[source]\nurl = "in"\n[[step]]\ndo = "verify"\n'
    flow = flow_in(tmp_path, "in", text=text)
    make_blobs(tmp_path / "in", 6, 100)
    once = tmp_path / "once"
    write(once / "sitecustomize.py", f"""
import os, sys
if "work" in " ".join(sys.orig_argv) and not os.path.exists("{once}/failed"):
    open("{once}/failed", "w").close()
    from leat import _prepare, errors
    from leat._prepare import _steps
    def done(self, unit):
        _steps.Verify.done = done_before
        raise errors.Unavailable("the store did not answer")
    done_before, _steps.Verify.done = _steps.Verify.done, done
""".encode())
    monkeypatch.setenv("PYTHONPATH", f"{once}:{os.environ.get('PYTHONPATH', '')}")

    done(flow)
    assert [event["event"] for event in log_of(flow)] == ["begin", "retry", "begin", "done"]


def test_an_object_that_is_not_as_the_snapshot_says_is_named(tmp_path):
    make_blobs(tmp_path / "in", 6, 1000)
    subprocess.run([find_binary(), "index", tmp_path / "in", "--snapshot"], check=True, capture_output=True)
    make_blobs(tmp_path / "in", 9, 1000)  # Written again, and some more.
    text = '[source]\nurl = "in"\nas_of = "2999-01-01"\n[[step]]\ndo = "index"\n[[step]]\ndo = "verify"\nunit_bytes = "1kB"\n'
    flow = flow_in(tmp_path, "in", text=text)

    said = refused(flow, code=1)
    assert "step 2-verify" in said and ".bin: the file changed" in said
    assert json.loads((state_of(flow) / "source.json").read_text())["samples"] == 6
    assert not (state_of(flow) / "manifest.json").exists()


@pytest.mark.parametrize("change", [lambda data: b"other", lambda data: data[::-1]], ids=["another length", "the same length"])
def test_data_that_changed_since_is_refused(source, tmp_path, change):
    make_pictures(tmp_path / "in", 12)
    flow = flow_in(tmp_path, "in", text=FLOW.split("[[step]]\ndo = \"warm\"")[0])
    process = started(flow)
    while not notes_of(flow):
        assert process.poll() is None
        time.sleep(0.002)
    kill(process, "all")
    (state_of(flow) / "manifest.json").unlink(missing_ok=True)
    changed = tmp_path / "in/ant/00000.png"
    changed.write_bytes(change(changed.read_bytes()))

    assert "has changed since this flow began" in refused(flow)


def test_of_two_calls_that_begin_at_once_with_other_data_one_is_refused(tmp_path, monkeypatch):
    """Both look for the note of the source before either has written it."""
    flow = _flow.read(str(flow_in(tmp_path, "in", text='[source]\nurl = "in"\n[[step]]\ndo = "index"\n')))
    states = [State(flow) for _ in range(3)]
    looked, note = [], State.note

    def blind_at_first(state, name):
        is_first = name == "source" and state not in looked
        looked.append(state)
        return None if is_first else note(state, name)

    monkeypatch.setattr(State, "note", blind_at_first)
    make_blobs(tmp_path / "in", 6, 100)
    assert [len(step_of(flow, state, 0).dataset) for state in states[:2]] == [6, 6]
    make_blobs(tmp_path / "in", 9, 100)
    with pytest.raises(leat.InvalidArgument, match="has changed since this flow began"):
        step_of(flow, states[2], 0).dataset  # noqa: B018


def test_another_flow_does_not_take_the_state(undisturbed, source, tmp_path):
    flow = flow_in(tmp_path, source, text=f'state = "{state_of(undisturbed)}"\n' + FLOW)

    assert "is the state of another flow" in refused(flow)


def test_a_process_that_dies_again_and_again_ends_the_flow(source, tmp_path, monkeypatch):
    broken = tmp_path / "broken"
    write(broken / "sitecustomize.py", b"import os, sys\nif 'work' in ' '.join(sys.orig_argv): os._exit(9)\n")
    monkeypatch.setenv("PYTHONPATH", f"{broken}:{os.environ.get('PYTHONPATH', '')}")

    said = refused(flow_in(tmp_path, source), "--retries", "1", code=1)
    assert "step 1-index, unit 0: its process ended with 9" in said


WARM = '[[step]]\ndo = "warm"\ncache_disk = "c"\n'
PACK = '[[step]]\ndo = "pack"\ndest = "d"\n'
PUBLISH = '[[step]]\ndo = "index"\npublish = true\n'


@pytest.mark.parametrize(("says", "steps", "names"), [
    ('as_of = "2026-01-01"', WARM, ("step 1 (warm)", "as_of")),
    ('manifest = {image = "path"}', WARM, ("step 1 (warm)", "manifest")),
    ('tokens = "uint16:9"', WARM + PACK, ("step 1 (warm)", "tokens")),
    ("megatron = true", WARM, ("step 1 (warm)", "megatron")),
    ('as_of = "2026-01-01"', PACK + PUBLISH, ("step 2 (index)", "publish", "as_of")),
])  # fmt: skip
def test_a_step_that_would_read_other_data_than_the_source_is_refused(tmp_path, says, steps, names):
    flow = write(tmp_path / "flow.toml", f'[source]\nurl = "in"\n{says}\n{steps}'.encode())
    code, _, told = here(flow, "--status")
    assert code == 2 and all(name in told for name in names)


@pytest.mark.parametrize("text", [
    'as_of = "2026-01-01"\n' + PACK + WARM, "megatron = true\n" + WARM + 'url = "in"\n', "megatron = false\n" + WARM,
    PUBLISH + WARM,
])  # fmt: skip
def test_steps_that_read_what_the_flow_declares_are_taken(tmp_path, text):
    flow = write(tmp_path / "flow.toml", f'[source]\nurl = "in"\n{text}'.encode())
    assert _flow.read(str(flow)).steps


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x", "flow.toml"),
        ("[source]\nurl = 'a'", r"no \[\[step\]\]"),
        ("[[step]]\ndo = 'index'", "source"),
        ("[source]\nurl = 'a'\nlabels = 1\n[[step]]\ndo = 'index'", "'labels' is not known"),
        ("[source]\nurl = 3\n[[step]]\ndo = 'index'", "url = 3; it is a text"),
        ("[source]\nurl = 'a'\n[[step]]\ndo = 'fly'", "step 1: do = 'fly'"),
        ("[source]\nurl = 'a'\n[[step]]\ndo = 'pack'", "lacks dest"),
        ("[source]\nurl = 'a'\n[[step]]\ndo = 'index'\npublish = 'yes'", "true or false"),
        ("[source]\nurl = 'a'\n[[step]]\ndo = 'pack'\ndest = 'b'\nresize = true", "whole number"),
        ("speed = 3\n[source]\nurl = 'a'\n[[step]]\ndo = 'index'", "'speed' is not known"),
        ("state = 3\n[source]\nurl = 'a'\n[[step]]\ndo = 'index'", "state = 3"),
    ],
)
def test_what_a_flow_cannot_say_is_refused(tmp_path, text, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        _flow.read(str(write(tmp_path / "flow.toml", text.encode())))
