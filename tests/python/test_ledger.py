"""A run's requests are those that the bucket counted, and they cost what the price
list says."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

import pytest

import leat
from profiling import profile, report_of


def bench(folder, *words: str, **variables: str) -> dict:
    done = subprocess.run(
        ["leat", "bench", "--json", "--global-batch-size", "10", "--epochs", "2", *words],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "LEAT_CACHE_DIR": str(folder / "cache"), **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def data(tmp_path):
    (tmp_path / "store/b").mkdir(parents=True)
    for number in range(60):
        (tmp_path / "store/b" / f"{number:03}").write_bytes(bytes(1000))
    return tmp_path / "store"


def test_the_ledger_is_what_the_bucket_counted(data, tmp_path):
    with leat.testing.Bucket(data, latency="10ms") as bucket:
        report = bench(tmp_path, "s3://b", "--nat", "--node-per-hour", "36",
                       LOCAL_WORLD_SIZE="2", LOCAL_RANK="0", RANK="0", WORLD_SIZE="2", **bucket.env())  # fmt: skip
        counted = bucket.counters()

    ledger = report["ledger"]
    assert ledger["gets"] == counted["get"] >= 60
    assert ledger["lists"] == counted["list"] >= 1
    assert 60_000 <= ledger["bytes"] <= counted["bytes"]
    waited = sum(epoch["wait_seconds"] for epoch in report["epochs"])
    assert ledger["stalled_accelerator_seconds"] == pytest.approx(waited) and waited > 0
    # Two accelerators share the node: 36 dollars an hour are half a cent a second for each.
    assert ledger["stalled_dollars"] == pytest.approx(waited * 0.005)
    assert ledger["request_dollars"] == pytest.approx(ledger["gets"] * 4e-7 + ledger["lists"] * 5e-6)
    assert ledger["transfer_dollars"] == pytest.approx(ledger["bytes"] * 0.045e-9)


@pytest.fixture
def accelerators(tmp_path):
    """Variables for which a program finds an NVML that knows devices of this many watts."""
    folder = pathlib.Path(leat.testing.find_binary()).resolve().parent.parent / "testing/nvml"
    if not (folder / "libnvidia-ml.so.1").exists():
        pytest.skip("no accelerator is needed, but the stand-in for NVML, which is built with the tests "
                    f"(./dev test): there is none in {folder}")  # fmt: skip

    def of(*devices: str) -> dict[str, str]:
        (tmp_path / "devices").write_text("".join(f"{device}\n" for device in devices))
        return {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML": str(tmp_path / "devices")}

    return of


def test_energy_of_accelerators_is_what_nvml_counts(data, tmp_path, accelerators):
    begin = time.monotonic()
    ledger = bench(tmp_path, str(data / "b"), "--step-time", "40ms", **accelerators("250 W", "50 W"))["ledger"]
    took = time.monotonic() - begin

    assert 12 * 0.04 * 300 <= ledger["accelerator_joules"] <= 300 * took


@pytest.mark.parametrize("devices", [["250 W", "error 3"], []], ids=["one does not tell", "no driver"])
def test_energy_that_cannot_be_read_is_left_out(devices, data, tmp_path, accelerators):
    assert "accelerator_joules" not in bench(tmp_path, str(data / "b"), **accelerators(*devices))["ledger"]


def test_a_profile_has_the_power_of_the_steps_that_count(data, tmp_path, accelerators):
    (tmp_path / "project").mkdir()
    (tmp_path / "project/train.py").write_text(
        "import leat, time\n"
        f"for batch in leat.Loader({str(data / 'b')!r}, batch_size=1, shuffle=True, fields=('data',)): time.sleep(0.1)\n"
    )

    report = report_of(profile(
        tmp_path / "project", "--steps", "8", "--warmup", "1", "--repeats", "1", "--",
        sys.executable, "train.py", **accelerators("250 W"),
    ))  # fmt: skip

    told = report["ledger"]["accelerator_joules"] / (1000 * report["step_seconds"])
    assert told == pytest.approx(250, rel=0.2), "watts"


def test_metrics_and_the_ledger_of_a_loader_are_what_the_bucket_counted(data, tmp_path, monkeypatch):
    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LEAT_NAT", "1")
    with leat.testing.Bucket(data) as bucket:
        for name, value in {**bucket.env(), "LEAT_PROVIDER": "s3"}.items():
            monkeypatch.setenv(name, value)
        with leat.Loader("s3://b", batch_size=10, shuffle=True, fields=("data",), epochs=1) as loader:
            for _ in loader:
                pass
            metrics, ledger = loader.metrics(), loader.ledger()
        counted = bucket.counters()

    assert ledger["provider"] == "s3"
    assert metrics["leat_store_reads_total"] == ledger["gets"] == counted["get"] >= 60
    assert metrics["leat_store_lists_total"] == ledger["lists"] == counted["list"] >= 1, "of opening the dataset"
    assert metrics["leat_store_read_bytes_total"] == ledger["bytes"] >= 60_000
    asked = ledger["gets"] * 4e-7 + ledger["lists"] * 5e-6
    assert metrics["leat_store_request_nanodollars_total"] * 1e-9 == pytest.approx(asked, abs=1e-9)
    assert ledger["request_dollars"] == pytest.approx(asked)
    assert metrics["leat_store_transfer_nanodollars_total"] == round(ledger["bytes"] * 0.045)
    assert ledger["transfer_dollars"] == pytest.approx(ledger["bytes"] * 0.045e-9)
    assert ledger["stalled_dollars"] == 0, "nobody said what the node costs"


def test_a_loader_invents_no_price(data, tmp_path, monkeypatch):
    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LEAT_PROVIDER", raising=False)
    with leat.testing.Bucket(data) as bucket:
        for name, value in bucket.env().items():
            monkeypatch.setenv(name, value)
        with leat.Loader("s3://b", batch_size=10, shuffle=True, fields=("data",)) as loader:
            metrics, ledger = loader.metrics(), loader.ledger()

    assert not [name for name in metrics if name.startswith("leat_store") and "dollars" in name]
    assert not {"provider", "request_dollars", "transfer_dollars"} & set(ledger)


def test_a_provider_that_nobody_knows_is_refused_by_a_loader(data, monkeypatch):
    monkeypatch.setenv("LEAT_PROVIDER", "ibm")

    with pytest.raises(leat.InvalidArgument, match="LEAT_PROVIDER: .*gcs, s3"):
        leat.Loader(str(data / "b"), batch_size=5, shuffle=True)


def test_metrics_have_the_energy_where_nvml_tells(data, accelerators):
    script = (
        f"import leat, time\n"
        f"loader = leat.Loader({str(data / 'b')!r}, batch_size=5, shuffle=True)\n"
        "name = 'leat_runtime_accelerator_millijoules_total'\n"
        "begin = time.monotonic()\n"
        "while name not in loader.metrics(): time.sleep(0.01)\n"
        "first = loader.metrics()[name], time.monotonic()\n"
        "time.sleep(0.2)\n"
        "assert loader.metrics()[name] - first[0] >= 0.2 * 250e3\n"
        "assert loader.ledger()['accelerator_joules'] <= 250 * (1 + time.monotonic() - begin)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env={**os.environ, **accelerators("250 W")})


def test_metrics_have_the_price_of_the_time_stalled(data, monkeypatch):
    for name, value in {"LEAT_NODE_PER_HOUR": "36", "RANK": "0", "WORLD_SIZE": "2",
                        "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    with leat.Loader(str(data / "b"), batch_size=5, shuffle=True, fields=("data",)) as loader:
        for _ in range(2):
            for _ in loader:
                pass
        waited = sum(epoch["wait_seconds"] for epoch in loader.stats())
        metrics = loader.metrics()

    assert metrics["leat_pipeline_stalled_nanoseconds_total"] == pytest.approx(1e9 * waited) and waited > 0
    # Half of a cent a second; each of a few waits is rounded to a billionth of a dollar.
    assert metrics["leat_pipeline_stalled_nanodollars_total"] == pytest.approx(1e9 * waited * 0.005, abs=50)


def test_the_agent_of_the_node_shows_the_ledger_of_a_job(data, tmp_path, accelerators):
    with leat.testing.Bucket(data) as bucket, contextlib.ExitStack() as stack:
        def run(*words: str, **variables: str) -> subprocess.Popen:
            process = subprocess.Popen(
                ["leat", *words], text=True, stdout=subprocess.PIPE,
                env={**os.environ, **bucket.env(), "LEAT_AGENT": str(tmp_path / "a"), "LEAT_CACHE_DIR": str(tmp_path / "cache"), **variables},
            )  # fmt: skip
            stack.callback(process.communicate)
            stack.callback(process.kill)
            return process

        agent = run("agent", "--port", "0", **accelerators("250 W"))
        page = next(line.split()[1] for line in agent.stdout if line.startswith("showing "))
        run("bench", "s3://b", "--global-batch-size", "5", "--epochs", "1000000", "--step-time", "1ms", "--no-hash", "--json",
            LEAT_NODE_PER_HOUR="3600", LEAT_PROVIDER="s3", LEAT_NAT="1")  # fmt: skip
        told: dict[str, float] = {}
        ends = time.monotonic() + 60
        while not (told.get("stalled_dollars", 0) > 0 and told.get("read_bytes", 0) >= 1000) and time.monotonic() < ends:
            time.sleep(0.1)
            with urllib.request.urlopen(page + "/metrics", timeout=60) as answer:
                text = answer.read().decode()
            told = {name: float(value) for name, value in re.findall(r'^leat_agent_(\w+)_total\{job="1"\} (\S+)$', text, re.M)}
        joules = re.search(r'^leat_agent_node_joules_total\{of="accelerators"\} (\S+)$', text, re.M)

    assert told["lists"] >= 1
    assert told["request_dollars"] == pytest.approx(told["reads"] * 4e-7 + told["lists"] * 5e-6)
    assert told["transfer_dollars"] == pytest.approx(told["read_bytes"] * 0.045e-9)
    assert told["read_bytes"] >= 1000
    assert told["stalled_seconds"] > 0
    assert joules is not None and float(joules[1]) > 0


@pytest.mark.parametrize("price", ["much", "-1", "nan", "1e300", "3 "])
def test_a_price_that_is_none_is_refused(price, data, monkeypatch):
    monkeypatch.setenv("LEAT_NODE_PER_HOUR", price)

    with pytest.raises(leat.InvalidArgument, match="LEAT_NODE_PER_HOUR="):
        leat.Loader(str(data / "b"), batch_size=5, shuffle=True)


def test_a_command_takes_the_price_from_the_environment(data, tmp_path):
    ledger = bench(tmp_path, str(data / "b"), LEAT_NODE_PER_HOUR="3600")["ledger"]

    assert ledger["stalled_dollars"] == pytest.approx(ledger["stalled_accelerator_seconds"]) and ledger["stalled_dollars"] > 0


def test_a_provider_that_nobody_knows_is_wrong_usage(data):
    done = subprocess.run(["leat", "bench", str(data / "b"), "--global-batch-size", "10", "--provider", "ibm"],
                          capture_output=True, text=True, timeout=60)  # fmt: skip

    assert done.returncode == 2
    assert "ibm" in done.stderr
