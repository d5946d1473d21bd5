"""Names and limits on Azure's side: federated credentials, roles and their assignments."""

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.aso_credentials.federation import Federation, federation_faults, federation_name
from components.aso_credentials.roles import BUILT_IN, assignment_name, role_definition_id, role_guid

SUB = "00000000-0000-4000-8000-0000000000aa"
SCOPE = f"/subscriptions/{SUB}"
namespaces = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
accounts = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,100}[a-z0-9])?", fullmatch=True)


def subject(namespace: str, account: str) -> str:
    return f"system:serviceaccount:{namespace}:{account}"


@given(namespaces, accounts)
def test_azure_takes_the_name_of_every_federated_credential(namespace: str, account: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9][-A-Za-z0-9_]{2,119}", federation_name(subject(namespace, account)))


@given(st.sets(st.tuples(namespaces, accounts), min_size=2, max_size=5))
def test_no_two_serviceaccounts_share_a_federated_credential(pairs: set[tuple[str, str]]) -> None:
    assert len({federation_name(subject(*pair)) for pair in pairs}) == len(pairs)


def test_a_federated_credential_is_named_after_its_serviceaccount() -> None:
    assert federation_name(subject("team-b", "aso-workload")) == "team-b_aso-workload"
    assert federation_name(subject("team-b", "a.b")).startswith("team-b_a-b_")


def test_all_that_azure_would_refuse_of_an_identity_is_told_at_once() -> None:
    twice = Federation("https://oidc.example/", subject("team", "aso-workload"))
    others = {f"f-{number}": Federation("https://oidc.example/", f"s{number}") for number in range(18)}
    faults = [*federation_faults({"a": twice, "b": twice, "c": Federation("x" * 601, "s"), **others})]
    assert faults == [
        "it would have 21 federated credentials, and an identity takes 20",
        "federated credentials a and b trust the same issuer and subject",
        "issuer or subject of federated credential c is longer than 600 characters",
    ]


def test_names_of_federated_credentials_do_not_differ_by_case() -> None:
    pair = {
        "blue": Federation("https://oidc.example/", "s1"),
        "Blue": Federation("https://oidc.example/", "s2"),
    }
    assert [*federation_faults(pair)] == [
        "federated credentials blue and Blue are one to Azure, where case does not count"
    ]


def test_issuers_and_subjects_differ_by_case_and_by_a_slash_at_the_end() -> None:
    issuers = ("https://oidc.example", "https://oidc.example/", "https://OIDC.example")
    assert [*federation_faults({f"f-{i}": Federation(issuer, "s") for i, issuer in enumerate(issuers)})] == []


def test_a_role_is_known_by_name_and_by_guid() -> None:
    guid = BUILT_IN["Reader"]
    assert role_definition_id("Reader", SCOPE) == role_definition_id(guid.upper(), SCOPE)
    assert role_definition_id("Reader", f"{SCOPE}/resourceGroups/rg") == (
        f"/subscriptions/{SUB}/providers/Microsoft.Authorization/roleDefinitions/{guid}"
    )
    assert role_guid("reader") is None


def test_a_role_above_a_subscription_is_defined_in_the_tenant() -> None:
    scope = "/providers/Microsoft.Management/managementGroups/mg"
    guid = BUILT_IN["Reader"]
    assert role_definition_id("Reader", scope) == (
        f"/providers/Microsoft.Authorization/roleDefinitions/{guid}"
    )


@pytest.mark.parametrize(("role", "scope"), [("Nobody", SCOPE), ("Reader", "management-group")])
def test_a_role_that_is_not_known_or_in_no_scope_has_no_definition(role: str, scope: str) -> None:
    with pytest.raises(ValueError, match=r"role|ARM id"):
        role_definition_id(role, scope)


def test_an_assignment_has_one_name_for_one_scope_role_and_identity() -> None:
    name = assignment_name(SCOPE, "Reader", "rg/team-b")
    assert uuid.UUID(name).version == 5
    assert name == assignment_name(f"{SCOPE.upper()}/", BUILT_IN["Reader"], "RG/team-b")
    others = {
        assignment_name(f"{SCOPE}/resourceGroups/rg", "Reader", "rg/team-b"),
        assignment_name(SCOPE, "Contributor", "rg/team-b"),
        assignment_name(SCOPE, "Reader", "rg/team-c"),
        assignment_name(SCOPE, "Reader", "other/team-b"),
    }
    assert len(others | {name}) == 5
