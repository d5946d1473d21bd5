"""What the admission policies are made of; what they refuse is tried on a real API server."""

import re

import pytest

from components.account_pool.admission.policies import BINDING, POLICY, admission_manifests
from components.account_pool.admission.transitions import list_state_machines
from components.account_pool.core.config_map import PoolConfigMap
from components.account_pool.core.model import JsonObject
from tests.support.admission_twin import CONDITIONS

MACHINES = list_state_machines((), ("aws",), quotas=True)
MANIFESTS = admission_manifests("account-pool", PoolConfigMap())
POLICIES = [manifest for manifest in MANIFESTS if manifest["kind"] == POLICY]
NAMES = [policy["metadata"]["name"] for policy in POLICIES]


def cel_of(policy: JsonObject) -> str:
    spec = policy["spec"]
    return " ".join(each["expression"] for each in (*spec["variables"], *spec["validations"]))


def test_each_policy_is_followed_by_the_binding_that_puts_it_into_force_in_its_pool_alone() -> None:
    assert [manifest["kind"] for manifest in MANIFESTS] == [POLICY, BINDING] * len(list_state_machines(()))
    for policy, binding in zip(MANIFESTS[::2], MANIFESTS[1::2], strict=True):
        assert binding["spec"] == {
            "policyName": policy["metadata"]["name"],
            "validationActions": ["Deny"],
            "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "account-pool"}}
            },
        }


def test_a_policy_with_other_rules_is_another_object_and_its_binding_the_same() -> None:
    others = admission_manifests("account-pool", PoolConfigMap(), allow_destroy=True)
    for one, other in zip(MANIFESTS, others, strict=True):
        is_same = one["metadata"]["name"] == other["metadata"]["name"]
        assert is_same == (one["kind"] == BINDING or one["spec"] == other["spec"])


def test_two_pools_in_one_cluster_have_policies_of_their_own() -> None:
    others = {manifest["metadata"]["name"] for manifest in admission_manifests("other-pool", PoolConfigMap())}
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


def test_every_field_has_a_rule_that_says_what_was_changed_and_what_to_do_instead() -> None:
    for policy, machine in zip(POLICIES, list_state_machines(()), strict=True):
        messages = [each["message"] for each in policy["spec"]["validations"]]
        assert len(set(messages)) == len(messages)
        assert all("; " in message for message in messages)
        named = {message.partition(":")[0] for message in messages}
        assert {f"{machine.noun}-{one.name}" for one in machine.fields} <= named


def test_every_condition_has_a_twin_that_the_tests_ask() -> None:
    named = [transition.when for machine in MACHINES for transition in machine.transitions.values()]
    assert {condition.name for when in named for condition in when} == CONDITIONS.keys()


def test_a_pool_is_guarded_by_its_own_partition_keys() -> None:
    def keys(*partition_keys: str) -> list[str]:
        drawn = admission_manifests("account-pool", PoolConfigMap(partition_keys))[::2]
        guarded = [machine.name for machine in list_state_machines(())]
        return [name for name, policy in zip(guarded, drawn, strict=True) if "eu-access" in cel_of(policy)]

    assert (keys(), keys("eu-access")) == ([], ["members", "records"])


@pytest.mark.parametrize("policy", POLICIES, ids=NAMES)
def test_a_pool_that_may_be_thrown_away_has_all_rules_but_those_about_deletion(policy: JsonObject) -> None:
    (relaxed,) = (
        manifest
        for manifest in admission_manifests("account-pool", PoolConfigMap(), allow_destroy=True)
        if manifest["metadata"]["name"].startswith(policy["metadata"]["name"].rpartition(".")[0] + ".")
    )
    kept = [each for each in policy["spec"]["validations"] if "'DELETE'" not in each["expression"]]
    assert relaxed["spec"]["validations"] == kept
    assert relaxed["spec"]["matchConstraints"]["resourceRules"][0]["operations"] == ["CREATE", "UPDATE"]
