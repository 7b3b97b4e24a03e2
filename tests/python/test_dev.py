"""./dev: what its functions do in a clone whose path has a space."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parents[2]


class Clone:
    """Has nothing but the functions of ./dev, without its commands."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.root = folder / "a clone"
        self.programs = folder / "programs"
        self.write("dev", (ROOT / "dev").read_text().partition("# --- the commands")[0])
        self.write("build/x", "")
        self.programs.mkdir()

    def write(self, name: str, text: str) -> pathlib.Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def program(self, name: str, script: str) -> None:
        """Makes a program that comes before the machine's, or one of the clone's, by its path."""
        file = self.root / name if "/" in name else self.programs / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def command(self, script: str) -> list[str]:
        return ["bash", "-c", f'source "$0"\n{script}', str(self.root / "dev")]

    def env(self, **more: str) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}", **more}

    def begin(self, script: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command(script), stderr=subprocess.PIPE, text=True, env=self.env(),
                                start_new_session=True, **options)  # fmt: skip

    def run(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(script), capture_output=True, text=True, check=False, env=self.env(**env))


@pytest.fixture
def clone(tmp_path: pathlib.Path) -> Clone:
    return Clone(tmp_path)


PIP = """while [ "$1" != --target ]; do shift; done
mkdir -p "$2" && echo "$2" >> "$ASKED" && exit "$STATUS"
"""


def test_what_pypi_did_not_give_is_asked_for_again(clone, tmp_path):
    clone.write("tools/oracle-requirements.txt", "torchvision==1\n")
    clone.program(".venv/bin/python", PIP)
    asked = tmp_path / "asked"
    set_up = "ensure_packages() { :; }; ensure_python() { :; }\nset_up test"

    failed = clone.run(set_up, STATUS="1", ASKED=str(asked))
    assert failed.returncode == 0
    assert "no torchvision" in failed.stderr
    for _ in range(2):  # The second has nothing to do.
        assert clone.run(set_up, STATUS="0", ASKED=str(asked)).returncode == 0

    assert asked.read_text() == f"{clone.root}/.venv/oracle\n" * 2


CMAKE = """mkdir -p build/asan && : > build/asan/build.ninja
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" > build/asan/CMakeCache.txt
"""


@pytest.mark.parametrize(("home", "stays"), [("/another/clone", False), ("HERE/more", False), ("HERE", True)])
def test_a_build_folder_of_another_clone_is_made_anew(clone, home, stays):
    home = home.replace("HERE", str(clone.root))
    clone.write("build/asan/CMakeCache.txt", f"# Made by hand\nCMAKE_HOME_DIRECTORY:INTERNAL={home}\n")
    clone.write("build/asan/build.ninja", "")
    object_file = clone.write("build/asan/x.o", "")
    clone.program("cmake", CMAKE)
    clone.program("ninja", "echo 'ninja: no work to do.'")

    run = clone.run("build asan")

    assert run.returncode == 0, run.stderr
    assert object_file.exists() == stays
    assert ("another clone's" in run.stderr) != stays
    assert str(clone.root) in (clone.root / "build/asan/CMakeCache.txt").read_text()


def test_steps_beside_another_are_waited_for_and_judged(clone):
    run = clone.run(
        'works() { echo "this works"; }; breaks() { echo "this breaks"; return 1; }\n'
        'aside "first of two" works; aside "second of two" breaks; end_asides; verdict'
    )  # fmt: skip

    assert run.returncode == 1
    assert run.stderr.splitlines()[:4] == [
        "dev: == first of two, begun before", "this works", "dev: == second of two, begun before", "this breaks",
    ]  # fmt: skip
    assert "dev: FAILED: second of two" in run.stderr
    assert [file.name for file in (clone.root / "build").iterdir()] == ["x"]


@pytest.mark.parametrize(("named", "files"), [("a\nb c", ["a", "b c"]), ("", [])])
def test_a_modules_python_tests_are_run_where_they_lie(clone, named, files):
    clone.program("tools/python_tests_of.py", f"echo '{named}'" if named else ":")

    run = clone.run(
        'set_up() { :; }; build_release() { :; }; ctest() { :; }\n'
        'python_tests() { printf "<%s>\\n" "$@"; }\n'
        "test_module base"
    )  # fmt: skip

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [f"<{file}>" for file in files]


