"""`leat query` and leat.Dataset.query: SQL over a catalogue's columns, against DuckDB's answers from plain tables."""

from __future__ import annotations

import csv
import io
import json
import pathlib
import pickle
import re
import subprocess

import numpy as np
import pytest

import leat
from leat import _query
from leat.testing import find_binary
from small_datasets import make_shards, run_python, tar_of, write

pytest.importorskip("duckdb", reason="pip install duckdb")
pyarrow = pytest.importorskip("pyarrow", reason="pip install pyarrow")


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([find_binary(), "query", *map(str, words)], capture_output=True, text=True, check=False)


def table_of(folder: pathlib.Path, rows: int = 200) -> leat.Dataset:
    """Objects of unequal sizes, with texts, numbers and fields that not every sample has."""
    rng = np.random.default_rng(3)
    lines = ["path,mask,label,width,score,caption"]
    for row in range(rows):
        write(folder / f"d/{row:04}.bin", rng.bytes(int(rng.integers(1, 90))))
        mask = f"d/{int(rng.integers(0, row + 1)):04}.bin" if row % 3 else ""
        width, score = rng.integers(-5, 5), rng.random()
        lines.append(f'd/{row:04}.bin,{mask},{"red green blue".split()[row % 3]},{width},{score},"a {row % 7} ""ü"""')
    write(folder / "table.csv", "\n".join(lines).encode())
    return leat.Dataset.from_manifest(
        folder / "table.csv", fields={"image": "path", "mask": "mask", "label": "label"},
        columns=["width", "score", "caption"],
    )  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> leat.Dataset:
    return table_of(tmp_path_factory.mktemp("table"))


def rows_of(dataset: leat.Dataset, sql: str) -> list[tuple]:
    columns = _query.run(dataset, sql).table.columns
    return list(zip(*(column.to_pylist() for column in columns)))


# --- Columns ---------------------------------------------------------------------------


def test_columns_are_those_of_the_catalogue(table):
    lengths = {
        name: [length if length >= 0 else None for length in table.lengths(name).tolist()] for name in ("image", "mask")
    }
    told = _query.run(table, "from samples").table.to_pydict()

    assert list(told) == [
        "index", "key", "size", "class", "image_bytes", "mask_bytes", "label", "width", "score", "caption",
    ]  # fmt: skip
    assert told["index"] == list(range(200))
    assert told["key"] == [table.key(number) for number in range(200)]
    assert told["image_bytes"] == lengths["image"] and told["mask_bytes"] == lengths["mask"]
    assert None in told["mask_bytes"]
    assert told["size"] == [a + (b or 0) for a, b in zip(lengths["image"], lengths["mask"])]
    assert told["class"] == [table.classes[label] for label in told["label"]]
    for name in ("label", "width", "score", "caption"):
        assert told[name] == list(table.column(name))


@pytest.mark.parametrize(
    "sql",
    [
        "select index from samples where width > 2",
        "select count(*) from samples",
        "select count(*) n, class from samples group by all order by class",
        "select samples from samples limit 2",
        "from samples natural join (select 2 as width)",
        "select s.index, t.key from samples s join samples t on s.width = t.index order by all",
        "select columns('.*_bytes') from samples order by index",
        "summarize samples",
        "with few as (select * from samples where key like '%7%') select max(size), min(caption) from few",
        "select a.index from (from samples) a where a.score = (select max(score) from samples)",
        'select "INDEX", "Caption" from SAMPLES where exists (select 1 where "WIDTH" = 1) order by 1',
        "select distinct on (class) class, key from samples order by class, key",
        "select key from samples positional join (select unnest([1, 2])) order by key",
    ],
)  # fmt: skip
def test_a_query_sees_all_columns_that_it_names_and_no_nulls_in_their_place(table, sql):
    import duckdb

    _, columns = _query.columns_of(table, pyarrow, {})
    with duckdb.connect() as connection:
        connection.register("samples", pyarrow.table({name: column.make() for name, column in columns.items()}))
        expected = connection.execute(sql).fetchall()
    found = rows_of(table, sql)

    assert len(found) == len(expected)
    assert found == expected or "order by" not in sql and sorted(map(repr, found)) == sorted(map(repr, expected))


def test_only_columns_that_the_plan_names_are_made(table, monkeypatch):
    made = []
    ask = _query._texts

    def counted(arrow, ends, data):
        made.append(len(ends) - 1)
        return ask(arrow, ends, data)

    monkeypatch.setattr(_query, "_texts", counted)

    table.query("select index from samples where width > 0")
    assert made == []
    table.query("select index from samples where caption like 'a 1%'")
    assert 200 in made


