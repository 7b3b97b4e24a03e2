"""SQL over the columns of a catalogue, by DuckDB: `leat.Dataset.query` and `leat query`.

The columns go to DuckDB as Arrow arrays, with no Python object for each sample. A query names
few of them, so DuckDB first plans it over a table of no rows: only the columns that the plan
names are made of all samples.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leat import _native
from leat.errors import InvalidArgument

if TYPE_CHECKING:
    from leat._dataset import Dataset

TABLE = "samples"


class Column(NamedTuple):
    """A column of the table, made only if a query names it."""

    kind: Any
    """Arrow's type."""
    make: Callable[[], Any]


class Answer(NamedTuple):
    """The rows that a query gave."""

    table: Any
    """Arrow's."""
    number_column: str
    """The name of the column of sample numbers, as `columns_of` gave it."""
    is_ordered: bool
    """The query says in which order its rows come."""


def run(dataset: Dataset, sql: str, parsed: Mapping[str, Callable[[bytes], Any]] | None = None) -> Answer:
    """The rows of a query over the table ``samples``.

    Raises:
        leat.InvalidArgument: duckdb or pyarrow is missing; the query is not one SELECT, or DuckDB
            refuses it; columns that DuckDB cannot tell apart.
    """
    duckdb, arrow = _modules()
    index, columns = columns_of(dataset, arrow, parsed or {})
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        # A name in a query is a table, and never a variable of this module.
        connection.execute("SET python_enable_replacements = false").fetchall()
        try:
            is_ordered = _is_ordered(connection, sql)
            _register(connection, arrow, columns, set(), 0)
            named = _named(connection, sql, columns)
            _register(connection, arrow, columns, named, len(dataset))
            if not (more := _named(connection, sql, columns)) <= named:  # The plan of the whole table is another one.
                _register(connection, arrow, columns, named | more, len(dataset))
            table = connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise InvalidArgument(f"the query {sql!r}: {error}") from None
    return Answer(table, index, is_ordered)


def samples_of(answer: Answer, sql: str) -> np.ndarray:
    """The samples that the rows name: in the order of a query that says one, else by number.

    Raises:
        leat.InvalidArgument: the rows have no column of sample numbers, or there are no rows.
    """
    table, index, is_ordered = answer
    names = [name for name in table.column_names if name.lower() == index]
    if len(names) != 1 or table.column_names.count(names[0]) != 1:
        raise InvalidArgument(
            f"the query {sql!r} gives the columns {', '.join(table.column_names)}: it is to give one called {index}, "
            "the numbers of samples"
        )
    values = table.column(names[0])
    if not _is_whole(values.type) or values.null_count:
        raise InvalidArgument(f"the query {sql!r}: {index} is not a whole number in each row")
    if not len(values):
        raise InvalidArgument(f"the query {sql!r} chooses no sample")
    samples = values.to_numpy().astype(np.int64)
    return samples if is_ordered else np.sort(samples)


def columns_of(
    dataset: Dataset, arrow: Any, parsed: Mapping[str, Callable[[bytes], Any]]
) -> tuple[str, dict[str, Column]]:
    """The name of the column of sample numbers, and all columns.

    If a field has the name of one of ours, ours has ``leat_`` before it.
    """
    made: dict[str, Column] = {}
    for name, kind in dataset.fields.items():
        if kind != "bytes":
            made[name] = _scalar(dataset, arrow, name, kind)
    for name, parse in parsed.items():
        if name in made:
            raise InvalidArgument(f"parsed= names {name!r}, which is a column already")
        values = arrow.array(dataset.parsed(name, parse))
        made[name] = Column(values.type, lambda values=values: values)  # type: ignore[misc]
    taken = {name.lower() for name in made}
    own = _own_columns(dataset, arrow)
    names = {name: f"leat_{name}" if name.lower() in taken else name for name in own}
    made = {**{names[name]: column for name, column in own.items()}, **made}
    met: dict[str, str] = {}
    for name in made:
        if (other := met.setdefault(name.lower(), name)) != name:
            raise InvalidArgument(
                f"the columns {other!r} and {name!r} differ in their case alone, and SQL cannot tell them apart; use "
                "leat.Dataset.filter"
            )
    if len(met) != len(own) + len(dataset.fields) - _count_bytes(dataset) + len(parsed):
        raise InvalidArgument("fields whose names begin with leat_ have the names of columns of ours")
    return names["index"], made


