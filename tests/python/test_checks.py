"""The checkers in tools/ find what they are there to find."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
LAYERS = "base:\nplan: base\nstore: base\nstore/s3: base store\nengine: *\n"


@pytest.fixture
def tree(tmp_path):
    """A small tree of its own: write("leat/plan/a.h", text), run("check_x.py")."""

    class Tree:
        def write(self, name, text):
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

        def run(self, tool, *arguments):
            self.write(f"tools/{tool}", "")
            shutil.copy(TOOLS / tool, tmp_path / "tools" / tool)
            return subprocess.run(
                [sys.executable, tmp_path / "tools" / tool, *arguments],
                capture_output=True, text=True, check=False)

    tree = Tree()
    tree.write("layers.txt", LAYERS)
    tree.write("leat/base/a.h", "#pragma once\nstruct A {};\n")
    return tree


@pytest.mark.parametrize(("name", "include"), [
    ("leat/plan/x.cc", '"leat/base/a.h"'),
    ("leat/plan/x.cc", '"leat/plan/y.h"'),
    ("leat/plan/x_test.cc", "<thread>"),
    ("leat/store/x.cc", "<thread>"),
    ("leat/store/s3/x.cc", '"leat/store/store.h"'),
    ("leat/store/testing/x.cc", '"leat/store/internal/y.h"'),
    ("leat/engine/x.cc", '"leat/store/s3/s3.h"'),
    ("leat/leat.h", '"leat/engine/x.h"'),
])
def test_layers_accepts(tree, name, include):
    tree.write(name, f"#include {include}\n")

    run = tree.run("check_layers.py")

    assert (run.returncode, run.stdout) == (0, "")


@pytest.mark.parametrize(("name", "include", "says"), [
    ("leat/base/x.h", '"leat/plan/y.h"', "base may not include plan"),
    ("leat/plan/x_test.cc", '"leat/store/y.h"', "plan may not include store"),
    ("leat/store/x.cc", '"leat/store/s3/y.h"', "store may not include store/s3"),
    ("leat/engine/x.cc", '"leat/base/internal/y.h"', "internal to base"),
    ("leat/plan/x.h", "<thread>", "pure"),
    ("leat/engine/x.h", '"leat/leat.h"', "for users"),
    ("leat/nowhere/x.h", "<string>", "does not list"),
])
def test_layers_refuses(tree, name, include, says):
    tree.write(name, f"// text\n  #  include {include}\n")

    run = tree.run("check_layers.py")

    assert run.returncode == 1
    assert name in run.stdout
    assert says in run.stdout


def test_layers_refuses_a_link_that_the_file_does_not_allow(tree):
    tree.write("leat/plan/CMakeLists.txt",
               "# leat_module(x) in a comment\n"
               "leat_module(plan DEPS base store SOURCES x.cc)\n")

    run = tree.run("check_layers.py")

    assert run.returncode == 1
    assert "plan may not link store" in run.stdout


def test_layers_refuses_two_folders_that_include_each_other(tree):
    tree.write("leat/engine/x.cc", '#include "leat/engine/loader/y.h"\n')
    tree.write("leat/engine/loader/y.h", '// Y.\n#include "leat/engine/z.h"\n')

    run = tree.run("check_layers.py")

    assert run.returncode == 1
    assert ("leat/engine and leat/engine/loader include each other: "
            "leat/engine/x.cc:1 includes leat/engine/loader/y.h, and "
            "leat/engine/loader/y.h:2 includes leat/engine/z.h") in run.stdout


@pytest.mark.parametrize("test", ["leat/engine/x_test.cc", "leat/engine/testing/x.h"])
def test_layers_lets_tests_include_what_stands_on_their_folder(tree, test):
    tree.write(test, '#include "leat/engine/loader/y.h"\n')
    tree.write("leat/engine/loader/y.h",
               '#include "leat/engine/z.h"\n#include "leat/engine/testing/x.h"\n')

    assert tree.run("check_layers.py").returncode == 0


def test_layers_refuses_a_module_that_is_not_above(tree):
    tree.write("layers.txt", "base: plan\nplan: base\n")

    run = tree.run("check_layers.py")

    assert run.returncode == 1
    assert "base names plan" in run.stderr


@pytest.mark.parametrize(("ci", "has_pip", "status"), [
    ("", True, 0), ("true", False, 0), ("true", True, 1), ("1", True, 1)])
def test_types_are_missed_on_ci_alone(tmp_path, ci, has_pip, status):
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        f"[ \"$*\" = '-m pip --version' ] && exit {0 if has_pip else 1}\n"
        "[ \"$*\" = '-c import mypy' ] && exit 1\n"
        "echo 'mypy ran' && exit 2\n")
    python.chmod(0o755)

    run = subprocess.run(
        [TOOLS / "check_types.sh"], capture_output=True, text=True, check=False,
        env={**os.environ, "CI": ci, "PATH": f"{tmp_path}:{os.environ['PATH']}"})

    assert (run.returncode, run.stdout) == (status, "")
    assert "mypy is not installed" in run.stderr


@pytest.mark.parametrize(("stub", "says"), [
    ("class A: ...\nclass B: ...\n", ""),
    ("class A: ...\n", "lacks the class B of engine\n"),
    ("class A: ...\nclass B: ...\nclass C: ...\n", "engine has no class C\n"),
    ("class A: ...\nB = A\n", "lacks the class B of engine\n"),
])
def test_a_class_that_a_module_or_its_stub_lacks_is_found(tree, tmp_path, stub, says):
    tree.write("tools/engine.py", "class A: pass\nclass B: pass\na = A()\n")
    tree.write("engine.pyi", f"a: A\n{stub}")

    run = tree.run("check_stub.py", "engine", tmp_path / "engine.pyi")

    assert run.stdout == (f"{tmp_path}/engine.pyi: {says}" if says else "")
    assert run.returncode == (1 if says else 0)


def test_headers_finds_one_that_leans_on_others(tree):
    tree.write("leat/plan/needs.h", "#pragma once\ninline A make() { return {}; }\n")

    run = tree.run("check_headers.py")

    assert run.returncode == 1
    assert "leat/plan/needs.h does not compile alone" in run.stdout

    tree.write("leat/plan/needs.h",
               '#pragma once\n#include "leat/base/a.h"\n'
               "inline A make() { return {}; }\n")
    assert tree.run("check_headers.py").returncode == 0


def test_headers_finds_one_without_a_guard(tree):
    tree.write("leat/plan/twice.h", "struct Twice {};\n")

    assert tree.run("check_headers.py").returncode == 1


def test_headers_checks_again_when_what_it_includes_changed(tree):
    tree.write("leat/plan/user.h",
               '#pragma once\n#include "leat/base/a.h"\n'
               "inline A make() { return {}; }\n")
    assert tree.run("check_headers.py").returncode == 0

    tree.write("leat/base/a.h", "#pragma once\nstruct B {};\n")

    assert tree.run("check_headers.py").returncode == 1


@pytest.mark.parametrize(("source", "listing", "left"), [
    ('// x\n\n#include "leat/plan/needs.h"\n', "leat_module(plan SOURCES needs.cc)", True),
    ('#include "leat/plan/needs.h"\n', "leat_module(plan TESTS needs.cc)", True),
    ('#include "leat/base/a.h"\n#include "leat/plan/needs.h"\n', "leat_module(plan SOURCES needs.cc)", False),
    ('#define A int\n#include "leat/plan/needs.h"\n', "leat_module(plan SOURCES needs.cc)", False),
    ('#include "leat/plan/needs.h"\n', "leat_module(plan SOURCES other.cc)", False),
])
def test_headers_leaves_to_the_build_those_that_a_source_includes_first(tree, source, listing, left):
    tree.write("leat/plan/needs.h", "#pragma once\ninline A make() { return {}; }\n")
    tree.write("leat/plan/needs.cc", source)
    tree.write("leat/plan/CMakeLists.txt", listing)

    assert (tree.run("check_headers.py").returncode == 0) == left


def test_headers_checks_all_itself_if_asked(tree):
    """Also after a run that left some to the build: what was not checked is not remembered as good."""
    tree.write("leat/plan/needs.h", "#pragma once\ninline A make() { return {}; }\n")
    tree.write("leat/plan/needs.cc", '#include "leat/plan/needs.h"\n')
    tree.write("leat/plan/CMakeLists.txt", "leat_module(plan SOURCES needs.cc)")
    assert tree.run("check_headers.py").returncode == 0

    assert tree.run("check_headers.py", "--all").returncode == 1


def test_headers_leaves_none_without_a_guard_to_the_build(tree):
    tree.write("leat/plan/twice.h", "struct Twice {};\n")
    tree.write("leat/plan/twice.cc", '#include "leat/plan/twice.h"\n')
    tree.write("leat/plan/CMakeLists.txt", "leat_module(plan SOURCES twice.cc)")

    assert tree.run("check_headers.py").returncode == 1


@pytest.mark.parametrize(("text", "status"), [
    ("import pytest\npytest.importorskip('nowhere')\ndef test_a(): pass\n", 0),
    ("import helper\ndef test_a(): pass\n", 0),
    ("def test_a(): pass\n", 0),
    ("def a_test(): pass\n", 1),
])
@pytest.mark.parametrize("others", [True, False])
def test_a_python_file_without_a_test_is_found_and_one_that_is_skipped_is_not(tree, tmp_path, text, status, others):
    tree.write("tests/python/test_x.py", text)
    tree.write("tests/python/helper.py", "import pytest\npytest.skip('not here', allow_module_level=True)\n")
    tree.write("tests/stress/helper.py", "")
    if others:
        tree.write("tests/stress/test_y.py", "def test_b(): pass\n")
    tree.write("build/compile_commands.json", "[]")
    tree.write("build/CTestTestfile.cmake", "")

    run = tree.run("check_tests_built.py", tmp_path / "build")

    assert (run.returncode, run.stdout) == (status, "tests/python/test_x.py: no test of it is run\n" if status else "")


def test_names_of_this_repository_are_unique():
    run = subprocess.run([sys.executable, TOOLS / "check_names.py"],
                         capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(("first", "second", "name"), [
    ("class Endpoint {};", "struct Endpoint { int port; };", "leat::Endpoint"),
    ("class [[nodiscard]] Cut final : A {};", "enum class Cut : int { kA };", "leat::Cut"),
    ('class LEAT_CAPABILITY("mutex") Lock {};', "using Lock = int;", "leat::Lock"),
    ("template <typename T> class Box {};", "template <int N> struct Box {};", "leat::Box"),
    ("struct Out { struct In {}; };", "struct Out::In {};", "leat::Out::In"),
    ("inline constexpr int kMost = 1;", "inline constexpr long kMost{2};", "leat::kMost"),
    ("int cut(const A& a, int b = 1);", "long cut(A& x, int);", "leat::cut(A&, int)"),
    ("inline int f() { return 1; }", "inline int f() { return 2; }", "leat::f()"),
    ("A operator+(A a, A b);", "A operator+(A, A);", "leat::operator+(A, A)"),
    ("}\nnamespace leat::testing {\nclass A {};", "namespace testing { class A {}; }",
     "leat::testing::A"),
])
def test_names_finds_one_that_two_headers_define(tree, first, second, name):
    tree.write("leat/plan/x.h", f"namespace leat {{\n\n{first}\n}}\n")
    tree.write("leat/store/y.h", f"namespace leat {{\n{second}\n}}\n")

    run = tree.run("check_names.py")

    assert run.returncode == 1
    assert f"{name} is defined in leat/plan/x.h:" in run.stdout
    assert " and leat/store/y.h:" in run.stdout


def test_names_says_where(tree):
    tree.write("leat/plan/x.h", "namespace leat {\n/* class B {}; */\nclass A {};\n}\n")
    tree.write("leat/store/y.h", 'namespace leat {\nauto text = R"(\n)";\nclass A {};\n}\n')

    assert ("leat::A is defined in leat/plan/x.h:3 and leat/store/y.h:4"
            in tree.run("check_names.py").stdout)


@pytest.mark.parametrize(("first", "second"), [
    ("class Endpoint {};", "class Endpoint;"),
    ("int cut(int a);", "int cut(long a);\nint cut(int a, int b);"),
    ("template <> struct Box<int> {};", "template <> struct Box<long> {};"),
    ("class A {};", "namespace testing { class A {}; }"),
    ("struct Of { struct State {}; };", "struct By { struct State {}; };"),
    ("class A {};", "// class A {};\n/* class A {}; */"),
    ("class A {};", 'inline auto text = R"(class A {};)"; inline auto mark = \'{\';'),
    ("#define A struct A {}", "#define A \\\n struct A {}"),
    ("namespace py = other;", "namespace py = other;"),
    ("inline int f() { struct Local {}; return 0; }",
     "inline int g() { struct Local {}; return 0; }"),
    ("constexpr int kMine = 1;", "constexpr int kMine = 2;"),
])
def test_names_passes_over_what_is_no_second_definition(tree, first, second):
    tree.write("leat/plan/x.h", f"namespace leat {{\n{first}\n}}\n")
    tree.write("leat/store/y.h", f"namespace leat {{\n{second}\n}}\n")

    run = tree.run("check_names.py")

    assert run.returncode == 0, run.stdout


def test_names_lets_a_test_put_a_source_in_the_place_of_another(tree):
    tree.write("leat/plan/x.h", "namespace leat {\nint f();\n}\n")
    tree.write("leat/plan/x.cc", "namespace leat {\nint f() { return 1; }\n}\n")
    tree.write("tests/plan/x.cc", "namespace leat {\nint f() { return 2; }\n}\n")
    assert tree.run("check_names.py").returncode == 0

    tree.write("leat/plan/y.cc", "namespace leat {\nint f() { return 3; }\n}\n")
    assert tree.run("check_names.py").returncode == 1


def test_names_finds_one_that_two_sources_define_for_all_to_see(tree):
    tree.write("leat/plan/x.h", "namespace leat {\nint f(int a);\n}\n")
    tree.write("leat/plan/x.cc", "namespace leat {\nint f(int a) { return a; }\n}\n")
    tree.write("leat/plan/y.cc",
               "namespace leat {\nnamespace {\nclass A {};\n}\nusing B = int;\n}\n")
    tree.write("leat/plan/z.cc", "namespace leat {\nclass A {};\nusing B = long;\n}\n")
    assert tree.run("check_names.py").returncode == 0

    tree.write("leat/plan/y.cc", "namespace leat {\nclass A {};\nint f(int) { return 0; }\n}\n")

    run = tree.run("check_names.py")
    assert "leat::A is defined in leat/plan/y.cc:2 and leat/plan/z.cc:2" in run.stdout
    assert ("leat::f(int) is defined in leat/plan/x.cc:2 and "
            "leat/plan/x.h:2 and leat/plan/y.cc:3" in run.stdout)


def python_tests_of(module: str) -> list[str]:
    told = subprocess.run([sys.executable, TOOLS / "python_tests_of.py", module], capture_output=True, text=True, check=True).stdout
    return [pathlib.Path(line).name for line in told.splitlines()]


def test_each_module_has_its_row_of_python_tests():
    root = TOOLS.parent
    declared = {found for file in (root / "leat").rglob("CMakeLists.txt")
                for found in re.findall(r"^leat_module\((\S+)", file.read_text(), re.MULTILINE)}  # fmt: skip
    rows = re.findall(r"^([a-z0-9/]+): *(.*)$", (root / "tests/python/modules.txt").read_text(), re.MULTILINE)

    assert {module for module, _ in rows} == declared
    for pattern in {one for _, patterns in rows for one in patterns.split()}:
        assert list((root / "tests/python").glob(f"test_{pattern}.py")), f"{pattern} names no test"


def test_each_python_test_belongs_to_a_module():
    rows = re.findall(r"^([a-z0-9/]+):", (TOOLS.parent / "tests/python/modules.txt").read_text(), re.MULTILINE)

    assert "test_cache.py" in python_tests_of("cache")
    assert "test_cache.py" not in python_tests_of("engine")
    everywhere = {name for module in rows for name in python_tests_of(module)}
    assert everywhere == {file.name for file in (TOOLS.parent / "tests/python").glob("test_*.py")}


def test_an_unknown_module_is_refused_by_name():
    run = subprocess.run([sys.executable, TOOLS / "python_tests_of.py", "cahce"], capture_output=True, text=True, check=False)

    assert run.returncode == 1
    assert "no module cahce; the modules are agent, " in run.stderr


KNOWN = """#pragma once
// class InAComment { int a; };
template <typename T, typename U = std::map<int, T>>
class LEAT_CAPABILITY("lock") Known final : public Base<int, 3> {
 public:
  Known() = default;
  explicit Known(int a) : a_(a), b_{a} { more(); }
  ~Known();
  Known(const Known&) = delete;
  Known& operator=(const Known&) = delete;
  bool operator==(const Known&) const = default;

