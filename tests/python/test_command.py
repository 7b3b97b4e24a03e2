"""The command `leat` before a command is chosen."""

from __future__ import annotations

import os
import pathlib
import pty
import re
import subprocess

import pytest

import leat as package
from leat import _commands
from leat.testing import find_binary

ROOT = pathlib.Path(__file__).parents[2]


def leat(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["leat", *words], capture_output=True, text=True)


def test_without_words_it_tells_of_every_command_by_purpose():
    done = leat()

    told = re.findall(r"^  (\S+)  +\S", done.stdout, re.MULTILINE)
    there = re.findall(r"extern const Command k(\w+)Command;", (ROOT / "leat/cli/commands.h").read_text())
    there += re.findall(r"const Command k(\w+){", (ROOT / "leat/cli/commands.cc").read_text())  # In Python.
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(told) == sorted(re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower() for name in there)
    assert len(re.findall(r"^\S.*:$", done.stdout, re.MULTILINE)) >= 4
    assert max(map(len, done.stdout.splitlines())) < 80


def test_every_command_has_an_example_and_all_but_docs_have_json():
    commands = re.findall(r"^  ([a-z-]+)  +\S", leat().stdout, re.MULTILINE)
    told = {name: leat(name, "--help").stdout for name in commands}

    assert len(told) > 20
    assert [name for name, text in told.items() if not re.search(rf"^  leat {name}\b", text, re.MULTILINE)] == []
    assert [name for name, text in told.items() if not re.search(r"--json\b", text)] == ["docs"]


def test_it_names_the_command_that_may_have_been_meant():
    done = leat("bnech", "s3://b")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "leat: no command 'bnech'; did you mean 'bench'?\n"


