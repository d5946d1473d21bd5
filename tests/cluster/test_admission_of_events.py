"""Events are guarded in both of their APIs; who may report what is in `test_admission_by_machine.py`."""

import secrets
from typing import Any

from components.account_pool.core.audit import COMPONENT
from tests.support.guarded_pool import GuardedPool, refusal


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