  struct Inner { int x = 0; int y = 0; void z(); };
  enum class Kind { kOne, kTwo };
  using Map = std::map<int, std::vector<int>>;
  static constexpr int kMost = 3;
  friend class Other;

  int one() const { return a_; }              // Methods: 1
  virtual Result<void> two(int a,             // 2
                           std::function<void(int)> done) = 0;
  [[nodiscard]] static Known three();         // 3
  void four() LEAT_REQUIRES(mutex_);          // 4
  bool operator<(const Known& other) const;   // 5
  template <typename F> void five(F f) { f(); }  // 6

 private:
  int a_;                                     // Data: 1
  int b_ = f(3), c_{4};                       // 2, 3
  std::function<void(int, char)> on_;         // 4
  std::map<int, std::string> names_ LEAT_GUARDED_BY(mutex_);  // 5
  Share most_ LEAT_GUARDED_BY(mutex_){Clock().now()};         // 6
  const std::string text_ = "; { ( // no comment";            // 7
  std::array<int, (1 > 0 ? 2 : 3)> places_{};                 // 8
};
"""


def test_classes_are_counted(tree):
    tree.write("leat/plan/known.h", KNOWN)

    run = tree.run("check_classes.py", "--all")

    assert "14 =  8 +  6  Known  leat/plan/known.h\n" in run.stdout
    assert " 3 =  2 +  1  Inner  leat/plan/known.h\n" in run.stdout
    assert "InAComment" not in run.stdout


@pytest.mark.parametrize(("data", "methods", "passes"), [(20, 20, True), (41, 0, False), (0, 41, False), (21, 20, False)])
def test_classes_of_over_forty_members_are_refused(tree, data, methods, passes):
    members = [f"  int a{i}_ = 0;\n" for i in range(data)] + [f"  void m{i}();\n" for i in range(methods)]
    tree.write("leat/plan/large.cc", f"namespace {{\nclass Large {{\n{''.join(members)}}};\n}}\n")

    run = tree.run("check_classes.py", "--no-exceptions")

    assert run.returncode == (0 if passes else 1)
    assert ("leat/plan/large.cc: Large has" in run.stdout) != passes
