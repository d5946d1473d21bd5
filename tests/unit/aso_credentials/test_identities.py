"""Names and limits on Azure's side: federated credentials, roles and their assignments."""

import re
import uuid

from hypothesis import given
from hypothesis import strategies as st

from components.aso_credentials.azure import (
    BUILT_IN,
    assignment_name,
    federation_name,
    role_definition_id,
    role_guid,
)

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
