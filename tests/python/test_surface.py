"""The public surface: how many arguments, what help() says, and what an unknown name is told."""

from __future__ import annotations

import importlib
import inspect
import math
import pathlib
import pydoc
import re
import subprocess
import sys

import pytest

import leat
import leat.research
import leat.testing

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/loader.md").read_text()


def parameters_of(target) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(target).parameters)


def test_a_loader_takes_few_arguments():
    assert len(parameters_of(leat.Loader)) <= 26


def test_help_is_short():
    shown = pydoc.render_doc(leat.Loader, renderer=pydoc.plaintext)
    assert len(inspect.getdoc(leat.Loader).splitlines()) <= 35
    # From 3.13 on, each argument has a row of its own.
    assert len(shown.splitlines()) <= (100 if sys.version_info < (3, 13) else 130)
    # Rows of 100 columns.
    rows = sum(max(1, math.ceil(len(line) / 100)) for line in shown.splitlines())
    assert rows <= (108 if sys.version_info < (3, 13) else 130)


def test_the_page_has_each_argument_with_its_default():
    rows = dict(re.findall(r"^\| `(\w+)` \| (?:`(.*?)`)? *\|", PAGE, re.MULTILINE))
    expected = {
        name: "" if parameter.default is parameter.empty else repr(parameter.default).replace("'", '"')
        for name, parameter in parameters_of(leat.Loader).items()
    }
    assert rows == expected


def test_the_page_has_each_method_and_property():
    public = {name for name in vars(leat.Loader) if not name.startswith("_")}
    assert {name for name in public if not re.search(rf"`(loader\.)?{name}[`(]", PAGE)} == set()


def test_each_argument_is_in_the_docstring():
    told = inspect.getdoc(leat.Loader)
    assert [name for name in parameters_of(leat.Loader) if not re.search(rf"^ +[\w, ]*\b{name}\b[\w, ]*:", told, re.M)] == []


@pytest.mark.parametrize(("make", "says"), [
    (lambda: leat.Loader(".", batchsize=3), "Loader has no argument 'batchsize'; did you mean 'batch_size'?"),
    (lambda: leat.Loader(".", bach_size=3), "did you mean 'batch_size'"),
    (lambda: leat.Loader(".", weights=[1]), r"no argument 'weights': give sampler=leat.WeightedSampler\(weights\)"),
    (lambda: leat.Loader(".", pad_to=8), r"no argument 'pad_to': give ops=\[…, leat.ops.PadTo\(…\)\]"),
    (lambda: leat.Loader(".", endpoint_url="x"), r"no argument 'endpoint_url': give storage_options="),
    (lambda: leat.Loader(".", num_worker=3), "no argument 'num_worker', nor 'num_workers': threads= decode"),
    (lambda: leat.Loader(".", quux=3), "no argument 'quux'; there are source, batch_size,"),
    (lambda: leat.research.Loader(".", fetchahead=3), "Loader has no argument 'fetchahead'"),
    (lambda: leat.Dataset(".", endpoint_url="x"), "Dataset has no argument 'endpoint_url': give storage_options="),
    (lambda: leat.Dataset(".", refesh="never"), "did you mean 'refresh'"),
    (lambda: leat.Dataset.tokens(".", dtype="u1", seqlen=1), "Dataset.tokens has no argument 'seqlen'; did you mean 'seq_len'"),
    (lambda: leat.Dataset.from_manifest(".", field={}), "did you mean 'fields'"),
    (lambda: leat.Cache(rams=1), "Cache has no argument 'rams'; did you mean 'ram'"),
    (lambda: leat.Cache(ram=1, placement="any"), r"no argument 'placement': .*leat.research.Cache\(placement=…\)"),
    (lambda: leat.Shuffle(windows=1), "did you mean 'window'"),
    (lambda: leat.WeightedSampler(weight=[1]), "did you mean 'weights'"),
    (lambda: leat.SizeBuckets("width", cont=2), "SizeBuckets has no argument 'cont'; did you mean 'count'"),
    (lambda: leat.ops.Resize(8, interpolate="box"), "Resize has no argument 'interpolate'; did you mean 'interpolation'"),
    (lambda: leat.ops.RandomInvert(probability=1), "RandomInvert has no argument 'probability'; there are p,"),
    (lambda: leat.testing.Bucket(".", latencies="1ms"), "did you mean 'latency'"),
    (lambda: importlib.import_module("leat.torch").DataLoader([1], batchsize=1), "DataLoader has no argument 'batchsize'; did you mean 'batch_size'"),
])  # fmt: skip
def test_an_unknown_argument_names_the_nearest(make, says):
    with pytest.raises(TypeError, match=says):
        make()


def test_a_loader_says_where_each_argument_of_a_dataset_goes():
    names = set(inspect.signature(leat.Dataset).parameters) - set(inspect.signature(leat.Loader).parameters) - {"url"}

    assert {"classes", "refresh", "as_of"} <= names
    for name in names:
        with pytest.raises(TypeError, match=rf"no argument '{name}': give it to leat\.Dataset\(url, {name}=…\)"):
            leat.Loader("somewhere", batch_size=1, train=True, **{name: "x"})


