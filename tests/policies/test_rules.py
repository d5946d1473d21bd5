"""Each rule over one resource: what it lets through, each violation, unknown values, no secret in a message.

The host's own proxies wrap the inputs; the host itself is spoken to in `test_host.py`.
"""

import base64
from collections.abc import Mapping
from typing import Any

import cluster_provider
import environments
import pool_members
import pytest
import readable_data
import rights
import secret_objects
import secret_values
from pack import POLICIES
from pulumi_policy import EnforcementLevel, Policy, ResourceValidationPolicy

from components.labels import HYPERSCALERS
from tests.components.test_fleet import declared
from tests.policies import cases
from tests.support.policies import (
    UNKNOWN,
    NotApplicableError,
    judge,
    objections,
    remedied,
    secret,
    with_each_part,
)
from tests.support.stacks import stack

CANARY = "canary-7f3a"
SECRET = "kubernetes:core/v1:Secret"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
PROVIDER = "pulumi:providers:kubernetes"
RBAC = "kubernetes:rbac.authorization.k8s.io/v1:"
PRIVATE_KEY = f"-----BEGIN {'RSA '}PRIVATE KEY-----\n{CANARY}"

FLAGS = {
    "clusterIdentifier": "credfleet",
    "context": "fleet",
    "enableSecretMutable": "true",
    "enableConfigMapMutable": "true",
    "enableServerSideApply": "true",
    "enablePatchForce": "false",
    "upsertExistingObjects": "false",
}


def member(**labels: Any) -> dict[str, Any]:
    metadata = {
        "name": "aws-1",
        "labels": {
            "hyperscaler-type": "aws",
            **{key.replace("_", "-"): value for key, value in labels.items()},
        },
        "annotations": {"credfleet.io/account-id": "111"},
    }
    return {"metadata": metadata, "data": secret({"clientSecret": CANARY})}


def without_type() -> dict[str, Any]:
    bare = member()
    del bare["metadata"]["labels"]
    return bare


def annotated(**annotations: Any) -> dict[str, Any]:
    base = member()
    base["metadata"]["annotations"] |= annotations
    return base


def licence() -> dict[str, Any]:
    brought = member(tenant_name="globex")
    brought["metadata"]["annotations"]["credfleet.io/bring-your-own"] = "true"
    return brought


def role(**rule: list[str]) -> dict[str, Any]:
    return {"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], **rule}]}


def binding(**subject: str) -> dict[str, Any]:
    return {
        "roleRef": {"kind": "Role", "name": "credfleet-claimer"},
        "subjects": [{"kind": "User", "name": "x", **subject}],
    }


def pods(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "web"},
        "spec": {"template": {"metadata": metadata, "spec": {"containers": []}}},
    }


def aggregated(*selectors: Mapping[str, Any]) -> dict[str, Any]:
    return {"aggregationRule": {"clusterRoleSelectors": [*selectors]}}


def bound(name: str) -> dict[str, Any]:
    return {**binding(), "roleRef": {"kind": "ClusterRole", "name": name}}


AGGREGATED = "rbac.authorization.k8s.io/aggregate-to-"
EVERY_VERB = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]

