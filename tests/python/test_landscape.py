"""`./dev bench landscape`: it measures, verifies what it measured, and goes on where it stopped."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("xxhash", reason="xxhash is not installed")
ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import numpy as np  # noqa: E402

import defaults_bench  # noqa: E402
import landscape_page  # noqa: E402
import landscape_way  # noqa: E402
from landscape_peers import PEERS  # noqa: E402
from landscape_regimes import DATA, REGIMES  # noqa: E402
from landscape_results import Results  # noqa: E402
from landscape_sweep import Knob, beyond, sweep  # noqa: E402


def quick(home: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "bench/run.py", "landscape", "--quick", "--json", "--home", home, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows_of(done: subprocess.CompletedProcess[str]) -> dict[str, list[dict]]:
    assert done.returncode == 0, done.stderr
    tables = [json.loads(line) for line in done.stdout.splitlines()]
    return {table["bench"].partition(":")[0]: table["rows"] for table in tables}


def test_other_bytes_are_a_row_that_failed(tmp_path):
    words = ("--peers", "leat", "--only", "quick-files")
    rows_of(quick(tmp_path, *words))
    file = tmp_path / "quick/data/quick-raw/000007.bin"
    body = bytearray(file.read_bytes())
    body[-1] ^= 1
    file.write_bytes(body)

    (row,) = rows_of(quick(tmp_path, *words, "--fresh"))["quick-files"]

    assert row == {"way": "leat", "failed": "wrong content: 1 samples with other bytes"}


def test_a_budget_that_is_spent_ends_it_and_nothing_is_lost(tmp_path):
    done = quick(tmp_path, "--budget", "0s")

    assert done.returncode == 0 and done.stdout == ""
    assert "0 measured now" in done.stderr


def test_a_regime_that_is_not_there_is_named(tmp_path):
    done = quick(tmp_path, "--only", "objects-5k")

    assert done.returncode == 1 and "no regime is called objects-5k" in done.stderr


@pytest.mark.parametrize(
    ("best", "start"), [(0, (2, 4)), (1, (2, 4, 8)), (4, (2, 4, 8)), (16, (2, 4, 8)), (64, (2, 4)), (30, (2, 4))]
)
def test_a_sweep_goes_on_while_its_best_is_at_an_end(best, start):
    knob, tried = Knob(start, 0, 64), []

    def rate_of(setting):
        tried.append(setting["workers"])
        return -abs(setting["workers"] - best)

    found = sweep({"workers": knob}, rate_of, lambda text: None)["workers"]

    assert len(set(tried)) == len(tried)
    assert abs(found - best) == min(abs(value - best) for value in tried)
    assert found in (0, 64) or min(tried) < found < max(tried)
    assert beyond(knob, {value: rate_of({"workers": value}) for value in set(tried)}) is None


def test_later_knobs_are_tried_at_the_best_of_earlier_ones():
    def rate_of(setting):
        return -abs(setting["workers"] - 4) - abs(setting["threads"] - 32)

    knobs = {"workers": Knob((1, 2), 0, 64), "threads": Knob((8, 16), 1, 256)}

    assert sweep(knobs, rate_of, lambda text: None) == {"workers": 4, "threads": 32}


def test_each_worker_has_its_batches():
    assert Knob((2, 4, 8), 0, 64).within(3) == Knob((2, 3), 0, 3)


def key_of(**changed):
    return {
        "regime": "a",
        "peer": "b",
        "setting": {"workers": 2},
        "run": 0,
        "versions": {},
        "commit": "c",
        "where": "d",
        **changed,
    }


def test_a_line_that_a_stop_cut_off_is_measured_again(tmp_path):
    file = tmp_path / "results.jsonl"
    results = Results(file)
    results.add(key_of(), {"samples": 1})
    results.add(key_of(run=1), {"samples": 2})
    file.write_text(file.read_text()[:-5])

    again = Results(file)

    assert again.of(key_of())["samples"] == 1 and again.of(key_of(run=1)) is None
    assert again.of(key_of(commit="e")) is None and again.of(key_of(setting={"workers": 4})) is None
    again.add(key_of(run=1), {"samples": 3})
    assert Results(file).of(key_of(run=1))["samples"] == 3


def test_hashes_of_small_rows_tell_each_byte_and_its_place():
    rows = np.random.default_rng(1).integers(0, 256, (50, 100), np.uint8)
    usual = landscape_way.hashes_of_small(rows)
    changed = rows.copy()
    changed[range(50), np.arange(50) * 2] ^= 1
    swapped = rows.reshape(50, 25, 4)[:, ::-1].reshape(50, 100).copy()

    assert len(set(usual.tolist())) == 50
    assert not (usual == landscape_way.hashes_of_small(changed)).any()
    assert not (usual == landscape_way.hashes_of_small(swapped)).any()


def test_the_tables_fit_each_other():
    for name, regime in REGIMES.items():
        assert regime.data in DATA, name
        assert DATA[regime.data].kind == "many" or DATA[regime.data].samples >= 20 * regime.batch, name
        assert PEERS["leat"].reads(regime), name
    for peer in PEERS.values():
        assert not peer.needs or (ROOT / f"bench/landscape-requirements/{peer.needs}.txt").is_file(), peer.about


ROW = {
    "mad": 3.0,
    "first_batch_s": "0.30",
    "gets_a_sample": "1.000",
    "cpu_us": 20.0,
    "peak_mb": 90,
    "setting": "default",
    "whole": "yes",
}


def published(folder: pathlib.Path, rows: list[dict]) -> pathlib.Path:
    tables = [{"title": f"objects-4k: {REGIMES['objects-4k'].about}", "rows": rows},
              {"title": "versions", "rows": [{"way": "torch", "packages": "torch 2.13.0"}]}]  # fmt: skip
    machine = {"cpu": "a", "cpus": 2, "python": "3.11", "commit": "b"}
    kept = {"command": "./dev bench landscape", "date": "2026-11-26", "machine": machine, "tables": tables}
    (folder / "landscape.json").write_text(json.dumps(kept))
    return folder


def test_without_a_whole_run_there_is_no_page(tmp_path):
    assert landscape_page.page(tmp_path) is None and landscape_page.pictures(tmp_path) == {}


def test_the_page_is_what_was_published():
    page = landscape_page.page(ROOT / "bench/published")
    assert (landscape_page.PAGE.read_text() if landscape_page.PAGE.is_file() else None) == page, (
        "run: ./dev bench --publish"
    )


def test_the_page_has_the_figures_what_failed_and_the_versions(tmp_path):
    rows = [{"way": "leat", "samples_per_s": 9000.0, "leat_over": "1.00", **ROW},
            {"way": "torch", "samples_per_s": 3000.0, "leat_over": "3.00", **ROW},
            {"way": "ray", "failed": "pip failed: no"}]  # fmt: skip

    page = landscape_page.page(published(tmp_path, rows))
    picture = landscape_page.pictures(tmp_path)["objects-4k.svg"]

    assert "| torch | 3,000 ± 3 | 3.00 | 0.30 | 1.000 | 20 | 90 | default | yes |" in page
    assert "| Objects of 4 KB from a bucket | ray | pip failed: no |" in page and "torch 2.13.0" in page
    assert ">leat<" in picture and ">torch<" in picture and ">3,000/s<" in picture


def test_defaults_are_compared_with_the_best_setting_and_with_the_fastest_of_others():
    rows = [{**ROW, "way": "leat", "samples_per_s": 950.0, "leat_over": "1.00", "leat_over_mad": "0.00", "peak_mb": 200},
            {**ROW, "way": "leat-tuned", "samples_per_s": 1000.0, "leat_over": "0.95", "leat_over_mad": "0.02"},
            {**ROW, "way": "torch", "samples_per_s": 316.0, "leat_over": "3.00"},
            {**ROW, "way": "spdl", "samples_per_s": 475.0, "leat_over": "2.00"}]  # fmt: skip
    row = defaults_bench.row_of("objects-4k", rows)
    assert (row["default"], row["best"], row["of_best"]) == (950.0, 1000.0, "0.95 ± 0.02")
    assert (row["mb"], row["best_mb"], row["first"]) == (200, 90, "2.00 x spdl")
    assert "boom" in defaults_bench.row_of("x", [rows[0], {"way": "leat-tuned", "failed": "boom"}])["failed"]


def test_a_row_that_is_not_won_needs_its_reason(tmp_path, monkeypatch):
    rows = [{"way": "leat", "samples_per_s": 9000.0, "leat_over": "1.00", **ROW},
            {"way": "spdl", "samples_per_s": 8000.0, "leat_over": "1.12", **ROW}]  # fmt: skip
    published(tmp_path, rows)

    with pytest.raises(KeyError, match="objects-4k/spdl: Leat is 1.12 times as fast"):
        landscape_page.page(tmp_path)
    monkeypatch.setitem(landscape_page.REASONS, "objects-4k", "the link is full")

    assert "| Objects of 4 KB from a bucket | spdl | 1.12 | the link is full |" in landscape_page.page(tmp_path)