@pytest.mark.parametrize(("given", "says"), [
    ({"endpoint": "x"}, "no 'endpoint'; did you mean 'endpoint_url'"),
    ({"region": 3}, "'region': 3.*it is a str"),
    ({"no_sign_request": "yes"}, "it is a bool"),
    ("http://localhost", "it is a dict"),
])  # fmt: skip
def test_options_of_a_store_that_cannot_be_are_refused(given, says):
    for make in (leat.Dataset, lambda url, **options: leat.Loader(url, batch_size=1, shuffle="stream", **options)):
        with pytest.raises(leat.InvalidArgument, match=says):
            make("s3://bucket", storage_options=given)


def test_a_dataset_that_is_open_has_its_options(pictures):
    with pytest.raises(leat.InvalidArgument, match="give them to leat.Dataset"):
        leat.Loader(leat.Dataset(pictures), batch_size=1, train=False, storage_options={"region": "x"})


@pytest.mark.parametrize("policy", ["fifo", "windowed_belady"])
def test_policies_of_papers_are_in_research(policy):
    with pytest.raises(leat.InvalidArgument, match=r"leat.research.Cache\(policy="):
        leat.Cache(ram=1, policy=policy)
    assert leat.research.Cache(ram=1, policy=policy).policy == policy


def test_caches_take_the_policies_that_the_engine_has(monkeypatch):
    assert [name for name, _ in leat._native.cache_policies()] == ["belady", "windowed_belady", "never_evict", "lru", "fifo"]
    monkeypatch.setattr(leat._native, "cache_policies", lambda: [("newest_first", False), ("random", True)])

    assert leat.Cache(ram=1, policy="newest_first").policy == "newest_first"
    assert leat.research.Cache(ram=1, policy="random").policy == "random"
    with pytest.raises(leat.InvalidArgument, match=r"one of newest_first; .*leat.research.Cache\(policy='random'"):
        leat.Cache(ram=1, policy="random")
    with pytest.raises(leat.InvalidArgument, match="policy='lru'; it is one of newest_first, random$"):
        leat.research.Cache(ram=1, policy="lru")


def test_what_is_public_says_so():
    for name in leat.__all__:
        if isinstance(found := getattr(leat, name), type) and not issubclass(found, leat.Error):
            assert f"{found.__module__}.{found.__qualname__}" == f"leat.{name}"
    for folder in ("", "torch", "ops"):
        found = {path.stem for path in (ROOT / "python/leat" / folder).glob("*.py")}
        public = {name for name in found if not name.startswith("_")}
        assert public == ({"errors", "research", "testing", "trace"} if not folder else set()), folder


def includes_of(header: str, found: set[str]) -> set[str]:
    """`header` and whatever headers of ours it includes, directly or not."""
    if header not in found:
        found.add(header)
        for name in re.findall(r'^#include "leat/(.*)"', (ROOT / "leat" / header).read_text(), re.MULTILINE):
            includes_of(name, found)
    return found


def test_the_installed_headers_are_those_that_leat_h_includes():
    listed = re.search(r"set\(LEAT_PUBLIC_HEADERS\s+(.*?)\)", (ROOT / "cmake/install.cmake").read_text(), re.DOTALL)[1].split()

    assert len(listed) <= 15
    assert set(listed) == includes_of("leat.h", set())


def modules_after(program: str) -> set[str]:
    program += "\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_leat_imports_nothing_heavy():
    """As long as nothing is asked of it, in milliseconds."""
    found = modules_after("import leat")
    heavy = {"numpy", "torch", "multiprocessing", "subprocess", "urllib", "http", "email", "ssl", "socket", "json",
             "inspect", "dataclasses", "importlib.metadata", "concurrent", "asyncio", "ctypes"}  # fmt: skip
    assert found & heavy == set()
    assert {name for name in found if name.startswith("leat")} == {"leat", "leat._log", "leat._native", "leat.errors"}


def test_a_loader_needs_numpy_and_nothing_that_it_does_not_use():
    found = modules_after("import leat\nleat.Loader, leat.Dataset, leat.ops, leat.Cache")
    assert "numpy" in found
    unused = {"torch", "numpy.testing", "multiprocessing", "importlib.metadata", "http", "email", "ssl", "asyncio",
              "leat.testing", "leat.torch", "leat.research", "pyarrow", "pandas"}  # fmt: skip
    assert found & unused == set()


def test_names_that_come_late_are_there():
    assert set(leat.__all__) <= set(dir(leat))
    assert all(getattr(leat, name) is not None for name in leat.__all__)
    for name in leat._PLACES:
        assert getattr(leat, name).__module__ == "leat"
    with pytest.raises(AttributeError, match="module 'leat' has no attribute 'Loder'"):
        leat.Loder
