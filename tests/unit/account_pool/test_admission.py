"""What the admission policies are made of; what they refuse is tried on a real API server."""

import re

import pytest

from components.account_pool.admission import (
    BINDING,
    MEMBER_RULES,
    POLICY,
    RECORD_RULES,
    SETTINGS_RULES,
    admission_manifests,
)
from components.account_pool.model import JsonObject, Phase, State

MANIFESTS = admission_manifests("account-pool")
POLICIES = [manifest for manifest in MANIFESTS if manifest["kind"] == POLICY]
NAMES = [policy["metadata"]["name"] for policy in POLICIES]


def cel_of(policy: JsonObject) -> str:
    spec = policy["spec"]
    return " ".join(each["expression"] for each in (*spec["variables"], *spec["validations"]))


def test_each_policy_is_followed_by_the_binding_that_puts_it_into_force_in_its_pool_alone() -> None:
    assert [manifest["kind"] for manifest in MANIFESTS] == [POLICY, BINDING] * 3
    for binding in MANIFESTS[1::2]:
        assert binding["spec"] == {
            "policyName": binding["metadata"]["name"],
            "validationActions": ["Deny"],
            "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "account-pool"}}
            },
        }


def test_two_pools_in_one_cluster_have_policies_of_their_own() -> None:
    others = {manifest["metadata"]["name"] for manifest in admission_manifests("other-pool")}
    assert others.isdisjoint(manifest["metadata"]["name"] for manifest in MANIFESTS)


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_what_breaks_a_rule_is_forbidden_and_a_rule_that_fails_lets_nothing_through(
    policy: JsonObject,
) -> None:
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert {each["reason"] for each in policy["spec"]["validations"]} == {"Forbidden"}


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_every_variable_is_made_before_it_is_used_and_used(policy: JsonObject) -> None:
    made: set[str] = set()
    for variable in policy["spec"]["variables"]:
        assert set(re.findall(r"variables\.(\w+)", variable["expression"])) <= made
        made.add(variable["name"])
    assert set(re.findall(r"variables\.(\w+)", cel_of(policy))) == made


def test_a_rule_is_known_by_its_name_and_says_what_to_do_instead() -> None:
    for rules in (MEMBER_RULES, RECORD_RULES, SETTINGS_RULES):
        assert len({rule.name for rule in rules}) == len(rules)
        for rule in rules:
            assert ";" in rule.message


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_a_pool_that_may_be_thrown_away_has_all_rules_but_those_about_deletion(policy: JsonObject) -> None:
    (relaxed,) = (
        manifest
        for manifest in admission_manifests("account-pool", allow_destroy=True)
        if manifest["kind"] == POLICY and manifest["metadata"] == policy["metadata"]
    )
    kept = [each for each in policy["spec"]["validations"] if "'DELETE'" not in each["expression"]]
    assert relaxed["spec"]["validations"] == kept
    assert relaxed["spec"]["matchConstraints"]["resourceRules"][0]["operations"] == ["CREATE", "UPDATE"]


def test_the_rules_speak_of_every_state_and_phase_there_is_and_of_no_other() -> None:
    members, records, _ = map(cel_of, POLICIES)
    assert set(re.findall(r"State\w* (?:==|!=) '(\w+)'", members)) <= set(State)
    assert {state for state in State if f"'{state}'" in members} == set(State)
    assert {phase for phase in Phase if phase in records} == set(Phase)
