"""bench/deli_data.py says what of other data it cannot take, and where."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
import deli_data  # noqa: E402

HEAD = "Batch Size,Fetch Size,Epoch,Data Loading Time (s),GCP Loading Time (s),Miss Rate,Epoch Run Time (s)"
ROW = "512,256,1,275.75,251.8,36.7%,419.57"


def write_table(folder: pathlib.Path, *rows: str, table: str = deli_data.FITTED) -> pathlib.Path:
    path = folder / f"{table}.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def test_trials_are_averaged(tmp_path):
    write_table(tmp_path, ROW, ROW.replace("275.75", "277.75").replace("36.7", "0"))

    told = deli_data.read_table(tmp_path, deli_data.FITTED)

    case = deli_data.Case(deli_data.FITTED, batch=512, fetch=256, threshold=0, items=deli_data.ENDLESS)
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
    ("256,256,1,0,0,36.7%,419.57", "line 3: 'Data Loading Time (s)' is 0, and errors are told as a share of it"),
    ("256,256,1,275.75,251.8,0%,419.57", "line 3: 'Miss Rate' is 0, and the time of a GET is fitted to reads that missed"),
])  # fmt: skip
def test_a_row_that_cannot_be_taken_is_named(row, says, tmp_path):
    path = write_table(tmp_path, ROW, row)

    with pytest.raises(deli_data.OtherDataError) as raised:
        deli_data.read_table(tmp_path, deli_data.FITTED)

    assert str(raised.value).startswith(f"{path}: {says}")


def test_a_row_cut_before_its_batch_size_is_named(tmp_path):
    path = tmp_path / f"{deli_data.FITTED}.csv"
    path.write_text("Epoch,Batch Size\n1\n")

    with pytest.raises(deli_data.OtherDataError, match="line 2: the row ends before its column 'Batch Size'"):
        deli_data.read_table(tmp_path, deli_data.FITTED)


def test_no_misses_are_no_fault_of_a_table_that_is_predicted(tmp_path):
    write_table(tmp_path, ROW.replace("36.7", "0"), table="cache-size-results")

    assert [row.miss_rate for row in deli_data.read_table(tmp_path, "cache-size-results").values()] == [0]


def test_the_program_ends_with_one_line(tmp_path):
    path = write_table(tmp_path, "512,256,1,275.75,251.8,0%,419.57")

    done = subprocess.run(
        [sys.executable, deli_data.__file__, str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert done.stderr.startswith(f"deli_data: {path}: line 2: 'Miss Rate' is 0") and done.stderr.count("\n") == 1
