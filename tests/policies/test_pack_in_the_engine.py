"""The project's own policy pack, in the genuine host, over a program that breaks every mandatory policy."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pack import POLICIES
from pulumi_policy import EnforcementLevel

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Script
from tests.policies.cases import CLAIM, CONFIGS, FEDERATION, FROM, annotated, federation
from tests.policies.test_rules import VIOLATIONS
from tests.support.policies import secret
from tests.support.stacks import ROOT

OWN = ROOT / "policies"
POOL = {"metadata": {"namespace": "pool"}}
OF_THE_STACK: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]] = {
    "aso-annotation-target": [
        ("kubernetes:resources.azure.com/v1:ResourceGroup", annotated(**{FROM: "nowhere"}))
    ],
    "azure-identity-federation-limit": [
        (FEDERATION, federation(resourceName="many", subject=f"system:serviceaccount:a:s{index}"))
        for index in range(21)
    ],
    "azure-identity-federation-unique": [(FEDERATION, federation(resourceName="twice"))] * 2,
    "estate-claims-per-tenant": [(CLAIM, {"tenant": "acme", "type": "aws"})] * 2,
    "kubernetes-pool-namespace-no-workloads": [
        (
            "kubernetes:core/v1:Secret",
            {"metadata": {"namespace": "pool", "labels": {"hyperscaler-type": "aws"}}},
        ),
        ("kubernetes:apps/v1:Deployment", POOL),
    ],
    "secrets-stay-marked-everywhere": [
        ("a:b:C", {"a": "marked-by-the-next-one"}),
        ("a:b:C", {"b": secret("marked-by-the-next-one")}),
    ],
}

LEFT_OUT = {"resourceGroupName", "resourceName"}
"""Inputs that no output of azure-native repeats."""


def test_a_program_with_one_violation_per_mandatory_rule_fails_with_each_named_once(
    stack: Stack, provider: RecordingProvider
) -> None:
    mandatory = {one.name for one in POLICIES if one.enforcement_level is EnforcementLevel.MANDATORY}
    wrong: dict[str, Sequence[tuple[str, Mapping[str, Any]]]] = dict(OF_THE_STACK)
    for policy, type_, inputs, _ in VIOLATIONS:
        wrong.setdefault(policy.name, [(type_, inputs)])
    assert mandatory <= set(wrong)
    said = {**CONFIGS, "estate-claims-per-tenant": {"most": 1}}
    config = stack.directory / "config.json"
    config.write_text(json.dumps(said))

    def program(script: Script) -> None:
        for name in sorted(mandatory):
            for index, (type_, inputs) in enumerate(wrong[name]):
                one = script.register(f"{name} {index}", dict(inputs), type_=type_, custom=False)
                script.outputs(one.urn, {key: inputs[key] for key in inputs if key not in LEFT_OUT})

    outcome = stack.preview(program, policy_packs=(OWN,), policy_configs={OWN: config})

    named = Counter(
        each.policy
        for each in outcome.result.policy
        if each.level == "mandatory" and each.urn.rpartition("::")[2].rpartition(" ")[0] == each.policy
    )
    assert outcome.code == 1
    assert named == Counter(mandatory)
    assert provider.names() == []
