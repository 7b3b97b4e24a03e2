"""The place of a process in a job of several kinds of parallelism."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from leat import _native
from leat._arguments import checks_names, count
from leat._batches._batch import BatchDict
from leat._job._ranks import place_in_ray, place_in_torch_distributed
from leat._say import once
from leat.errors import InvalidArgument

_DATA = (
    "dp", "dp_replicate", "dp_shard", "fsdp", "ddp", "data", "data_parallel", "replicate", "shard", "batch",
)  # fmt: skip
"""Dimensions whose ranks read different data."""
_MODEL = (
    "tp", "pp", "cp", "sp", "tensor", "tensor_parallel", "pipe", "pipeline", "pipeline_parallel", "context",
    "context_parallel", "sequence", "model",
)  # fmt: skip
"""Dimensions whose ranks work on the same data."""

RankChoice = Any
"""The ``rank=`` of a loader: a number, a `Mesh`, or a DeviceMesh of torch's."""


@checks_names()
class Mesh:
    """The processes of a job as a grid of named dimensions: a loader's ``rank=``.

        mesh = init_device_mesh("cuda", (2, 4, 2), mesh_dim_names=("pp", "dp", "tp"))
        loader = leat.Loader(url, global_batch_size=64, train=True, rank=mesh)

        mesh = leat.Mesh({"pp": 2, "dp": 4, "tp": 2})  # The same without a DeviceMesh.

    Only the data dimensions choose the data: processes that differ in others alone, such as
    tensor, pipeline and context parallelism, have one rank and get the same batches. Those of
    them that share a node fetch and decode each sample once.

    Args:
        dims: a DeviceMesh of torch's, or a part of one; or the size of each dimension, by
            name. Data dimensions are those named dp, dp_replicate, dp_shard, fsdp, ddp, data,
            data_parallel, replicate, shard or batch. ``tp``, ``pp``, ``cp``, ``sp`` and their
            long names are none.
        order: for sizes: the order in which processes are numbered, as Megatron-LM writes
            it: with ``"tp-cp-ep-dp-pp"`` the first varies fastest. None: as they are given,
            and the last varies fastest, as in torch.
        data: the names of the data dimensions, if they have other names; ``()``: all
            processes read the same.
        rank: for sizes: the number of this process; None asks torch.distributed, else Ray
            Train, else the launcher.
        needs_data: False for a process that uses no batch, such as a stage in the middle of
            a pipeline: its loader has the same steps and state as the others, reads nothing
            and delivers None.
        shares_batches: processes of one rank that share a node make each batch once, and
            map its memory. False: this process makes its own, such as one whose functions
            look at more than their sample.

    Attributes:
        rank, world_size: the rank that the loader has, and their number.
        process, processes: the number of this process, and their number.
        dims: the size of each dimension.
        coordinate: this process's place in each.
        needs_data: as it was given.

    Raises:
        leat.InvalidArgument: the sizes do not fit the number of processes; a dimension has a
            name that says nothing of its data; the process is not in the mesh, or nothing
            says which it is; a part of a DeviceMesh lacks a data dimension of the whole.
    """

    def __init__(
        self,
        dims: Mapping[str, int] | Any,
        *,
        order: str | None = None,
        data: Sequence[str] | str | None = None,
        rank: int | None = None,
        needs_data: bool = True,
        shares_batches: bool = True,
    ) -> None:
        for name, value in (("needs_data", needs_data), ("shares_batches", shares_batches)):
            if not isinstance(value, bool):
                raise InvalidArgument(f"{name}={value!r}; it is True or False")
        if _is_device_mesh(dims):
            if order is not None or rank is not None:
                raise InvalidArgument("order= and rank= beside a DeviceMesh, which has both; leave them out")
            grid, whole, process, processes = _of_torch(dims)
        else:
            grid = whole = _grid_of(dims, order)
            process, processes = _process_in(grid, rank), grid.processes.size
        self._data = _data_of(grid, data)
        readers = grid.along(self._data, process)
        varying = _varying(whole, readers, process)
        if data is None:
            _check_part(grid, whole, varying, processes)
            _say_if_same(grid, self._data, process)
        self.rank = readers.index(process)
        self.world_size = len(readers)
        self.process = process
        self.processes = processes
        self.dims = grid.sizes
        self.coordinate = grid.coordinate(process)
        self.needs_data = needs_data
        self._shares_batches = shares_batches
        self._has_copies = whole.processes.size > self.world_size
        self._is_plain = readers == list(range(processes))
        self._siblings = _siblings(whole, varying, process)
        self._speaks = self._siblings[0] == process

    def split(self, values: Any, dim: int = 1, *, over: str = "cp") -> Any:
        """This process's part of sequences that the ranks of ``over`` compute on together.

            tokens, positions = mesh.split((tokens, positions))

        A sequence is cut into twice as many chunks as there are such ranks; rank i of n takes
        chunks i and 2 n − 1 − i, so that causal attention costs all of them the same. This is
        the split of Megatron-LM and of torch's ``context_parallel``. Labels have to be those
        of the whole sequence, so make them before.

        Args:
            values: an array or a tensor, or a tuple, list or dict of these.
            dim: the dimension of the sequence.
            over: the dimension of the mesh.

        Raises:
            leat.InvalidArgument: the mesh has no such dimension; an array has no dimension
                ``dim``; or its length is no multiple of the chunks.
        """
        if over not in self.dims:
            raise InvalidArgument(
                f"over={over!r}: the mesh has the dimensions {_listed(self.dims)}; name the one of "
                "context parallelism"
            )
        return _split(values, count("dim", dim), self.coordinate[over], self.dims[over])

    @property
    def _words(self) -> str:
        """For messages, and to compare meshes of processes."""
        dims = ", ".join(f"{name} {size}" for name, size in self.dims.items())
        return f"{dims}, data by {_listed(self._data)}"

    def __repr__(self) -> str:
        at = ", ".join(f"{name} {index}" for name, index in self.coordinate.items())
        return (
            f"leat.Mesh({self._words}; process {self.process} of {self.processes} is {at}: rank {self.rank} "
            f"of {self.world_size})"
        )


