"""The ways in which people name data: lists, braces, wildcards, filters."""

from __future__ import annotations

import functools
import http.server
import io
import pickle
import threading

import numpy as np
import pytest

import leat
from small_datasets import make_pictures, run_python, tar_of, write


def keys(dataset: leat.Dataset) -> list[str]:
    return [dataset.key(i) for i in range(len(dataset))]


def read_all(dataset: leat.Dataset) -> list[bytes]:
    loader = leat.Loader(dataset, batch_size=3, shuffle=False, drop_last=False, fields=["data"], batch="tuple", output="numpy")
    return [data for (batch,) in loader for data in batch.tolist()]


@pytest.fixture
def shards(tmp_path):
    """Twelve shards of two samples in train/, one more in extra/, a README."""
    for shard in range(12):
        members = [(f"{shard:04}-{i}.data", f"{shard} {i}".encode()) for i in range(2)]
        write(tmp_path / f"bucket/train/shard-{shard:04}.tar", tar_of(members))
    write(tmp_path / "bucket/extra/more.tar", tar_of([("more.data", b"more")]))
    write(tmp_path / "bucket/train/README.md", b"what this is")
    return tmp_path / "bucket"


@pytest.fixture(params=["path", "file", "s3"])
def place(request, shards, serve):
    """The bucket by three kinds of URL, and the options to open it."""
    if request.param == "s3":
        served = serve(shards)
        return served.url, served.options
    return (f"file://{shards}" if request.param == "file" else str(shards)), {}


def numbers(dataset: leat.Dataset) -> list[int]:
    """The shards that samples came from, each once."""
    return sorted({int(data.split()[0]) for data in read_all(dataset)})


def test_one_shard(place):
    url, options = place
    dataset = leat.Dataset(f"{url}/train/shard-0003.tar", **options)

    assert keys(dataset) == ["0003-0", "0003-1"] and read_all(dataset) == [b"3 0", b"3 1"]


def test_braces_name_shards(place):
    url, options = place
    assert numbers(leat.Dataset(f"{url}/train/shard-{{0002..0004}}.tar", **options)) == [2, 3, 4]
    assert numbers(leat.Dataset(f"{url}/train/shard-{{0001,0009}}.tar", **options)) == [1, 9]


def test_wildcards_choose_shards(place):
    url, options = place
    assert numbers(leat.Dataset(f"{url}/train/*.tar", **options)) == list(range(12))
    assert numbers(leat.Dataset(f"{url}/train/shard-00?[01].tar", **options)) == [0, 1, 10, 11]
    assert len(leat.Dataset(f"{url}/**/*.tar", **options)) == 25
    assert len(leat.Dataset(f"{url}/*/*.tar", **options)) == 25


def test_a_list_of_shards_in_several_folders(place):
    url, options = place
    sources = [f"{url}/train/shard-0002.tar", f"{url}/extra/more.tar"]

    dataset = leat.Dataset(sources, **options)

    assert sorted(read_all(dataset)) == [b"2 0", b"2 1", b"more"]
    assert pickle.loads(pickle.dumps(dataset)).digest == dataset.digest


def test_a_readme_beside_shards_is_no_data(place):
    url, options = place
    assert len(leat.Dataset(f"{url}/train", **options)) == 24


def test_what_is_not_there_is_named(place):
    url, options = place
    for missing in ("train/shard-{0010..0012}.tar", "train/*.zip", "train/shard-0012.tar"):
        with pytest.raises(leat.NotFound, match=r"shard-0012\.tar|\*\.zip"):
            leat.Dataset(f"{url}/{missing}", **options)


def test_folders_of_several_places_are_joined_by_class(tmp_path, serve):
    write(tmp_path / "one/bee/1.jpg", b"one bee")
    write(tmp_path / "one/dog/1.jpg", b"one dog")
    write(tmp_path / "two/ant/1.jpg", b"two ant")
    write(tmp_path / "two/dog/1.jpg", b"two dog")
    served = serve(tmp_path / "two")

    dataset = leat.Dataset([tmp_path / "one", served.url], **served.options)
    braces = leat.Dataset(f"{tmp_path}/{{one,two}}")

    assert dataset.classes == braces.classes == ["ant", "bee", "dog"]
    assert [dataset.classes[s["label"]] for s in dataset] == ["bee", "dog", "ant", "dog"]
    assert read_all(dataset) == read_all(braces) == [b"one bee", b"one dog", b"two ant", b"two dog"]
    assert len(leat.Dataset.concat([dataset, braces])) == 8


