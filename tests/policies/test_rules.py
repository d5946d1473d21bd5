"""Each rule over one resource: what it lets through, each violation, unknown values, no secret in a message.

The host's own proxies wrap the inputs; the host itself is spoken to in `test_host.py`.
"""

from collections.abc import Mapping
from typing import Any

import environments
import pool_members
import pytest
import secret_objects
import secret_values
from pack import POLICIES
from pulumi_policy import EnforcementLevel, Policy, ResourceValidationPolicy

from components.account_pool.births import Births
from components.account_pool.claim_forecast import ClaimForecasts
from components.account_pool.core import keys
from components.account_pool.core.declared import DeclaredMember
from components.account_pool.core.label_scheme import LabelScheme
from components.account_pool.core.rebirth import Marks, keep_away, marks_of_lost, marks_of_records
from tests.policies import cases
from tests.support import records
from tests.support.cases import table
from tests.support.policies import (
    UNKNOWN,
    NotApplicableError,
    judge,
    remedied,
    secret,
    with_each_part,
)

CANARY = "canary-7f3a"
SECRET = "kubernetes:core/v1:Secret"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
PROVIDER = "pulumi:providers:kubernetes"

FLAGS: Any = table(__file__, "FLAGS")


_BY_NAME = {policy.name: policy for policy in POLICIES if isinstance(policy, ResourceValidationPolicy)}
COMPLIANT = [(_BY_NAME[rule], case["type"], case["inputs"]) for rule, case in cases.of("complies")]
VIOLATIONS = [
    (_BY_NAME[rule], case["type"], case["inputs"], case["told"]) for rule, case in cases.of("violates")
]

RULES: list[ResourceValidationPolicy] = [
    policy
    for policy in POLICIES
    if isinstance(policy, ResourceValidationPolicy)
    and policy.has_validation()
    and policy is not secret_values.secrets_stay_marked
]
"""All that judge a resource by itself, as `secrets-stay-marked` does not; it has tests of its own."""


@pytest.mark.parametrize(
    ("policy", "type_", "inputs"), COMPLIANT, ids=lambda value: getattr(value, "name", "")
)
def test_what_complies_is_let_through(
    policy: ResourceValidationPolicy, type_: str, inputs: Mapping[str, Any]
) -> None:
    assert judge(policy, type_, inputs, cases.CONFIGS.get(policy.name)) == []


@pytest.mark.parametrize(
    ("policy", "type_", "inputs", "violation"), VIOLATIONS, ids=lambda value: getattr(value, "name", "")
)
def test_each_violation_is_told_by_the_path_of_the_property_and_never_its_value(
    policy: ResourceValidationPolicy, type_: str, inputs: Mapping[str, Any], violation: str
) -> None:
    found = judge(policy, type_, inputs, cases.CONFIGS.get(policy.name))

    assert found == [violation]
    assert CANARY not in repr(found)


@pytest.mark.parametrize("policy", RULES, ids=lambda policy: policy.name)
def test_every_rule_has_a_case_it_lets_through_and_one_it_refuses(policy: ResourceValidationPolicy) -> None:
    assert policy in [case[0] for case in COMPLIANT]
    assert policy in [case[0] for case in VIOLATIONS]


def unknown_leaves(value: Any) -> Any:
    if isinstance(value, dict) and value != secret(value.get("value")):
        return {key: unknown_leaves(item) for key, item in value.items()}
    return [unknown_leaves(item) for item in value] if isinstance(value, list) else UNKNOWN


CALLED = "kubernetes:example.com/v1:Anything"


@pytest.mark.parametrize("called", [CALLED, "kubernetes:v1:Secret", "kubernetes:example.com/v1:SecretPatch"])
def test_an_object_of_kubernetes_is_judged_as_what_its_inputs_make_it(called: str) -> None:
    rule, inputs = secret_objects.kubernetes_secret_data_only, {"stringData": secret({"a": CANARY})}

    assert judge(rule, called, {"apiVersion": "v1", "kind": "Secret", **inputs}) == ["stringData is used"]
    assert judge(rule, called, {"apiVersion": secret("v1"), "kind": "Secret", **inputs}) != []
    assert remedied(rule, called, {"apiVersion": "v1", "kind": secret("Secret"), **inputs}) is not None
    with pytest.raises(NotApplicableError):
        judge(rule, SECRET, {"apiVersion": "v1", "kind": "ConfigMap", **inputs})
    with pytest.raises(NotApplicableError):
        judge(rule, CALLED, {"apiVersion": "example.com/v1", "kind": "Secret", **inputs})


@pytest.mark.parametrize(
    "unsaid", [{}, {"kind": UNKNOWN}, {"kind": "Secret"}, {"apiVersion": "v1"}, {"kind": 1}]
)
def test_an_object_of_which_the_inputs_do_not_say_what_it_is_is_judged_by_its_type(
    unsaid: Mapping[str, Any],
) -> None:
    rule = secret_objects.kubernetes_secret_data_only

    assert judge(rule, SECRET, {**unsaid, "stringData": {}}) == ["stringData is used"]


@pytest.mark.parametrize("type_", [SECRET, f"{SECRET}Patch"])
def test_a_patch_is_judged_as_the_patch_of_its_kind(type_: str) -> None:
    inputs = {"apiVersion": "v1", "kind": "Secret"}
    rule, allowed = environments.estate_resource_types, {"allowed": [type_]}

    assert judge(rule, type_, inputs, allowed) == []
    assert judge(rule, type_, inputs, {"allowed": [CALLED]}) == ["its type is not allowed"]
    assert judge(rule, CALLED, inputs, {"allowed": [CALLED]}) == ["its type is not allowed"]


