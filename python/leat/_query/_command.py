"""`leat query`: rows of a query, printed; and the samples that they name, written as a manifest."""

from __future__ import annotations

import argparse
import decimal
import json
import math
import sys
from typing import Any

from leat import _query
from leat._progress import Progress
from leat._query import _manifest
from leat.errors import InvalidArgument

_PARSERS: dict[str, Any] = {"int": int, "float": float, "str": str}


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    from leat._commands import add_source, add_store

    parser.description = (
        "Runs SQL over the table samples: a row is a sample, and the columns are index, key, size, class, the length "
        "of each field of bytes (NAME_bytes) and what the catalogue has. Needs duckdb and pyarrow. No object is read."
    )
    add_source(parser, "the dataset: a URL, a path or a pattern")
    parser.add_argument("sql", metavar="SQL", help="one SELECT")
    parser.add_argument("--parse", metavar="NAME=TYPE", action="append", default=[],
                        help="reads a small field of bytes of all samples, such as a shard's cls, as a column of int, "
                             "float or str; may be repeated")  # fmt: skip
    parser.add_argument("--as-of", metavar="TIME", help="the dataset as a snapshot has it: leat index --snapshot")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="rows that are printed (20); 0: all")
    parser.add_argument("--json", action="store_true", help="print JSON: the columns, and all rows")
    parser.add_argument("--csv", action="store_true", help="print CSV: all rows")
    parser.add_argument("--out", metavar="FILE",
                        help="write the samples that the column index names as a manifest, .parquet or .jsonl, for "
                             "leat.Dataset.from_manifest")  # fmt: skip
    add_store(parser)
    parser.epilog = (
        "Example:\n  leat query s3://bucket/photos 'select class, count(*), sum(size) from samples group by all'"
    )


def run(options: argparse.Namespace) -> None:
    """Does it."""
    from leat._commands import source_of, store_of

    if options.most < 0:
        raise InvalidArgument(f"--most {options.most}; it is 0 or more")
    if options.json and options.csv:
        raise InvalidArgument("--json and --csv: one of them")
    if options.out is not None:
        _manifest.check_name(options.out)
    parsers = _parsers(options.parse)
    with Progress("reading the catalogue and running the query"):
        dataset = source_of(options, store_of(options), as_of=options.as_of)
        answer = _query.run(dataset, options.sql, parsers)
    if options.out is None:
        _print(answer.table, options)
        return
    chosen = dataset.select(_query.samples_of(answer, options.sql))
    told = _manifest.write(chosen, options.out)
    if options.json:
        print(json.dumps({"manifest": options.out, "samples": len(chosen), "arguments": told}))
        return
    print(f"{options.out}: {len(chosen):,} samples; read them with")
    print(_manifest.call_of(options.out, told))


def _parsers(given: list[str]) -> dict[str, Any]:
    parsers = {}
    for word in given:
        name, _, kind = word.rpartition("=")
        if not name or kind not in _PARSERS:
            raise InvalidArgument(f"--parse {word}: write NAME=TYPE; a type is {', '.join(_PARSERS)}")
        parsers[name] = _PARSERS[kind]
    return parsers


def _print(table: Any, options: argparse.Namespace) -> None:
    if options.csv:
        from pyarrow import csv

        csv.write_csv(_flat(table), sys.stdout.buffer)
        return
    names = table.column_names
    shown = table.slice(0, min(options.most, table.num_rows)) if options.most and not options.json else table
    rows = list(zip(*(column.to_pylist() for column in shown.columns)))
    if options.json:
        print(json.dumps({"columns": names, "rows": _finite(rows)}, default=_plain))
        return
    lines = [[_cell(name) for name in names], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(names))]
    is_number = [str(kind).startswith(("int", "uint", "double", "float", "decimal")) for kind in shown.schema.types]
    for line in lines:
        cells = zip(line, widths, is_number)
        print("  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells).rstrip())
    if table.num_rows > len(rows):
        print(f"… and {table.num_rows - len(rows):,} rows more (--most 0 prints all)")


def _flat(table: Any) -> Any:
    """CSV has no lists: a column of them becomes text, as JSON has it."""
    import pyarrow as arrow

    for place, column in enumerate(table.columns):
        if arrow.types.is_nested(column.type):
            values = column.to_pylist()
            texts = [None if value is None else json.dumps(_finite(value), default=_plain) for value in values]
            table = table.set_column(place, table.column_names[place], arrow.array(texts, arrow.string()))
    return table


def _finite(value: Any) -> Any:
    """JSON has no NaN and no Infinity: they become null, in lists and structs too."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return {name: _finite(each) for name, each in value.items()} if isinstance(value, dict) else value


def _plain(value: Any) -> Any:
    """A value that JSON has no form for: a sum, which DuckDB gives as a decimal, as a number; any other as text."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == int(value) else float(value)
    return str(value)


def _cell(value: Any) -> str:
    """Texts of others cannot write on the terminal."""
    if value is None:
        return ""
    text = str(value)
    return text if text.isprintable() else repr(text)