def test_the_folder_behind_the_first_wildcard_is_the_label(pictures):
    assert leat.Dataset(f"{pictures}/{{ant,cat}}/*.png").classes == ["ant", "cat"]
    assert leat.Dataset(f"{pictures}/*/*.png").classes == ["ant", "bee", "cat"]
    assert leat.Dataset(f"{pictures}/ant/*.png").classes == []


def test_a_shard_that_came_later_is_seen(shards, serve, fresh_cache):
    served = serve(shards)
    pattern = f"{served.url}/train/shard-*.tar"
    before = leat.Dataset(pattern, **served.options)
    assert leat.Dataset(pattern, **served.options).digest == before.digest

    write(shards / "train/shard-0012.tar", tar_of([("0012-0.data", b"12 0")]))
    after = leat.Dataset(pattern, **served.options)

    assert len(before) == 24 and len(after) == 25
    assert len(leat.Dataset(pattern, refresh="never", **served.options)) == 25


def test_what_does_not_count_makes_no_catalogue_anew(shards, serve, fresh_cache):
    served = serve(shards)
    for url in (f"{served.url}/train/shard-000*.tar", f"{served.url}/train"):
        first = leat.Dataset(url, **served.options)
        served.reset()
        assert leat.Dataset(url, **served.options).digest == first.digest
        counters = served.counters()
        assert counters["list"] == 1 and counters["get"] <= 1, counters


def test_an_object_in_two_sources_is_refused(pictures):
    for twice in ([pictures, pictures], [pictures, f"{pictures}/ant/*.png"], [f"{pictures}/ant", pictures]):
        with pytest.raises(leat.InvalidArgument, match=r"ant/00000\.png is in two of the sources"):
            leat.Dataset(twice)
    assert len(leat.Dataset(f"{pictures}/*/{{*0,*}}.png")) == 60  # One source.


@pytest.mark.parametrize("twice", [
    ["0.tar", "0.tar", "1.tar"], ["*.tar", "0.tar"], ["0.tar", "[01].tar"], ["*.tar", "?.tar"],
])  # fmt: skip
def test_so_is_one_that_sources_of_one_folder_share(tmp_path, fresh_cache, twice):
    for number in range(2):
        write(tmp_path / f"sh/{number}.tar", tar_of([(f"{number}.txt", b"x")]))
    with pytest.raises(leat.InvalidArgument, match=r"sh/0\.tar is in two of the sources"):
        leat.Dataset([f"{tmp_path}/sh/{name}" for name in twice])
    assert len(leat.Dataset([f"{tmp_path}/sh/{name}" for name in ("0.tar", "1*.tar")])) == 2


def test_a_loader_takes_a_pattern(shards):
    for shuffle in (False, True, "stream"):
        with leat.Loader(f"{shards}/train/shard-000*.tar", batch_size=4, shuffle=shuffle, drop_last=False) as loader:
            assert sum(len(batch["data"]) for batch in loader) == 20
    with leat.Loader([f"{shards}/train/*.tar", f"{shards}/extra/more.tar"], batch_size=4, shuffle=False, drop_last=False) as loader:
        assert sum(len(batch["data"]) for batch in loader) == 25


