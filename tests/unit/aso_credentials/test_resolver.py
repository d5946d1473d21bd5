"""Which credential ASO uses, and what it says of one it cannot use (docs/compatibility.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import pytest

from components.aso_credentials import keys
from components.aso_credentials.resolution import WITHHELD, Operator, Owner, Resolution, Resource
from components.aso_credentials.resolver import resolve
from components.errors import CredfleetError
from components.projection.model import SecretRef
from tests.support.cases import cases, tabled
from tests.support.certificates import pem, without_key

Data: TypeAlias = Mapping[str, bytes]
Name: TypeAlias = tuple[str, str]
SUB: Final = b"00000000-0000-4000-8000-0000000000aa"
OTHER: Final = b"00000000-0000-4000-8000-0000000000ff"
IDS: Final[Data] = {
    "AZURE_SUBSCRIPTION_ID": SUB,
    "AZURE_TENANT_ID": b"00000000-0000-4000-8000-0000000000bb",
    "AZURE_CLIENT_ID": b"00000000-0000-4000-8000-0000000000cc",
}
CLOUD: Final[Data] = {
    "AZURE_AUTHORITY_HOST": b"https://login.example/",
    "AZURE_RESOURCE_MANAGER_ENDPOINT": b"https://management.example",
    "AZURE_RESOURCE_MANAGER_AUDIENCE": b"https://management.example",
}
VALID: Final[Data] = {**IDS, "AZURE_CLIENT_SECRET": b"s"}
BROKEN: Final[Data] = {"AZURE_SUBSCRIPTION_ID": SUB}
N: Name = ("team", "aso-credential")
R: Name = ("team", "x")
G: Name = (keys.OPERATOR_NAMESPACE, keys.GLOBAL_SETTINGS)
RELAXED: Final = "system:serviceaccount:azureserviceoperator-system:azureserviceoperator-default"


def one(
    secrets: Mapping[tuple[str, str], Data],
    *,
    annotation: str | None = None,
    arm_id: str | None = None,
    operator: Operator | None = None,
    deleting: bool = False,
) -> Resolution:
    annotations: dict[str, str] = {}
    if annotation is not None:
        annotations[keys.CREDENTIAL_FROM] = annotation
    if arm_id is not None:
        annotations[keys.RESOURCE_ID] = arm_id
    resource = Resource("team", "ResourceGroup", "rg", annotations, deleting=deleting)
    return together(secrets, resource, operator=operator)[0]


def together(
    secrets: Mapping[tuple[str, str], Data], *resources: Resource, operator: Operator | None = None
) -> tuple[Resolution, ...]:
    named = {SecretRef(*name): data for name, data in secrets.items()}
    return resolve(resources, named, operator or Operator())


def refusal(resolution: Resolution) -> tuple[str, str] | None:
    return resolution.fault and (str(resolution.fault.severity), str(resolution.fault.reason))


def used(resolution: Resolution) -> tuple[str | None, str | None]:
    secret = resolution.secret
    return secret and str(secret), resolution.scope and str(resolution.scope)


@cases(
    "secrets, annotation, secret, scope",
    {
        "operator": ({G: VALID}, None, "/".join(G), "global"),
        "namespace": ({N: VALID, G: VALID}, None, "team/aso-credential", "namespace"),
        "namespace alone": ({N: VALID}, None, "team/aso-credential", "namespace"),
        "resource": ({R: VALID, N: VALID, G: VALID}, "x", "team/x", "resource"),
        "namespace by name": ({N: VALID, G: VALID}, "aso-credential", "team/aso-credential", "resource"),
    },
)
def test_a_valid_credential_is_used_in_the_order_resource_namespace_operator(
    secrets: Mapping[tuple[str, str], Data], annotation: str | None, secret: str, scope: str
) -> None:
    found = one(secrets, annotation=annotation)
    assert used(found) == (secret, scope)
    assert (found.fault, found.message) == (None, None)


@cases(
    "secrets, annotation, secret, words",
    {
        "none": ({}, None, None, "global credential not configured"),
        "operator empty": ({G: {**IDS, "AZURE_SUBSCRIPTION_ID": b""}}, None, None, "not configured"),
        "namespace incomplete": (
            {N: BROKEN, G: VALID},
            None,
            "team/aso-credential",
            "key AZURE_TENANT_ID, does not",
        ),
        "named but gone": ({N: VALID, G: VALID}, "x", "team/x", "does not exist"),
        "named and incomplete": ({R: BROKEN, N: VALID, G: VALID}, "x", "team/x", "key AZURE_CLIENT_ID"),
        "named elsewhere": ({("other", "x"): VALID, N: VALID, G: VALID}, "x", "team/x", "there is other/x"),
        "slash": ({N: VALID}, "other/x", None, "cannot contain '/'"),
        "empty annotation": ({N: VALID}, "", None, "is empty"),
    },
)
def test_a_credential_that_is_chosen_and_broken_is_a_warning_and_never_passed_over(
    secrets: Mapping[tuple[str, str], Data], annotation: str | None, secret: str | None, words: str
) -> None:
    found = one(secrets, annotation=annotation)
    assert refusal(found) == ("Warning", "Failed")
    assert used(found)[0] == secret
    assert words in str(found.message)
    assert found.method is None


def test_an_annotation_on_a_resource_group_is_not_inherited_and_the_child_is_told() -> None:
    group = Resource("team", "ResourceGroup", "rg", {keys.CREDENTIAL_FROM: "x"})
    child = Resource("team", "StorageAccount", "sa", owner=Owner("rg"))
    grandchild = Resource("team", "StorageAccountsBlobService", "blobs", owner=Owner("sa", "StorageAccount"))
    _, *below = together({R: VALID, G: VALID}, group, child, grandchild)
    for found in below:
        assert (used(found), found.fault) == (("/".join(G), "global"), None)
        assert "credential-from of team/ResourceGroup/rg is not inherited" in str(found.message)


TOKEN: Final = "workloadIdentity"
SECRET: Final = "servicePrincipalSecret"


@cases(
    "extra, method, note",
    {
        "no mode": ({}, TOKEN, None),
        "token mode": ({keys.AUTH_MODE: b"workloadidentity"}, TOKEN, None),
        "empty mode": ({keys.AUTH_MODE: b""}, TOKEN, "AUTH_MODE is empty"),
        "pod mode": ({keys.AUTH_MODE: b"podidentity"}, "podIdentity", None),
        "pod with tenants": (
            {keys.AUTH_MODE: b"podidentity", keys.ADDITIONAL_TENANTS: SUB},
            "podIdentity",
            "AZURE_ADDITIONAL_TENANTS is ignored",
        ),
        "secret": ({keys.CLIENT_SECRET: b"s"}, SECRET, None),
        "secret and certificate": (
            {keys.CLIENT_SECRET: b"s", keys.CERTIFICATE: b"c"},
            SECRET,
            "AZURE_CLIENT_CERTIFICATE has no effect",
        ),
        "certificate": ({keys.CERTIFICATE: pem()}, "servicePrincipalCertificate", None),
        "password alone": ({keys.CERTIFICATE_PASSWORD: b"p"}, TOKEN, "CERTIFICATE_PASSWORD has no effect"),
        "tenants with blanks": ({keys.ADDITIONAL_TENANTS: SUB + b", " + OTHER}, TOKEN, None),
        "account in relaxed mode": (
            {keys.SERVICE_ACCOUNT: b"mine"},
            TOKEN,
            "is ignored unless the operator runs in strict mode",
        ),
        "mode beside a secret": (
            {keys.CLIENT_SECRET: b"s", keys.AUTH_MODE: b"nonsense"},
            SECRET,
            "AUTH_MODE has no effect",
        ),
        "key of the operator": ({keys.USE_WORKLOAD_IDENTITY: b"true"}, TOKEN, "no effect"),
    },
)
def test_the_first_key_present_chooses_the_method_and_what_it_ignores_is_noted(
    extra: Data, method: str, note: str | None
) -> None:
    subject = RELAXED if method == TOKEN else None
    found = one({N: {**IDS, **extra}})
    assert (found.method, found.subject, found.fault) == (method, subject, None)
    assert note in str(found.message) if note else found.message is None


@cases(
    "extra, words",
    {
        "certificate without key": ({"AZURE_CLIENT_CERTIFICATE": without_key()}, "holds no private key"),
        "empty certificate": ({"AZURE_CLIENT_CERTIFICATE": b""}, "cannot parse"),
        "empty secret": ({"AZURE_CLIENT_SECRET": b""}, "AZURE_CLIENT_SECRET is empty"),
        "another cloud": (CLOUD, "ALLOW_MULTI_ENV_MANAGEMENT"),
        "unknown mode": ({"AUTH_MODE": b"PodIdentity"}, "AUTH_MODE is neither"),
    },
)
def test_a_secret_that_aso_cannot_use_is_a_warning_and_names_no_value(extra: Data, words: str) -> None:
    found = one({N: {**IDS, **extra}, G: VALID})
    assert refusal(found) == ("Warning", "Failed")
    assert used(found) == ("team/aso-credential", "namespace")
    assert "invalid credential for team/aso-credential" in str(found.message)
    assert words in str(found.message)


def test_a_second_cloud_needs_the_flag_or_the_operators_own_setting() -> None:
    secrets = {N: {**VALID, **CLOUD}}
    assert one(secrets, operator=Operator(multi_env=True)).message is None
    assert one({**secrets, G: {keys.ALLOW_MULTI_ENV: b"true"}}).message is None
    assert one({**secrets, G: {keys.ALLOW_MULTI_ENV: b"no"}}).fault is not None


def test_a_cloud_without_one_of_its_three_keys_is_a_warning_that_names_it() -> None:
    part = {key: value for key, value in CLOUD.items() if key != "AZURE_AUTHORITY_HOST"}
    found = one({N: {**VALID, **part}}, operator=Operator(multi_env=True))
    assert refusal(found) == ("Warning", "Failed")
    assert "AZURE_AUTHORITY_HOST is missing" in str(found.message)


@cases(
    "extra, subject",
    {
        "default account": ({}, "system:serviceaccount:team:aso-workload"),
        "own account": ({keys.SERVICE_ACCOUNT: b"mine.own"}, "system:serviceaccount:team:mine.own"),
    },
)
def test_in_strict_mode_a_serviceaccount_of_the_secrets_namespace_is_trusted(
    extra: Data, subject: str
) -> None:
    secrets = {N: {**IDS, **extra}}
    by_flag = one(secrets, operator=Operator(strict=True))
    by_setting = one({**secrets, G: {keys.WORKLOAD_IDENTITY_MODE: b"strict"}})
    assert (by_flag.subject, by_flag.message) == (subject, None)
    assert by_setting == by_flag


@pytest.mark.parametrize("account", [b"", b"Mine", b"a_b"])
def test_a_bad_serviceaccount_is_refused_in_strict_mode(account: bytes) -> None:
    found = one({N: {**IDS, keys.SERVICE_ACCOUNT: account}}, operator=Operator(strict=True))
    assert refusal(found) == ("Warning", "Failed")
    assert (found.subject, found.method) == (None, "workloadIdentity")


def test_a_deleted_namespace_credential_gives_way_to_the_operators() -> None:
    strict = Operator(strict=True)
    assert used(one({N: IDS, G: VALID}, operator=strict)) == ("team/aso-credential", "namespace")
    assert used(one({G: VALID}, operator=strict)) == ("/".join(G), "global")
    assert refusal(one({}, operator=strict)) == ("Warning", "Failed")


@pytest.mark.parametrize("key", keys.REQUIRED)
@pytest.mark.parametrize("id_", [b"{%s}" % SUB, SUB.replace(b"-", b""), SUB[:-1]])
def test_id_that_is_not_a_guid_is_noted_of_the_operators_own_secret_too(key: str, id_: bytes) -> None:
    assert f"{key} is not a GUID" in str(one({G: {**VALID, key: id_}}).message)
    assert one({G: {**VALID, "AZURE_TENANT_ID": b"", "AZURE_CLIENT_ID": b""}}).message is None


@tabled("settings, method")
def test_the_operator_chooses_its_own_method_in_an_order_of_its_own(
    settings: dict[str, str], method: str | None
) -> None:
    assert one({G: {**IDS, **{key: text.encode() for key, text in settings.items()}}}).method == method


def arm(subscription: bytes) -> str:
    return f"/subscriptions/{subscription.decode()}/resourceGroups/rg"


@tabled("arm_id")
def test_a_resource_of_the_same_or_of_no_subscription_passes_the_guard(arm_id: str | None) -> None:
    assert one({N: VALID}, arm_id=arm_id).fault is None
    assert (
        one({N: {**VALID, "AZURE_CLIENT_ID": OTHER, "AZURE_TENANT_ID": OTHER}}, arm_id=arm_id).fault is None
    )


@cases(
    "secrets, annotation",
    {
        "secret edited": ({N: {**VALID, "AZURE_SUBSCRIPTION_ID": OTHER}}, None),
        "annotation changed": ({N: VALID, R: {**VALID, "AZURE_SUBSCRIPTION_ID": OTHER}}, "x"),
        "namespace secret added": ({G: VALID, N: {**VALID, "AZURE_SUBSCRIPTION_ID": OTHER}}, None),
    },
)
def test_another_subscription_than_before_is_an_error_that_names_both_and_is_not_retried(
    secrets: Mapping[tuple[str, str], Data], annotation: str | None
) -> None:
    found = one(secrets, annotation=annotation, arm_id=arm(SUB))
    assert refusal(found) == ("Error", "SubscriptionMismatch")
    for part in (SUB.decode(), OTHER.decode(), arm(SUB), "does not try again by itself"):
        assert part in str(found.message)


def test_a_deletion_is_stuck_while_the_subscription_differs() -> None:
    found = one({N: VALID}, arm_id=arm(OTHER), deleting=True)
    assert refusal(found) == ("Error", "SubscriptionMismatch")
    assert "its deletion is stuck" in str(found.message)


@pytest.mark.parametrize(
    "arm_id", ["nonsense", "/", "/subscriptions", "/subscriptions//resourceGroups/rg", "/a/b"]
)
def test_an_unparsable_resource_id_is_an_error(arm_id: str) -> None:
    assert refusal(one({N: VALID}, arm_id=arm_id)) == ("Error", "Failed")


@cases(
    "group",
    {
        "not yet made": Resource("team", "ResourceGroup", "rg", {keys.CREDENTIAL_FROM: "x"}),
        "made": Resource(
            "team", "ResourceGroup", "rg", {keys.CREDENTIAL_FROM: "x", keys.RESOURCE_ID: arm(OTHER)}
        ),
    },
)
def test_a_child_of_an_owner_in_another_subscription_is_an_error(group: Resource) -> None:
    child = Resource("team", "StorageAccount", "sa", owner=Owner("rg"))
    secrets = {N: VALID, R: {**VALID, "AZURE_SUBSCRIPTION_ID": OTHER}}
    parent, found = together(secrets, group, child)
    assert parent.fault is None
    assert refusal(found) == ("Error", "Failed")
    assert f"{SUB.decode()} does not match parent subscription {OTHER.decode()}" in str(found.message)


def test_an_owner_is_found_by_its_kind_where_names_are_shared() -> None:
    group = Resource("team", "ResourceGroup", "shop", {keys.RESOURCE_ID: arm(SUB)})
    account = Resource("team", "StorageAccount", "shop", {keys.CREDENTIAL_FROM: "gone"}, Owner("shop"))
    child = Resource("team", "StorageAccountsBlobService", "b", owner=Owner("shop", "StorageAccount"))
    of_group = Resource("team", "Disk", "d", owner=Owner("shop"))
    elsewhere = Resource("other", "Disk", "d", owner=Owner("shop"))
    found = together({N: VALID, G: VALID}, group, account, child, of_group, elsewhere)
    assert [refusal(each) for each in found] == [
        None,
        ("Warning", "Failed"),
        ("Warning", "WaitingForOwner"),
        None,
        None,
    ]


def test_a_child_waits_for_an_owner_that_cannot_become_ready_and_owns_its_own_faults_first() -> None:
    group = Resource("team", "ResourceGroup", "rg", {keys.CREDENTIAL_FROM: "gone"})
    child = Resource("team", "StorageAccount", "sa", owner=Owner("rg"))
    assert refusal(together({N: VALID}, group, child)[1]) == ("Warning", "WaitingForOwner")
    assert refusal(together({N: BROKEN}, group, child)[1]) == ("Warning", "Failed")


def test_owners_that_own_each_other_end_no_walk() -> None:
    pair = [Resource("team", "A", "a", owner=Owner("b")), Resource("team", "B", "b", owner=Owner("a"))]
    assert [each.fault for each in together({N: VALID}, *pair)] == [None, None]


BY_POD: Final[Data] = {**IDS, "AUTH_MODE": b"podidentity"}
OWNERLESS: Final[Data] = dict.fromkeys(IDS, b"")


@cases(
    "data, key, settings, strict, expected",
    {
        "subscription": (VALID, keys.SUBSCRIPTION, VALID, False, "UnknownError"),
        "tenant": (VALID, keys.TENANT, VALID, False, "Failed"),
        "client": (VALID, keys.CLIENT, VALID, False, "UnknownError"),
        "client of a pod": (BY_POD, keys.CLIENT, VALID, False, "Failed"),
        "tenant of a pod": (BY_POD, keys.TENANT, VALID, False, None),
        "client of a token": (IDS, keys.CLIENT, VALID, False, "the operator's own identity"),
        "tenant of a token": (IDS, keys.TENANT, VALID, False, "the operator's own identity"),
        "client of a token, operator unknown": (
            IDS,
            keys.CLIENT,
            None,
            False,
            "the operator's own identity",
        ),
        "client of a token, operator without": (IDS, keys.CLIENT, OWNERLESS, False, "UnknownError"),
        "tenant of a token, operator without": (IDS, keys.TENANT, OWNERLESS, False, "Failed"),
        "client of a token in strict mode": (IDS, keys.CLIENT, VALID, True, "UnknownError"),
        "tenant of a token in strict mode": (IDS, keys.TENANT, VALID, True, "Failed"),
    },
)
def test_an_empty_id_is_what_azidentity_makes_of_it(
    data: Data, key: str, settings: Data | None, strict: bool, expected: str | None
) -> None:
    secrets = {N: {**data, key: b""}} | ({} if settings is None else {G: settings})
    found = one(secrets, operator=Operator(strict=strict))
    if expected is not None and " " in expected:
        assert (found.fault, used(found)) == (None, ("team/aso-credential", "namespace"))
        assert expected in str(found.message)
    else:
        assert found.fault is None if expected is None else refusal(found) == ("Warning", expected)


@pytest.mark.parametrize("host", [b"http://login.example/", b"https://login.example/\n", b"login.example"])
def test_an_authority_that_the_library_refuses_is_refused(host: bytes) -> None:
    found = one({N: {**VALID, **CLOUD, "AZURE_AUTHORITY_HOST": host}}, operator=Operator(multi_env=True))
    assert refusal(found) == ("Warning", "Failed")
    assert "AZURE_AUTHORITY_HOST" in str(found.message)


@tabled("annotations")
def test_a_misspelt_annotation_chooses_nothing_and_the_right_one_is_told(
    annotations: Mapping[str, str],
) -> None:
    (found,) = together({R: VALID, N: VALID}, Resource("team", "ResourceGroup", "rg", annotations))
    assert (used(found), found.fault) == (("team/aso-credential", "namespace"), None)
    assert f"write {keys.CREDENTIAL_FROM}" in str(found.message)


def test_an_annotation_in_the_wrong_place_is_told() -> None:
    resource = Resource("team", "ResourceGroup", "rg", misplaced={keys.CREDENTIAL_FROM: "x"})
    (found,) = together({R: VALID, N: VALID}, resource)
    assert used(found) == ("team/aso-credential", "namespace")
    assert "metadata.annotation" in str(found.message)


def test_what_another_operator_owns_or_this_one_does_not_look_at_is_told() -> None:
    owned = {"serviceoperator.azure.com/operator-namespace": "ops"}
    resource = Resource("team", "ResourceGroup", "rg", owned)
    (found,) = together({N: VALID, G: {keys.TARGET_NAMESPACES: b"a, b"}}, resource)
    assert found.fault is None
    assert "belongs to the operator in namespace ops" in str(found.message)
    assert "AZURE_TARGET_NAMESPACES does not name team" in str(found.message)
    owner = Operator("ops")
    targets = {("ops", keys.GLOBAL_SETTINGS): {keys.TARGET_NAMESPACES: b"other, team"}}
    assert together({N: VALID, **targets}, resource, operator=owner)[0].message is None


def test_settings_the_operator_does_not_start_with_are_an_error_of_its_own() -> None:
    with pytest.raises(CredfleetError, match="neither relaxed nor strict") as raised:
        one({N: VALID, G: {keys.WORKLOAD_IDENTITY_MODE: b"Strict"}})
    assert raised.value.code == "misconfigured"


@tabled("extra, method")
def test_the_keys_of_a_secret_are_enough_to_tell_what_it_is_used_for(extra: str | None, method: str) -> None:
    known = [*keys.REQUIRED, *([extra] if extra else [])]
    resolution = one({N: dict.fromkeys(known, WITHHELD)}, arm_id=arm(SUB))
    assert (resolution.method, resolution.message) == (method, None)


def test_a_key_that_is_missing_is_told_though_no_value_is_known() -> None:
    resolution = one({N: {keys.SUBSCRIPTION: WITHHELD, keys.TENANT: WITHHELD}, G: VALID})
    assert "does not contain key AZURE_CLIENT_ID" in str(resolution.message)
    assert "withheld" not in str(resolution.message)