def _count_bytes(dataset: Dataset) -> int:
    return sum(kind == "bytes" for kind in dataset.fields.values())


def _own_columns(dataset: Dataset, arrow: Any) -> dict[str, Column]:
    whole, text = arrow.int64(), arrow.large_string()
    native = dataset._native
    of_bytes = [name for name, kind in dataset.fields.items() if kind == "bytes"]
    own = {
        "index": Column(whole, lambda: arrow.array(np.arange(len(dataset)))),
        "key": Column(text, lambda: _texts(arrow, *_native.sample_keys(native))),
    }
    if of_bytes:
        own["size"] = Column(whole, lambda: arrow.array(_size(dataset, of_bytes)))
    if dataset.classes and dataset.fields.get("label") == "int64":
        own["class"] = Column(text, lambda: _class_names(dataset, arrow))
    for name in of_bytes:
        own[f"{name}_bytes"] = Column(whole, lambda name=name: _lengths(dataset, arrow, name))  # type: ignore[misc]
    return own


def _scalar(dataset: Dataset, arrow: Any, name: str, kind: str) -> Column:
    if kind == "string":
        return Column(arrow.large_string(), lambda: _texts(arrow, *_native.column_texts(dataset._native, name)))
    of_arrow = arrow.int64() if kind == "int64" else arrow.float64()
    return Column(of_arrow, lambda: arrow.array(dataset.column(name)))


def _size(dataset: Dataset, names: list[str]) -> np.ndarray:
    total = np.zeros(len(dataset), np.int64)
    for name in names:
        total += np.maximum(dataset.lengths(name), 0)
    return total


def _lengths(dataset: Dataset, arrow: Any, name: str) -> Any:
    lengths = dataset.lengths(name)
    return arrow.array(lengths, mask=lengths < 0)


def _class_names(dataset: Dataset, arrow: Any) -> Any:
    labels = np.asarray(dataset.column("label"))
    is_none = (labels < 0) | (labels >= len(dataset.classes))
    numbers = arrow.array(np.where(is_none, 0, labels), mask=is_none)
    return arrow.array(dataset.classes, arrow.large_string()).take(numbers)


def _texts(arrow: Any, ends: np.ndarray, data: np.ndarray) -> Any:
    texts = arrow.LargeStringArray.from_buffers(len(ends) - 1, arrow.py_buffer(ends), arrow.py_buffer(data))
    try:
        texts.validate(full=True)
    except arrow.ArrowInvalid as error:  # Keys may be any bytes.
        raise InvalidArgument(f"a text of the catalogue is not UTF-8, and SQL has no other: {error}") from None
    return texts


def _register(connection: Any, arrow: Any, columns: Mapping[str, Column], named: set[str], rows: int) -> None:
    """Makes the table anew. Columns that no plan names are there, so that a star means them all, and hold nothing."""
    made = {
        name: column.make() if name in named else arrow.nulls(rows, column.kind) for name, column in columns.items()
    }
    connection.register(TABLE, arrow.table(made))


def _named(connection: Any, sql: str, columns: Mapping[str, Column]) -> set[str]:
    """The columns that DuckDB's plan reads, and perhaps a few more."""
    plan = connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()[0][1]
    text = (plan + json.dumps(json.loads(plan), ensure_ascii=False)).lower()
    return {name for name in columns if name.lower() in text or json.dumps(name.lower())[1:-1] in text}


def _is_ordered(connection: Any, sql: str) -> bool:
    """Whether the query ends with ORDER BY.

    Raises:
        leat.InvalidArgument: it is not one SELECT.
    """
    told = json.loads(connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()[0][0])
    if told["error"]:
        raise InvalidArgument(f"the query {sql!r}: {told['error_message']}")
    if len(told["statements"]) != 1:
        raise InvalidArgument(f"the query {sql!r} has {len(told['statements'])} statements; it is one SELECT")
    return any(each["type"] == "ORDER_MODIFIER" for each in told["statements"][0]["node"]["modifiers"])


def _is_whole(kind: Any) -> bool:
    return str(kind).startswith(("int", "uint"))


def _modules() -> tuple[Any, Any]:
    try:
        import duckdb
        import pyarrow
    except ImportError as error:
        raise InvalidArgument(f"queries need duckdb and pyarrow ({error}): pip install duckdb pyarrow") from None
    return duckdb, pyarrow