# --- HTTP, which cannot list -------------------------------------------------


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send_head(self):
        """With ranges, which the standard library's has not."""
        span = self.headers.get("Range")
        if span is None:
            return super().send_head()
        with open(self.translate_path(self.path), "rb") as file:
            data = file.read()
        begin, end = (int(part) for part in span.removeprefix("bytes=").split("-"))
        part = data[begin : end + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {begin}-{begin + len(part) - 1}/{len(data)}")
        self.end_headers()
        return io.BytesIO(part)


@pytest.fixture
def over_http(shards):
    handler = functools.partial(Quiet, directory=str(shards))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_http_takes_names_and_braces(over_http):
    assert numbers(leat.Dataset(f"{over_http}/train/shard-{{0000..0002}}.tar")) == [0, 1, 2]
    assert numbers(leat.Dataset(f"{over_http}/train/shard-0007.tar")) == [7]
    with pytest.raises(leat.NotFound, match=r"looking for 'shard-0012\.tar'"):
        leat.Dataset(f"{over_http}/train/shard-{{0011..0012}}.tar")


def test_http_refuses_wildcards_and_says_why(over_http):
    for options in ({"url": f"{over_http}/train/*.tar"}, {"url": f"{over_http}/train", "include": "*.tar"}):
        with pytest.raises(leat.InvalidArgument, match=r"cannot be listed.*shard-\{0000\.\.0128\}\.tar"):
            leat.Dataset(**options)


# --- what counts --------------------------------------------------------------


@pytest.fixture
def littered(tmp_path):
    """Class folders of images with what people leave there."""
    make_pictures(tmp_path / "photos", 6)
    for name in ("README.md", "ant/labels.csv", "bee/.DS_Store", "bee/Thumbs.db", "cat/notes.txt"):
        write(tmp_path / "photos" / name, b"no image")
    return tmp_path / "photos"


SAY = "import leat, sys; [leat.Dataset(sys.argv[1]) for _ in range(2)]"


def test_images_alone_are_samples_of_class_folders(littered):
    dataset = leat.Dataset(littered)

    assert len(dataset) == 6 and dataset.classes == ["ant", "bee", "cat"]
    images = [batch["image"] for batch in leat.Loader(dataset, batch_size=2, shuffle=False, ops=[leat.ops.DecodeImage()])]
    assert len(images) == 3


def test_what_is_left_out_is_said_once(littered, tmp_path):
    said = run_python(SAY, littered, LEAT_CACHE_DIR=str(tmp_path / "own")).stderr

    assert said.count("4 objects are left out, such as 'README.md'") == 1, said
    assert 'extensions="*"' in said


def test_filters_choose_and_are_kept_apart(littered, fresh_cache):
    def opened(**options) -> list[str]:
        return keys(leat.Dataset(littered, **options))

    usual = opened()
    assert opened(include="ant/*") == usual[:2]
    assert opened(include=["ant/*.png", "bee/*.png"], exclude="00001.png") == [usual[0], *usual[2:4]]
    assert opened(exclude=["ant/**", "README.md"]) == usual[2:]
    assert opened(extensions=("TXT", ".csv")) == ["ant/labels.csv", "cat/notes.txt"]
    assert opened(include="*.txt") == ["cat/notes.txt"]
    assert opened() == usual
    assert len(opened(extensions="*", exclude="README.md")) == 9
    with pytest.raises(leat.InvalidArgument, match=r"README\.md' lies beside folders.*exclude=\"README\.md\""):
        opened(extensions="*")
    with pytest.raises(leat.NotFound, match="none of the 10 objects is what include="):
        opened(include="*.gif")


def test_filters_pickle(littered):
    dataset = leat.Dataset(littered, include="*.png", exclude="bee/*")

    again = pickle.loads(pickle.dumps(dataset.skip(1)))

    assert keys(again) == keys(dataset)[1:]


def test_inventory_goes_with_one_folder(pictures):
    with pytest.raises(leat.InvalidArgument, match="inventory= goes with one folder"):
        leat.Dataset(f"{pictures}/*/*.png", inventory="manifest.json")


# --- tokens ------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path):
    for number in range(3):
        tokens = np.arange(number * 1000, number * 1000 + 100, dtype="<u2")
        write(tmp_path / f"corpus/part-{number}.bin", tokens.tobytes())
    return tmp_path / "corpus"


def first_tokens(dataset: leat.Dataset) -> list[int]:
    return [int(sample["tokens"][0]) for sample in dataset]


def test_token_files_by_pattern_and_list(corpus):
    options = {"dtype": "uint16", "seq_len": 50}

    assert first_tokens(leat.Dataset.tokens(f"{corpus}/part-{{0,2}}.bin", **options)) == [0, 50, 2000, 2050]
    assert first_tokens(leat.Dataset.tokens(f"{corpus}/*[12].bin", **options)) == [1000, 1050, 2000, 2050]
    listed = leat.Dataset.tokens([corpus / "part-2.bin", corpus / "part-0.bin"], **options)
    assert first_tokens(listed) == [0, 50, 2000, 2050]


def test_windows_overlap_by_stride(corpus):
    dataset = leat.Dataset.tokens(corpus / "part-1.bin", dtype="uint16", seq_len=33, stride=32)

    assert first_tokens(dataset) == [1000, 1032, 1064]
    for shuffle in (False, True):
        loader = leat.Loader(dataset, batch_size=2, shuffle=shuffle, drop_last=False)
        rows = [row for batch in loader for row in batch["tokens"].tolist()]
        assert sorted(rows) == [list(range(begin, begin + 33)) for begin in (1000, 1032, 1064)]
    plain = leat.Dataset.tokens(corpus / "part-1.bin", dtype="uint16", seq_len=33)
    assert plain.digest != dataset.digest and first_tokens(plain) == [1000, 1033, 1066]
    assert pickle.loads(pickle.dumps(dataset)).digest == dataset.digest
    for wrong in (0, 34):
        with pytest.raises(leat.InvalidArgument, match=f"stride={wrong}"):
            leat.Dataset.tokens(corpus, dtype="uint16", seq_len=33, stride=wrong)
