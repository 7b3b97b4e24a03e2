"""What a dataset consists of."""

from __future__ import annotations

import os

from leat import _native
from leat._credentials import helper_command


class Dataset:
    """The samples at a URL: a table of named fields.

    The catalogue is looked for beside the data, then in the user's cache folder;
    else the store is listed once and the catalogue is kept there.

    Args:
        url: ``s3://bucket/prefix``, ``http(s)://…``, ``file:///…`` or a path.
        refresh: ``"never"`` (default) takes a catalogue as it stands, ``"always"``
            lists again, ``"if-older-than:1d"`` if it is older (units s, m, h, d).
        endpoint_url, region, profile, no_sign_request: as the AWS command line
            spells them; the environment and the profile decide where not given.
            A profile that needs SSO or MFA goes through botocore, if installed.
        requester_pays: you pay for requests and bytes, where a bucket wants that.

    Raises:
        leat.NotFound: no such bucket or folder, or nothing is in it.
        leat.PermissionDenied: credentials are missing or refused.
        leat.Corrupt: a shard or a catalogue is damaged.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        refresh: str = "never",
        endpoint_url: str | None = None,
        region: str | None = None,
        profile: str | None = None,
        no_sign_request: bool = False,
        requester_pays: bool = False,
    ) -> None:
        store = _native.StoreOptions(
            endpoint_url=endpoint_url,
            region=region,
            profile=profile,
            no_sign_request=no_sign_request,
            requester_pays=requester_pays,
            credential_helper=helper_command(),
        )
        self._native = _native.Dataset(os.fspath(url), store, refresh)

    @property
    def url(self) -> str:
        """Where it is; never holds credentials."""
        return self._native.url

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a sample and their kinds: bytes, int64, float64, string."""
        return self._native.fields

    @property
    def classes(self) -> list[str]:
        """The names that ``label`` counts through; empty if there are none."""
        return self._native.classes

    @property
    def nbytes(self) -> int:
        """The bytes of all byte fields of all samples."""
        return self._native.bytes

    @property
    def digest(self) -> str:
        """Says which data this is, wherever it is stored."""
        return self._native.digest

    def key(self, sample: int) -> str:
        """The name of a sample."""
        return self._native.key(sample)

    def __len__(self) -> int:
        return self._native.samples

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {kind}" for name, kind in self.fields.items())
        return f"leat.Dataset({self.url!r}, {len(self)} samples, {fields})"
