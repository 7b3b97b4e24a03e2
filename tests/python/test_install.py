"""Building from source: missing packages are reported at once, and tests and benches
are not compiled."""

from __future__ import annotations

import ast
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
LISTED = [
    entry for kind in ("", "test-")
    for entry in re.findall(r"^([a-z0-9+.|-]+)", (ROOT / f"tools/debian-{kind}packages.txt").read_text(), re.MULTILINE)
]  # fmt: skip


def configure(build: pathlib.Path, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    pybind11 = subprocess.run([sys.executable, "-m", "pybind11", "--cmakedir"], capture_output=True, text=True).stdout.strip()
    return subprocess.run(
        ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(build), f"-DPython_EXECUTABLE={sys.executable}",
         *([f"-Dpybind11_DIR={pybind11}"] if pybind11 else []), *words],
        capture_output=True, text=True, **options,
    )  # fmt: skip


def test_one_message_names_all_that_is_missing(tmp_path):
    done = configure(
        tmp_path, "-DLEAT_BUILD_TESTS=OFF", "-DLEAT_BUILD_PYTHON=ON",
        *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("fmt", "JPEG", "Boost", "pugixml")),
        "-DPKG_CONFIG_EXECUTABLE=/nowhere/pkg-config",
    )  # fmt: skip

    assert done.returncode != 0
    line = re.search(r"^\s*apt-get install -y --no-install-recommends (.*)$", done.stderr, re.MULTILINE)
    assert line, done.stderr
    named = line[1].split()
    assert {"pkg-config", "libfmt-dev", "libjpeg62-turbo-dev", "libboost-dev", "libpugixml-dev"} <= set(named)
    assert len(named) == len(set(named))
    assert done.stderr.count("CMake Error") == 1
    listed = {one for entry in LISTED for one in entry.split("|")}
    assert set(named) <= listed, "tools/debian-packages.txt is the list"