def programs_but(folder: pathlib.Path, *without: str) -> str:
    """A PATH with the machine's programs, less some."""
    folder.mkdir()
    for place in os.environ["PATH"].split(":"):
        for program in pathlib.Path(place).glob("*"):
            if program.name not in without and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def test_where_there_is_no_dpkg_it_says_so_and_goes_on(clone, tmp_path):
    clone.write("tools/debian-packages.txt", "g++  # the compiler\n")

    path = programs_but(tmp_path / "bin", "dpkg-query")
    run = clone.run('ensure_packages "$root/tools/debian-packages.txt" && echo "went on"', PATH=path)

    assert (run.returncode, run.stdout) == (0, "went on\n")
    assert "this is not Debian: install what is missing of tools/debian-packages.txt by your own means" in run.stderr


@pytest.mark.parametrize(("user", "remedy"), [
    ("0", "apt-get failed; its reason is above"),
    ("1000", "run this as root, then try again:  apt-get update && "),
])  # fmt: skip
def test_a_failure_of_apt_names_its_remedy(clone, user, remedy):
    clone.write("tools/debian-packages.txt", "a-package-of-ours  # to be had nowhere\n")
    clone.program("dpkg-query", "echo 'installed another'")
    clone.program("apt-get", "echo 'no network' >&2; exit 100")
    clone.program("sudo", '[ "$1" != -n ] || shift; exec "$@"')
    clone.program("id", f"echo {user}")

    run = clone.run('ensure_packages "$root/tools/debian-packages.txt"')

    assert run.returncode == 1
    assert "no network" in run.stderr
    assert f"dev: {remedy}" in run.stderr
    assert ("as root" in run.stderr) == (user != "0")


def lines_until(process: subprocess.Popen[str], told: str) -> list[str]:
    """Those that it says up to one that holds ``told``."""
    assert process.stderr is not None
    lines = []
    limit = threading.Timer(30, os.killpg, (process.pid, signal.SIGKILL))
    limit.start()
    try:
        for line in process.stderr:
            lines.append(line)
            if told in line:
                return lines
    finally:
        limit.cancel()
    pytest.fail(f"it never said {told!r}: {lines}")


def test_a_second_one_says_that_it_waits_for_the_first(clone):
    set_up = 'ensure_packages() { :; }; ensure_python() { :; }; ensure_oracle() { :; }; set_up test\n'
    with clone.begin(f'{set_up}say "holds it"; read -r', stdin=subprocess.PIPE) as first:
        lines_until(first, "holds it")
        with clone.begin(f'{set_up}say "has it"') as second:
            lines_until(second, "dev: waiting for another ./dev")
            first.communicate("\n")
            lines_until(second, "dev: has it")


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(("end", "status"), [("sleep 60", -15), ("false", 1), (":", 0)])
def test_no_aside_outlives_it(clone, end, status):
    clone.program("tools/long", 'echo $$ > "$1"; exec sleep 600')
    begin = 'aside "long" "$root/tools/long" "$root/pid"; until [ -s "$root/pid" ]; do sleep 0.02; done; say begun\n'
    with clone.begin(begin + end) as process:
        try:
            lines_until(process, "begun")
            aside = int((clone.root / "pid").read_text())
            if status < 0:
                process.terminate()

            assert process.wait(timeout=30) == status
            assert not is_alive(aside)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    assert [file.name for file in (clone.root / "build").iterdir()] == ["x"]


@pytest.mark.parametrize(("user", "prefix", "words", "needed"), [
    ("0", "/usr", "ours", False), ("0", "/opt/pyenv", "ours", True), ("1000", "/opt/pyenv", "ours", False),
    ("1000", "/usr", "ours debian:sid", True), ("1000", "/usr", "--arch aarch64", True), ("0", "/usr", "", False),
])  # fmt: skip
def test_what_a_wheel_is_tried_in_is_installed_before_it_is_compiled(clone, user, prefix, words, needed):
    clone.program("tools/wheel.sh", 'echo "made: $*"')
    clone.program("id", f"echo {user}")
    clone.program("ours", f"echo {prefix}")

    run = clone.run(f'ensure_packages() {{ echo "needs ${{*#"$root"/}}"; }}\nmake_wheels {words}')

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[:-1] == (["needs tools/debian-wheel-packages.txt"] if needed else [])
    assert run.stdout.splitlines()[-1].startswith("made: ")