def mesh_of(rank: Any, world_size: int | None) -> Mesh | None:
    """The mesh that a loader's ``rank=`` is; None if it is a number or None.

    Raises:
        leat.InvalidArgument: as `Mesh`; or ``world_size`` is given beside it.
    """
    if isinstance(rank, Mapping):
        raise InvalidArgument(f"rank={rank!r}; give rank=leat.Mesh({rank!r})")
    if not isinstance(rank, Mesh) and not _is_device_mesh(rank):
        return None
    if world_size is not None:
        raise InvalidArgument(f"world_size={world_size!r} beside a mesh, which has its own; leave it out")
    return rank if isinstance(rank, Mesh) else Mesh(rank)


class _Grid(NamedTuple):
    """Processes by named coordinates."""

    names: tuple[str, ...]
    processes: np.ndarray

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(self.names, self.processes.shape))

    def coordinate(self, process: int) -> dict[str, int]:
        """Empty of a process that is not in it."""
        found = np.argwhere(self.processes == process)
        return dict(zip(self.names, map(int, found[0]))) if len(found) else {}

    def along(self, dims: Sequence[str], process: int) -> list[int]:
        """The processes that differ from this one in these dimensions alone."""
        at = self.coordinate(process)
        index = tuple(slice(None) if name in dims else at[name] for name in self.names)
        return [int(each) for each in np.ravel(self.processes[index])]


def _is_device_mesh(value: Any) -> bool:
    return hasattr(value, "mesh_dim_names") and hasattr(value, "get_coordinate")


def _of_torch(mesh: Any) -> tuple[_Grid, _Grid, int, int]:
    """A DeviceMesh, the one that it is a part of, and this process."""
    if not mesh.mesh_dim_names:
        raise InvalidArgument(
            f"{mesh!r} has no names, so nobody knows which of its dimensions is of data; give "
            'init_device_mesh() mesh_dim_names=("dp", "tp")'
        )
    process, processes = place_in_torch_distributed()
    if process is None or processes is None:
        raise InvalidArgument("a DeviceMesh without torch.distributed; call init_process_group() first")
    grid = _Grid(tuple(mesh.mesh_dim_names), np.asarray(mesh.mesh.tolist()))
    if not grid.coordinate(process):
        raise InvalidArgument(
            f"process {process} of {processes} is not in {mesh!r}; make no loader there, or give a mesh of all processes"
        )
    root = mesh._get_root_mesh() if hasattr(mesh, "_get_root_mesh") else None
    if root is None or root is mesh or not root.mesh_dim_names:
        return grid, grid, process, processes
    whole = _Grid(tuple(root.mesh_dim_names), np.asarray(root.mesh.tolist()))
    return grid, whole if whole.coordinate(process) else grid, process, processes


