"""Types of delivered arrays: bit for bit those of NumPy's and torch's own
conversions."""

from __future__ import annotations

import struct
import sys
import zlib

import numpy as np
import pytest

import leat
from leat import errors
from leat.ops import (
    Cast,
    CenterCrop,
    Chain,
    DecodeImage,
    LoadNpy,
    Normalize,
    Pad,
    PadTo,
    ParseInt,
    Python,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)
from leat.ops._op import dtype_name
from small_datasets import encoded

torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")

FLOATS = ("float16", "bfloat16")
WHOLE = ("int16", "int32", "int64", "uint16", "uint32", "uint64")


def noise(height: int = 17, width: int = 37, channels: int = 3, seed: int = 3) -> np.ndarray:
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture(scope="module")
def noises(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noises")
    for i in range(6):
        (folder / f"{i}.png").write_bytes(encoded(noise(seed=i)))
    return folder


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("flips", [0, 1])
def test_small_floats_are_the_float32_rounded_once(name, layout, mode, flips):
    data = encoded(noise())
    mean, std = ((0.2, 0.5, 0.7), (0.1, 0.3, 2.5)) if mode == "RGB" else (0.4, 0.3)

    def chain(*last):
        return Chain([DecodeImage(mode=mode, layout=layout), RandomHorizontalFlip(flips), *last])

    for ops, whole in (
        ([Normalize(mean, std, dtype=name)], [Normalize(mean, std)]),
        ([Normalize(mean, std), Cast(name)], [Normalize(mean, std)]),
        ([Cast(name)], [Cast("float32")]),
        ([Cast(name, scale=False)], [Cast("float32", scale=False)]),
        ([Cast(name), Normalize(mean, std)], [Normalize(mean, std)]),
    ):
        full, made = chain(*whole)(data), chain(*ops)(data)
        assert full.dtype == np.float32 and made.dtype.name == name
        expected = full.astype(np.float16 if name == "float16" else ml_dtypes.bfloat16)
        np.testing.assert_array_equal(made.view(np.uint16), expected.view(np.uint16))
        by_torch = torch.from_numpy(full).to(getattr(torch, name)).view(torch.int16)
        np.testing.assert_array_equal(made.view(np.int16), by_torch.numpy())


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
def test_whole_numbers_stay_what_they_are(name, layout):
    data = encoded(noise())
    chain = [DecodeImage(layout=layout), RandomHorizontalFlip(1)]

    made = Chain([*chain, Cast(name)])(data)

    assert made.dtype == np.dtype(name)
    np.testing.assert_array_equal(made, Chain(chain)(data).astype(name))


def test_float64_is_computed_in_float64():
    data = encoded(noise())
    plain = Chain([DecodeImage()])(data)
    made = Chain([DecodeImage(), Cast(float)])(data)
    assert made.dtype == np.float64
    np.testing.assert_array_equal(made, plain * (1 / 255))
    normal = Chain([DecodeImage(), Normalize(0.5, 0.25, dtype=np.float64)])(data)
    np.testing.assert_allclose(normal, (plain / 255 - 0.5) / 0.25, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize(
    "dtype, name",
    [
        ("float32", "float32"),
        (np.float32, "float32"),
        (np.dtype("float32"), "float32"),
        (float, "float64"),
        (torch.float32, "float32"),
        (torch.half, "float16"),
        ("half", "float16"),
        ("torch.float", "float32"),
        ("<f4", "float32"),
        (torch.bfloat16, "bfloat16"),
        ("torch.bfloat16", "bfloat16"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (torch.uint8, "uint8"),
        (np.int16, "int16"),
    ],
)
def test_types_are_numpys_torchs_and_names(dtype, name):
    assert Cast(dtype) == Cast(name)
    assert Cast(dtype).to_spec()["params"]["dtype"] == name


def test_jaxs_types_are_taken():
    class Float32:  # As jax.numpy's scalar types are: they have a dtype and are none.
        dtype = np.dtype("float32")

    class Bfloat16:
        dtype = np.dtype(ml_dtypes.bfloat16)

    assert [dtype_name(Float32()), dtype_name(Bfloat16())] == ["float32", "bfloat16"]


@pytest.mark.parametrize("name", ["uint8", "int16", "int32", "uint32", "float16", "bfloat16", "float32"])
def test_the_types_of_jax_itself_are_taken(noises, name):
    jnp = pytest.importorskip("jax.numpy", reason="jax is not installed")

    assert Cast(getattr(jnp, name)) == Cast(jnp.dtype(name)) == Cast(jnp.zeros(1, name).dtype) == Cast(name)
    ops = [DecodeImage(), Cast(getattr(jnp, name))]
    with leat.Loader(noises, batch_size=3, shuffle=False, ops=ops, output="jax") as loader:
        (batch, *_) = loader
    assert batch["image"].dtype == getattr(jnp, name)


def test_every_op_with_a_dtype_takes_them():
    assert ParseInt(dtype=torch.int32) == ParseInt(dtype="int32")
    assert Normalize(0.5, 0.5, dtype=torch.float16) == Normalize(0.5, 0.5, dtype="float16")
    assert leat.ops.ParseFloat(dtype=torch.float32) == leat.ops.ParseFloat(dtype="float32")
    assert leat.ops.ParseJson(dtype=torch.bool) == leat.ops.ParseJson(dtype=bool)


@pytest.mark.parametrize("dtype", [None, "float31", torch.complex64, object(), np.dtype(">f4"), ">f4", "float", "int8"])
def test_what_is_no_type_of_pixels_is_refused_by_the_names_there_are(dtype):
    with pytest.raises(errors.InvalidArgument, match="dtype=.* must be one of uint8, float32, float16"):
        Cast(dtype)


def test_ops_that_would_undo_a_type_are_refused():
    with pytest.raises(errors.InvalidArgument, match="floats back into int16"):
        Chain([DecodeImage(), Normalize("imagenet"), Cast("int16")])
    with pytest.raises(errors.InvalidArgument, match="put it before the normalize or cast that makes int64"):
        Chain([DecodeImage(), Cast("int64"), leat.ops.Resize(8)])


@pytest.mark.parametrize("output, of", [("numpy", ml_dtypes.bfloat16), ("torch", torch.bfloat16)])
def test_a_batch_of_bfloat16(noises, output, of):
    def load(dtype, output):
        loader = leat.Loader(noises, batch_size=3, shuffle=False, output=output,
                             ops=[DecodeImage(), Normalize("imagenet", dtype=dtype)])  # fmt: skip
        return [batch["image"] for batch in loader], loader.stats()[-1]["content_hash"]

    got, hashed = load("bfloat16", output)
    full, other = load(None, "torch")
    assert [x.dtype for x in got] == [of, of] and hashed != other
    for mine, whole in zip(got, full):
        bits = np.asarray(mine).view(np.int16) if output == "numpy" else mine.view(torch.int16).numpy()
        np.testing.assert_array_equal(bits, whole.to(torch.bfloat16).view(torch.int16).numpy())


def test_bfloat16_of_torch_needs_no_package_and_numpys_says_which(noises, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    ops = [DecodeImage(), Cast(torch.bfloat16)]
    (batch, *_) = leat.Loader(noises, batch_size=3, shuffle=False, output="torch", ops=ops)
    assert batch["image"].dtype == torch.bfloat16
    with pytest.raises(errors.InvalidArgument, match="pip install ml_dtypes"):
        leat.Loader(noises, batch_size=3, shuffle=False, ops=ops, output="numpy")
    with pytest.raises(errors.InvalidArgument, match="pip install ml_dtypes"):
        Chain(ops)


def test_functions_get_and_give_bfloat16(noises):
    seen = []

    def twice(image):
        seen.append(image.dtype)
        return torch.from_numpy(image.astype(np.float32)).to(torch.bfloat16) * 2

    ops = [DecodeImage(), Cast("bfloat16", scale=False), Python(twice), Python(lambda x: x)]
    (batch, *_) = leat.Loader(noises, batch_size=3, shuffle=False, ops=ops, output="numpy")
    assert set(seen) == {np.dtype(ml_dtypes.bfloat16)}
    assert batch["image"].dtype == ml_dtypes.bfloat16
    expected = noise(seed=0).transpose(2, 0, 1).astype(ml_dtypes.bfloat16) * 2
    np.testing.assert_array_equal(batch["image"][0].astype(np.float32), expected.astype(np.float32))


def test_tokens_take_torchs_types(tmp_path):
    np.arange(64, dtype="<u2").tofile(tmp_path / "t.bin")
    made = leat.Dataset.tokens(tmp_path, dtype=torch.uint16, seq_len=8)
    assert len(made) == 8


def test_arrays_keep_float16(tmp_path):
    array = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float16)
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", array + i)
    (batch,) = leat.Loader(tmp_path, batch_size=2, shuffle=False, ops=[LoadNpy()], output="numpy")
    assert batch["data"].dtype == np.float16
    np.testing.assert_array_equal(batch["data"][0], array)


def deep(height: int = 17, width: int = 37, seed: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**16, (height, width), dtype=np.uint16)


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
def test_sixteen_bits_of_grey_are_kept(layout):
    depths = deep()
    data = encoded(depths)
    made = Chain([DecodeImage(mode="I;16", layout=layout)])(data)
    assert made.dtype == np.uint16
    assert made.shape == ((1, 17, 37) if layout == "CHW" else (17, 37, 1))
    np.testing.assert_array_equal(made.squeeze(), depths)
    mirrored = Chain([DecodeImage(mode="I;16", layout=layout), RandomHorizontalFlip(1)])(data)
    np.testing.assert_array_equal(mirrored.squeeze(), depths[:, ::-1])


def test_sixteen_bits_are_cropped_padded_and_cast():
    depths = deep()
    data = encoded(depths)

    def run(*ops):
        return Chain([DecodeImage(mode="I;16"), *ops])(data)[0]

    np.testing.assert_array_equal(run(CenterCrop((5, 7))), depths[6:11, 15:22])
    np.testing.assert_array_equal(run(Pad((1, 2, 3, 4))), np.pad(depths, ((2, 4), (1, 3))))
    cut = run(RandomCrop(9))
    corners = [(y, x) for y in range(9) for x in range(29) if (depths[y : y + 9, x : x + 9] == cut).all()]
    assert len(corners) == 1
    for name in ("int32", "int64", "uint32", "uint64"):
        made = run(Cast(name))
        assert made.dtype == np.dtype(name)
        np.testing.assert_array_equal(made, depths)
    scale = np.float32(1 / 65535)
    np.testing.assert_array_equal(run(Cast()), depths.astype(np.float32) * scale)
    np.testing.assert_array_equal(run(Cast("float32", scale=False)), depths.astype(np.float32))
    np.testing.assert_array_equal(run(Cast(float)), depths * (1 / 65535))
    full = run(Normalize(0.4, 0.3))
    np.testing.assert_allclose(full, (depths / 65535 - 0.4) / 0.3, atol=1e-6)
    np.testing.assert_array_equal(run(Normalize(0.4, 0.3, dtype="float16")), full.astype(np.float16))
    small = run(Normalize(0.4, 0.3), Cast("bfloat16"))
    np.testing.assert_array_equal(small.view(np.uint16), full.astype(ml_dtypes.bfloat16).view(np.uint16))


def test_sixteen_bits_are_resized_to_the_nearest():
    depths = deep(31, 43)
    data = encoded(depths)
    upper, lower = (encoded(half.astype(np.uint8)) for half in (depths >> 8, depths & 255))
    for op in (Resize((20, 60), "nearest"), Resize(9, "nearest"), RandomResizedCrop((50, 12), interpolation="nearest")):
        made = Chain([DecodeImage(mode="I;16"), op])(data, seed=3)
        halves = (Chain([DecodeImage(mode="L"), op])(half, seed=3).astype(np.uint16) for half in (upper, lower))
        np.testing.assert_array_equal(made, next(halves) << 8 | next(halves))


def deep_png(pixels: np.ndarray) -> bytes:
    """Pillow writes no colours of 16 bits."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 16, {3: 2, 4: 6}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def colours(height: int = 17, width: int = 37, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(6).integers(0, 2**16, (height, width, channels), dtype=np.uint16)


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("channels", [3, 4])
def test_sixteen_bits_of_colour_are_kept(layout, channels):
    stored = colours(channels=channels)
    data, kept = deep_png(stored), stored[:, :, :3]

    def run(*ops, given=data):
        made = Chain([DecodeImage(mode="RGB;16", layout=layout), *ops])(given, seed=3)
        return made.transpose(1, 2, 0) if layout == "CHW" else made

    assert run().dtype == np.uint16
    np.testing.assert_array_equal(run(), kept)
    np.testing.assert_array_equal(run(given=np.ascontiguousarray(kept)), kept)
    np.testing.assert_array_equal(run(RandomHorizontalFlip(1)), kept[:, ::-1])
    np.testing.assert_array_equal(run(CenterCrop((5, 7))), kept[6:11, 15:22])
    np.testing.assert_array_equal(run(Pad((1, 2, 3, 4))), np.pad(kept, ((2, 4), (1, 3), (0, 0))))
    np.testing.assert_array_equal(run(Cast("int32")), kept)
    full = run(Normalize((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)))
    np.testing.assert_allclose(full, (kept / 65535 - (0.1, 0.2, 0.3)) / (0.4, 0.5, 0.6), atol=1e-6)
    halves = run(Normalize((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), dtype="float16"))
    np.testing.assert_array_equal(halves, full.astype(np.float16))
    exact = run(Normalize((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), dtype="float64"))
    np.testing.assert_allclose(exact, (kept / 65535 - (0.1, 0.2, 0.3)) / (0.4, 0.5, 0.6), atol=1e-14)
    for op in (Resize((20, 60), "nearest"), RandomResizedCrop((50, 12), interpolation="nearest")):
        upper, lower = (
            Chain([DecodeImage(layout="HWC"), op])(encoded(half.astype(np.uint8)), seed=3).astype(np.uint16)
            for half in (kept >> 8, kept & 255)
        )
        np.testing.assert_array_equal(run(op), upper << 8 | lower)


@pytest.mark.parametrize("flip", [RandomHorizontalFlip(1), RandomVerticalFlip(1)])
def test_sixteen_bits_of_colour_stay_together_in_a_flip_before_a_resize(flip):
    stored = colours(40, 40)
    turned = stored[:, ::-1] if isinstance(flip, RandomHorizontalFlip) else stored[::-1]

    for op in (
        Resize((20, 20), interpolation="nearest"),
        RandomResizedCrop(20, scale=(1, 1), ratio=(1, 1), interpolation="nearest"),
    ):
        made = Chain([DecodeImage(mode="RGB;16", layout="HWC"), flip, op])(deep_png(stored))
        np.testing.assert_array_equal(made, turned[1::2, 1::2])


def test_grey_of_sixteen_bits_becomes_colour_of_sixteen():
    made = Chain([DecodeImage(mode="RGB;16")])(encoded(deep()))
    np.testing.assert_array_equal(made, np.stack([deep()] * 3))


def test_sixteen_bits_of_colour_never_become_eight_or_grey():
    data = deep_png(colours())
    with pytest.raises(errors.InvalidArgument, match='PNG has 16 bits a channel.*mode="RGB;16".*depth=8'):
        Chain([DecodeImage()])(data)
    np.testing.assert_array_equal(Chain([DecodeImage(depth=8, layout="HWC")])(data), colours() >> 8)
    with pytest.raises(errors.InvalidArgument, match='this PNG is in colour; say mode="RGB;16"'):
        Chain([DecodeImage(mode="I;16")])(data)
    with pytest.raises(errors.InvalidArgument, match="this PNG has 8 bits a channel"):
        Chain([DecodeImage(mode="RGB;16")])(encoded(noise()))
    with pytest.raises(errors.InvalidArgument, match="depth=8 must be 8, in mode"):
        DecodeImage(mode="RGB;16", depth=8)


def test_pixels_in_another_byte_order_are_refused():
    chain, pixels = Chain([DecodeImage(mode="I;16", layout="HWC")]), deep()[..., None].copy()
    np.testing.assert_array_equal(chain(pixels), pixels)
    with pytest.raises(errors.InvalidArgument, match=r'pixels\.astype\("<u2"\)'):
        chain(pixels.astype(">u2"))
    with pytest.raises(errors.InvalidArgument, match=r'pixels\.astype\("<u2"\)'):
        chain.drawn(pixels.astype(">u2"))


def test_sixteen_bits_never_become_eight_unless_that_was_said():
    data = encoded(deep())
    for mode in ("RGB", "L"):
        with pytest.raises(errors.InvalidArgument, match='PNG has 16 bits a channel.*mode="I;16".*depth=8'):
            Chain([DecodeImage(mode=mode)])(data)
    upper = Chain([DecodeImage(mode="L", depth=8)])(data)
    np.testing.assert_array_equal(upper[0], deep() >> 8)
    with pytest.raises(errors.InvalidArgument, match="this PNG has 8 bits a channel"):
        Chain([DecodeImage(mode="I;16")])(encoded(noise(channels=1)))
    with pytest.raises(errors.InvalidArgument, match="this JPEG has 8 bits a channel"):
        Chain([DecodeImage(mode="I;16")])(encoded(noise(), "JPEG"))
    with pytest.raises(errors.InvalidArgument, match="resize .* works on pictures of 8 bits.*nearest"):
        Chain([DecodeImage(mode="I;16"), Resize(8)])
    with pytest.raises(errors.InvalidArgument, match="int16 does not hold the 16 bits"):
        Chain([DecodeImage(mode="I;16"), Cast("int16")])
    with pytest.raises(errors.InvalidArgument, match="depth=4 must be 8"):
        DecodeImage(depth=4)


@pytest.mark.parametrize("mode", ["I;16", "RGB;16"])
@pytest.mark.parametrize("form", [None, "decoded"])
def test_batches_of_sixteen_bits(tmp_path, form, mode):
    def stored(i):
        grey = deep(5 + i, 9, seed=i)
        return grey[None] if mode == "I;16" else np.stack([grey, grey ^ 255, grey ^ 0xF0F0])

    for i in range(8):
        data = encoded(stored(i)[0]) if mode == "I;16" else deep_png(stored(i).transpose(1, 2, 0))
        (tmp_path / f"{i}.png").write_bytes(data)
    cache = None if form is None else leat.Cache(ram=2**23, form=form)
    ops = [DecodeImage(mode=mode), PadTo(fill=7)]
    with leat.Loader(tmp_path, batch_size=4, shuffle=False, output="numpy", ops=ops,
                     cache=cache, epochs=3) as loader:  # fmt: skip
        for _ in range(3):
            for step, batch in enumerate(loader):
                for row, image in enumerate(batch["image"]):
                    i = step * 4 + row
                    np.testing.assert_array_equal(image[:, : 5 + i], stored(i))
                    assert image.dtype == np.uint16 and (image[:, 5 + i :] == 7).all()


def test_a_file_of_sixteen_bits_is_an_error_of_its_sample(tmp_path):
    for i in range(3):
        data = encoded(deep() if i == 1 else noise(channels=1))
        (tmp_path / f"{i}.png").write_bytes(data)
    with pytest.raises(errors.InvalidArgument, match='sample 1 "1.png": this PNG has 16 bits'):
        list(leat.Loader(tmp_path, batch_size=3, shuffle=False, ops=[DecodeImage(mode="L")],
                         on_error="substitute"))  # fmt: skip