def test_python_is_set_up_before_it_is_run(clone):
    clone.program("tools/python_tests_of.py", '[ -n "$SET_UP" ] || exit 127')

    run = clone.run("set_up() { export SET_UP=$1; }; step() { echo $2; }\ntest_module base")

    assert (run.returncode, run.stdout) == (0, "build_release\nctest\n"), run.stderr


def test_a_site_that_is_not_built_is_a_failure_of_docs_alone(clone):
    clone.write("tools/docs-requirements.txt", "mkdocs==1\n")
    clone.program(".venv/bin/python", "exit 1")

    for status in (0, 1):
        run = clone.run(f"docs {status}")
        assert run.returncode == status
        assert "the site is not built" in run.stderr
    assert re.search(r"^  docs\) .*; docs 1 ;;$", (ROOT / "dev").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("told", "ci"), [({}, "true"), ({"CI": ""}, "true"), ({"CI": "1"}, "1")])
def test_ci_runs_the_tests_as_ci(clone, told, ci):
    runner = clone.write(".ci/run", (ROOT / ".ci/run").read_text())
    clone.program("./dev", 'echo "$1 $CI"')

    env = {name: value for name, value in clone.env(**told).items() if name != "CI" or "CI" in told}
    run = subprocess.run(["bash", runner], capture_output=True, text=True, check=False, env=env)

    assert (run.returncode, run.stdout) == (0, f"test {ci}\n"), run.stderr


@pytest.mark.parametrize(("ci", "has_pip", "missing"), [
    ("", True, 0), ("true", False, 0), ("true", True, 1), ("1", True, 1),
])  # fmt: skip
def test_what_pypi_lacks_is_missed_on_ci_alone(clone, ci, has_pip, missing):
    if has_pip:
        clone.program(".venv/bin/pip", ":")

    assert clone.run("missing_from_pypi", CI=ci).stdout == f"{missing}\n"


INTERPRETER = """case "$*" in
  *SOABI*) echo cpython-312-ours ;;
  *base_prefix*) echo "VERSION" ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m pip --version") exit HAS_PIP ;;
  *) exit 7 ;;
esac
"""


@pytest.mark.parametrize(("version", "pip", "stays"), [
    ("3.12.1 /usr", 0, True), ("3.12.0 /usr", 0, False), ("3.12.1 /opt", 0, False), ("3.12.1 /usr", 1, False),
])  # fmt: skip
def test_an_interpreters_tests_have_a_venv_of_that_interpreter(clone, version, pip, stays):
    kept = INTERPRETER.replace("VERSION", version).replace("HAS_PIP", str(pip))
    clone.program("a python/python", INTERPRETER.replace("VERSION", "3.12.1 /usr").replace("HAS_PIP", "0"))
    clone.program("build/cpython-312-ours/venv/bin/python", kept)
    ours = clone.write("build/cpython-312-ours/venv/ours", "")
    script = clone.write("tools/test_python.sh", (ROOT / "tools/test_python.sh").read_text())

    run = subprocess.run(["bash", script, clone.root / "a python/python"], capture_output=True, text=True, check=False)

    assert run.returncode == 7, run.stderr  # There is nothing to install from.
    assert (clone.root / "build/cpython-312-ours/venv/bin/python").exists()
    assert ours.exists() == stays


@pytest.mark.parametrize(("script", "words", "stamp", "maker", "made"), [
    ("make_curl.sh", ["-DA=1"], "bookworm -DA=1", "apt-get", "folder/made"),
    ("make_root.sh", ["bare", "sid", "arm64", "git"], "bare sid arm64 git", "mmdebstrap", "folder.made"),
])  # fmt: skip
@pytest.mark.parametrize(("days", "anew"), [(20, False), (40, True)])
def test_what_comes_from_debian_is_made_anew_after_a_month(clone, script, words, stamp, maker, made, days, anew):
    clone.program(maker, "echo 'making it' >&2; exit 1")
    clone.program("apt-config", ":")
    file = clone.write(made, f"{stamp}\n")
    os.utime(file, (then := time.time() - days * 86400, then))

    command = [ROOT / "tools" / script, clone.root / "folder", *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=clone.env())

    assert ("making it" in run.stderr) == anew, run.stderr
    assert (run.returncode != 0) == anew
