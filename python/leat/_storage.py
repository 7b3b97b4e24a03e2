"""How to reach a store: one value, for all functions that take a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, cast

from leat import _native
from leat._arguments import unknown_name
from leat._credentials import helper_command
from leat.errors import InvalidArgument


class StorageOptions(TypedDict, total=False):
    """How to reach a store. The names are those of the AWS command line.

    The environment and the profile give the options that are left out. `region` and `profile` are options of the scheme
    s3 alone; another scheme may have its own.
    """

    endpoint_url: str
    """The URL of a store that is not AWS's, such as ``"http://localhost:9000"``."""
    region: str
    profile: str
    """A profile of AWS's files. If it needs SSO or MFA, botocore has to be installed."""
    no_sign_request: bool
    """Asks without credentials, for public buckets."""
    requester_pays: bool
    """You pay for requests and bytes, where a bucket wants that."""
    patience: float
    """How many seconds an outage of the store is ridden out: 300 unless given, at most a week."""

    no_hedge: bool
    """No read is sent a second time while the first is under way, however late that is."""


_MOST_PATIENCE = 7 * 24 * 3600

_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "endpoint_url": str,
    "no_sign_request": bool,
    "requester_pays": bool,
    "patience": (int, float),
    "no_hedge": bool,
    **{name: str for name, _ in _native.scheme_options()},
}


def checked_storage(options: StorageOptions | None) -> StorageOptions:
    """The options that are set: neither None, nor False, nor empty.

    Raises:
        leat.InvalidArgument: no mapping, an unknown name, or a value of another type.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise InvalidArgument(
            f"storage_options={options!r}; it is a dict, such as "
            '{"endpoint_url": "http://localhost:9000"}'
        )
    for name, value in options.items():
        if name not in _KINDS:
            raise InvalidArgument(unknown_name("storage_options= has no", str(name), list(_KINDS)))
        is_number = not isinstance(value, bool) or _KINDS[name] is bool
        if value is not None and not (isinstance(value, _KINDS[name]) and is_number):
            kind = "number" if name == "patience" else cast(type, _KINDS[name]).__name__
            raise InvalidArgument(f"storage_options={{{name!r}: {value!r}}}; it is a {kind}")
    patience = options.get("patience")
    if patience is not None and not 0 < patience <= _MOST_PATIENCE:
        raise InvalidArgument(
            f"storage_options={{'patience': {patience!r}}}; it is a number of seconds, "
            "more than 0 and at most a week"
        )
    return cast(StorageOptions, {name: value for name, value in options.items() if value})


def native_storage(options: StorageOptions) -> _native.StoreOptions:
    """Checked options for the engine."""
    of_scheme = {name: cast(str, options[name]) for name, _ in _native.scheme_options() if name in options}  # type: ignore[literal-required]
    others = {name: value for name, value in options.items() if name not in of_scheme}
    return _native.StoreOptions(**cast(Any, others), of_scheme=of_scheme, credential_helper=helper_command())
