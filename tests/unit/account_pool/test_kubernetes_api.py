"""What the pool asks of an API server and how it understands the answers; the server is a list of replies.

That a real API server means the same by them is proved in `tests/cluster/test_claims.py`.
"""

from typing import Any

import pytest

from components.account_pool.core.calls import (
    ApiRefusal,
    Create,
    Delete,
    Found,
    Get,
    Kind,
    ListPage,
    Page,
    Patch,
    Refused,
    Replace,
    Result,
    Unknown,
)
from components.account_pool.core.kubernetes_api import KubernetesApi
from components.connection import Connection, NoReply, Reply
from tests.support.cases import tabled

METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
BODY = {"metadata": {"name": "m0", "resourceVersion": "7"}}


class Replying(Connection):
    """A connection that remembers what was asked and answers one thing, or nothing."""

    def __init__(self, reply: Reply | None) -> None:
        self._reply = reply
        self.asked: list[dict[str, Any]] = []

    def call(self, method: str, path: str, **rest: Any) -> Reply:
        self.asked.append({"method": method, "path": path, **rest})
        if self._reply is None:
            raise NoReply("connection reset")
        return self._reply


def made(reply: Reply | None) -> tuple[KubernetesApi, Replying]:
    connection = Replying(reply)
    return KubernetesApi(connection, "pool", "credfleet-claims"), connection


@tabled("status, meant")
def test_what_the_server_refused_was_not_done(status: int, meant: str) -> None:
    api, _ = made(Reply(status, {"message": "no"}))
    assert api(Replace(Kind.RECORD, BODY)) == Refused(ApiRefusal(meant), "no")


@pytest.mark.parametrize("reply", [Reply(429, {}), Reply(500, {}), Reply(504, {}), None])
def test_whatever_else_the_server_says_or_does_not_say_may_have_been_done(reply: Reply | None) -> None:
    api, _ = made(reply)
    assert isinstance(api(Patch(Kind.MEMBER, "m0", BODY)), Unknown)
    assert isinstance(api(Create(Kind.RECORD, BODY)), Unknown)


def test_of_an_account_nothing_is_asked_for_but_its_metadata() -> None:
    api, connection = made(Reply(200, BODY))
    answers: list[Result] = [api(Get(Kind.MEMBER, "m0")), api(Patch(Kind.MEMBER, "m0", BODY))]
    assert [type(answer) for answer in answers] == [Found, Found]
    assert {asked["accept"] for asked in connection.asked} == {METADATA}
    api, connection = made(Reply(200, {"metadata": {}, "items": []}))
    api(ListPage(Kind.MEMBER, "hyperscaler-type=aws"))
    assert [asked["accept"] for asked in connection.asked] == [METADATA_LIST]


def test_a_page_names_the_next_and_is_asked_for_by_its_cursor() -> None:
    api, connection = made(Reply(200, {"metadata": {"continue": "onwards"}, "items": [BODY]}))
    assert api(ListPage(Kind.RECORD, "pool-record=true", "from-here", 2)) == Page((BODY,), "onwards")
    assert connection.asked[0]["path"].endswith(
        "?labelSelector=pool-record%3Dtrue&limit=2&continue=from-here"
    )


def test_an_object_is_deleted_only_as_it_was_seen() -> None:
    api, connection = made(Reply(200, {}))
    api(Delete(Kind.RECORD, "claim-0", "u", "7"))
    assert connection.asked[0]["body"] == {"preconditions": {"uid": "u", "resourceVersion": "7"}}
