"""What `pool status` tells of several pools, by whom, and in which order; and when it looks again.

That an API server tells the times and the changes is for tests/cluster/test_pool_operations.py.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner

from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.consumers import Consumer
from components.account_pool.core.keys import POOL_STATE
from components.account_pool.core.model import Member, Phase
from components.account_pool.core.pool import Pool
from components.account_pool.core.snapshot import PoolSnapshot
from components.account_pool.core.status import Account, AccountUse, PoolStatus, SharedClaim, status_of
from components.connection import Connection, Reply
from components.errors import NotAllowed
from components.labels import HYPERSCALER_TYPE
from components.labels import SHARED as SHARED_LABEL
from operations.main import app
from operations.pool import status as status_module
from operations.pool.access import PoolTarget
from operations.pool.options import By
from operations.pool.status import Seen, group, render_counts, render_list, shared_out
from tests.operations.pool.test_metrics import claimed, labelled, member
from tests.support.cases import tabled
from tests.support.memory_pool import KEB

NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
PROD, DEV = "pulumi/org/fleet/prod", "pulumi/org/fleet/dev"


def account(name: str, standing: AccountUse = AccountUse.FREE, type_: str = "aws", **more: Any) -> Account:
    return Account(name, type_, "!eu-access", standing, **more)


def pool(namespace: str, *accounts: Account, is_one_of: bool = True) -> Seen:
    counts = {("aws", "!eu-access"): dict.fromkeys(AccountUse, 1)}
    return Seen(namespace, PoolStatus(accounts, counts), is_one_of)


def test_what_waits_is_told_with_its_age_the_oldest_first_and_before_what_is_free() -> None:
    seen = pool(
        "p",
        account("free"),
        account("aws-1", AccountUse.QUARANTINED, since="2026-11-22T02:59:00Z"),
        account("aws-2", AccountUse.DIRTY, since="2026-11-19T02:00:00Z"),
        account("aws-3", AccountUse.DIRTY),
        account("aws-4", AccountUse.CLEANING, since="2026-11-21T23:00:00Z"),
        account("held", AccountUse.CLAIMED, since="2026-01-01T00:00:00Z"),
        is_one_of=False,
    )
    rows = [(row[0], row[6].partition(" ")[2]) for row in render_list([seen], NOW).rows]
    assert rows == [
        ("held", ""),
        ("aws-2", "(3 d)"),
        ("aws-4", "(4 h)"),
        ("aws-1", "(1 min)"),
        ("aws-3", "()"),
        ("free", ""),
    ]


def test_accounts_of_several_pools_bear_the_name_of_theirs_and_are_counted_by_it() -> None:
    seen = [pool("one", account("aws-1")), pool("two", account("aws-1"))]
    assert [*render_list(seen, NOW).names()] == ["one/aws-1", "two/aws-1"]
    assert [row[0] for row in render_counts(seen).rows] == ["one", "two"]
    assert "Pool" not in [column.title for column in render_counts([pool("p", is_one_of=False)]).columns]


SHARED = account(
    "shared",
    AccountUse.SHARED,
    holders=(f"{DEV}/acme/0", "cli"),
    claims=(
        SharedClaim("acme", "0", (f"{DEV}/acme/0",)),
        SharedClaim(None, "x"),
        SharedClaim("b", "0", ("cli",)),
    ),
)
HELD = account(
    "held", AccountUse.CLAIMED, "gcp", tenant="acme", holders=(f"{PROD}/acme/main", f"{DEV}/acme/0")
)


@tabled("by, groups")
def test_accounts_are_told_by_whose_they_are_who_holds_them_or_what_they_are(
    by: str, groups: dict[str, list[str]]
) -> None:
    found = group([pool("p", account("free"), HELD, SHARED)], By(by))
    assert {each.key: sorted(a.secret_name for a in each.accounts) for each in found} == groups


def test_a_consumer_could_get_what_is_free_of_what_it_may_have_as_far_as_its_quota_goes() -> None:
    web = Consumer("web", ("pulumi/org/web",), types=("aws",), partitions=({},), quotas={"aws": 2})
    settings = PoolConfigMap(("eu-access",), consumers=(web, Consumer("ops", ("cli",))))
    mine, record = claimed("aws-0", "acme")
    record = replace(record, holders={"pulumi/org/web/dev/acme/0": 1})
    releasing = replace(record, name="claim-x", phase=Phase.RELEASING)
    free = [member(f"aws-{n}") for n in (1, 2)]
    others = (member("aws-eu", eu_access="true"), labelled("gcp-1", HYPERSCALER_TYPE, "gcp"))
    snapshot = PoolSnapshot((mine, *free, *others, labelled("s", SHARED_LABEL, "true")), (record, releasing))
    table = shared_out([Seen("p", status_of(snapshot, settings))])
    assert [row[:1] + row[2:] for row in table.rows] == [
        ("web", "aws", "", "1", "2", "1"),
        ("ops", "aws", "", "0", "", "2"),
        ("ops", "aws", "eu-access=true", "0", "", "1"),
        ("ops", "gcp", "", "0", "", "1"),
    ]


def test_one_pool_that_cannot_be_read_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def settings_of(_target: object, namespace: str) -> PoolConfigMap:
        if namespace == "two":
            raise NotAllowed(place="secrets", problem="may not list", fix="ask")
        return PoolConfigMap()

    def snapshot(_target: object, _namespace: str) -> Any:
        return None

    def namespaces(_connection: object) -> list[str]:
        return ["one", "two"]

    def as_one(_census: object, _settings: object) -> PoolStatus:
        return pool("one", account("aws-1")).status

    monkeypatch.setattr(PoolTarget, "told", lambda _where: None)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(status_module, "reach", lambda *_: None)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(Pool, "settings_of", staticmethod(settings_of))
    monkeypatch.setattr(Pool, "snapshot", staticmethod(snapshot))
    monkeypatch.setattr(status_module, "status_of", as_one)
    monkeypatch.setattr(status_module, "pool_namespaces", namespaces)
    result = CliRunner().invoke(app, ["pool", "status", "--all", "-o", "json"])
    document = json.loads(result.stdout)
    assert [each["namespace"] for each in document["pools"]] == ["one"]
    assert [each["place"] for each in document["unreadable"]] == ["pool two: secrets"]
    assert CliRunner().invoke(app, ["pool", "status", "--all", "-o", "name"]).stdout == "one/aws-1\n"


class Answers(Connection):
    """Answers by path; what is not said is refused."""

    server = "https://cluster"

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def call(self, method: str, path: str, **_given: Any) -> Reply:
        assert method == "GET"
        body = self.answers.get(path.partition("?")[0].rpartition("/v1/")[2])
        return Reply(403, {"message": "may not"}) if body is None else Reply(200, body)


def objects(*names: str) -> dict[str, Any]:
    return {"items": [{"metadata": {"name": name, "namespace": name}} for name in names]}


def test_pools_are_found_everywhere_or_else_where_this_user_may_read() -> None:
    assert status_module.pool_namespaces(Answers(configmaps=objects("b", "a"))) == ["a", "b"]
    some = {"namespaces": objects("c", "b"), "namespaces/c/configmaps/credfleet-pool": {}}
    assert status_module.pool_namespaces(Answers(**some)) == ["c"]
    with pytest.raises(Exception, match="may not"):
        status_module.pool_namespaces(Answers())


@pytest.mark.parametrize(
    ("labels", "read", "since"),
    [
        pytest.param({POOL_STATE: "dirty"}, dict, "2026-11-20T00:00:00Z", id="ours"),
        pytest.param({"dirty": "true"}, KEB.read, "2026-11-21T00:00:00Z", id="Kyma's"),
        pytest.param(
            {"dirty": "true", POOL_STATE: "quarantined"}, KEB.read, "2026-11-20T00:00:00Z", id="both"
        ),
        pytest.param({}, KEB.read, "", id="usable"),
    ],
)
def test_since_when_an_account_stands_so_is_what_the_server_booked_of_its_label(
    labels: dict[str, str], read: Any, since: str
) -> None:
    owned = {
        POOL_STATE: "2026-11-20T00:00:00Z",
        "dirty": "2026-11-21T00:00:00Z",
        "team": "2026-01-01T00:00:00Z",
    }
    booked = [
        {"time": time, "fieldsV1": {"f:metadata": {"f:labels": {f"f:{label}": {}}}}}
        for label, time in owned.items()
    ]
    bare: list[dict[str, Any]] = [
        {"manager": "old"},
        {"time": "2026-11-01T00:00:00Z", "fieldsV1": {"f:data": {}}},
    ]
    metadata = {"name": "a", "uid": "u", "resourceVersion": "1", "labels": labels}
    member = Member.parse(read({"metadata": {**metadata, "managedFields": bare + booked}}))
    assert member.state_since == since
