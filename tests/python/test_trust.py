"""Folders and files that somebody else could have written are not used, and that is said."""

from __future__ import annotations

import os
import pathlib

import pytest

import leat

N = 60  # The number of `pictures`.
NOBODY = 65534


@pytest.fixture
def run(pictures, serve):
    """run(cache): an epoch; how many GETs it took, and the hash of what came."""
    served = serve(pictures)

    def one(cache=None, **options) -> tuple[int, str]:
        served.reset()
        with served.loader(global_batch_size=10, drop_last=False, epochs=1, cache=cache, **options) as loader:
            for _ in loader:
                pass
            return served.counters()["get"], loader.stats()[0]["content_hash"]

    return one


def give_away(path: pathlib.Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(path, NOBODY, NOBODY)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_cache_folder_that_others_can_write_is_not_used(run, tmp_path, caplog, mode):
    folder = tmp_path / "cache"
    cache = leat.Cache(disk=folder, disk_limit="16MiB")
    gets, content = run(cache)
    assert gets == N and run(cache) == (0, content)
    assert folder.stat().st_mode & 0o777 == 0o700

    folder.chmod(mode)
    assert run(cache) == (N, content)
    warnings = [line for line in caplog.text.splitlines() if "is not used" in line]
    assert len(warnings) == 1 and str(folder) in warnings[0]
    assert f"mode {mode:04o}" in warnings[0] and "chmod go-w" in warnings[0]

    folder.chmod(0o755)
    assert run(cache) == (0, content)


def test_a_cache_folder_of_another_user_is_not_used(run, tmp_path, caplog):
    folder = tmp_path / "cache"
    cache = leat.Cache(ram="1MiB", disk=folder, disk_limit="16MiB")
    gets, content = run(cache)
    give_away(folder)
    assert run(cache) == (N, content)
    assert f"user {NOBODY} owns the folder" in caplog.text
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    run(cache)
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


@pytest.mark.parametrize("how", ["mode", "owner", "link"])
def test_segments_that_others_made_are_not_used(run, tmp_path, caplog, how):
    folder = tmp_path / "cache"
    cache = leat.Cache(disk=folder, disk_limit="16MiB")
    _, content = run(cache)
    for path in list(folder.glob("*.leat")):
        if how == "mode":
            path.chmod(0o666)
        elif how == "owner":
            give_away(path)
        else:
            path.rename(tmp_path / path.name)
            path.symlink_to(tmp_path / path.name)
    assert run(cache) == (N, content)
    if how != "link":
        assert "a file is not used" in caplog.text


@pytest.mark.parametrize("whose", ["folder", "file"])
def test_a_catalogue_that_others_can_write_is_not_used(run, fresh_cache, pictures, serve, caplog, whose):
    served = serve(pictures)

    def lists() -> int:
        served.reset()
        with leat.Loader(leat.Dataset(served.url, refresh="never", **served.options), global_batch_size=10, shuffle=True):
            return served.counters()["list"]

    assert lists() > 0
    assert lists() == 0
    catalogues = fresh_cache / "catalogues"
    assert catalogues.stat().st_mode & 0o777 == 0o700
    if whose == "folder":
        catalogues.chmod(0o777)
    else:
        (file,) = catalogues.glob("*.leatcat")
        file.chmod(0o666)
    assert lists() > 0
    assert "others can write" in caplog.text and "not used" in caplog.text
