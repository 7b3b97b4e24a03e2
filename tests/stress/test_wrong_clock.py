"""The clock of this machine is 20 minutes off."""

from __future__ import annotations

import datetime
import email.utils
import time

import pytest
from front import Answer, front

MOST_SKEW = 15 * 60


@pytest.mark.parametrize("minutes", [20, -20])
def test_the_servers_time_is_used(objects, serve, reader, content, right, monkeypatch, minutes):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
    refused = []

    def judge(asked):
        now = time.time() + 60 * minutes
        signed = datetime.datetime.strptime(asked.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
        if abs(signed.replace(tzinfo=datetime.timezone.utc).timestamp() - now) <= MOST_SKEW:
            return None
        refused.append(asked.method)
        return Answer(403, "RequestTimeTooSkewed", headers={"Date": email.utils.formatdate(now, usegmt=True)})

    served = serve(objects, latency="2ms")
    with front(served.bucket.url, judge) as url:
        with reader(url, storage={"no_sign_request": False}) as loader:
            assert content(loader) == right
    # Those that were under way before the first refusal had come.
    assert 1 <= len(refused) <= 32 + 4  # A HEAD and a listing, too.
