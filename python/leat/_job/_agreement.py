"""Whether the ranks of a job read the same data, dealt in the same way.

Batches are the same only if catalogues are. If torch.distributed runs, the loader asks
its store: the first rank to come writes the digest of its catalogue, the versions of its objects,
its order, and how it deals samples to ranks; every other rank compares. That is a few messages each, nobody waits, and a
rank that makes no loader hangs nobody. Without it, a difference shows when a state
saved by one rank is loaded by another.
"""

from __future__ import annotations

import collections
import logging
import os
import sys
from typing import Any

from leat._say import shown
from leat.errors import InvalidArgument

_log = logging.getLogger("leat")

_is_forked_child = False
"""A forked child has its parent's connection to the store: what both send gets mixed up."""


def _note_fork() -> None:
    global _is_forked_child
    distributed = sys.modules.get("torch.distributed")
    # A process that joins a job after it was forked is a rank as any other.
    _is_forked_child = distributed is not None and distributed.is_available() and distributed.is_initialized()


os.register_at_fork(after_in_child=_note_fork)

# How often this process has made a loader of a URL: data may change in between.
_made: collections.Counter[str] = collections.Counter()


def compare_ranks(
    url: str, digest: str, dealing: str, order: str, world_size: int
) -> tuple[Any, str] | None:
    """Raises `InvalidArgument` if another rank's catalogue of ``url`` is another.

    Or if that rank deals samples otherwise than by ``dealing``, or cuts its epochs
    otherwise than by ``order``. A rank that reads another URL is only warned of: nobody
    knows whether the two loaders belong together.

    ``world_size`` counts processes: those of a mesh that have one rank compare as well.

    Returns the store and what tells this loader of all ranks from others; None where
    ranks have no store.
    """
    store = job_store(world_size) if world_size > 1 else None
    if store is None:
        return None
    _made[""] += 1
    read = store.compare_set(f"leat/url/{_made['']}", "", url).decode()
    if read != url:
        _log.warning(
            "this rank's loader number %d reads %s, and another rank's %s: ranks that train "
            "together read the same", _made[""], shown(url), shown(read),
        )  # fmt: skip
    _made[url] += 1
    key = f"leat/catalogue/{_made[url]}/{url}"
    first = store.compare_set(key, "", digest).decode()
    if first != digest:
        raise InvalidArgument(
            f"{url}: this rank has catalogue {digest}, and another rank has {first}: what "
            "is there was listed at different times. Make it once for all with "
            f"`leat index {url} --publish`, or remove the older one from the cache of "
            "its node with `leat index --refresh`"
        )
    first = store.compare_set(f"leat/dealing/{_made[url]}/{url}", "", dealing).decode()
    if first != dealing:
        raise InvalidArgument(
            f"{url}: this rank deals samples by {dealing}, and another rank by {first}: "
            "steps would miss some samples and have others twice. Give all ranks the "
            "same sampler=, cache= (with its locality=) and fields, and every node as many ranks"
        )
    first = store.compare_set(f"leat/order/{_made[url]}/{url}", "", order).decode()
    if first != order:
        raise InvalidArgument(
            f"{shown(url)}: this rank reads in the order: {order}; and another rank: {first}. "
            "Some samples would come twice and others never, and ranks would end at different steps. "
            "Give all ranks the same seed=, batch_size=, shuffle=, drop_last= and train="
        )
    return store, f"{_made[url]}/{url}"


def compare_versions(met: tuple[Any, str], url: str, versions: str | None) -> None:
    """Raises `InvalidArgument` if another rank's listing has other versions of the same objects.

    Their digests are equal then: an object was written anew between the two listings, with as many
    bytes as before. One rank might deliver from its cache what the others can no longer read.

    Replicas of a web server have ETags of their own, so a difference there is only warned of.

    Args:
        met: of `compare_ranks`.
        versions: of the dataset; None if nobody knows them, and nothing is compared.
    """
    if versions is None:
        return
    store, name = met
    if store.compare_set(f"leat/versions/{name}", "", versions).decode() == versions:
        return
    said = (
        f"{shown(url)}: this rank's listing has other versions (ETags) of the same objects than another rank's: "
        "some were written anew between the two listings"
    )
    if url.startswith(("http://", "https://")):
        _log.warning("%s, or the ranks read replicas of one server", said)
        return
    raise InvalidArgument(
        f"{said}. Start the job once more when nothing writes there; with refresh=\"never\", list on each node with "
        f"`leat index {shown(url)} --refresh` first"
    )


class JobStore:
    """The store of a job, for what training goes on without."""

    def __init__(self, store: Any) -> None:
        self._store: Any | None = store

    @property
    def is_there(self) -> bool:
        return self._store is not None

    def ask(self, call: Any) -> Any:
        """Returns the result of the store's ``call``; None once the store
        is gone."""
        if self._store is None:
            return None
        try:
            return call(self._store)
        # The last two: a kind of torch's stores lacks the method that is called.
        except (RuntimeError, ValueError, NotImplementedError, AttributeError):
            self._store = None
            return None


def job_store(world_size: int) -> Any | None:
    """The store that all these ranks share; None where there is none, and in a forked child of a rank."""
    if _is_forked_child:
        return None
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return None
    if not distributed.is_initialized() or distributed.get_world_size() != world_size:
        return None
    try:
        store = distributed.distributed_c10d._get_default_store()
        # torchrun's own store outlives the processes that it starts again, and what they wrote.
        restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT")
        return store if restarts is None else distributed.PrefixStore(f"leat/start/{restarts}/{world_size}", store)
    except (AttributeError, RuntimeError, ValueError):  # Another version of torch.
        return None
