"""Uses of a dataset before it is loaded."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

import leat
import leat.testing
from small_datasets import make_pictures, make_shards, tar_of, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sixty")
    make_pictures(folder, 60)
    return folder


@pytest.fixture
def dataset(folder):
    return leat.Dataset(folder)


def keys(dataset: leat.Dataset) -> list[str]:
    return [dataset.key(i) for i in range(len(dataset))]


def read_keys(dataset: leat.Dataset) -> list[str]:
    loader = leat.Loader(dataset, batch_size=7, shuffle=False, ids=True)
    return [key for batch in loader for key in batch["key"]]


def test_a_sample_by_its_number(dataset, folder):
    first, last = dataset[0], dataset[-1]

    assert first == {"data": (folder / dataset.key(0)).read_bytes(), "label": 0}
    assert last["label"] == 2
    assert last["data"] == (folder / dataset.key(59)).read_bytes()
    assert [sample["label"] for sample in dataset.take(2)] == [0, 0]
    for number in (60, -61):
        with pytest.raises(IndexError, match="of 60"):
            dataset[number]


def test_take_skip_and_slices(dataset):
    every = keys(dataset)

    assert keys(dataset.take(5)) == every[:5]
    assert keys(dataset.skip(55)) == every[55:]
    assert keys(dataset[10:20:3]) == every[10:20:3]
    assert keys(dataset.take(100)) == every
    assert keys(dataset.select([3, 3, 1])) == [every[3], every[3], every[1]]
    assert read_keys(dataset[10:20]) == every[10:20]
    for nothing in (lambda: dataset.take(0), lambda: dataset.skip(60)):
        with pytest.raises(leat.InvalidArgument, match="no sample of .* is left"):
            nothing()
    with pytest.raises(leat.InvalidArgument, match="no sample 60"):
        dataset.select([60])
    with pytest.raises(leat.InvalidArgument, match="count=-1"):
        dataset.take(-1)


def test_filter_on_columns(dataset):
    ants = dataset.filter(lambda of: of["label"] == 0)

    assert len(ants) == 20 and set(ants.column("label")) == {0}
    assert ants.classes == dataset.classes
    large = dataset.filter(lambda of: of.lengths("data") >= np.median(of.lengths("data")))
    assert 30 <= len(large) <= 60
    with pytest.raises(leat.InvalidArgument, match="no field 'size'.*label"):
        dataset.filter(lambda of: of["size"] > 0)
    with pytest.raises(leat.InvalidArgument, match="a bool for each of the 60"):
        dataset.filter(lambda of: of["label"])


@pytest.mark.parametrize(
    "keep",
    [
        lambda of: of["cls"] == 1,
        lambda of: 1 == of["cls"],
        lambda of: of["cls"] != b"1",
        lambda of: np.array(1) == of["cls"],
        lambda of: np.int64(1) < of["cls"],
        lambda of: np.equal(of["cls"], 1),
        lambda of: of["cls"] % 2 > 0,
        lambda of: 2 * of["cls"] > 0,
        lambda of: np.isin(of["cls"], [1, 2]),
        lambda of: of["cls"].astype(int) == 1,
        lambda of: [value == 1 for value in of["cls"]],
        lambda of: 1 in of["cls"],
        lambda of: bool(of["cls"]),
        lambda of: of["cls"],
        lambda of: np.asarray(of["cls"]) > 0,
    ],
)
def test_bytes_are_no_column_of_a_filter(keep, digits):
    with pytest.raises(leat.InvalidArgument, match=r"'cls'.*parsed\('cls', int\).*lengths\('cls'\)"):
        digits.filter(keep)
    with pytest.raises(leat.InvalidArgument, match=r"'cls'.*parsed\('cls', int\)"):
        digits.column("cls")


@pytest.mark.parametrize(("keep", "says"), [
    (lambda of: of["label"] != "bee", r"'label' has numbers, and 'bee' is none; the number of that class is 1"),
    (lambda of: "bee" == of["label"], "'label' has numbers"),
    (lambda of: ~np.isin(of["label"], ["bee", "cat"]), "'label' has numbers, and 'bee'"),
    (lambda of: ~np.isin(of["label"], {"dog"}), "'label' has numbers, and 'dog' is none$"),
    (lambda of: of["label"][:60] != np.array(["bee"] * 60), "'label' has numbers"),
    (lambda of: of["word"] != 3, "'word' has texts, and 3 is none"),
    (lambda of: of["word"] != of["label"], "'word' has texts"),
    (lambda of: of.parsed("data", lambda data: data[:1]) != 1, "'data' has texts"),
])
def test_what_a_column_can_never_be_is_not_compared_with_it(tmp_path, keep, says):
    keys = make_pictures(tmp_path / "pictures", 60)
    write(tmp_path / "t.csv", b"path,label,word\n" + b"".join(f"{key},{key.split('/')[0]},w{n}\n".encode() for n, key in enumerate(keys)))
    rows = leat.Dataset.from_manifest(tmp_path / "t.csv", base=str(tmp_path / "pictures"),
                                      fields={"data": "path", "label": "label"}, columns=["word"])  # fmt: skip
    assert rows.classes == ["ant", "bee", "cat"]

    with pytest.raises(leat.InvalidArgument, match=says):
        rows.filter(keep)
    assert len(rows.filter(lambda of: (of["label"] != 1) & (of["word"] != "w0") & ~np.isin(of["word"], ["w59"]))) == 38
    assert len(rows.filter(lambda of: [word is not None for word in of["word"]])) == 60


@pytest.fixture
def digits(tmp_path):
    """Twelve samples of shards with a class of one digit: 0, 1, 2, 0, …; one has an .extra."""
    for shard in range(3):
        members = []
        for number in range(shard * 4, shard * 4 + 4):
            members += [(f"{number:02}.cls", str(number % 3).encode()), (f"{number:02}.png", b"x" * number)]
            if number == 7:
                members.append((f"{number:02}.extra", b"1.5"))
        write(tmp_path / f"digits/{shard}.tar", tar_of(members))
    return leat.Dataset(tmp_path / "digits")


def test_a_filter_parses_what_it_asks_for(digits):
    ones = digits.filter(lambda of: of.parsed("cls", int) == 1)

    assert keys(ones) == ["01", "04", "07", "10"]
    assert ones.parsed("cls", int).tolist() == [1, 1, 1, 1]
    assert digits.parsed("cls", float).dtype == np.float64
    assert digits.take(2).parsed("cls", str).tolist() == ["0", "1"]
    assert digits.lengths("png").tolist() == list(range(12))
    assert keys(digits.filter(lambda of: of.has("extra"))) == ["07"]
    assert digits.lengths("extra").tolist() == [-1] * 7 + [3] + [-1] * 4
    with pytest.raises(leat.InvalidArgument, match="11 of 12 samples lack .* such as 00; .*has"):
        digits.parsed("extra", float)
    with pytest.raises(leat.InvalidArgument, match=r"sample 1 \(01\) has b'x': .*invalid literal"):
        digits.parsed("png", lambda data: int(data or b"0"))
    with pytest.raises(leat.InvalidArgument, match="no field 'size'"):
        digits.lengths("size")


def test_what_is_no_field_of_bytes_is_not_parsed(dataset):
    with pytest.raises(leat.InvalidArgument, match=r"is int64, of which column\('label'\)"):
        dataset.parsed("label", int)


def test_split_by_hash_is_stable(dataset):
    train, test = dataset.split(0.8, 0.2, seed=3)

    assert sorted(keys(train) + keys(test)) == keys(dataset)
    assert 35 <= len(train) <= 57
    # Taking others away moves nobody.
    fewer_train, fewer_test = dataset.skip(20).split(0.8, 0.2, seed=3)
    assert set(keys(fewer_train)) <= set(keys(train))
    assert set(keys(fewer_test)) <= set(keys(test))
    assert keys(dataset.split(0.8, 0.2, seed=4)[1]) != keys(test)
    for wrong in ((), (0.5,), (0.5, 0.6), (1.5, -0.5)):
        with pytest.raises(leat.InvalidArgument, match="add up to 1"):
            dataset.split(*wrong)


def test_split_by_a_column_keeps_groups_together(dataset):
    parts = dataset.split(0.4, 0.6, by="label", seed=2)

    labels = [set(part.column("label")) for part in parts]
    assert labels[0].isdisjoint(labels[1]) and labels[0] | labels[1] == {0, 1, 2}
    with pytest.raises(leat.InvalidArgument, match="part 0, of 0.001, got no sample"):
        dataset.take(3).split(0.001, 0.999)
    with pytest.raises(leat.InvalidArgument, match="no field 'patient'"):
        dataset.split(0.5, 0.5, by="patient")


def test_concat_reads_from_several_places(dataset, folder, serve, tmp_path):
    make_pictures(tmp_path / "more", 30)
    served = serve(tmp_path / "more")
    remote = leat.Dataset(served.url, **served.options)

    both = leat.Dataset.concat([dataset, remote])

    assert len(both) == 90
    assert read_keys(both) == keys(dataset) + keys(remote)
    assert both[60]["data"] == remote[0]["data"]
    loader = leat.Loader(both, batch_size=90, shuffle=True, seed=5)
    batch = next(iter(loader))
    assert sorted(map(bytes, batch["data"].tolist())) == sorted(
        sample["data"] for part in (dataset, remote) for sample in part
    )
    again = leat.Loader(leat.Dataset.concat([dataset, remote]), batch_size=90, shuffle=True, seed=5)
    again.load_state_dict(loader.state_dict())
    assert again.state_dict() == loader.state_dict()


def test_concat_refuses_what_does_not_fit(dataset, tmp_path):
    make_shards(tmp_path / "shards", 1, 2, 100)
    shards = leat.Dataset(tmp_path / "shards")

    with pytest.raises(leat.InvalidArgument, match=r"\(bin: bytes, txt: bytes\).*from_manifest"):
        leat.Dataset.concat([dataset, shards])
    with pytest.raises(leat.InvalidArgument, match="nothing to join"):
        leat.Dataset.concat([])


def test_concat_merges_classes_by_name(tmp_path, caplog):
    for place, names in {"one": ("bee", "dog"), "two": ("ant", "dog")}.items():
        for name in names:
            write(tmp_path / place / name / "1.jpg", f"{place} {name}".encode())
    one, two = leat.Dataset(tmp_path / "one"), leat.Dataset(tmp_path / "two")

    with caplog.at_level("INFO", logger="leat"):
        both = leat.Dataset.concat([one, two])

    assert both.classes == ["ant", "bee", "dog"]
    assert {both.classes[s["label"]] for s in both if s["data"].startswith(b"two")} == {"ant", "dog"}
    assert both.column("label").tolist() == [1, 2, 0, 2]
    batch = next(iter(leat.Loader(both, batch_size=4, shuffle=False, output="numpy")))
    assert [bytes(data).split()[1].decode() for data in batch["data"].tolist()] == [
        both.classes[label] for label in batch["label"].tolist()
    ]
    assert "labels are renumbered through the 3 names" in caplog.text


def test_concat_of_a_bucket_and_a_folder_says_that_no_version_is_checked(serve, tmp_path, caplog):
    for name in ("one", "two"):
        make_pictures(tmp_path / name, 3)
    bucket = serve(tmp_path / "one")
    one, two = leat.Dataset(bucket.url, **bucket.options), leat.Dataset(tmp_path / "two")

    leat.Dataset.concat([one, one]), leat.Dataset.concat([two, two])
    assert "versions" not in caplog.text

    both = leat.Dataset.concat([one, two])
    assert len(read_keys(both)) == 6
    assert [record.levelname for record in caplog.records if "none is checked" in record.message] == ["WARNING"]


def test_concat_with_a_catalogue_without_etags_says_to_have_it_listed(tmp_path, caplog):
    for name in ("one", "two"):
        make_pictures(tmp_path / name, 3)
    # A catalogue beside a folder has no times of its files, which take the place of ETags.
    subprocess.run(
        [leat.testing.find_binary(), "index", str(tmp_path / "two"), "--publish"], capture_output=True, check=True
    )
    one, two = leat.Dataset(tmp_path / "one"), leat.Dataset(tmp_path / "two")

    leat.Dataset.concat([one, two])

    (said,) = [record.message for record in caplog.records if "none is checked" in record.message]
    assert re.search(r"the catalogue of \S*two has no versions \(ETags\)", said)
    assert 'refresh="always"' in said and re.search(r"`leat index \S*two --publish`", said)
    assert "kinds" not in said


def test_concat_takes_what_is_joined_already(dataset, tmp_path):
    make_pictures(tmp_path / "more", 3)
    more = leat.Dataset(tmp_path / "more")

    all_of_it = leat.Dataset.concat([dataset, leat.Dataset.concat([more, dataset[10:12]]), more])

    assert read_keys(all_of_it) == keys(dataset) + keys(more) + keys(dataset)[10:12] + keys(more)
    assert all_of_it[64]["data"] == dataset[11]["data"]


def test_a_part_of_shards_is_read_in_blocks(tmp_path):
    make_shards(tmp_path / "shards", 3, 10, 100)
    part = leat.Dataset(tmp_path / "shards").skip(5)

    loader = leat.Loader(part, batch_size=5, shuffle=True, seed=1)

    seen = sorted(key for batch in leat.Loader(part, batch_size=5, shuffle=True, ids=True) for key in batch["key"])
    assert seen == sorted(keys(part)) and len(loader) == 5


def test_columns(dataset):
    labels = dataset.column("label")

    assert labels.dtype == np.int64 and labels.shape == (60,)
    with pytest.raises(leat.InvalidArgument, match="no field 'x'"):
        dataset.column("x")


def test_state_of_other_samples_is_refused(dataset):
    state = leat.Loader(dataset.take(30), batch_size=5, shuffle=True).state_dict()

    with pytest.raises(leat.InvalidArgument, match="30"):
        leat.Loader(dataset, batch_size=5, shuffle=True).load_state_dict(state)
