"""On a real API server, claims get what forecast, explanation and status said, and what memory gave them.

Pools and requests are those of `tests/unit/account_pool/test_agreement.py`. It proves nothing of claims that
run at the same time.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from pulumi_sandbox.services.parts import ADMIN

from components.account_pool.core.kubernetes_api import KubernetesApi
from components.account_pool.core.model import ClaimRequest
from components.account_pool.core.pool import CLAIMS
from components.account_pool.core.pool_operator import PoolOperator
from components.account_pool.core.records import Claimed
from components.connection import ClusterTarget, Connection, connect
from components.errors import PoolError
from tests.support.drawn_pools import REQUESTS, Spoken, disagreements, pools
from tests.support.memory_pool import MemoryServer
from tests.support.proving import counted, tried

if TYPE_CHECKING:
    from pulumi_sandbox.services.control_plane import ControlPlane


@pytest.fixture(scope="module")
def connection(control_plane: ControlPlane) -> Connection:
    return connect(ClusterTarget(kubeconfig=str(control_plane.kubeconfig(ADMIN.name))))


def put(server: MemoryServer, connection: Connection) -> str:
    """Write a pool to the API server, into a namespace of its own, with the uids that records get there."""
    namespace = f"drawn-{secrets.token_hex(8)}"
    root = f"/api/v1/namespaces/{namespace}"
    written = connection.call("POST", "/api/v1/namespaces", body={"metadata": {"name": namespace}}).status
    assert written == 201
    uids: dict[str, str] = {}
    for record in server.records:
        reply = connection.call("POST", f"{root}/configmaps", body=record.render(namespace))
        uids[record.uid] = reply.body["metadata"]["uid"]
    for member in server.members:
        notes = dict(member.annotations)
        for old, new in uids.items():
            notes = {key: text.replace(f".{old}.", f".{new}.") for key, text in notes.items()}
        metadata = {"name": member.name, "labels": dict(member.labels), "annotations": notes}
        reply = connection.call("POST", f"{root}/secrets", body={"metadata": metadata})
        assert reply.status == 201, reply.text
    return namespace


def outcome(pool: PoolOperator, request: ClaimRequest) -> Claimed | PoolError:
    try:
        return pool.claim(request)
    except PoolError as refused:
        return refused


def told(ended: Claimed | PoolError) -> tuple[str, bool | None]:
    return (ended.secret_name, ended.reused) if isinstance(ended, Claimed) else (ended.code, None)


@settings(
    max_examples=counted(15, 1_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(spoken=pools(), request_=REQUESTS)
def test_a_claim_on_the_api_server_gets_what_was_foreseen_and_what_it_gets_in_memory(
    connection: Connection, spoken: Spoken, request_: ClaimRequest
) -> None:
    tried("claims in drawn pools, on the API server, against the same and memory")
    namespace = put(spoken.server, connection)
    pool = PoolOperator(KubernetesApi(connection, namespace, CLAIMS), namespace, spoken.settings)
    snapshot = pool.look()
    labels, drawn = (
        {m.name: m.labels for m in members} for members in (snapshot.members, spoken.pool.members())
    )
    assert labels == drawn
    ended = outcome(pool, request_)
    assert disagreements(snapshot, request_, ended) == []
    assert told(ended) == told(outcome(spoken.pool, request_))