def _grid_of(dims: Any, order: str | None) -> _Grid:
    """The grid of dimensions that are given by size."""
    if not isinstance(dims, Mapping) or not dims or not all(isinstance(name, str) for name in dims):
        raise InvalidArgument(f'{dims!r}; it is a DeviceMesh, or sizes by name, such as {{"dp": 4, "tp": 2}}')
    sizes = {
        # count() takes None for 0.
        name: count(f"the size of {name!r}", 0 if size is None else size, at_least=1, below=2**31)
        for name, size in dims.items()
    }
    if math.prod(sizes.values()) >= 2**31:
        raise InvalidArgument(f"a mesh of {_sized(sizes)}, which are more processes than can be")
    if order is None:
        return _Grid(tuple(sizes), np.arange(math.prod(sizes.values())).reshape(*sizes.values()))
    named = order.split("-") if isinstance(order, str) else []
    lacking = [name for name, size in sizes.items() if size > 1 and name not in named]
    unknown = [name for name in named if name not in (*sizes, *_DATA, *_MODEL, "ep")]
    if not named or lacking or unknown or len(set(named)) < len(named):
        raise InvalidArgument(
            f"order={order!r} of the dimensions {_listed(sizes)}; it names each of them once, the one that "
            'varies fastest first, such as "tp-cp-ep-dp-pp"'
        )
    names = tuple(reversed(named))
    found = {name: sizes.get(name, 1) for name in names}
    # Those of size 1 that the order leaves out stand in front, and change nothing.
    found = {**{name: 1 for name in sizes if name not in found}, **found}
    kept = {name: size for name, size in found.items() if name in sizes}
    return _Grid(tuple(kept), np.arange(math.prod(kept.values())).reshape(*kept.values()))


def _process_in(grid: _Grid, rank: int | None) -> int:
    """The number of this process in a grid of sizes."""
    size = grid.processes.size
    (now, world), source = place_in_torch_distributed(), "torch.distributed has"
    if world is None:
        (now, world), source = place_in_ray(), "Ray Train has"
    if world is None and rank is None:
        (now, world), source = _native.launched_place() or (None, None), "the launcher started"
    if world is not None and world != size:
        raise InvalidArgument(
            f"a mesh of {_sized(grid.sizes)} has {size} processes, and {source} {world}: make the product of its "
            "sizes that number"
        )
    if rank is not None:
        rank = count("rank", rank, below=size)
        if now is not None and now != rank:
            raise InvalidArgument(
                f"rank={rank} of a mesh is the number of this process among all, and {source.split()[0]} says {now}; "
                "leave it out"
            )
        return rank
    if now is None and size > 1:
        raise InvalidArgument(
            f"nothing says which of the {size} processes of the mesh this is: call init_process_group() before, "
            "or give rank="
        )
    return now or 0


def _data_of(grid: _Grid, told: Sequence[str] | str | None) -> tuple[str, ...]:
    """The names of the data dimensions."""
    if told is not None:
        named = (told,) if isinstance(told, str) else tuple(told)
        if unknown := [name for name in named if name not in grid.names]:
            raise InvalidArgument(f"data={told!r}: the mesh has no dimension {unknown[0]!r}; it has {_listed(grid.names)}")
        return named
    if unknown := [name for name, size in grid.sizes.items() if size > 1 and name not in (*_DATA, *_MODEL)]:
        hint = ""
        if unknown[0] == "ep":
            hint = (
                ". Expert parallel ranks are usually data or tensor parallel ranks as well, so that \"ep\" is no "
                "dimension beside those: then leave it out"
            )
        raise InvalidArgument(
            f"the mesh has a dimension {unknown[0]!r}, and its name does not say whether its ranks read different "
            f"data: name all those that do, such as leat.Mesh(…, data=(\"dp\",)){hint}"
        )
    return tuple(name for name in grid.names if name in _DATA)


