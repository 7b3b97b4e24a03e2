"""The bucket lies in another region than the one that was named, or moves to another one."""

from __future__ import annotations

import pytest
from front import Answer, front

import leat


@pytest.fixture
def keys(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


def refusing(home, refused):
    def judge(asked):
        if asked.region == home():
            return None
        refused.append(asked.region)
        return Answer(
            400, "AuthorizationHeaderMalformed", f"<Region>{home()}</Region>", {"x-amz-bucket-region": home()}
        )

    return judge


def test_the_region_that_the_service_names_is_used(objects, serve, reader, content, right, keys):
    refused = []
    served = serve(objects, latency="2ms")
    with front(served.bucket.url, refusing(lambda: "eu-central-1", refused)) as url:
        with reader(url, storage={"no_sign_request": False}) as loader:
            assert content(loader) == right
    assert 1 <= len(refused) <= 32 + 4  # A HEAD and a listing, too.


def test_regions_that_change_for_ever_are_an_error(objects, serve, reader, content, keys):
    """One move is learned. A service that names another region each time would lead in a circle."""
    refused = []
    served = serve(objects, latency="2ms")
    with front(served.bucket.url, refusing(lambda: f"eu-west-{len(refused) % 9}", refused)) as url:
        with pytest.raises(leat.Error, match="region"):
            with reader(url, storage={"no_sign_request": False}) as loader:
                content(loader)
    assert len(refused) <= 100