def test_a_field_called_as_a_column_of_ours_stays_itself(tmp_path):
    write(tmp_path / "a.bin", b"one")
    write(tmp_path / "t.csv", b"path,index,size\na.bin,7,70\na.bin,8,80\n")
    dataset = leat.Dataset.from_manifest(tmp_path / "t.csv", fields={"image": "path"}, columns=["index", "size"])

    assert rows_of(dataset, "select index, size, leat_index, leat_size from samples") == [(7, 70, 0, 3), (8, 80, 1, 3)]
    assert len(dataset.query("select leat_index from samples where index = 8")) == 1
    with pytest.raises(leat.InvalidArgument, match="called leat_index"):
        dataset.query("select index from samples")


# --- Samples ---------------------------------------------------------------------------


def test_a_query_gives_the_dataset_that_a_filter_gives(table):
    chosen = table.query("select index from samples where width > 2 and score < 0.7 and caption <> 'a 3 \"ü\"'")
    same = table.filter(lambda of: (of["width"] > 2) & (of["score"] < 0.7) & (of["caption"] != 'a 3 "ü"'))

    assert 0 < len(chosen) < 200 and chosen.digest == same.digest
    assert pickle.loads(pickle.dumps(chosen)).digest == chosen.digest


def test_order_by_is_the_order_and_without_it_numbers_are(table):
    ordered = table.query("select index from samples order by score desc limit 9")
    scores = ordered.column("score")

    assert list(scores) == sorted(table.column("score"), reverse=True)[:9]
    once = "select index from samples where index"
    apart = table.query(f"{once} = 7 union all {once} in (3, 7)")
    assert [apart.key(number) for number in range(3)] == [table.key(number) for number in (3, 7, 7)]


