"""Ranks that meet their samples again."""

from __future__ import annotations

import pytest

import leat

N = 60  # Of `pictures`.


def ids(loader: leat.Loader) -> list[list[int]]:
    return [batch["index"].tolist() for batch in loader]


def open_rank(folder, rank: int, **options) -> leat.Loader:
    return leat.Loader(
        folder, global_batch_size=12, fields=["index"], seed=3, rank=rank, world_size=3, **options
    )


def test_steps_keep_their_samples_and_ranks_their_share(pictures):
    plain = [ids(open_rank(pictures, rank)) for rank in range(3)]
    sticky = [ids(open_rank(pictures, rank, sticky_ranks=True)) for rank in range(3)]
    assert sticky != plain
    for step in range(N // 12):
        assert [len(rank[step]) for rank in sticky] == [4, 4, 4]
        assert sorted(sum((rank[step] for rank in sticky), [])) == sorted(
            sum((rank[step] for rank in plain), [])
        )


def test_a_rank_meets_most_of_its_samples_again(pictures):
    with open_rank(pictures, 1, sticky_ranks=True) as sticky, open_rank(pictures, 1) as plain:
        again = [len({*sum(ids(loader), [])} & {*sum(ids(loader), [])}) for loader in (sticky, plain)]
    assert again[0] > 12 > again[1]


@pytest.mark.parametrize("world_size", [1, 3])
def test_a_state_goes_on_with_it_or_without(pictures, world_size):
    with open_rank(pictures, 0, sticky_ranks=True) as loader:
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
    rest: list[int] = []
    for rank in range(world_size):
        with leat.Loader(pictures, global_batch_size=12, fields=["index"], seed=3, rank=rank,
                         world_size=world_size) as loader:  # fmt: skip
            loader.load_state_dict(state)
            rest += sum(ids(loader), [])
    with leat.Loader(pictures, global_batch_size=12, fields=["index"], seed=3, rank=0, world_size=1) as loader:
        assert sorted(rest) == sorted(sum(ids(loader)[1:], []))
