"""An object is written anew while an epoch is read."""

from __future__ import annotations

import os

import pytest

import leat


def test_the_epoch_ends_with_the_one_error_that_says_so(tmp_path, serve, reader):
    from unwell_bucket import small_objects

    objects = small_objects(tmp_path / "objects", 300)
    served = serve(objects, latency="20ms")
    with reader(served.bucket.url, max_in_flight=4, memory="8MiB", shuffle=False) as loader:
        batches = iter(loader)
        next(batches)
        for path in sorted(objects.rglob("*.bin"))[200:]:
            path.write_bytes(os.urandom(4096))
        with pytest.raises(leat.Corrupt, match="index again"):
            for _batch in batches:
                pass