COMPLIANT = [
    *(
        (pool_members.kubernetes_pool_member_known_type, SECRET, member(hyperscaler_type=cloud))
        for cloud in HYPERSCALERS
    ),
    (pool_members.kubernetes_pool_member_known_type, SECRET, member(hyperscaler_type="gcp_cf-sa30")),
    (pool_members.kubernetes_pool_member_known_type, SECRET, {"metadata": {"name": "a-workloads-own"}}),
    (
        pool_members.kubernetes_pool_member_known_type,
        SECRET,
        {
            "metadata": {
                "labels": {"hyperscalerType": "aws"},
                "annotations": {"credfleet.io/account-id": "111"},
            }
        },
    ),
    (pool_members.kubernetes_pool_member_protocol_keys, SECRET, member()),
    (pool_members.kubernetes_pool_member_declared_owner, SECRET, member()),
    (pool_members.kubernetes_pool_member_declared_owner, SECRET, licence()),
    (pool_members.kubernetes_pool_member_never_forced, SECRET, member()),
    (
        pool_members.kubernetes_pool_member_never_forced,
        SECRET,
        {"metadata": {"name": "a-workloads-own", "annotations": {"pulumi.com/patchForce": "true"}}},
    ),
    (secret_objects.kubernetes_secret_data_only, SECRET, member()),
    (cluster_provider.kubernetes_provider_keeps_claims, PROVIDER, FLAGS),
    (
        cluster_provider.kubernetes_provider_keeps_claims,
        PROVIDER,
        {**FLAGS, "enableSecretMutable": True, "enablePatchForce": False},
    ),
    (rights.kubernetes_role_no_wildcard_on_secrets, f"{RBAC}Role", role()),
    (rights.kubernetes_role_no_wildcard_on_secrets, f"{RBAC}Role", role(apiGroups=["apps"], verbs=["*"])),
    (rights.kubernetes_role_no_wildcard_on_secrets, f"{RBAC}Role", {}),
    (rights.kubernetes_role_no_cluster_wide_secrets, f"{RBAC}ClusterRole", role(resources=["namespaces"])),
    (rights.kubernetes_role_no_cluster_wide_secrets, f"{RBAC}ClusterRole", role(resourceNames=["one"])),
    (rights.kubernetes_role_no_cluster_wide_secrets, f"{RBAC}ClusterRole", role(verbs=["create"])),
    (rights.kubernetes_role_no_cluster_wide_secrets, f"{RBAC}ClusterRole", role(resourceNames=[""])),
    *(
        (rights.kubernetes_role_no_cluster_wide_secrets, f"{RBAC}ClusterRole", aggregated(selector))
        for selector in (
            {"matchLabels": {"rbac.example.com/aggregate-to-monitoring": "true"}},
            {"matchLabels": {f"{AGGREGATED}view": "true"}},
            {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "kubernetes.io/bootstrapping", "operator": "DoesNotExist"}]},
        )
    ),
    *(
        (rights.kubernetes_role_no_cluster_wide_secrets, f"{RBAC}ClusterRoleBinding", bound(name))
        for name in ("view", "credfleet-reader")
    ),
    (rights.kubernetes_role_no_wildcard_on_secrets, f"{RBAC}Role", role(verbs=EVERY_VERB[1:])),
    (
        rights.kubernetes_role_no_wildcard_on_secrets,
        f"{RBAC}Role",
        role(apiGroups=["apps"], verbs=EVERY_VERB),
    ),
    (rights.kubernetes_binding_not_for_everybody, f"{RBAC}RoleBinding", binding()),
    (rights.kubernetes_binding_not_for_everybody, f"{RBAC}ClusterRoleBinding", binding()),
    (
        readable_data.kubernetes_readable_no_credential,
        CONFIG_MAP,
        {"data": {"partitionKeys": "[]", "credentialsFrom": ""}},
    ),
    (
        readable_data.kubernetes_readable_no_credential,
        CONFIG_MAP,
        {"data": {"url": "https://example.org/path"}},
    ),
    *(
        (readable_data.kubernetes_readable_no_credential, CONFIG_MAP, {"data": {key: value}})
        for key, value in (
            ("password", ""),
            ("password", "$(DB_PASSWORD)"),
            ("password", "${DB_PASSWORD}"),
            ("password", "{{ .Values.password }}"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/var/run/secrets/key.json"),
            ("ALLOW_EMPTY_PASSWORD", "yes"),
            ("PWD", "/app"),
            ("DB_PASSWORD_FILE", "/run/secrets/db"),
            ("url", "postgres://app:$(DB_PASSWORD)@db"),
            ("url", "postgres://app:<password>@db"),
            ("app.json", '{"password": "$(DB_PASSWORD)", "auth": "none"}'),
            (".env", "DB_PASSWORD=$(DB_PASSWORD)\nDB_PASSWORD=\nALLOW_EMPTY_PASSWORD=yes\n"),
            ("run.sh", 'PASSWORD=$(cat /run/secrets/db)\nPASSWORD="$1"\nexport PASSWORD=${PASSWORD}\n'),
            ("app.py", 'password = os.environ["DB_PASSWORD"]\n    password=read(),\n'),
        )
    ),
    (
        readable_data.kubernetes_readable_no_credential,
        CONFIG_MAP,
        {"binaryData": {"logo.png": base64.b64encode(bytes(range(256))).decode()}},
    ),
    (readable_data.kubernetes_readable_no_credential, DEPLOYMENT, pods({"annotations": {"checksum": "aa"}})),
    (readable_data.kubernetes_readable_no_credential, SECRET, {"data": secret({"password": CANARY})}),
    *cases.COMPLIANT,
]

