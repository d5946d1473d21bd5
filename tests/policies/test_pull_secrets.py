"""What a cluster's pull secret registers is what every environment's rules let through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from pack import POLICIES
from pulumi_policy import ResourceValidationPolicy

from components.pull_secret.grants import grants, service_account, workload
from tests.components.test_pull_secret import declared
from tests.support.policies import NotApplicableError, judge
from tests.support.stacks import ROOT

CONFIGS = sorted((ROOT / "policies" / "config").glob("*.json"))
READER = workload("12", "fleet-1", "hyperfleet-system", "nodes")
ADAPTER = service_account("pullsecret-manager@fleet-1.iam.gserviceaccount.com")


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_pull_secret_keeps_the_rules_of_every_environment(path: Path, preview: bool) -> None:
    said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    recorder = declared(
        preview=preview,
        grants=[*grants(READER, ADAPTER)],
        locations=["europe-west1", "europe-west4"],
        deletion_protection=True,
        api_url="https://hyperfleet.example",
    )
    told = [
        sentence
        for one in recorder.registrations
        for policy in POLICIES
        if isinstance(policy, ResourceValidationPolicy)
        for sentence in _judged(policy, one.type, MessageToDict(one.request.object), said.get(policy.name))
    ]
    assert told == []


def test_an_entry_production_would_refuse_is_one_that_was_declared_otherwise() -> None:
    production: dict[str, Any] = json.loads((ROOT / "policies" / "config" / "prod.json").read_text("utf-8"))
    (entry,) = declared().of_type("gcp:secretmanager/secret:Secret").values()
    told = {
        policy.name
        for policy in POLICIES
        if isinstance(policy, ResourceValidationPolicy) and policy.name.startswith("gcp-secret")
        for _ in _judged(policy, entry.type, MessageToDict(entry.request.object), production.get(policy.name))
    }
    assert told == {"gcp-secret-replication", "gcp-secret-deletion-protection"}


def _judged(policy: ResourceValidationPolicy, type_: str, inputs: dict[str, Any], config: Any) -> list[str]:
    try:
        return judge(policy, type_, inputs, config if isinstance(config, dict) else {})
    except NotApplicableError:
        return []
