"""The adapters of bench/landscape_way.py for Leat: by default settings, and at the best of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from landscape_chain import SIDE, Busy, is_kept

Told = dict[str, Any]
FIELDS = {"raw": {"bytes": "data", "pixels": "image", "function": "data"}, "tar": {"bytes": "bin", "pixels": "image"}}


def dataset_of(leat: Any, told: Told) -> Any:
    place = told["folder"] if told["store"] == "files" else f"s3://{told['bucket']}"
    options = {} if told["store"] == "files" else {"endpoint_url": told["url"]}
    if told["task"] == "tokens":
        return leat.Dataset.tokens(place, dtype="uint16", seq_len=told["size"] // 2, storage_options=options or None)
    dataset = leat.Dataset(place, storage_options=options or None)
    if told["keep"] < 1:
        dataset = dataset.select([number for number in range(len(dataset)) if is_kept(number, told["keep"])])
    return dataset


def ops_of(leat: Any, told: Told) -> list[Any]:
    if told["task"] == "pixels":
        decode = leat.ops.DecodeImage(field="jpg") if told["form"] == "tar" else leat.ops.DecodeImage()
        return [decode, leat.ops.RandomResizedCrop(SIDE), leat.ops.Normalize("imagenet")]
    if told["task"] == "function":
        return [leat.ops.Python(Busy(), field="data")]
    return []


def rows_of(leat: Any, rows: Any) -> Any:
    return rows.values if isinstance(rows, leat.Ragged) else rows


def leat_default(told: Told) -> Iterator[Any]:
    import leat

    yield None
    field = "tokens" if told["task"] == "tokens" else FIELDS[told["form"]][told["task"]]
    setting = {name: value for name, value in told["setting"].items() if name in ("threads", "max_in_flight")}
    if "memory_mib" in told["setting"]:
        setting["memory"] = f"{told['setting']['memory_mib']}MiB"
    if told["fixed"] is not None:
        setting["threads"] = max(1, told["fixed"])
    if told["epochs"] > 1:
        setting["cache"] = leat.Cache(disk=told["cache"])
    ranks = {"rank": told["rank"], "world_size": told["ranks"]} if told["ranks"] > 1 else {}
    with leat.Loader(
        dataset_of(leat, told), batch_size=told["batch"], shuffle=True, seed=1, drop_last=False, epochs=told["epochs"],
        fields=(field,) if told["numbered"] is not False else (field, "index"), ops=ops_of(leat, told),
        output="numpy", **ranks, **setting,
    ) as loader:  # fmt: skip
        if told["state"] is not None:
            loader.load_state_dict(told["state"])
        told["state_of"] = lambda seen: loader.state_dict()
        for _ in range(told["epochs"]):
            yield ((batch[1] if len(batch) > 1 else None, rows_of(leat, batch[0])) for batch in loader)


ADAPTERS = {"leat": leat_default, "leat-tuned": leat_default}
