"""HyperFleet's client and stand-in, held to the contracts that HyperFleet published (docs/compatibility.md).

Wherever a test serves the stand-in, all that is said is held to the newest of them; here is what holds the
client to each, and what tells them apart.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pulumi_sandbox.services.cloud.front import Service
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from components.errors import PullSecretError
from components.pull_secret.hyperfleet import Contract, HyperFleet
from components.pull_secret.model import Availability, Phase
from components.pull_secret.status import of_removed, of_skipped, of_verified, report
from sandbox.tests.support.clouds import served
from sandbox.tests.witness.contract import Contract as Published
from sandbox.tests.witness.contract import Exchange
from tests.support.cases import cases, table
from tests.support.hyperfleet import CONTRACTS, NEWEST, bring, delete, moment, served_hyperfleet

OLDER = Published(CONTRACTS / "hyperfleet-v1.0.2.json")
CLUSTER = "/api/hyperfleet/v1/clusters/{cluster_id}"
NOW = datetime.now(UTC).isoformat()
REPORTS = {
    "skipped": of_skipped(["waits"]),
    "verified": of_verified(1, ""),
    "overtaken": of_verified(1, "by 2"),
}


def older_service() -> Service:
    """A HyperFleet that keeps the older contract, with one cluster and the last report of each adapter."""
    reports: dict[str, Any] = {}
    at = {"last_transition_time": NOW, "last_updated_time": NOW, "observed_generation": 1}
    cluster = {
        "kind": "Cluster",
        "name": "cls-1",
        "generation": 1,
        "spec": {},
        "status": {"phase": "Ready", "conditions": [], **at},
        **dict.fromkeys(("created_time", "updated_time"), NOW),
        **dict.fromkeys(("created_by", "updated_by"), "somebody@example.com"),
    }

    async def get(_: Request) -> Response:
        return JSONResponse(cluster)

    async def listed(_: Request) -> Response:
        about = {"kind": "AdapterStatusList", "page": 1, "size": len(reports), "total": len(reports)}
        return JSONResponse({**about, "items": [*reports.values()]})

    async def reported(request: Request) -> Response:
        given = await request.json()
        conditions = [{"last_transition_time": NOW, **each} for each in given["conditions"]]
        kept = {key: value for key, value in given.items() if key != "observed_time"}
        times = {"created_time": NOW, "last_report_time": NOW}
        reports[given["adapter"]] = {**kept, **times, "conditions": conditions}
        return JSONResponse(reports[given["adapter"]], 201)

    routes = [
        Route(CLUSTER, get),
        Route(f"{CLUSTER}/statuses", listed),
        Route(f"{CLUSTER}/statuses", reported, methods=["POST"]),
    ]
    return Service(Starlette(routes=routes), lambda status: Response(status_code=status))


def test_the_contracts_differ_in_what_the_program_asks() -> None:
    assert {*NEWEST.paths[f"{CLUSTER}/statuses"]} == {"get", "put"}
    assert {*OLDER.paths[f"{CLUSTER}/statuses"]} == {"get", "post"}


@pytest.mark.parametrize("what", REPORTS)
def test_the_client_keeps_the_newest_contract(tmp_path: Path, what: str) -> None:
    with served_hyperfleet(tmp_path, of_client=True) as running:
        bring(running, "cls-1")
        hyperfleet = HyperFleet(running.url)
        said = [*REPORTS[what]]
        hyperfleet.report("cls-1", report(1, said, {"secretName": "s"}, moment()))
        kept = hyperfleet.observe("cls-1").adapters["pullsecret"]
        assert kept is (Availability.FALSE if what == "skipped" else Availability.TRUE)
        delete(running, "cls-1")
        generation = hyperfleet.deletion("cls-1")
        assert generation == 2
        hyperfleet.report("cls-1", report(generation, [*of_removed()], {}, moment()))


@pytest.mark.parametrize("what", REPORTS)
def test_the_client_keeps_the_older_contract_where_it_is_asked_to(what: str) -> None:
    with served(older_service(), contract=OLDER, of_client=True) as running:
        hyperfleet = HyperFleet(running.url, Contract.V1)
        hyperfleet.report("cls-1", report(1, [*REPORTS[what]], {}, moment()))
        observed = hyperfleet.observe("cls-1")
    assert (observed.phase, observed.deleted_time) == (Phase.READY, None)
    assert [*observed.adapters] == ["pullsecret"]


@pytest.mark.parametrize("contract", Contract)
def test_an_api_of_the_other_contract_is_told_with_the_key_to_set(tmp_path: Path, contract: Contract) -> None:
    other = served(older_service()) if contract is Contract.V2 else served_hyperfleet(tmp_path)
    document = report(1, [*of_verified(1, "")], {}, moment())
    with other as running:
        if contract is Contract.V1:
            bring(running, "cls-1")
        with pytest.raises(PullSecretError, match="HTTP 405") as failed:
            HyperFleet(running.url, contract).report("cls-1", document)
    assert "hyperfleet.contract" in failed.value.fix


@cases("changed, fault", table(__file__, "test_what_a_contract_does_not_have_is_a_fault"))
def test_what_a_contract_does_not_have_is_a_fault(changed: dict[str, Any], fault: str) -> None:
    sent = report(1, [*of_verified(1, "")], {}, moment())
    sound = Exchange("PUT", f"{CLUSTER}/statuses".format(cluster_id="cls-1"), "", sent, 204, None)
    assert [*NEWEST.faults(sound, of_client=True)] == []
    given = changed | ({"sent": {**sent, **changed["sent"]}} if "sent" in changed else {})
    status = {"status": 201} if "answered" in changed and "status" not in changed else {}
    found = [*NEWEST.faults(replace(sound, **given, **status), of_client=True)]
    assert any(fault in one for one in found), found