def test_a_machine_without_a_compiler_is_told_all_that_it_needs(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("cmake", "ninja"):
        (programs / name).symlink_to(shutil.which(name))
    done = configure(tmp_path / "build", "-DLEAT_BUILD_PYTHON=ON", env={"PATH": str(programs)})

    assert done.returncode != 0
    line = re.search(r"^\s*apt-get install -y --no-install-recommends (.*)$", done.stderr, re.MULTILINE)
    assert line, done.stderr
    assert {"g++", "cmake", "libssl-dev", "libboost-dev", "python3-dev"} <= set(line[1].split())
    assert not {"clang-14", "libgtest-dev"} & set(line[1].split()), "tests need these"


def test_what_is_looked_for_is_in_the_list_of_packages():
    text = (ROOT / "cmake/dependencies.cmake").read_text()
    listed = {one for entry in LISTED for one in entry.split("|")}

    asked = set(re.findall(r"^\s*leat_find\w*\(([a-z0-9+.-]+) ", text, re.MULTILINE))
    asked |= set(re.findall(r"list\(APPEND leat_missing ([a-z0-9+.-]+)\)", text))
    assert len(asked) >= 20
    assert asked <= listed


def test_the_readme_installs_what_pip_builds_with():
    """The list, less what it says pip or another of its packages brings."""
    listed = re.findall(r"^([a-z0-9+.-]+)\S* +# (.*)$", (ROOT / "tools/debian-packages.txt").read_text(), re.MULTILINE)
    brought = {package for package, why in listed if re.search(r"\bbrings\b", why)}
    install = (ROOT / "README.md").read_text().partition("## Install\n")[2].partition("\n## ")[0]
    [named] = re.findall(r"apt-get install -y --no-install-recommends ((?:.*\\\n)*[^#\n]*)", install)

    assert brought == {"cmake", "ninja-build", "pybind11-dev", "ca-certificates"}
    assert sorted(named.replace("\\\n", " ").split()) == sorted({package for package, _ in listed} - brought)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_pip_installs_into_an_environment_of_its_own(page):
    """Debian 12's own Python refuses: "externally-managed-environment"."""
    text = (ROOT / page).read_text()
    made = re.search(r"python3 -m venv (\S+) && \. (\S+)/bin/activate", text)

    assert made and made[1] == made[2]
    assert made[1] != "~/leat", "a clone in the home folder lies there"
    assert made.end() < text.index("pip install .")


@pytest.fixture(scope="module")
def for_pip(tmp_path_factory) -> pathlib.Path:
    """As pyproject.toml configures it, but each source is compiled by itself, so that ninja names it."""
    build = tmp_path_factory.mktemp("pip")
    done = configure(build, "-DCMAKE_BUILD_TYPE=Release", "-DLEAT_BUILD_PYTHON=ON", "-DLEAT_BUILD_TOOLS=ON", "-DLEAT_BUILD_TESTS=OFF")
    assert done.returncode == 0, done.stderr
    return build


def compiled(build: pathlib.Path, *targets: str) -> set[str]:
    if shutil.which("ninja") is None:
        pytest.fail("no ninja: apt-get install ninja-build")  # Nothing here is built without it.
    told = subprocess.run(["ninja", "-C", str(build), "-t", "commands", *targets], capture_output=True, text=True, check=True).stdout
    found = re.findall(r" -c (\S+\.cc)", told)
    return {str(pathlib.Path(one).relative_to(ROOT)) for one in found if one.startswith(str(ROOT))}


def test_pip_compiles_what_it_ships_and_no_test(for_pip):
    ours = compiled(for_pip, "_native", "leat")

    assert len(ours) > 300
    said = re.search(r"compiles some (\d+) files", (ROOT / "README.md").read_text())
    assert abs(len(ours) - int(said[1])) <= 20
    assert not [one for one in ours if "test" in pathlib.Path(one).name or "/testing/" in one or not one.startswith(("leat/", "python/native/"))]


def test_the_module_alone_needs_nothing_of_the_commands(for_pip):
    module = compiled(for_pip, "_native")

    assert {"leat/engine/loader/loader.cc", "python/native/module.cc"} <= module
    assert not [one for one in module if one.startswith(("leat/cli/", "leat/bucket/", "leat/profiler/", "leat/agent/")) and "agent/wire" not in one]


def test_users_targets_leave_out_every_test(for_pip):
    shipped = compiled(for_pip, "leat_shipped")

    assert compiled(for_pip, "_native", "leat") <= shipped
    assert not [one for one in shipped if "test" in pathlib.Path(one).name]


def test_a_cross_build_without_its_libraries_names_the_remedy(tmp_path):
    done = configure(tmp_path, f"--toolchain={ROOT / 'cmake/aarch64-linux-gnu.cmake'}", "-DLEAT_SYSROOT=/nowhere")

    assert done.returncode != 0
    told = " ".join(done.stderr.split())  # CMake wraps its lines.
    assert 'LEAT_SYSROOT is "/nowhere"' in told
    assert "./dev wheel --arch aarch64" in told


def imported_by(script: pathlib.Path, seen: set[pathlib.Path]) -> set[str]:
    """Names of the packages that a script and the scripts beside it import."""
    seen.add(script)
    found = set()
    for node in ast.walk(ast.parse(script.read_text())):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in (one.partition(".")[0] for one in names):
            beside = script.with_name(f"{name}.py")
            if not beside.is_file():
                found.add(name)
            elif beside not in seen:
                found |= imported_by(beside, seen)
    return found - set(sys.stdlib_module_names)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python 3.9 cannot say which modules are its own; the others check the same files")
def test_the_demo_installs_what_it_imports_and_no_more():
    lines = (ROOT / "tools/requirements.txt").read_text().splitlines()
    installed = {line.partition("==")[0] for line in lines if not line.startswith("#")}
    distributions = {"PIL": "pillow", "skimage": "scikit-image", "sklearn": "scikit-learn"}

    imported = imported_by(ROOT / "examples/demo.py", set()) - {"leat"}
    assert {distributions.get(one, one) for one in imported} | {"pybind11"} == installed


SAID = (
    "dev: setting up, once\ndev: installing g++ cmake\ndev:   apt-get install, 10 s: Unpacking g++\n"
    "dev: installing 6 Python packages, and theirs, into .venv\ndev: compiling up to 430 files: at most 8 minutes\n"
    "[1/430] Building CXX object\nmaking the photographs and the digits\nLeat  294/s\n"
)
BROKEN = SAID.partition("making")[0] + "FAILED: leat/x.o\nx.cc:1: error: no\nninja: build stopped: subcommand failed.\n"


@pytest.mark.parametrize(("said", "last", "parts"), [
    (SAID, "demo", ["apt", "pypi", "compiling", "demo"]),
    (SAID, "compiling", ["apt", "pypi", "compiling"]),
    (SAID, "pypi", ["apt", "pypi"]),
    (SAID.partition("making")[0], "demo", None),
    (BROKEN, "demo", None),
    (BROKEN, "compiling", None),
    (BROKEN, "pypi", ["apt", "pypi"]),
])  # fmt: skip
def test_a_set_up_is_timed_part_by_part(said, last, parts):
    done = subprocess.run([sys.executable, ROOT / "tools/time_set_up.py", last], input=said, capture_output=True, text=True, check=False)

    assert (done.returncode == 0) == (parts is not None)
    if parts is None:
        assert "before the part demo; its reason is above" in done.stderr
        assert "together" not in done.stdout
    else:
        assert re.findall(r"^(\w+) +\d+ s$", done.stdout, re.MULTILINE) == [*parts, "together"]
        assert ("making the photographs" in done.stdout) == (last == "demo")


def test_the_demo_begins_with_the_line_that_its_time_begins_with():
    first = re.search(r'\bsay\(f?"(.*)"\)', (ROOT / "examples/demo.py").read_text())
    begins = re.search(r'"demo": r"(.*)"', (ROOT / "tools/time_set_up.py").read_text())

    assert first and begins and re.match(begins[1], first[1])


@pytest.mark.parametrize(("missing", "word", "fails"), [
    ("nothing", "QUIET", False), ("libhwy", "QUIET", False), ("libxxhash", "REQUIRED", True),
])  # fmt: skip
def test_a_project_may_do_without_leat_where_a_library_is_missing(tmp_path, missing, word, fails):
    package = tmp_path / "package"
    package.mkdir()
    shutil.copy(ROOT / "cmake/leat-config.cmake", package)
    (package / "leat-targets.cmake").touch()
    pkg_config = tmp_path / "pkg-config"
    real = shutil.which("pkg-config")
    pkg_config.write_text(f'#!/bin/sh\ncase "$*" in *{missing}*) exit 1 ;; esac\nexec {real} "$@"\n')
    pkg_config.chmod(0o755)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(user LANGUAGES C CXX)\n"
        f'find_package(leat {word})\nmessage(STATUS "leat: ${{leat_FOUND}}, ${{leat_NOT_FOUND_MESSAGE}}")\n'
    )

    done = subprocess.run(
        ["cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build", f"-Dleat_DIR={package}",
         f"-DPKG_CONFIG_EXECUTABLE={pkg_config}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.returncode != 0) == fails, done.stderr
    if fails:
        assert f"Leat stands on {missing}, which pkg-config does not find" in " ".join(done.stderr.split())
    elif missing == "nothing":
        assert "-- leat: 1, \n" in done.stdout
    else:
        assert f"-- leat: 0, Leat stands on {missing}," in done.stdout
