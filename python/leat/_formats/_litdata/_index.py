"""Chunks that LitData's ``optimize`` wrote: samples in ``.bin`` files, and an ``index.json`` of the files,
which this module reads. `leat._formats._litdata._chunks` reads the chunks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Union

from leat._formats import _indexed
from leat._formats._indexed import Family, Wrong, file_name, text, whole
from leat._formats._mds._zip import check
from leat.errors import Corrupt, InvalidArgument

VERSION = 1
"""Counts up when kept catalogues are to be made anew."""
TOKENS = "tokens"
FAMILY = Family(
    re.compile(r"(^|/)chunk-[0-9]+-[0-9]+(\.[^/]+)?\.bin$"), "chunks of LitData", "leat.Dataset.litdata", "bin",
    "LitData's optimize",
)  # fmt: skip
_FIXED = {"int": (8, "int64"), "float": (8, "float64"), "bool": (1, "bool")}
_OF_TORCH = {
    0: "float32", 1: "float32", 2: "float64", 3: "float64", 4: "complex64", 5: "complex64", 6: "complex128",
    7: "complex128", 8: "float16", 9: "float16", 11: "uint8", 12: "int8", 13: "int16", 14: "int16", 15: "int32",
    16: "int32", 17: "int64", 18: "int64", 19: "bool", 20: "uint16",
}  # fmt: skip
_OF_NUMPY = dict(enumerate((
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "bool",
)))  # fmt: skip
_ROWS = {"no_header_tensor": _OF_TORCH, "no_header_numpy": _OF_NUMPY}
_DICTS = ("builtins.dict", "collections.OrderedDict")
_LISTS = ("builtins.list", "builtins.tuple", "collections.deque", "collections.namedtuple")
_LEVELS = (None, "chunk", "batch", "sample")
Path = tuple[Any, ...]


class Leaf(NamedTuple):
    """A value of every sample."""

    name: str
    format: str
    path: Path
    """Keys of dicts and numbers in lists, from the sample to the value."""
    size: Union[int, None] = None
    """In bytes; None: each sample has its own."""
    dtype: Union[str, None] = None
    """The type of its numbers; None: it is bytes. With a size it is one number, else a row of them."""

    @property
    def stored_as(self) -> str:
        return self.format

    @property
    def kind(self) -> str:
        return self.format.partition(":")[0]

    @property
    def is_pickled(self) -> bool:
        return self.kind in ("pickle", "graph")  # A graph holds pickles.


class Chunk(NamedTuple):
    """A file of samples."""

    key: str
    """Relative to the folder of the index."""
    size: int
    """The bytes that are read: those of the file, unless it is zipped."""
    samples: int
    tokens: int
    zipped: bool
    """The whole file is compressed."""


class Index(NamedTuple):
    """The content of an ``index.json``."""

    name: str
    leaves: list[Leaf]
    chunks: list[Chunk]
    are_tokens: bool
    """Samples lie one after the other, without heads, and are rows of one leaf."""
    level: Union[str, None]
    """The parts of a file that zstd compressed: "batch", "sample"."""

    @property
    def samples(self) -> int:
        return sum(chunk.samples for chunk in self.chunks)


def parse(data: bytes, name: str) -> Index:
    """An ``index.json`` as LitData's writer writes it. Chunks without samples are left out.

    Raises:
        leat.Corrupt: it is none, or it is damaged; the error names it.
        leat.InvalidArgument: its chunks are encrypted, of another kind, or compressed as nothing
            here can undo; or it has no samples.
    """

    def corrupt(why: str) -> Corrupt:
        return Corrupt(f"{name} is no index of LitData's chunks, or it is damaged: {why}")

    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise corrupt(str(error)) from None
    if not isinstance(found, dict) or not isinstance(found.get("chunks"), list):
        raise corrupt("it has no list of chunks")
    if not isinstance(found.get("config"), dict):
        raise corrupt("it has no config")
    config = found["config"]
    try:
        are_tokens = _are_tokens(config, name)
        leaves = _leaves_of(config, are_tokens, name)
        compression, level = _compression_of(config, name)
        chunks = [_chunk_of(entry, compression, level, are_tokens) for entry in found["chunks"]]
    except Wrong as error:
        raise corrupt(str(error)) from None
    except RecursionError:
        raise corrupt("its data_spec is nested too deeply") from None
    if len({chunk.key for chunk in chunks}) != len(chunks):
        raise corrupt("it names a file twice, so its samples would come twice")
    chunks = [chunk for chunk in chunks if chunk.samples]
    if not chunks:
        raise InvalidArgument(f"{name} names no samples")
    return Index(name, leaves, chunks, are_tokens, level if level in ("batch", "sample") else None)


def _are_tokens(config: dict[str, Any], name: str) -> bool:
    loader = config.get("item_loader")
    formats = config.get("data_format")
    if config.get("encryption") is not None:
        raise InvalidArgument(
            f"{name}: its chunks are encrypted, and Leat decrypts nothing; write them without encryption="
        )
    if loader == "ParquetLoader":
        raise InvalidArgument(f"{name} is of Parquet files: open them with leat.Dataset.parquet(folder)")
    if loader is None:  # An old one, which does not say it.
        return isinstance(formats, list) and len(formats) == 1 and str(formats[0]).startswith("no_header_tensor")
    if loader not in ("PyTreeLoader", "TokensLoader"):
        raise InvalidArgument(
            f"{name}: its chunks were written for {str(loader)[:40]!r}, and Leat reads those for PyTreeLoader (the "
            "default) and TokensLoader"
        )
    return loader == "TokensLoader"


def _leaves_of(config: dict[str, Any], are_tokens: bool, name: str) -> list[Leaf]:
    formats, spec = config.get("data_format"), config.get("data_spec")
    if not isinstance(formats, list) or not formats:
        raise Wrong("data_format is no list")
    formats = [text(each, "a value's format") for each in formats]
    paths: list[Path] = [(TOKENS,)] if are_tokens else _paths_of(spec, len(formats), name)
    if len(paths) != len(formats):
        raise Wrong(f"data_spec has {len(paths)} values, and data_format {len(formats)}")
    leaves = [_leaf(path, each) for path, each in zip(paths, formats)]
    if are_tokens and leaves[0].dtype is None:
        raise Wrong(f"its tokens are {formats[0]}, and no numbers")
    known: set[str] = set()
    for leaf in leaves:
        if leaf.name in known:
            raise InvalidArgument(
                f"{name}: two values have the name {leaf.name!r}; give them other keys when you write them"
            )
        known.add(leaf.name)
    return leaves


def _leaf(path: Path, format: str) -> Leaf:
    name = ".".join(map(str, path)) or "data"
    text(name, "a value's name")
    kind, _, code = format.partition(":")
    if format in _FIXED:
        return Leaf(name, format, path, *_FIXED[format])
    if kind not in _ROWS:
        return Leaf(name, format, path)
    if not re.fullmatch(r"[0-9]{1,3}", code) or int(code) not in _ROWS[kind]:
        raise Wrong(f"the format {format!r} of {name!r} has no type of numbers that is known")
    return Leaf(name, format, path, None, _ROWS[kind][int(code)])


def _paths_of(spec: Any, most: int, name: str) -> list[Path]:
    """The values of a sample, of a pytree's spec, which is JSON."""
    try:
        found = json.loads(spec)
    except (TypeError, ValueError):
        raise Wrong(f"data_spec is {str(spec)[:40]!r}") from None
    if not isinstance(found, list) or len(found) != 2 or found[0] != 1:
        raise Wrong("data_spec is of another version than 1")
    paths: list[Path] = []
    for path in _walk(found[1], (), name):
        if len(paths) == most:
            raise Wrong(f"data_spec has more values than data_format, which has {most}")
        paths.append(path)
    return paths


