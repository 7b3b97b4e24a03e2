"""bench/deli_data.py says what of other data it cannot take, and where."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
import deli_data  # noqa: E402
import deli_tables  # noqa: E402

HEAD = "Batch Size,Fetch Size,Epoch,Data Loading Time (s),GCP Loading Time (s),Miss Rate,Epoch Run Time (s)"
ROW = "512,256,1,275.75,251.8,36.7%,419.57"


def write_table(folder: pathlib.Path, *rows: str, table: str = deli_tables.FITTED) -> pathlib.Path:
    path = folder / f"{table}.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def test_trials_are_averaged(tmp_path):
    write_table(tmp_path, ROW, ROW.replace("275.75", "277.75").replace("36.7", "0"))

    told = deli_tables.read_table(deli_tables.Source(tmp_path), deli_tables.FITTED)

    case = deli_tables.Case(deli_tables.FITTED, batch=512, fetch=256, threshold=0, items=deli_tables.Source(tmp_path).samples)
    assert list(told) == [(case, 1)]
    assert told[case, 1] == pytest.approx((0.1835, 276.75, 419.57, 251.8))


@pytest.mark.parametrize(("row", "says"), [
    ("512,256,1", "line 3: the row ends before its column 'Miss Rate'"),
    ("512,256,1,275.75,251.8", "line 3: the row ends before its column 'Miss Rate'"),
    (",256,1,275.75,251.8,36.7%,419.57", "line 3: 'Batch Size' is '', and a number from 0 on was expected"),
    ("512,256,1,long,251.8,36.7%,419.57", "line 3: 'Data Loading Time (s)' is 'long', and a number"),
    ("512,256,1,nan,251.8,36.7%,419.57", "line 3: 'Data Loading Time (s)' is 'nan', and a number"),
    ("51.2,256,1,275.75,251.8,36.7%,419.57", "line 3: 'Batch Size' is 51.2, and no whole number"),
    ("512,256,3,275.75,251.8,36.7%,419.57", "line 3: 'Epoch' is 3, and 2 are simulated, from 1 on"),
    ("256,256,1,475.75,251.8,36.7%,419.57", "line 3: 'Epoch Run Time (s)' is less than 'Data Loading Time (s)'"),
    ("256,256,1,0,0,36.7%,419.57", "line 3: 'Data Loading Time (s)' is 0, and errors are told as a share of it"),
    ("256,256,1,275.75,251.8,0%,419.57", "line 3: 'Miss Rate' is 0, and the time of a GET is fitted to reads that missed"),
])  # fmt: skip
def test_a_row_that_cannot_be_taken_is_named(row, says, tmp_path):
    path = write_table(tmp_path, ROW, row)

    with pytest.raises(deli_tables.OtherDataError) as raised:
        deli_tables.read_table(deli_tables.Source(tmp_path), deli_tables.FITTED)

    assert str(raised.value).startswith(f"{path}: {says}")


def test_a_row_cut_before_its_batch_size_is_named(tmp_path):
    path = tmp_path / f"{deli_tables.FITTED}.csv"
    path.write_text("Epoch,Batch Size\n1\n")

    with pytest.raises(deli_tables.OtherDataError, match="line 2: the row ends before its column 'Batch Size'"):
        deli_tables.read_table(deli_tables.Source(tmp_path), deli_tables.FITTED)


def test_no_misses_are_no_fault_of_a_table_that_is_predicted(tmp_path):
    write_table(tmp_path, ROW.replace("36.7", "0"), table="cache-size-results")

    assert [row.miss_rate for row in deli_tables.read_table(deli_tables.Source(tmp_path), "cache-size-results").values()] == [0]


def test_the_program_ends_with_one_line(tmp_path):
    path = write_table(tmp_path, "512,256,1,275.75,251.8,0%,419.57")

    done = run(tmp_path)

    assert done.returncode == 1
    assert done.stderr.startswith(f"deli_data: {path}: line 2: 'Miss Rate' is 0") and done.stderr.count("\n") == 1


def test_a_table_without_its_columns_is_named(tmp_path):
    path = tmp_path / f"{deli_tables.FITTED}.csv"
    path.write_text("time,place\n1,2\n")

    with pytest.raises(deli_tables.OtherDataError, match="has no column 'Epoch'"):
        deli_tables.read_table(deli_tables.Source(tmp_path), deli_tables.FITTED)


# --- another data set -------------------------------------------------------

READS, COMPUTE = 700, 0.01
CONSTANTS = deli_data.Constants(get=0.05, hit=0.002, fetch=5.0, fetch_sample=0.005)
OTHER_HEAD = "Batch Size,Fetch Size,Minimum Queue Size,Cache Size,Epoch,Data Loading Time (s),Miss Rate,Epoch Run Time (s)"
CASES = [
    deli_tables.Case("cache-size-results", batch=50, fetch=200, threshold=0, items=400),
    deli_tables.Case("min-queue-size", batch=50, fetch=200, threshold=100, items=400),
]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, deli_data.__file__, *map(str, words)], capture_output=True, text=True, check=False)


def write_other(folder: pathlib.Path, constants: deli_data.Constants, reads: int = READS, with_reads: bool = True) -> pathlib.Path:
    """Tables that the model misses by 10 % of the loading time, and by 3 points of the reads; with a threshold by 20 % and 6."""
    folder.mkdir()
    head = OTHER_HEAD + (",Number of Accesses" if with_reads else "")
    source = deli_tables.Source(folder, reads)
    predicted = deli_data.predict(source, CASES, COMPUTE, constants)
    for case in CASES:
        factor, points = (1.2, 6) if case.threshold else (1.1, 3)
        rows = [head]
        for epoch in (1, 2):
            missed, loading = predicted[case, epoch]
            loading /= factor
            rows.append(
                f"{case.batch},{case.fetch},{case.threshold},{case.items},{epoch},{loading:.6f},"
                f"{100 * missed + points:.4f}%,{loading + reads * COMPUTE:.6f}" + (f",{reads}" if with_reads else "")
            )
        (folder / f"{case.table}.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> tuple[pathlib.Path, deli_data.Constants]:
    """A folder whose tables have a row each, and the constants that are fitted to it."""
    folder = tmp_path_factory.mktemp("cifar")
    for name in (deli_tables.FITTED, *deli_tables.PREDICTED):
        write_table(folder, ROW, table=name)
    source = deli_tables.Source(folder)
    return folder, deli_data.fit(source, deli_tables.read_table(source, deli_tables.FITTED))[1]


@pytest.mark.parametrize("says_reads", [True, False])
def test_another_data_set_is_held_against_constants_that_never_saw_it(fitted, tmp_path, says_reads):
    folder, constants = fitted
    other = write_other(tmp_path / "other", constants, with_reads=not says_reads)

    done = run(folder, other, "--json", *(["--reads", READS] if says_reads else []))

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    [of_other] = told["others"]
    assert told["constants"] == pytest.approx(constants._asdict()) and told["reads"] == 11_667
    assert (of_other["folder"], of_other["reads"]) == (str(other), READS)
    assert of_other["compute_seconds_a_sample"] == pytest.approx(COMPUTE, rel=1e-4)
    for errors, plain, threshold in (("errors", "cache-size-results", "min-queue-size"), ("errors_by_threshold", "T = 0", "T > 0")):
        assert of_other[errors].keys() == {plain, threshold}
        for name, points, per_cent in ((plain, 3, 10), (threshold, 6, 20)):
            for measure in ("median", "worst"):
                assert of_other[errors][name][f"{measure}_points"] == pytest.approx(points, abs=0.01)
                assert of_other[errors][name][f"{measure}_per_cent"] == pytest.approx(per_cent, abs=0.01)
    assert of_other["not_predicted"] == {
        f"{name}.csv": "there is none"
        for name in ("fetch-size-results", "fifty_fifty_full_fetch", "baseline-cache", "baseline-gcp")
    }


def test_it_is_told_in_words_too(fitted, tmp_path):
    folder, constants = fitted
    done = run(folder, write_other(tmp_path / "other", constants))

    head, _, of_other = done.stdout.partition(f"\n{tmp_path / 'other'}, {READS} reads of a node in an epoch:\n")
    assert f"{folder}, 11667 reads" in head
    assert " ".join(of_other.partition("T > 0 ")[2].splitlines()[0].split()) == "2 6.0, 6.0 20.0, 20.0"
    assert "not predicted: baseline-gcp.csv: there is none" in of_other


def cut_short(other: pathlib.Path) -> None:
    path = other / "min-queue-size.csv"
    path.write_text(path.read_text().rpartition(",")[0].rpartition(",")[0] + "\n")


def of_two_sizes(other: pathlib.Path) -> None:
    path = other / "min-queue-size.csv"
    path.write_text(path.read_text().replace(f",{READS}\n", ",900\n", 1))


def without_sizes(other: pathlib.Path) -> None:
    for path in other.glob("*.csv"):
        path.write_text(path.read_text().replace("Number of Accesses", "Reads"))


def of_four_nodes(other: pathlib.Path) -> None:
    path = other / "min-queue-size.csv"
    path.write_text(path.read_text().replace("Minimum Queue Size", "Node"))


def emptied(other: pathlib.Path) -> None:
    for path in other.glob("*.csv"):
        path.unlink()


@pytest.mark.parametrize(("change", "says"), [
    (cut_short, "min-queue-size.csv: line 3: the row ends before its column"),
    (of_two_sizes, ": 'Number of Accesses', the reads of a node, is 700 and 900 in its tables: say which with --reads"),
    (without_sizes, ": 'Number of Accesses', the reads of a node, is in none of its tables: say which with --reads"),
    (of_four_nodes, "min-queue-size.csv: line 2: 'Node' is 100, and 3 are simulated"),
    (emptied, ": is no folder, or has none of fetch-size-results.csv, cache-size-results.csv"),
])  # fmt: skip
def test_other_data_that_cannot_be_taken_is_named_in_one_line(fitted, tmp_path, change, says):
    folder, _ = fitted
    change(other := write_other(tmp_path / "other", CONSTANTS))

    done = run(folder, other)

    assert done.returncode == 1
    assert done.stderr.startswith(f"deli_data: {other}") and says in done.stderr and done.stderr.count("\n") == 1