def first_byte_of(*words: str | pathlib.Path) -> tuple[int, str]:
    """The exit code, and standard error, of a command whose reader goes after a byte, as `head -c 1` does."""
    with subprocess.Popen(["leat", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout.read(1)
        running.stdout.close()
        said = running.stderr.read().decode()
    return running.returncode, said


def make_objects(folder: pathlib.Path) -> pathlib.Path:
    """More names than a pipe holds."""
    folder.mkdir()
    for i in range(3000):
        (folder / f"{i:0100}.bin").write_bytes(b"x")
    return folder


@pytest.mark.parametrize("options", [(), ("--json",), ("--plain",)])
@pytest.mark.parametrize("is_dataset", [True, False])
def test_ls_ends_without_a_word_when_its_reader_has_gone(options, is_dataset, tmp_path):
    folder = make_objects(tmp_path / "data")
    if not is_dataset:  # Shards and others side by side.
        (folder / "shard.tar").write_bytes(b"x")

    assert first_byte_of("ls", folder, *options) == (141, "")


@pytest.mark.parametrize("options", [(), ("--plain",)])
def test_ls_on_a_full_disk_says_that_its_output_was_not_written(options, tmp_path):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [find_binary(), "ls", make_objects(tmp_path / "data"), *options], stdout=full, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr.startswith("leat: what was printed could not be written to standard output")


def test_a_command_in_python_ends_without_a_word_when_its_reader_has_gone(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/1.bin").write_bytes(b"y")

    assert first_byte_of("diff", make_objects(tmp_path / "data"), tmp_path / "other", "--json") == (141, "")


def test_a_command_in_python_is_a_module(monkeypatch, capsys):
    """The module of tests/command, as the program runs it: leat/cli/README.md."""
    monkeypatch.syspath_prepend(str(ROOT / "tests/command"))

    assert _commands.run(["toy_of_python", "toy-python", "bear"]) == 0
    assert capsys.readouterr().out == "hello bear\n"
    assert _commands.run(["toy_of_python", "toy-python", ""]) == 2
    assert capsys.readouterr().err == "leat: NAME is empty\n"
    with pytest.raises(SystemExit) as ended:
        _commands.run(["toy_of_python", "toy-python"])
    assert ended.value.code == 2
    assert "see leat toy-python --help" in capsys.readouterr().err


def test_ctrl_c_while_a_command_in_python_is_imported_stops_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "slow_to_import.py").write_text("raise KeyboardInterrupt")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert _commands.run(["slow_to_import", "slow"]) == 1
    assert capsys.readouterr().err == "leat: stopped\n"


JOBS = """
nodes = 1
threads = 4
[[arrivals]]
shape = "burst"
[[jobs]]
name = "photos"
count = 2
ceiling = 100
decode = "8ms"
latency = "30ms"
sample_bytes = "110kB"
samples = 20000
"""


def on_a_terminal(*words: str, **env: str) -> str:
    """The output on standard error when that is a terminal."""
    ours, its = pty.openpty()
    process = subprocess.Popen(["leat", *words], stdout=subprocess.DEVNULL, stderr=its, env={**os.environ, **env})
    os.close(its)
    said = b""
    while True:
        try:
            said += os.read(ours, 65536)
        except OSError:  # Nobody writes there any more.
            break
    os.close(ours)
    assert process.wait() == 0, said
    return said.decode()


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    (tmp_path / "store/b").mkdir(parents=True)
    for number in range(40):
        (tmp_path / "store/b" / f"{number:03}").write_bytes(bytes(1000))
    (tmp_path / "jobs.toml").write_text(JOBS)
    return tmp_path


def test_what_takes_long_shows_a_sign_of_life_on_a_terminal(folder):
    with package.testing.Bucket(folder / "store") as bucket:
        env = {**bucket.env(), "LEAT_CACHE_DIR": str(folder / "catalogues")}
        warmed = on_a_terminal("warm", "s3://b", "--cache-disk", str(folder / "disk"), **env)
        benched = on_a_terminal("bench", "s3://b", "--global-batch-size", "8", "--fields", "data", **env)
        planned = on_a_terminal("plan", "s3://b", "--global-batch-size", "8", "--ram", "1MiB", **env)
        explained = on_a_terminal("explain", "s3://b", "--global-batch-size", "8", "--fields", "data", "--for", "3s", **env)
        examined = on_a_terminal("doctor", "s3://b", **env)
        verified = on_a_terminal("cache", "verify", str(folder / "disk"), **env)
    simulated = on_a_terminal("simulate", str(folder / "jobs.toml"))
    with package.Loader(folder / "store/b", batch_size=8, train=False, epochs=1,
                        trace={"order_log": str(folder / "run.order")}) as loader:
        list(loader)
    proven = on_a_terminal("verify", str(folder / "run.order"))

    assert re.search(r"reading: \d+ of 40 samples, ", warmed) and "writing what was fetched" in warmed
    assert re.search(r"epoch 1 of 2: \d+ of 5 batches, ", benched)
    assert "simulating the caches" in planned
    assert re.search(r"simulating: \d+ %", simulated)
    assert re.search(r"watching the loader: \d+ %", explained)
    assert "asking s3://b" in examined
    assert re.search(r"verifying: \d+ of \d+ MiB, \d+ %", verified)
    assert re.search(r"verifying: \d+ %", proven)
    for said in (warmed, benched, planned, simulated, explained, examined, verified, proven):
        assert said.endswith("\r\x1b[K"), "the line is taken away at last"


def test_in_the_log_of_a_batch_job_a_line_tells_of_each_ten_seconds(folder):
    with package.testing.Bucket(folder / "store") as bucket:
        env = {**os.environ, **bucket.env(), "LEAT_CACHE_DIR": str(folder / "catalogues")}
        done = subprocess.run(["leat", "explain", "s3://b", "--global-batch-size", "8", "--fields", "data", "--for", "11s"],
                              capture_output=True, text=True, env=env)

    assert done.returncode == 0 and done.stdout
    assert re.fullmatch(r"leat: watching the loader: [89]\d %, \d s left\n", done.stderr), done.stderr


def test_what_is_done_within_ten_seconds_leaves_no_line_in_a_log(folder):
    done = leat("simulate", str(folder / "jobs.toml"))

    assert (done.returncode, done.stderr) == (0, "")
    assert "throughput" in done.stdout and "error" not in done.stdout
