"""The project's own policy pack, in the genuine host, over a program that breaks every mandatory policy."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pack import POLICIES
from pulumi_policy import EnforcementLevel

from sandbox.tests.support.engine_stack import Stack
from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Script
from tests.policies.cases import CONFIGS, OF_THE_STACK
from tests.policies.test_rules import VIOLATIONS
from tests.support.policies import secret
from tests.support.stacks import ROOT

OWN = ROOT / "policies"
LEFT_OUT = {"resourceGroupName", "resourceName"}
"""Inputs that no output of azure-native repeats."""


def test_a_program_with_one_violation_per_mandatory_rule_fails_with_each_named_once(
    stack: Stack, provider: RecordingProvider
) -> None:
    mandatory = {one.name for one in POLICIES if one.enforcement_level is EnforcementLevel.MANDATORY}
    wrong: dict[str, Sequence[tuple[str, Mapping[str, Any]]]] = {
        **OF_THE_STACK,
        "secrets-stay-marked": [
            ("a:b:C", {"a": secret("marked-beside-itself"), "b": "marked-beside-itself"})
        ],
    }
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


def test_a_secret_that_is_exported_in_plain_or_put_out_by_a_component_fails_the_preview(
    stack: Stack, provider: RecordingProvider
) -> None:
    marked = "marked-by-another-one"

    def program(script: Script) -> None:
        script.register("marks", {"a": secret(marked)})
        script.outputs(script.component("component").urn, {"b": {"c": marked}, "kept": secret(marked)})
        script.exported.update({"d": marked, "kept": secret(marked)})

    outcome = stack.preview(program, policy_packs=(OWN,))

    assert outcome.code == 1
    assert sorted(
        (each.policy, each.urn.rpartition("::")[2], each.message.splitlines()[1])
        for each in outcome.result.policy
    ) == [
        ("secrets-stay-marked-everywhere", "component", "b.c is a secret in plain"),
        ("secrets-stay-marked-everywhere", "test-dev", "d is a secret in plain"),
    ]
    assert marked not in repr(outcome.result.policy)


def test_a_pack_of_one_s_own_that_takes_the_rules_judges_as_this_one(
    stack: Stack, provider: RecordingProvider, tmp_path: Path
) -> None:
    (tmp_path / "PulumiPolicy.yaml").write_text("runtime: python\n")
    (tmp_path / "__main__.py").write_text(
        f"import sys\nsys.path.insert(0, {str(OWN)!r})\n"
        "from pack import POLICIES\nfrom pulumi_policy import PolicyPack\n"
        "PolicyPack('mine', policies=[*POLICIES])\n"
    )

    def program(script: Script) -> None:
        script.register("one", {"a": secret("marked-beside-itself"), "b": "marked-beside-itself"})

    outcome = stack.preview(program, policy_packs=(tmp_path,))

    assert [each.policy for each in outcome.result.policy] == ["secrets-stay-marked"]
