"""What an environment says to a policy pack; the project's own pack over a program that does all wrong."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pack import POLICIES
from pulumi_policy import EnforcementLevel

from tests.policies.cases import CLAIM, CONFIGS, FEDERATION, FROM, annotated, federation
from tests.policies.test_rules import VIOLATIONS
from tests.support.engine_stack import Outcome, Stack
from tests.support.policies import secret
from tests.support.recording_provider import RecordingProvider
from tests.support.scripted_program import Script
from tests.support.stacks import ROOT

HOUSE = Path(__file__).parent / "packs" / "house"
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


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Return the folder of the pack `house`, run by this environment's interpreter."""
    folder = Path(shutil.copytree(HOUSE, tmp_path / "house"))
    (folder / "PulumiPolicy.yaml").write_text(
        f"version: 1.2.3\nruntime:\n  name: python\n  options:\n    virtualenv: {sys.prefix}\n"
    )
    return folder


def configured(stack: Stack, pack: Path, said: object) -> Outcome:
    def program(script: Script) -> None:
        script.register("a", {"colour": "red"})
        script.register("b", {"colour": "grey"})

    config = stack.directory / "config.json"
    config.write_text(said if isinstance(said, str) else json.dumps(said))
    return stack.preview(program, policy_packs=(pack,), policy_configs={pack: config})


def levels(outcome: Outcome) -> dict[str, str]:
    return {each.policy: each.level for each in outcome.result.policy}


def test_an_environment_changes_levels_and_properties_and_leaves_the_rest(stack: Stack, house: Path) -> None:
    said = {"no-red": "advisory", "no-grey": {"enforcementLevel": "mandatory"}, "tidy": "disabled"}

    assert levels(configured(stack, house, said)) == {
        "no-red": "advisory",
        "no-grey": "mandatory",
        "few": "advisory",
    }


def test_a_level_for_all_is_that_of_every_policy_not_named(stack: Stack, house: Path) -> None:
    said = {"all": "disabled", "no-grey": "mandatory"}

    assert levels(configured(stack, house, said)) == {"no-grey": "mandatory"}


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ({"no-blue": "advisory"}, "the pack has no policy no-blue"),
        ({"no-red": {"shade": 1}}, "no-red has no property shade"),
        ({"no-red": "loud"}, "no-red: the level is none of advisory, mandatory, remediate, disabled"),
        ("{", "it cannot be read as JSON"),
        ([1], "it is no object"),
        ({"no-red": 1}, "it is no object"),
    ],
)
def test_what_the_pack_does_not_understand_is_refused(
    stack: Stack, house: Path, said: object, cause: str
) -> None:
    outcome = configured(stack, house, said)

    assert outcome.code == 1
    assert cause in outcome.errors[0]
    assert str(stack.directory / "config.json") in outcome.errors[0]


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
                script.outputs(one.urn, dict(inputs))

    outcome = stack.preview(program, policy_packs=(OWN,), policy_configs={OWN: config})

    named = Counter(
        each.policy
        for each in outcome.result.policy
        if each.level == "mandatory" and each.urn.rpartition("::")[2].rpartition(" ")[0] == each.policy
    )
    assert outcome.code == 1
    assert named == Counter(mandatory)
    assert provider.names() == []