def _walk(node: Any, path: Path, name: str) -> Iterator[Path]:
    children = node.get("children_spec") if isinstance(node, dict) else None
    if not isinstance(children, list):
        raise Wrong("data_spec is no tree")
    kind = node.get("type")
    if kind is None:
        yield path
        return
    for key, child in zip(_keys_of(node, kind, len(children), name), children):
        yield from _walk(child, (*path, key), name)


def _keys_of(node: dict[str, Any], kind: Any, count: int, name: str) -> Sequence[Any]:
    if kind in _LISTS:
        return range(count)
    if kind not in (*_DICTS, "collections.defaultdict"):
        raise InvalidArgument(
            f"{name}: its samples hold objects of the type {str(kind)[:80]!r}, and Leat knows dicts, lists and tuples; "
            "write them as these"
        )
    try:
        keys = json.loads(node.get("context") or "")
    except (TypeError, ValueError):
        keys = None
    if kind == "collections.defaultdict":
        keys = keys.get("dict_context") if isinstance(keys, dict) else None
    is_good = isinstance(keys, list) and all(type(key) in (str, int) for key in keys)
    if not is_good or len(keys) != count:
        raise Wrong(f"data_spec has a dict of {count} values whose keys are {str(keys)[:40]}")
    return keys


def _compression_of(config: dict[str, Any], name: str) -> tuple[Union[str, None], Union[str, None]]:
    compression, level = config.get("compression"), config.get("compression_level")
    if compression is None:
        return None, None
    text(compression, "its compression")
    if level not in _LEVELS:
        raise Wrong(f"its compression_level is {str(level)[:40]!r}")
    if not re.fullmatch(r"zstd(:[0-9]{1,2})?", compression):
        raise InvalidArgument(f"{name}: its chunks are compressed as {compression!r}, and Leat reads zstd")
    check("zstd", name)
    return compression, level or "chunk"


def _chunk_of(entry: Any, compression: Union[str, None], level: Union[str, None], are_tokens: bool) -> Chunk:
    if not isinstance(entry, dict):
        raise Wrong("a chunk is no object")
    key = file_name(entry.get("filename"))
    size, samples = whole(entry.get("chunk_bytes"), "bytes"), whole(entry.get("chunk_size"), "samples")
    if samples == 0 and size > 8:  # The head of a chunk without any.
        raise Wrong(f"{key} has {size} bytes and no samples")
    tokens = whole(entry.get("dim"), "tokens (dim)") if are_tokens else 0
    # Chunks of one dataset may be compressed or not: LitData knows which by their names.
    zipped = level == "chunk" and f".{compression}." in key
    return Chunk(key, size, samples, tokens, zipped)


def choose(
    index: Index, fields: Union[Sequence[str], None] = None, wanted: Union[frozenset[str], None] = None
) -> list[Leaf]:
    """The values that are fields: as `leat._formats._indexed.choose`."""
    return _indexed.choose(index.name, "value", index.leaves, fields, wanted)