def _varying(whole: _Grid, readers: Sequence[int], process: int) -> set[str]:
    """The dimensions of the whole in which the processes that read different data differ."""
    mine = whole.coordinate(process)
    found: set[str] = set()
    for other in readers:
        found.update(name for name, at in whole.coordinate(other).items() if at != mine[name])
    return found


def _siblings(whole: _Grid, varying: set[str], process: int) -> list[int]:
    """The processes with the data of this one, itself among them; first the one that speaks for them."""
    others = whole.along([name for name in whole.names if name not in varying], process)
    return [others[0], *sorted(others[1:])]


def _check_part(grid: _Grid, whole: _Grid, varying: set[str], processes: int) -> None:
    """Raises if a part of a mesh would give ranks that compute on one batch different data, or
    ranks that do not the same."""
    if wrong := [name for name in whole.names if name in varying and name in _MODEL]:
        raise InvalidArgument(
            f"the ranks of {_listed(grid.names)} differ in {wrong[0]!r} too, whose ranks work on the same data: give "
            "the whole mesh, or a part without it; data= says that this is meant"
        )
    if missing := [name for name, size in whole.sizes.items() if name in _DATA and size > 1 and name not in varying]:
        raise InvalidArgument(
            f"the mesh is {_listed(grid.names)}, and {missing[0]!r} is missing, a data dimension of the whole mesh "
            f"({_sized(whole.sizes)}): ranks that differ in it would read the same. Give the whole mesh, or a part with "
            "all data dimensions; data= says that this is meant"
        )
    if whole is grid and not varying and grid.processes.size < processes:
        raise InvalidArgument(
            f"the mesh {_sized(grid.sizes)} has no data dimension and {grid.processes.size} of {processes} processes, "
            "so that the others may read the same: give the whole mesh; data=() says that this is meant"
        )


def _say_if_same(grid: _Grid, data: Sequence[str], process: int) -> None:
    if not data and grid.processes.size > 1 and process == 0:
        once(
            logging.INFO,
            f"the mesh {_sized(grid.sizes)} has no data dimension: all {grid.processes.size} processes get the same batches",
        )


def _split(values: Any, dim: int, rank: int, ranks: int) -> Any:
    if isinstance(values, BatchDict):
        return BatchDict({name: _split(values[name], dim, rank, ranks) for name in values.keys()})
    if isinstance(values, Mapping):
        return {name: _split(value, dim, rank, ranks) for name, value in values.items()}
    if isinstance(values, (tuple, list)):
        parts = [_split(value, dim, rank, ranks) for value in values]
        return tuple(parts) if isinstance(values, tuple) else parts
    shape = getattr(values, "shape", None)
    if shape is None or len(shape) <= dim:
        said = type(values).__name__ if shape is None else f"an array of shape {tuple(shape)}"
        raise InvalidArgument(
            f"{said} has no dimension {dim} that a sequence could be cut along; split the arrays of tokens alone, and "
            "pad unequal lengths before"
        )
    if ranks == 1:
        return values
    length, chunks = shape[dim], 2 * ranks
    if length % chunks:
        raise InvalidArgument(
            f"a sequence of {length}, which {ranks} ranks cannot share: a multiple of {chunks} goes, such as "
            f"{length - length % chunks or chunks}"
        )
    size = length // chunks
    before = (slice(None),) * dim
    halves = [values[before + (slice(chunk * size, (chunk + 1) * size),)] for chunk in (rank, chunks - 1 - rank)]
    if isinstance(values, np.ndarray):
        return np.concatenate(halves, dim)
    if type(values).__module__.split(".")[0] == "torch":
        import torch

        return torch.cat(halves, dim)
    import jax.numpy

    return jax.numpy.concatenate(halves, dim)


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "nothing"


def _sized(sizes: Mapping[str, int]) -> str:
    return " x ".join(f"{name} {size}" for name, size in sizes.items())