VIOLATIONS = [
    (
        pool_members.kubernetes_pool_member_known_type,
        SECRET,
        without_type(),
        "metadata.labels.hyperscaler-type is missing",
    ),
    *(
        (
            pool_members.kubernetes_pool_member_known_type,
            SECRET,
            member(hyperscaler_type=type_),
            "metadata.labels.hyperscaler-type is of no cloud that is known",
        )
        for type_ in ("ibm", "AWS", "aws_CF", "aws-eu", "", "aws_ ")
    ),
    *(
        (
            pool_members.kubernetes_pool_member_protocol_keys,
            SECRET,
            annotated(**{f"credfleet.io/{key}": "x"}),
            f"metadata.annotations.credfleet.io/{key} is declared",
        )
        for key in (
            "claim-token",
            "claim-origin",
            "claim-policy",
            "cleaning-token",
            "shared-claims",
            "tenant-id",
            "state-before",
        )
    ),
    (
        pool_members.kubernetes_pool_member_protocol_keys,
        SECRET,
        {"metadata": {"labels": {"credfleet.io/pool-state": "dirty"}}},
        "metadata.labels.credfleet.io/pool-state is declared",
    ),
    (
        pool_members.kubernetes_pool_member_declared_owner,
        SECRET,
        member(tenant_name="globex"),
        "metadata.labels.tenant-name is declared on an account that nobody brought",
    ),
    (
        pool_members.kubernetes_pool_member_declared_owner,
        SECRET,
        {
            "metadata": {
                "labels": {"tenant-name": ""},
                "annotations": {"credfleet.io/bring-your-own": "true"},
            }
        },
        "metadata.labels.tenant-name is no label value, so no tenant would ever match it",
    ),
    (
        pool_members.kubernetes_pool_member_declared_owner,
        SECRET,
        {
            "metadata": {
                "labels": {"tenant-name": "globex"},
                "annotations": {"credfleet.io/bring-your-own": "false"},
            }
        },
        "metadata.annotations.credfleet.io/bring-your-own is not true",
    ),
    (
        pool_members.kubernetes_pool_member_never_forced,
        SECRET,
        annotated(**{"pulumi.com/patchForce": "true"}),
        "metadata.annotations.pulumi.com/patchForce is set",
    ),
    (
        secret_objects.kubernetes_secret_data_only,
        SECRET,
        {"stringData": secret({"a": CANARY})},
        "stringData is used",
    ),
    *(
        (
            cluster_provider.kubernetes_provider_keeps_claims,
            PROVIDER,
            {**FLAGS, flag: wrong},
            f"{flag} is not {right}",
        )
        for flag, wrong, right in (
            ("enableSecretMutable", "false", "true"),
            ("enableConfigMapMutable", "false", "true"),
            ("enableServerSideApply", "false", "true"),
            ("enablePatchForce", "true", "false"),
            ("upsertExistingObjects", "true", "false"),
        )
    ),
    (
        cluster_provider.kubernetes_provider_keeps_claims,
        PROVIDER,
        {key: value for key, value in FLAGS.items() if key != "enableSecretMutable"},
        "enableSecretMutable is not true",
    ),
    (
        cluster_provider.kubernetes_provider_keeps_claims,
        PROVIDER,
        {key: value for key, value in FLAGS.items() if key != "clusterIdentifier"},
        "clusterIdentifier is missing, so an API server behind a new address replaces every Secret",
    ),
    (
        cluster_provider.kubernetes_provider_keeps_claims,
        PROVIDER,
        {key: value for key, value in FLAGS.items() if key != "context"},
        "context is missing, so the cluster is chosen by accident",
    ),
    (
        cluster_provider.kubernetes_provider_keeps_claims,
        PROVIDER,
        {**FLAGS, "context": ""},
        "context is missing, so the cluster is chosen by accident",
    ),
    (
        cluster_provider.kubernetes_provider_keeps_claims,
        PROVIDER,
        {**FLAGS, "clusterIdentifier": ""},
        "clusterIdentifier is missing, so an API server behind a new address replaces every Secret",
    ),
    *(
        (
            rights.kubernetes_role_no_wildcard_on_secrets,
            f"{RBAC}{kind}",
            role(**{key: ["*"]}),
            f"rules[0].{key} has a wildcard that covers Secrets",
        )
        for key in ("apiGroups", "resources", "verbs")
        for kind in ("Role", "ClusterRole")
    ),
    *(
        (
            rights.kubernetes_role_no_cluster_wide_secrets,
            f"{RBAC}ClusterRole",
            role(verbs=[verb]),
            "rules[0] reads Secrets in every namespace",
        )
        for verb in ("get", "list", "watch", "*")
    ),
    *(
        (
            rights.kubernetes_role_no_cluster_wide_secrets,
            f"{RBAC}ClusterRole",
            role(verbs=verbs, resourceNames=names),
            "rules[0] reads Secrets in every namespace",
        )
        for verbs in (["list"], ["watch"], ["*"])
        for names in ([""], ["one", ""])
    ),
    *(
        (
            rights.kubernetes_role_no_cluster_wide_secrets,
            f"{RBAC}ClusterRole",
            aggregated({"matchLabels": {"team": "x"}}, selector),
            "aggregationRule.clusterRoleSelectors[1] takes in roles that read Secrets in every namespace",
        )
        for selector in (
            {},
            {"matchLabels": {f"{AGGREGATED}edit": "true"}},
            {"matchLabels": {f"{AGGREGATED}admin": "true"}},
            {"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
            {"matchExpressions": [{"key": f"{AGGREGATED}edit", "operator": "Exists"}]},
            {"matchExpressions": [{"key": f"{AGGREGATED}edit", "operator": "In", "values": ["true"]}]},
            {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]},
        )
    ),
    *(
        (
            rights.kubernetes_role_no_cluster_wide_secrets,
            f"{RBAC}{kind}",
            bound(name),
            f"roleRef.name is {name}, which reads Secrets in every namespace",
        )
        for kind in ("ClusterRoleBinding", "ClusterRoleBindingPatch")
        for name in ("admin", "edit")
    ),
    (
        rights.kubernetes_role_no_wildcard_on_secrets,
        f"{RBAC}Role",
        role(verbs=EVERY_VERB),
        "rules[0].verbs are all that there are",
    ),
    *(
        (
            rights.kubernetes_binding_not_for_everybody,
            f"{RBAC}RoleBinding",
            binding(kind="Group", name=name),
            "subjects[0].name is everybody",
        )
        for name in (
            "system:authenticated",
            "system:unauthenticated",
            "system:serviceaccounts",
            "system:serviceaccounts:team-a",
        )
    ),
    (
        rights.kubernetes_binding_not_for_everybody,
        f"{RBAC}ClusterRoleBinding",
        {**binding(), "roleRef": {"name": "cluster-admin"}},
        "roleRef.name is cluster-admin",
    ),
    *(
        (
            readable_data.kubernetes_readable_no_credential,
            CONFIG_MAP,
            {"data": {key: value}},
            f"data.{key} looks like a credential",
        )
        for key, value in (
            ("note", PRIVATE_KEY),
            ("note", f"AKIA{'A' * 16}"),
            ("note", f"AccountKey={CANARY.replace('-', 'A') * 3}=="),
            ("note", f"eyJ{'a' * 12}.eyJ{'b' * 12}.{'c' * 12}"),
            ("note", f"ghp_{'a' * 36}"),
            ("note", f"postgres://user:{CANARY}@db/x"),
            ("note", f'{{"auths": {{"quay.io": {{"auth": "{CANARY}"}}}}}}'),
            ("note", f'{{"private_key": "{CANARY}"}}'),
            ("DB_PASSWORD", CANARY),
            ("client-secret", CANARY),
            ("app.json", '{\\"password\\": \\"canary-7f3a\\"}'),
            (".env", f"LOG_LEVEL=debug\nDB_PASSWORD={CANARY}\n"),
            (".env", f"export DB_PASSWORD='{CANARY}'\r\n"),
            ("app.properties", f"spring.datasource.password={CANARY}"),
            *(
                (key, CANARY)
                for key in (
                    "PGPASSWORD",
                    "dbPassword",
                    "DBPassword",
                    "MYSQL_PWD",
                    "AWS_SESSION_TOKEN",
                    "GITHUB_TOKEN",
                )
            ),
        )
    ),
    *(
        (
            readable_data.kubernetes_readable_no_credential,
            DEPLOYMENT,
            pods({"annotations": {key: value}}),
            f"spec.template.metadata.annotations.{key} looks like a credential",
        )
        for key, value in (("password", CANARY), ("note", PRIVATE_KEY))
    ),
    (
        readable_data.kubernetes_readable_no_credential,
        CONFIG_MAP,
        {"binaryData": {"tls": base64.b64encode(PRIVATE_KEY.encode()).decode()}},
        "binaryData.tls looks like a credential",
    ),
    (
        readable_data.kubernetes_readable_no_credential,
        CONFIG_MAP,
        {"binaryData": {"api_key": CANARY}},
        "binaryData.api_key looks like a credential",
    ),
    (
        readable_data.kubernetes_readable_no_credential,
        SECRET,
        annotated(note=PRIVATE_KEY),
        "metadata.annotations.note looks like a credential",
    ),
    *cases.VIOLATIONS,
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
    assert judge(rule, type_, inputs, {"allowed": [CALLED]}) == ["its type is none of those allowed"]
    assert judge(rule, CALLED, inputs, {"allowed": [CALLED]}) == ["its type is none of those allowed"]


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
        "stringData.port is no text",
        "stringData is used",
    ]


