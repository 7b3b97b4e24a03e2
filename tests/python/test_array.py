"""Arrays where they lie: HDF5, NetCDF4, Zarr, .npy and .npz."""

from __future__ import annotations

import logging
import pathlib
import pickle

import numpy as np
import pytest

import leat
from leat import _native
from leat._formats._array import _chunks as _array_chunks, _plan as _array_plan
from rank_reads import steps_if_read_about_once
from small_datasets import write

MIB = 2**20
h5py = pytest.importorskip("h5py", reason="h5py writes the files: pip install h5py")
zarr = pytest.importorskip("zarr", reason="zarr writes the stores: pip install zarr")
DTYPES = ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16", ">f4", ">i2", ">u8"]


def numbers(shape, dtype="f4", seed=0) -> np.ndarray:
    """Any bits but NaNs; half of them alike, so that they compress."""
    rng = np.random.default_rng(seed)
    found = rng.integers(-1000, 1000, shape)
    found[rng.random(shape) < 0.5] = 7
    kind = np.dtype(dtype)
    return (found % 2 if kind.kind == "b" else found % 128 if kind.kind == "u" else found).astype(kind)


def is_same(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Also of its type, but for the order of bytes."""
    return (
        found.dtype == wanted.dtype.newbyteorder("<")
        and found.shape == wanted.shape
        and found.tobytes() == wanted.astype(wanted.dtype.newbyteorder("<")).tobytes()
    )


def check_all(dataset: leat.Dataset, **arrays: np.ndarray) -> None:
    """Each sample, one by one, is a row of each array."""
    assert list(dataset.fields) == list(arrays)
    for number in range(len(dataset)):
        found = dataset[number]
        for name, array in arrays.items():
            assert is_same(np.asarray(found[name]), array[number]), (number, name)
    assert all(len(dataset) == len(array) for array in arrays.values())


@pytest.fixture
def folder(tmp_path, fresh_cache):
    return tmp_path


# --- The real writers, read field by field -----------------------------------


HDF5 = {
    "contiguous": {},
    "chunked": {"chunks": (7, 3, 5)},
    "gzip": {"chunks": (16, 8, 9), "compression": "gzip"},
    "all": {"chunks": (13, 8, 9), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"chunks": (10, 5, 2), "compression": "lzf"},
    "lzf and sum": {"chunks": (10, 5, 9), "compression": "lzf", "shuffle": True, "fletcher32": True},
    "sum": {"chunks": (1, 8, 9), "fletcher32": True},
}


@pytest.mark.parametrize("kind", HDF5)
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_thousand_odd_samples_of_hdf5(folder, kind, libver):
    a, b, label = numbers((1000, 8, 9)), numbers((1000, 8, 9), ">i2", 1), numbers((1000,), "i4", 2)
    with h5py.File(folder / "sim.h5", "w", libver=libver) as file:
        file.create_dataset("a", data=a, **HDF5[kind])
        file.create_dataset("group/b", data=b, **HDF5[kind])
        file.create_dataset("label", data=label, **({"chunks": (100,)} if kind != "contiguous" else {}))
    dataset = leat.Dataset.array(folder / "sim.h5", variables=["/a", "/group/b", "/label"])
    assert dataset.fields == {"a": "bytes", "group/b": "bytes", "label": "int64"}
    assert dataset.column("label").tolist() == label.tolist()
    with h5py.File(folder / "sim.h5") as file:
        for number in range(1000):
            found = dataset[number]
            assert is_same(found["a"], file["a"][number]) and is_same(found["group/b"], file["group/b"][number]), number
    assert dataset.key(3) == "sim.h5:3"


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_of_numbers(folder, dtype):
    array = numbers((20, 3), dtype)
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("a", data=array, chunks=(7, 3), compression="lzf")
    np.save(folder / "x.npy", array)
    np.savez_compressed(folder / "x.npz", a=array)
    check_all(leat.Dataset.array(folder / "x.h5"), a=array)
    check_all(leat.Dataset.array(folder / "x.npy"), data=array)
    check_all(leat.Dataset.array(folder / "x.npz"), a=array)
    if dtype[0] != ">":
        zarr.create_array(folder / "x.zarr", data=array, chunks=(7, 3))
        check_all(leat.Dataset.array(folder / "x.zarr"), data=array)


def test_netcdf(folder):
    netcdf = pytest.importorskip("h5netcdf", reason="h5netcdf writes the files: pip install h5netcdf")
    array = numbers((50, 6, 4))
    with netcdf.File(folder / "sim.nc", "w") as file:
        file.dimensions = {"time": None, "y": 6, "x": 4}
        file.resize_dimension("time", 50)
        made = file.create_variable("density", ("time", "y", "x"), "f4", chunks=(8, 6, 4), compression="gzip", shuffle=True)
        made[:] = array
    check_all(leat.Dataset.array(folder / "sim.nc", variables=["density"]), density=array)


def test_values_that_were_never_written(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        some = file.create_dataset("some", (40, 5), "f4", chunks=(4, 5), fillvalue=2.5, compression="gzip")
        some[9:13] = 1.0
        file.create_dataset("none", (40, 5), "i2", chunks=(4, 5), fillvalue=-3)
        file.create_dataset("plain", (40, 5), "i2", fillvalue=-4)
        wanted = {name: file[name][:] for name in ("some", "none", "plain")}
    check_all(leat.Dataset.array(folder / "x.h5", variables=list(wanted)), **wanted)
    check_all(leat.Dataset.array(folder / "x.h5", variables=["none"]), none=wanted["none"])


def codecs_of(kind: str, version: int) -> dict:
    from zarr import codecs

    if version == 2:
        numcodecs = pytest.importorskip("numcodecs")
        return {
            "none": {"compressors": None}, "zstd": {"compressors": numcodecs.Zstd()}, "gzip": {"compressors": numcodecs.GZip()},
            "zlib": {"compressors": numcodecs.Zlib()}, "blosc": {"compressors": numcodecs.Blosc()},
            "lz4": {"compressors": numcodecs.LZ4()}, "bz2": {"compressors": numcodecs.BZ2()},
            "shuffled": {"compressors": numcodecs.Zlib(), "filters": [numcodecs.Shuffle(4)]},
            "F": {"compressors": None, "order": "F"},
        }[kind]  # fmt: skip
    return {
        "none": {"compressors": None}, "zstd": {"compressors": codecs.ZstdCodec()}, "gzip": {"compressors": codecs.GzipCodec()},
        "blosc": {"compressors": codecs.BloscCodec()}, "sum": {"compressors": [codecs.GzipCodec(), codecs.Crc32cCodec()]},
        "shards": {"compressors": codecs.ZstdCodec(), "shards": (60, 8, 10)},
        "shards first": {"compressors": codecs.GzipCodec(), "shards": codecs.ShardingCodec},
        "axes": {"compressors": codecs.GzipCodec(), "filters": [codecs.TransposeCodec(order=(2, 0, 1))]},
        "big": {"compressors": None, "serializer": codecs.BytesCodec(endian="big")},
    }[kind]  # fmt: skip


@pytest.mark.parametrize(
    "version, kind",
    [*((2, kind) for kind in ("none", "zstd", "gzip", "zlib", "blosc", "lz4", "bz2", "shuffled", "F")),
     *((3, kind) for kind in ("none", "zstd", "gzip", "blosc", "sum", "shards", "axes", "big"))],
)  # fmt: skip
def test_a_thousand_odd_samples_of_zarr(folder, version, kind):
    a, label = numbers((1000, 8, 9)), numbers((1000,), "u2", 2)
    group = zarr.open_group(folder / "sim.zarr", mode="w", zarr_format=version)
    made = group.create_array("deep/a", shape=a.shape, dtype=a.dtype, chunks=(20, 4, 5), **codecs_of(kind, version))
    made[:] = a
    group.create_array("label", shape=label.shape, dtype=label.dtype, chunks=(300,))[:] = label
    dataset = leat.Dataset.array(folder / "sim.zarr", variables={"x": "deep/a", "label": "label"})
    assert dataset.column("label").tolist() == label.tolist()
    read = zarr.open_group(folder / "sim.zarr", mode="r")["deep/a"][:]
    for number in range(1000):
        assert is_same(dataset[number]["x"], read[number]), number


def test_chunks_of_zarr_that_were_never_written(folder):
    made = zarr.create_array(folder / "x.zarr", shape=(50, 6), dtype="f4", chunks=(4, 3), fill_value=np.nan)
    made[10:20, 4:] = 1.0
    check_all(leat.Dataset.array(folder / "x.zarr"), data=made[:])
    shards = zarr.create_array(folder / "y.zarr", shape=(50, 6), dtype="i2", chunks=(4, 3), shards=(20, 6), fill_value=9)
    shards[10:12, 4:] = 1
    check_all(leat.Dataset.array(folder / "y.zarr"), data=shards[:])
    none = zarr.create_array(folder / "z.zarr", shape=(50, 6), dtype="i2", chunks=(4, 3), fill_value=-2)
    check_all(leat.Dataset.array(folder / "z.zarr"), data=none[:])


def test_files_one_after_the_other(folder):
    arrays = [numbers((size, 4, 3), "f4", size) for size in (5, 1, 30)]
    for number, array in enumerate(arrays):
        np.save(folder / f"{number}.npy", array)
        np.savez(folder / f"{number}.npz", x=array, y=array[:, 0] + 1)
    check_all(leat.Dataset.array(folder / "*.npy"), data=np.concatenate(arrays))
    whole = np.concatenate(arrays)
    check_all(leat.Dataset.array(folder / "*.npz", variables=["x", "y"]), x=whole, y=whole[:, 0] + 1)
    np.save(folder / "3.npy", numbers((5, 4, 2)))
    with pytest.raises(leat.InvalidArgument, match=r"3\.npy is float32 of \(5, 4, 2\), and 0\.npy is float32 of \(5, 4, 3\)"):
        leat.Dataset.array(folder / "*.npy")


def test_a_changed_file_among_files_of_another_kind_is_noticed(folder):
    """One is read as it is, and what is read of the other is made."""
    arrays = [numbers((40, 6), seed=seed) for seed in range(2)]
    with h5py.File(folder / "0.h5", "w") as file:
        file.create_dataset("data", data=arrays[0])
    with h5py.File(folder / "1.h5", "w") as file:
        file.create_dataset("data", data=arrays[1], chunks=(7, 3))
    check_all(leat.Dataset.array(folder / "*.h5"), data=np.concatenate(arrays))
    dataset = leat.Dataset.array(folder / "*.h5")
    with h5py.File(folder / "0.h5", "r+") as file:
        file["data"][:] += 1
    with pytest.raises(leat.Corrupt, match=r"0\.h5"):
        dataset[0]


# --- Windows ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["contiguous", "chunked", "npy", "zarr"])
@pytest.mark.parametrize(
    "shape, stride",
    [((10,), None), ((10,), (3,)), ((4, 5), None), ((8, 8, 8), (5, 6, 7)), ((30, 20, 21), None), ((1, 20, 21), (2, 1, 1))],
)
def test_windows_are_slices(folder, monkeypatch, kind, shape, stride):
    monkeypatch.setattr(_array_plan, "_MOST_RUN_BYTES", 20_000)
    volume, mask = numbers((30, 20, 21, 2)), numbers((30, 20, 21), "u1", 1)
    if kind == "npy":
        np.savez(folder / "x.npz", volume=volume, mask=mask)
        place = folder / "x.npz"
    elif kind == "zarr":
        place = folder / "x.zarr"
        group = zarr.open_group(place, mode="w")
        group.create_array("volume", data=volume, chunks=(7, 7, 7, 1))
        group.create_array("mask", data=mask, chunks=(8, 8, 8))
    else:
        place = folder / "x.h5"
        with h5py.File(place, "w") as file:
            more = {} if kind == "contiguous" else {"compression": "lzf"}
            file.create_dataset("volume", data=volume, **more, **({"chunks": (7, 7, 7, 1)} if more else {}))
            file.create_dataset("mask", data=mask, **more, **({"chunks": (8, 8, 8)} if more else {}))
    dataset = leat.Dataset.array(place, variables=["volume", "mask"], shape=shape, stride=stride)
    steps = stride or shape
    begins = [range(0, side - part + 1, step) for side, part, step in zip(volume.shape, shape, steps)]
    wanted = [
        tuple(slice(at, at + part) for at, part in zip(place, shape))
        for place in np.stack(np.meshgrid(*begins, indexing="ij"), -1).reshape(-1, len(shape)).tolist()
    ]
    assert len(dataset) == len(wanted)
    for number, where in enumerate(wanted):
        assert is_same(dataset[number]["volume"], volume[where]) and is_same(dataset[number]["mask"], mask[where]), number


@pytest.mark.parametrize("kind", ["npy", "h5"])
def test_files_of_several_folders(folder, kind):
    """Their names are the same, so only the place tells them apart."""
    arrays = [numbers((count, 4), seed=count) for count in (3, 5)]
    for place, array in zip("ab", arrays):
        write(folder / place / f"0.{kind}", b"")
        if kind == "npy":
            np.save(folder / place / "0.npy", array)
        else:
            h5py = pytest.importorskip("h5py", reason="h5py is not installed: pip install h5py")
            with h5py.File(folder / place / "0.h5", "w") as file:
                file.create_dataset("data", data=array, chunks=(2, 4), compression="gzip")
    dataset = leat.Dataset.array([folder / "a", folder / "b"])
    check_all(dataset, data=np.concatenate(arrays))
    check_all(leat.Dataset.concat([dataset, dataset]), data=np.concatenate([*arrays, *arrays]))


def test_windows_of_one_dimension(folder):
    signal = numbers((1000,), "f4")
    np.save(folder / "x.npy", signal)
    check_all(leat.Dataset.array(folder / "x.npy", shape=(64,), stride=(10,)),
              data=np.lib.stride_tricks.sliding_window_view(signal, 64)[::10])  # fmt: skip
    with pytest.raises(leat.InvalidArgument, match=r"numbers of one dimension.*shape="):
        leat.Dataset.array(folder / "x.npy")


@pytest.mark.parametrize(
    "given, says",
    [
        ({"shape": (2, 2, 2, 2)}, "need 4"), ({"shape": (0,)}, "from 1"), ({"shape": (2,), "stride": (1, 1)}, "one number"),
        ({"stride": (1,)}, "needs shape="), ({"shape": (100,)}, "no window fits"), ({"shape": 3.5}, "whole numbers"),
        ({"gap_bytes": -1}, "from 0"), ({"variables": "x"}, "it is a list"), ({"variables": []}, "names arrays"),
        ({"variables": ["z"]}, "has no array 'z'"), ({"variables": ["x", "short"]}, "do not correspond"),
        ({"variables": ["text"]}, "numbers"), ({"variables": ["one"]}, "no dimension of samples"), ({"variables": None}, "4 arrays"),
        ({"format": "hdf6"}, "one of hdf5"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant(folder, given, says):
    with h5py.File(folder / "x.h5", "w") as file:
        file["x"], file["y"], file["short"] = numbers((20, 3, 2)), numbers((20, 3, 2)), numbers((19, 3, 2))
        file["text"], file["one"] = ["a", "b"], 3.5
        file["label"] = numbers((20,), "i4")
    with pytest.raises(leat.InvalidArgument, match=says):
        leat.Dataset.array(folder / "x.h5", **{"variables": ["x"], **given})


# --- Loaders -------------------------------------------------------------------


def make_large(folder: pathlib.Path, kind: str) -> int:
    """252 MB in chunks of about 1 MiB; gives the bytes that are stored."""
    images = np.random.default_rng(5).integers(0, 256, (3840, 256, 256), np.uint8)
    labels = np.arange(3840)
    if kind == "hdf5":
        with h5py.File(folder / "sim.h5", "w") as file:
            file.create_dataset("image", data=images, chunks=(16, 256, 256), compression="lzf", fletcher32=True)
            file.create_dataset("label", data=labels)
    elif kind == "npy":
        np.savez(folder / "sim.npz", image=images, label=labels)
    else:
        group = zarr.open_group(folder / "sim.zarr", mode="w")
        group.create_array("image", data=images, chunks=(16, 256, 256), shards=(256, 256, 256), compressors=None)
        group.create_array("label", data=labels)
    return images.nbytes


@pytest.mark.parametrize("kind, name", [("hdf5", "sim.h5"), ("npy", "sim.npz"), ("zarr", "sim.zarr")])
def test_any_number_of_ranks_reads_each_chunk_about_once(folder, serve, kind, name):
    (folder / "bucket").mkdir()
    size = make_large(folder / "bucket", kind)
    served = serve(folder / "bucket")
    dataset = leat.Dataset.array(f"{served.url}/{name}", variables=["image", "label"], **served.options)

    def check(batch, world):
        assert batch["label"].tolist() == batch["index"].tolist()
        assert batch["image"].shape == (48 // world, 256, 256)

    def most_bytes(world, size):
        # Ranks read some runs together, at the ends of their lanes.
        return 1.05 * size + 2 * (world > 1) * world * 10 * MIB

    assert steps_if_read_about_once(dataset, served, size, check, most_bytes) == 80


def test_a_store_that_throttles_changes_nothing(folder, serve, monkeypatch):
    monkeypatch.setattr(_array_plan, "_MOST_RUN_BYTES", 20_000)  # So there are many requests.
    monkeypatch.setattr(_array_plan, "_UNIT_BYTES", 1)
    array = numbers((400, 32, 32))
    with h5py.File(write(folder / "bucket" / "x.h5", b""), "w") as file:
        file.create_dataset("a", data=array, chunks=(20, 32, 32), compression="gzip", shuffle=True)
    hashes = {}
    for most_gets in (None, 5):
        served = serve(folder / "bucket", **({"most_gets": most_gets} if most_gets else {}))
        dataset = leat.Dataset.array(f"{served.url}/x.h5", **served.options)
        with leat.Loader(dataset, batch_size=20, shuffle=True, epochs=1, output="numpy", fields=("a", "index")) as loader:
            for values, index in loader:
                np.testing.assert_array_equal(values, array[index])
        assert most_gets is None or served.counters()["faults"] > 0
        hashes[most_gets is None] = loader.stats()[-1]["content_hash"], loader.stats()[-1]["order_hash"]
    assert hashes[True] == hashes[False]


@pytest.mark.parametrize("shuffle", [True, False, "full"])
def test_batches_for_torch(folder, shuffle):
    torch = pytest.importorskip("torch")
    array, label = numbers((60, 5, 4), ">f4"), numbers((60,), "f4", 1)
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("a", data=array, chunks=(7, 5, 4), compression="gzip")
        file["label"] = label
    dataset = leat.Dataset.array(folder / "x.h5", variables=["a", "label"])
    with leat.Loader(dataset, batch_size=6, shuffle=shuffle, epochs=1, output="torch", fields=("a", "label", "index")) as loader:
        for values, labels, index in loader:
            assert values.dtype == torch.float32 and tuple(values.shape) == (6, 5, 4)
            np.testing.assert_array_equal(values.numpy(), array[index.numpy()])
            np.testing.assert_array_equal(labels.numpy(), label[index.numpy()])


def test_pickled_joined_and_selected(folder):
    array = numbers((60, 5, 4))
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("a", data=array, chunks=(7, 5, 4), compression="gzip")
    dataset = leat.Dataset.array(folder / "x.h5", shape=(2, 5), stride=(2, 5))
    both = pickle.loads(pickle.dumps(leat.Dataset.concat([dataset.select([29, 3]), dataset])))
    assert is_same(both[0]["a"], array[58:60]) and is_same(both[1]["a"], array[6:8]) and is_same(both[2]["a"], array[:2])


def test_zarr_stores_of_several_places_joined(folder):
    arrays = [numbers((20, 6), seed=seed) for seed in range(2)]
    parts = []
    for number, array in enumerate(arrays):
        zarr.create_array(folder / f"{number}" / "x.zarr", data=array, chunks=(3, 2), shards=None)
        parts.append(leat.Dataset.array(folder / f"{number}" / "x.zarr"))
    check_all(leat.Dataset.concat(parts), data=np.concatenate(arrays))


# --- What is read ----------------------------------------------------------------


def test_the_index_is_kept(folder, serve):
    with h5py.File(write(folder / "bucket" / "x.h5", b""), "w") as file:
        file.create_dataset("a", data=np.random.default_rng(0).random((4000, 1000)), chunks=(100, 1000))
    served = serve(folder / "bucket")
    leat.Dataset.array(f"{served.url}/x.h5", **served.options)
    first = served.counters()
    assert first["bytes"] < 4 * MIB, first  # The file has 32 MB.
    served.reset()
    leat.Dataset.array(f"{served.url}/x.h5", **served.options)
    assert served.counters()["get"] <= first["get"]


@pytest.mark.parametrize("gap_bytes, requests", [(0, 40), (5_000, 1)])
def test_gaps_are_read_where_that_costs_less_than_a_request(folder, serve, caplog, gap_bytes, requests):
    array = np.random.default_rng(1).integers(0, 256, (40, 20_000), np.uint8)
    with h5py.File(write(folder / "bucket" / "x.h5", b""), "w") as file:
        wanted = file.create_dataset("wanted", array.shape, "u1", chunks=(1, 20_000))
        other = file.create_dataset("other", (40, 4_000), "u1", chunks=(1, 4_000))
        for number in range(40):  # So their chunks take turns.
            wanted[number] = array[number]
            file.flush()
            other[number] = 1
            file.flush()
    served = serve(folder / "bucket")
    caplog.set_level(logging.INFO, "leat")
    dataset = leat.Dataset.array(f"{served.url}/x.h5", variables=["wanted"], gap_bytes=gap_bytes, **served.options)
    said = next(record.getMessage() for record in caplog.records if "in vain" in record.getMessage() or "gaps" in record.getMessage())
    served.reset()
    with leat.Loader(dataset, batch_size=10, shuffle=True, epochs=1, output="numpy", fields=("wanted", "index")) as loader:
        for values, index in loader:
            np.testing.assert_array_equal(values, array[index])
    counters = served.counters()
    assert abs(counters["get"] - requests) <= max(2, requests // 10), (counters, said)
    assert counters["bytes"] <= (1 + _array_plan.MOST_IN_VAIN) * array.nbytes
    assert f"{counters['get']} requests" in said, (said, counters)


def test_gaps_are_bounded(monkeypatch):
    found = [(0, at * 300, 100, 0, at) for at in range(10)]  # Gaps of 200 between chunks of 100.
    assert len(_array_plan._gaps_read(found, 1000, 1000)) == 1
    assert len(_array_plan._gaps_read(found, 199, 10**6)) == 0
    assert len(_array_plan._gaps_read(found, 200, 10**6)) == 9
    others = [(at % 2, at * 100, 100, 0, at) for at in range(10)]
    assert _array_plan._gaps_read(sorted(others), 10**6, 10**6) == {1, 2, 3, 4, 6, 7, 8, 9}


# --- Damage -----------------------------------------------------------------------


def read_all(place, **given):
    return [pickle.dumps(each) for each in leat.Dataset.array(place, refresh="always", **given)]


@pytest.mark.parametrize("kind", ["all", "sum", "lzf and sum"])
def test_a_flipped_bit_of_a_chunk_with_a_sum_is_corrupt(folder, kind):
    path = folder / "x.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset("a", data=numbers((40, 8, 9)), **HDF5[kind])
        info = made.id.get_chunk_info(1)
    whole = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, info.size, 60).tolist():
        spoilt = bytearray(whole)
        spoilt[info.byte_offset + place] ^= 1 << place % 8
        path.write_bytes(spoilt)
        with pytest.raises(leat.Corrupt, match=r"x\.h5: samples 0 to 39: chunk \(\d+, \d+, 0\): "):
            read_all(path)


def test_files_that_are_cut_short(folder):
    array = numbers((40, 8, 9))
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("a", data=array, **HDF5["all"])
    np.save(folder / "x.npy", array)
    np.savez(folder / "x.npz", a=array)
    np.savez_compressed(folder / "y.npz", a=array)
    for name in ("x.h5", "x.npy", "x.npz", "y.npz"):
        path = folder / name
        whole = path.read_bytes()
        for size in {*range(1, 40), *range(40, len(whole), len(whole) // 50)}:
            path.write_bytes(whole[:size])
            with pytest.raises(leat.Corrupt, match=name.replace(".", r"\.")):
                read_all(path)
        path.write_bytes(whole)
        read_all(path)


@pytest.mark.parametrize("name", ["x.npz", "y.npz", "x.npy"])
def test_any_byte_of_an_npz_may_be_wrong(folder, name):
    array = numbers((9, 4))
    np.save(folder / "x.npy", array)
    np.savez(folder / "x.npz", a=array)
    np.savez_compressed(folder / "y.npz", a=array)
    path = folder / name
    given = {} if name == "x.npy" else {"variables": ["a"]}  # Its name may be wrong, too.
    whole, wanted, caught = path.read_bytes(), read_all(path, **given), set()
    for place in range(0, len(whole), 3):
        spoilt = bytearray(whole)
        spoilt[place] ^= 0x11
        path.write_bytes(spoilt)
        try:
            found = read_all(path, **given)
        except leat.Error as error:
            assert type(error) in (leat.Corrupt, leat.InvalidArgument), (place, error)
            caught.add(type(error))
        else:
            # Numbers that are stored as they are have no sum; and some bytes say nothing.
            assert found == wanted or name != "y.npz", place
    assert leat.Corrupt in caught


def test_any_byte_of_hdf5_metadata_may_be_wrong(folder):
    path = folder / "x.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("a", data=numbers((9, 4)), chunks=(2, 4), compression="gzip", fletcher32=True)
    whole, wanted, caught = path.read_bytes(), read_all(path), 0
    for place in range(0, len(whole), 17):
        spoilt = bytearray(whole)
        spoilt[place] ^= 0x11
        path.write_bytes(spoilt)
        try:
            assert read_all(path) == wanted, place
        except leat.Error as error:
            assert type(error) in (leat.Corrupt, leat.InvalidArgument), (place, error)
            caught += 1
    assert caught > 20


def test_damaged_zarr(folder):
    place = folder / "x.zarr"
    array = numbers((50, 6))
    zarr.create_array(place, data=array, chunks=(5, 3), shards=(25, 6), compressors=[zarr.codecs.GzipCodec()])
    files = [path for path in place.rglob("*") if path.is_file()]
    wanted = read_all(place)
    for path in files:
        whole, caught = path.read_bytes(), 0
        for size in range(0, len(whole), max(1, len(whole) // 6)):
            path.write_bytes(whole[:size])
            with pytest.raises((leat.Corrupt, leat.InvalidArgument)):
                read_all(place)
        for at in range(0, len(whole), 41):
            spoilt = bytearray(whole)
            spoilt[at] ^= 0x11
            path.write_bytes(spoilt)
            try:
                found = read_all(place)
            except (leat.Corrupt, leat.InvalidArgument):
                caught += 1
            else:
                assert path.name == "zarr.json" or found == wanted, (path, at)
        path.write_bytes(whole)
        assert caught


def test_a_chunk_of_zarr_without_bytes_is_no_chunk_of_fill_values(folder):
    zarr.create_array(folder / "x.zarr", data=numbers((50, 6)), chunks=(5, 3))
    (folder / "x.zarr" / "c" / "1" / "0").write_bytes(b"")
    with pytest.raises(leat.Corrupt, match="c/1/0: a chunk of data has no bytes"):
        leat.Dataset.array(folder / "x.zarr")

    zarr.create_array(folder / "y.zarr", data=numbers((50, 6)), chunks=(5, 3), shards=(25, 6))
    shard = folder / "y.zarr" / "c" / "1" / "0"
    data = shard.read_bytes()
    index = np.frombuffer(data[-4 - 16 * 10 : -4], "<u8").reshape(10, 2).copy()
    index[3, 1] = 0
    told = index.tobytes()
    shard.write_bytes(data[: -len(told) - 4] + told + _native.crc32c(told).to_bytes(4, "little"))
    with pytest.raises(leat.Corrupt, match="c/1/0: a chunk of data has no bytes"):
        leat.Dataset.array(folder / "y.zarr")


@pytest.mark.parametrize("kind", ["deflate", "gzip", "raw_deflate", "bz2", "zstd", "lzf", "blosc", "lz4"])
def test_a_chunk_that_stands_for_too_much(kind):
    import bz2
    import gzip
    import zlib

    numcodecs = pytest.importorskip("numcodecs")
    bomb = bytes(50 * MIB)
    raw = zlib.compressobj(wbits=-15)
    data = {
        "deflate": lambda: zlib.compress(bomb), "gzip": lambda: gzip.compress(bomb), "raw_deflate": lambda: raw.compress(bomb) + raw.flush(),
        "bz2": lambda: bz2.compress(bomb), "zstd": lambda: numcodecs.Zstd().encode(bomb), "lzf": lambda: b"\xe0\xff\x00" * 1000,
        "blosc": lambda: numcodecs.Blosc().encode(bomb), "lz4": lambda: numcodecs.LZ4().encode(bomb),
    }[kind]()  # fmt: skip
    with pytest.raises(leat.Corrupt, match=kind):
        _array_chunks.undo(bytes(data), [[kind]], 0, 1000)
    with pytest.raises(leat.Corrupt):
        _array_chunks.undo(bytes(data)[: len(data) // 2], [[kind]], 0, len(bomb))


def test_what_is_stored_otherwise_is_named(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("scaled", data=numbers((40, 3), "i4"), chunks=(10, 3), scaleoffset=0)
        file.create_dataset("a", data=numbers((40, 3)))
        layout = h5py.VirtualLayout((40, 3), "f4")
        layout[:] = h5py.VirtualSource(file["a"])
        file.create_virtual_dataset("virtual", layout)
    with pytest.raises(leat.InvalidArgument, match=r"x\.h5:scaled is stored with 'scaleoffset', and Leat undoes"):
        leat.Dataset.array(folder / "x.h5", variables=["scaled"])
    with pytest.raises(leat.InvalidArgument, match="virtual"):
        leat.Dataset.array(folder / "x.h5", variables=["virtual"])
    np.save(folder / "x.npy", np.asfortranarray(numbers((40, 3))))
    with pytest.raises(leat.InvalidArgument, match="Fortran"):
        leat.Dataset.array(folder / "x.npy")