@pytest.mark.parametrize(
    ("policy", "type_", "inputs"), COMPLIANT, ids=lambda value: getattr(value, "name", "")
)
def test_what_only_the_update_knows_is_judged_at_the_update(
    policy: ResourceValidationPolicy, type_: str, inputs: Mapping[str, Any]
) -> None:
    config = cases.CONFIGS.get(policy.name)
    unknown = {key: UNKNOWN for key in inputs} | {"context": UNKNOWN} | _flags(type_)
    for each in (unknown_leaves(inputs), unknown, *with_each_part(inputs, UNKNOWN)):
        assert judge(policy, type_, each, config) == [], each


@pytest.mark.parametrize(
    "inputs",
    [{"stringData": UNKNOWN}, {"data": UNKNOWN, "stringData": {"a": "b"}}],
    ids=["the texts", "the data beside them"],
)
def test_texts_that_no_preview_can_encode_are_left_to_the_update(inputs: Mapping[str, Any]) -> None:
    assert remedied(secret_objects.kubernetes_secret_data_only, SECRET, inputs) is None
    assert judge(secret_objects.kubernetes_secret_data_only, SECRET, inputs) == []


@pytest.mark.parametrize("policy", RULES, ids=lambda policy: policy.name)
def test_what_stands_where_something_else_belongs_stops_no_rule(policy: ResourceValidationPolicy) -> None:
    given = [(type_, inputs) for rule, type_, inputs, *_ in (*COMPLIANT, *VIOLATIONS) if rule is policy]
    for type_, inputs in given:
        for odd in (None, 5432, True, "", "x", [], ["x"], [None], {}, {"x": 5}):
            for each in with_each_part(inputs, odd):
                judge(policy, type_, each, cases.CONFIGS.get(policy.name))
                if policy.remediate is not None:
                    remedied(policy, type_, each)


def test_what_is_no_text_is_told_of_texts() -> None:
    odd = {"stringData": secret({"port": 5432, "host": CANARY})}

    assert remedied(secret_objects.kubernetes_secret_data_only, SECRET, odd) is None
    assert judge(secret_objects.kubernetes_secret_data_only, SECRET, odd) == [
        "stringData.port is not a string",
        "stringData is used",
    ]


def _flags(type_: str) -> dict[str, str]:
    return dict.fromkeys(FLAGS, UNKNOWN) if type_ == PROVIDER else {}


@pytest.mark.parametrize(
    ("policy", "labels", "annotations", "violation"),
    table(__file__, "test_an_account_is_judged_by_the_labels_that_the_configuration_calls_it_by"),
)
def test_an_account_is_judged_by_the_labels_that_the_configuration_calls_it_by(
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    violation: str | None,
) -> None:
    monkeypatch.setattr(pool_members, "_section", lambda: cases.KYMA)
    account = {"metadata": {"name": "x", "labels": labels, "annotations": annotations}}

    assert judge(_BY_NAME[policy], SECRET, account) == ([] if violation is None else [violation])


LOST = DeclaredMember("aws", "111")
OF_CLAIM = marks_of_records(records.BOUND.member, LOST, [records.BOUND]) or Marks()
CUT_OFF = keep_away(OF_CLAIM, LOST, {keys.STATE_REASON: "leaked"}) or Marks()


@pytest.mark.parametrize("marks", [OF_CLAIM, CUT_OFF, marks_of_lost("acme", LOST), marks_of_lost(None, LOST)])
def test_account_created_again_may_have_its_marks_and_no_program_writes_them_by_itself(marks: Marks) -> None:
    roster: Any = None
    born = Births("pool", {"m": LOST}, LabelScheme(), roster, ClaimForecasts(born={"m": marks}))
    labels, annotations = born.metadata(LOST.as_member("m"))
    assert isinstance(annotations, dict)

    def judged(**other: str) -> list[str]:
        account = {"metadata": {"name": "m", "labels": labels, "annotations": {**annotations, **other}}}
        rules = ("kubernetes-pool-member-protocol-keys", "kubernetes-pool-member-declared-owner")
        return [each for rule in rules for each in judge(_BY_NAME[rule], SECRET, account)]

    assert judged() == []
    for key in (keys.REMEMBERED, keys.CLAIM_FORMER, keys.CLEANING_TOKEN, keys.FREED):
        assert judged(**{key: "x"}) != []


@pytest.mark.parametrize(
    "policy",
    [
        policy
        for policy in RULES
        if policy not in (environments.estate_resource_types, environments.estate_owner_labels)
    ],
    ids=lambda policy: policy.name,
)
def test_a_rule_has_nothing_to_say_about_resources_of_another_kind(policy: ResourceValidationPolicy) -> None:
    with pytest.raises(NotApplicableError):
        judge(policy, "random:index/randomId:RandomId", {})


EXPECTED = {
    "estate-required-claims-served": EnforcementLevel.ADVISORY,
    "kubernetes-pool-member-key-lives": EnforcementLevel.ADVISORY,
    "gcp-secret-version-marked": EnforcementLevel.REMEDIATE,
    "kubernetes-secret-data-only": EnforcementLevel.REMEDIATE,
    "stores-cluster-store-conditions": EnforcementLevel.ADVISORY,
    "stores-regex-anchored": EnforcementLevel.ADVISORY,
}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_rule_states_its_level_its_reason_and_its_fix(policy: Policy) -> None:
    assert policy.enforcement_level is EXPECTED.get(policy.name, EnforcementLevel.MANDATORY)
    assert policy.description.endswith(".")
    assert policy.remediation_steps