def _flags(type_: str) -> dict[str, str]:
    return dict.fromkeys(FLAGS, UNKNOWN) if type_ == PROVIDER else {}


FORCED = {"pulumi.com/patchForce": "true"}
ACCOUNT = {"credfleet.io/account-id": "111"}


@pytest.mark.parametrize(
    ("policy", "labels", "annotations", "violation"),
    [
        (
            pool_members.kubernetes_pool_member_never_forced,
            {"tenantName": "globex"},
            FORCED,
            "metadata.annotations.pulumi.com/patchForce is set",
        ),
        (
            pool_members.kubernetes_pool_member_declared_owner,
            {"tenantName": "globex"},
            {},
            "metadata.labels.tenantName is declared on an account that nobody brought",
        ),
        (
            pool_members.kubernetes_pool_member_known_type,
            {"app": "gcp"},
            ACCOUNT,
            "metadata.labels.hyperscalerType is missing",
        ),
        (
            pool_members.kubernetes_pool_member_known_type,
            {"hyperscalerType": "ibm"},
            {},
            "metadata.labels.hyperscalerType is of no cloud that is known",
        ),
        (pool_members.kubernetes_pool_member_known_type, {"hyperscalerType": "aws"}, ACCOUNT, None),
        (pool_members.kubernetes_pool_member_declared_owner, {"tenant-name": "globex"}, {}, None),
    ],
)
def test_an_account_is_judged_by_the_labels_that_the_configuration_calls_it_by(
    monkeypatch: pytest.MonkeyPatch,
    policy: ResourceValidationPolicy,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    violation: str | None,
) -> None:
    monkeypatch.setattr(pool_members, "_section", lambda: cases.KYMA)
    account = {"metadata": {"name": "x", "labels": labels, "annotations": annotations}}

    assert judge(policy, SECRET, account) == ([] if violation is None else [violation])


def test_an_unknown_value_does_not_silence_the_rest_of_its_rule() -> None:
    data = {"first": UNKNOWN, "password": CANARY}

    assert judge(readable_data.kubernetes_readable_no_credential, CONFIG_MAP, {"data": data}) == [
        "data.password looks like a credential"
    ]


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
    "gcp-secret-version-marked": EnforcementLevel.REMEDIATE,
    "kubernetes-secret-data-only": EnforcementLevel.REMEDIATE,
    "stores-cluster-store-conditions": EnforcementLevel.ADVISORY,
    "stores-regex-anchored": EnforcementLevel.ADVISORY,
}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_rule_states_its_level_its_reason_and_its_mend(policy: Policy) -> None:
    assert policy.enforcement_level is EXPECTED.get(policy.name, EnforcementLevel.MANDATORY)
    assert policy.description.endswith(".")
    assert policy.remediation_steps


def test_what_the_program_declares_complies_with_every_rule() -> None:
    people = [{"kind": "User", "name": "x"}]
    recorder = declared(
        stack(
            accountPool__claimers=people,
            accountPool__cleaners=people,
            **{"accountPool__members__aws-1__tenant": "acme"},
        )
    )

    assert objections("dev", recorder) == []
