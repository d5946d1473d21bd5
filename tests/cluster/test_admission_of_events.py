"""Who may tell in an Event what was done to an account: whoever may do it, in its own name, and for good."""

import secrets
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from components.account_pool.core.audit import COMPONENT
from components.account_pool.core.model import JsonObject
from tests.support.guarded_pool import MERGE, GuardedPool, guarded_pool, refusal

if TYPE_CHECKING:
    from kubernetes.dynamic import DynamicClient
    from pulumi_sandbox.services.control_plane import ControlPlane


@pytest.fixture(scope="module")
def pool(
    control_plane: "ControlPlane", admin: "DynamicClient", tmp_path_factory: pytest.TempPathFactory
) -> Generator[GuardedPool]:
    with guarded_pool(control_plane, admin, tmp_path_factory.mktemp("people")) as pool:
        yield pool


def event(pool: GuardedPool, reason: str, user: str, **more: Any) -> JsonObject:
    involved = {"apiVersion": "v1", "kind": "Secret", "name": "aws-1", "namespace": pool.namespace}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"aws-1.{secrets.token_hex(8)}"},
        "involvedObject": involved,
        "reason": reason,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": user,
        **more,
    }


@pytest.mark.parametrize("reason", ["Claimed", "Released", "ClaimRefused", "Cleaned", "Quarantined"])
@pytest.mark.parametrize("user", ["owner", "claimer", "cleaner", "operator"])
def test_an_event_is_told_by_those_who_may_do_it_and_under_their_own_name(
    pool: GuardedPool, user: str, reason: str
) -> None:
    may = {"owner": (), "claimer": ("Claimed", "Released", "ClaimRefused"), "cleaner": ("Cleaned",)}
    refused = pool.create(user, "Event", event(pool, reason, user))
    assert (refused is None) is (reason in may.get(user, (reason,)))
    assert " event-made: " in str(pool.create(user, "Event", event(pool, reason, "somebody")))


def test_an_event_of_the_pool_is_changed_by_nobody_and_deleted_by_operators(pool: GuardedPool) -> None:
    api = pool.api("claimer", "Event")
    told = api.create(body=event(pool, "Claimed", "claimer"), namespace=pool.namespace).metadata.name
    foreign = event(pool, "Claimed", "", source={"component": "other"}, reportingComponent="other")
    other = api.create(body=foreign, namespace=pool.namespace).metadata.name
    for user in ("owner", "claimer", "operator"):
        for name, body in (
            (told, {"message": "released"}),
            (told, {"source": {"component": "other"}, "reportingComponent": "other"}),
            (other, {"reportingComponent": COMPONENT}),
        ):
            assert " event-changed: " in str(changed(pool, user, name, body))
        assert (pool.delete(user, "Event", told) is None) is (user == "operator")
        assert pool.delete(user, "Event", other) is None


def changed(pool: GuardedPool, user: str, name: str, body: JsonObject) -> str | None:
    api = pool.api(user, "Event")

    def patch() -> object:
        return api.patch(name=name, namespace=pool.namespace, body=body, content_type=MERGE, dry_run="All")

    return refusal(patch)


def test_an_event_is_not_forged_in_the_newer_api_of_events_either(pool: GuardedPool) -> None:
    api: Any = pool.people["owner"].resources.get(api_version="events.k8s.io/v1", kind="Event")
    body = {
        "metadata": {"name": f"aws-1.{secrets.token_hex(8)}"},
        "regarding": {"kind": "Secret", "name": "aws-1", "namespace": pool.namespace},
        "reason": "Claimed",
        "action": "Claimed",
        "type": "Normal",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": COMPONENT,
        "reportingInstance": "claimer",
    }

    def create(controller: str) -> str | None:
        drawn = {**body, "reportingController": controller}

        def write() -> object:
            return api.create(body=drawn, namespace=pool.namespace, dry_run="All")

        return refusal(write)

    assert " event-made: " in str(create(COMPONENT))
    assert create("example.com/other") is None