def test_a_shards_small_field_is_a_column_if_it_is_parsed(tmp_path):
    members = [((f"{i}.bin", b"x" * i), (f"{i}.cls", b"%d" % (i % 3))) for i in range(9)]
    write(tmp_path / "0.tar", tar_of([member for both in members for member in both]))
    dataset = leat.Dataset(tmp_path)

    chosen = dataset.query("select index from samples where cls = 1", parsed={"cls": int})
    assert [chosen.key(number) for number in range(len(chosen))] == ["1", "4", "7"]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("select key from samples", "called index"),
        ("select index from samples where false", "chooses no sample"),
        ("select index from samples; select 1", "2 statements"),
        ("drop table samples", "Only SELECT"),
        ("copy samples to 'x.csv'", "Only SELECT"),
        ("selec index", "syntax error"),
        ("select index from elsewhere", "elsewhere"),
        ("select index from table", "syntax error"),
        ("select nothing as index from samples", "nothing"),
        ("select null as index from samples", "whole number"),
        ("select 1.5 as index from samples", "whole number"),
        ("select index + 200 as index from samples", "no sample 200"),
        ("select index, index from samples", "called index"),
        ("select index from dataset", "dataset"),
        ("", "0 statements"),
    ],
)
def test_what_names_no_samples_is_refused(table, sql, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        table.query(sql)


def test_columns_that_differ_in_case_alone_are_refused(tmp_path):
    write(tmp_path / "a.bin", b"one")
    write(tmp_path / "t.csv", b"path,w,W\na.bin,7,70\n")
    dataset = leat.Dataset.from_manifest(tmp_path / "t.csv", fields={"image": "path"}, columns=["w", "W"])

    with pytest.raises(leat.InvalidArgument, match="'w' and 'W'"):
        dataset.query("select index from samples")


def test_without_duckdb_the_error_says_what_to_install(pictures):
    code = "import sys; sys.modules['duckdb'] = None\nimport leat\nleat.Dataset(sys.argv[1]).query(sys.argv[2])"
    ended = run_python(code, pictures, "select index from samples")

    assert "leat.errors.InvalidArgument" in ended.stderr and "pip install duckdb pyarrow" in ended.stderr


# --- The command -----------------------------------------------------------------------


def test_the_command_prints_rows(pictures):
    sql = "select class, count(*) as n, sum(size) as bytes from samples group by class order by class"
    told = json.loads(command(pictures, sql, "--json").stdout)
    printed = command(pictures, sql).stdout.splitlines()
    lines = list(csv.reader(io.StringIO(command(pictures, sql, "--csv").stdout)))

    assert told["columns"] == ["class", "n", "bytes"]
    assert [row[:2] for row in told["rows"]] == [["ant", 20], ["bee", 20], ["cat", 20]]
    assert sum(row[2] for row in told["rows"]) == leat.Dataset(pictures).nbytes
    assert printed[0].split() == told["columns"] == lines[0]
    assert [line.split() for line in printed[1:]] == [list(map(str, row)) for row in told["rows"]] == lines[1:]
    last = command(pictures, "select key from samples").stdout.splitlines()[-1]
    assert last == "… and 40 rows more (--most 0 prints all)"


def test_numbers_that_are_not_finite_are_null_in_json(pictures):
    columns = "'nan'::double as a, ['inf'::double, 1.5] as b, {'c': '-inf'::float} as d, 0.5 as e"
    ended = command(pictures, f"select {columns} from samples limit 1", "--json")

    def refuse(word: str) -> None:
        raise AssertionError(word)

    assert json.loads(ended.stdout, parse_constant=refuse)["rows"] == [[None, [None, 1.5], {"c": None}, 0.5]]


def test_a_list_is_text_in_csv(pictures):
    sql = "select class, list(index order by index)[:2] as first, map {'n': count(*)} as m from samples group by class"
    ended = command(pictures, f"{sql} order by class", "--csv")

    assert ended.returncode == 0, ended.stderr
    lines = list(csv.reader(io.StringIO(ended.stdout)))
    assert lines[:2] == [["class", "first", "m"], ["ant", "[0, 1]", '[["n", 20]]']]


def test_more_rows_than_can_be_may_be_printed(pictures):
    ended = command(pictures, "select key from samples", "--most", "99999999999999999999")

    assert len(ended.stdout.splitlines()) == 61, ended.stderr


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
@pytest.mark.parametrize("source", ["pictures", "table", "shards"])
def test_the_choice_is_written_as_a_manifest(source, ending, pictures, tmp_path, fresh_cache, monkeypatch):
    if source == "table":
        table_of(tmp_path)
        given = [tmp_path / "table.csv", "--manifest", "image=path", "--manifest", "label=label"]
        dataset = leat.Dataset.from_manifest(tmp_path / "table.csv", fields={"image": "path", "label": "label"})
    else:
        if source == "shards":
            make_shards(tmp_path / "in", 3, 20, 50)
        folder = pictures if source == "pictures" else tmp_path / "in"
        given, dataset = [folder], leat.Dataset(folder)
    sql = "select index from samples where index % 3 <> 1 order by size, key"
    ended = command(*given, sql, "--out", tmp_path / f"choice.{ending}")
    chosen = dataset.query(sql)

    assert ended.returncode == 0, ended.stderr
    first, line = ended.stdout.splitlines()
    assert first.endswith(f"choice.{ending}: {len(chosen)} samples; read them with")
    again = eval(line, {"leat": leat})
    assert 0 < len(again) == len(chosen) < len(dataset)
    assert [again[i] for i in range(len(again))] == [chosen[i] for i in range(len(chosen))]
    assert again.classes == chosen.classes


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--out", "x.csv"], r"\.parquet or \.jsonl"),
        (["--out", "s3://bucket/x.jsonl"], "a file of this machine; give a path"),
        (["--json", "--csv"], "one of them"),
        (["--parse", "cls=date"], "NAME=TYPE"),
        (["--most", "-1"], "0 or more"),
    ],
)
def test_wrong_usage_ends_with_2(pictures, words, says):
    ended = command(pictures, "select index from samples", *words)

    assert ended.returncode == 2 and re.search(says, ended.stderr)


def test_what_a_manifest_cannot_name_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(60, dtype=np.uint16))
    sql = "select index from samples"
    ended = command(tmp_path / "a.npy", "--tokens", "uint16:3", sql, "--out", tmp_path / "x.jsonl")

    assert ended.returncode == 2 and "numbers" in ended.stderr and not (tmp_path / "x.jsonl").exists()


def test_a_text_of_others_does_not_write_on_the_terminal(tmp_path):
    write(tmp_path / "a\x1b[31m.bin", b"x")
    write(tmp_path / "b.bin", b"x")

    assert "\x1b" not in command(tmp_path, "select key from samples").stdout
    assert "\x1b" not in command(tmp_path, 'select key as "\x1b[2J" from samples').stdout
    assert "\x1b" not in command(tmp_path, "select x from samples where key = '\x1b'").stderr


def test_the_names_of_others_do_not_write_on_the_terminal(tmp_path):
    write(tmp_path / "c\x1b[31m" / "a\n1.bin", b"x")
    write(tmp_path / "d" / "b\u202e.bin", b"x")

    def says(*words: object) -> str:
        done = subprocess.run([find_binary(), *map(str, words)], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    listed = says("ls", tmp_path)
    assert listed.splitlines()[0].endswith(r"c\x1b[31m/a\x0a1.bin") and len(listed.splitlines()) == 2
    for told in (listed, says("stat", tmp_path), says("ls", "--plain", tmp_path), says("ls", tmp_path / "no\x1b[31m")):
        assert told and "\x1b" not in told and "\u202e" not in told
