"""The connection to the cluster: what it sends of the user's token."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from components import connection
from components.connection import TOKEN_SECONDS, Connection


class TokenSource:
    """A client whose token changes each time it is asked, and which keeps the headers that were sent."""

    def __init__(self) -> None:
        self.asked = 0
        self.sent: list[str] = []
        self.configuration = SimpleNamespace(host="https://server/", auth_settings=self._settings)
        self.rest_client = SimpleNamespace(pool_manager=SimpleNamespace(request=self._request))

    def _settings(self) -> dict[str, Any]:
        self.asked += 1
        return {"BearerToken": {"value": f"Bearer {self.asked}"}}

    def _request(self, _method: str, _url: str, *, headers: dict[str, str], **_: Any) -> SimpleNamespace:
        self.sent.append(headers["Authorization"])
        return SimpleNamespace(status=200, data=b"{}")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_calls_that_follow_each_other_share_a_token(clock: SimpleNamespace):
    source = TokenSource()
    made = Connection(cast("Any", source))
    for _ in range(3):
        made.call("GET", "/version")
    clock.now += TOKEN_SECONDS - 1
    made.call("GET", "/version")
    assert source.sent == ["Bearer 1"] * 4


def test_a_token_the_client_renewed_is_used_half_a_minute_later(clock: SimpleNamespace):
    source = TokenSource()
    made = Connection(cast("Any", source))
    made.call("GET", "/version")
    clock.now += TOKEN_SECONDS
    made.call("GET", "/version")
    assert source.sent == ["Bearer 1", "Bearer 2"]
