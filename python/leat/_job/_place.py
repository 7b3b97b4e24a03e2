"""The place of a loader's process in its job."""

from __future__ import annotations

from typing import Any

from leat._arguments import count
from leat._job._mesh import Mesh, RankChoice, mesh_of
from leat._job._ranks import check_place, place_of


class Place:
    """The rank of a loader, as it was given or as torch has it; or its mesh.

    Args:
        rank, world_size: as for `leat.Loader`.

    Raises:
        leat.InvalidArgument: these cannot be.
    """

    def __init__(self, rank: RankChoice, world_size: int | None) -> None:
        self._is_given = rank is not None
        self.mesh: Mesh | None = mesh_of(rank, world_size)
        if self.mesh is None:
            self.rank, self.world_size = place_of(rank, world_size)
        else:
            self.rank, self.world_size = self.mesh.rank, self.mesh.world_size

    @property
    def skips(self) -> bool:
        """Whether the process needs no batches."""
        return self.mesh is not None and not self.mesh.needs_data

    @property
    def shares(self) -> bool:
        """Whether other processes may read the same samples for the same rank."""
        return self.mesh is not None and self.mesh._has_copies and self.mesh.needs_data

    @property
    def siblings(self) -> list[int]:
        """The processes that get the same batches, this one among them, and first the one that
        speaks for them; empty if it is alone."""
        return self.mesh._siblings if self.mesh is not None and self.mesh._has_copies else []

    @property
    def speaks(self) -> bool:
        """Whether this process speaks for those that deliver the same."""
        return self.mesh is None or self.mesh._speaks

    @property
    def processes(self) -> int | None:
        """The number of processes of the job; None if only the launcher knows."""
        return self.world_size if self.mesh is None else self.mesh.processes

    def among(self, native: Any) -> tuple[int, int]:
        """The number of this process among all, and theirs."""
        if self.mesh is None:
            return native.rank, native.world_size
        return self.mesh.process, self.mesh.processes

    def check(self, native: Any) -> None:
        """Raises `InvalidArgument` if torch has given this process another rank since."""
        if not self._is_given:
            check_place(native.rank, native.world_size)

    def options(self) -> dict[str, Any]:
        """The place, for the engine."""
        mesh, rank, world_size = self.mesh, self.rank, self.world_size
        return {
            "rank": None if rank is None else count("rank", rank, below=2**32),
            "world_size": None if world_size is None else count("world_size", world_size, below=2**32),
            "process": None if mesh is None or mesh._is_plain else (mesh.process, mesh.processes),
        }
