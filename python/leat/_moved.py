"""Names that are no arguments of a loader: where each is, and the words of other loaders."""

from __future__ import annotations

from leat._storage import StorageOptions

MOVED = {
    **{
        name: f'give storage_options={{"{name}": …}}' for name in StorageOptions.__annotations__
    },
    "refresh": "give it to leat.Dataset(url, refresh=…), and that to the loader",
    "include": "give it to leat.Dataset(url, include=…), and that to the loader",
    "exclude": "give it to leat.Dataset(url, exclude=…), and that to the loader",
    "extensions": "give it to leat.Dataset(url, extensions=…), and that to the loader",
    "classes": "give it to leat.Dataset(url, classes=…), and that to the loader",
    "inventory": "give it to leat.Dataset(url, inventory=…), and that to the loader",
    "as_of": "give it to leat.Dataset(url, as_of=…), and that to the loader",
    "shuffle_window": 'give shuffle=leat.Shuffle("block", window=…)',
    "locality": "give cache=leat.Cache(…, locality=…)",
    "weights": "give sampler=leat.WeightedSampler(weights)",
    "samples_per_epoch": "give sampler=leat.WeightedSampler(weights, num_samples=…)",
    "buckets": "give sampler=leat.SizeBuckets(…)",
    "rename": 'give fields={"labels": "label"}, from names in the batch to fields',
    "pad": 'give drop_last="pad"',
    "join": 'give drop_last="join"',
    "pad_to": "give ops=[…, leat.ops.PadTo(…)], which pads the pictures of a batch to one size",
    "tune": "LEAT_TUNE=off in the environment turns tuning off; or give leat.research.Loader(tune=…)",
    "tune_trace": "give leat.research.Loader(tune_trace=…)",
    "hashes": "give leat.research.Loader(hashes=…)",
    "fetch_ahead": "give leat.research.Loader(fetch_ahead=…)",
    "order_log": 'give trace={"order_log": …}',
    # The words of torch's DataLoader.
    "dataset": "it is the first argument, source",
    "num_workers": "threads= decode, and max_in_flight= requests are under way; both are chosen unless given",
    "prefetch_factor": "memory= bounds how far ahead the loader reads; it is chosen unless given",
    "persistent_workers": "threads live as long as the loader; leave it out",
    "collate_fn": "give collate=",
    "batch_sampler": "give sampler= and batch_size=; leat.torch.DataLoader takes batch_sampler=",
    "generator": "give seed=",
    "pin_memory_device": "give device=",
    "transform": "give ops=[…]; a function of yours is leat.ops.Python(function)",
    "transforms": "give ops=[…]; a function of yours is leat.ops.Python(function)",
    # The words of Streaming and LitData.
    "remote": "it is the first argument, source",
    "input_dir": "it is the first argument, source",
    "local": "give cache=leat.Cache(disk=…)",
    "cache_dir": "give cache=leat.Cache(disk=…)",
    "cache_limit": "give cache=leat.Cache(disk=…, disk_limit=…)",
    "max_cache_size": "give cache=leat.Cache(disk=…, disk_limit=…)",
    "shuffle_seed": "give seed=",
    "epoch_size": "give sampler=leat.WeightedSampler(weights, num_samples=…)",
}
