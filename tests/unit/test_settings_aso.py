"""What the configuration of ASO's credentials may say, and what is said of what it may not."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from components.aso_credentials.keys import CREDENTIAL_FROM
from components.errors import Problem
from tests.support.aso import CANARY, CLIENT, ISSUER, OTHER_SUB, SUB, TENANT, aso_stack, manifest
from tests.support.aso import put_files as put
from tests.support.cases import cases, table, tabled
from tests.support.certificates import pkcs12, without_key
from tests.support.stacks import problems, settings

PRINCIPAL = {"subscriptionId": SUB, "tenantId": TENANT, "clientId": CLIENT}
IDENTITY = {"subscriptionId": SUB, "identity": "team-b"}
TEAM_A = "credfleet:asoCredentials.namespaces.team-a"
RESOURCE = "credfleet:asoCredentials.resources.team-a.file (team-a.yaml, document 1)"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return put(tmp_path)


def found(root: Path, **changes: Any) -> dict[str, Problem]:
    """Return what is wrong with the stack by place; a value never appears."""
    told = problems(aso_stack(**changes), root=root)
    assert CANARY not in repr(told)
    return {problem.place: problem for problem in told}


def told(root: Path, **changes: Any) -> Problem:
    (problem,) = found(root, **changes).values()
    return problem


def team_a(**credential: Any) -> dict[str, Any]:
    return {"namespaces__team-a": credential}


def test_the_whole_shape_is_read(root: Path) -> None:
    section = settings(aso_stack(), root).aso_credentials

    assert section is not None
    assert list(section.written()) == [
        ("azureserviceoperator-system", "aso-controller-settings", "credfleet:asoCredentials.globalSettings"),
        ("team-a", "aso-credential", TEAM_A),
        ("team-b", "aso-credential", "credfleet:asoCredentials.namespaces.team-b"),
        ("team-a", "billing", "credfleet:asoCredentials.named.billing"),
    ]


def test_ids_are_kept_without_the_blanks_around_them(root: Path) -> None:
    values = aso_stack(**{"namespaces__team-a__servicePrincipal__clientId": f" {CLIENT}\n"})
    section = settings(values, root).aso_credentials

    assert section is not None
    principal = section.namespaces["team-a"].service_principal
    assert principal is not None
    assert principal.client_id == CLIENT


def principal(**given: str) -> dict[str, Any]:
    return team_a(servicePrincipal={**PRINCIPAL, **given})


def identity(**given: str) -> dict[str, Any]:
    return team_a(workloadIdentity={**IDENTITY, **given})


OWN: Final = "namespaces.team-a"
ROLE: Final = "identities__team-b__roles__own-group"
MISTAKES: Final[Mapping[str, tuple[dict[str, Any], str, str]]] = table(__file__, "MISTAKES")
"""Changes → place below asoCredentials, or team-a, or `=` for what is changed; words of the fix."""


@cases("changes, place, words", MISTAKES)
def test_a_mistake_is_told_where_it_is_with_its_fix(
    root: Path, changes: dict[str, Any], place: str, words: str
) -> None:
    below = place if place[:1] not in ("", ".", "=") else f"{OWN}{place}"
    if place == "=":
        below = next(iter(changes)).replace("__", ".")
    problem = found(root, **changes)[f"credfleet:asoCredentials.{below}"]

    assert words in problem.fix


@tabled("within")
def test_a_role_is_assigned_in_a_subscription_or_in_what_is_in_it(root: Path, within: str) -> None:
    assert found(root, **{f"{ROLE}__scope": f"/subscriptions/{SUB}{within}"}) == {}


@tabled("within")
def test_where_azure_has_nothing_no_role_is_assigned(root: Path, within: str) -> None:
    place = "credfleet:asoCredentials.identities.team-b.roles.own-group.scope"
    assert set(found(root, **{f"{ROLE}__scope": f"/subscriptions/{SUB}{within}"})) == {place}


def test_without_an_issuer_azure_could_not_be_told_whom_to_trust(root: Path) -> None:
    assert set(found(root, operator={})) == {
        "credfleet:asoCredentials.namespaces.team-b.workloadIdentity.identity",
        "credfleet:asoCredentials.named.billing.workloadIdentity.identity",
    }


def test_one_namespace_has_no_two_credentials_of_one_name(root: Path) -> None:
    again = {"namespace": "team-a", "secretName": "billing", "podIdentity": PRINCIPAL}
    problem = told(root, named__again=again)
    assert problem.place == "credfleet:asoCredentials.named.again"
    assert "billing" in problem.problem
    assert found(root, named__again={**again, "namespace": "team-b"}) == {}


def test_a_secret_named_for_a_credential_is_none_that_aso_reads_by_itself(root: Path) -> None:
    given = {"namespace": "team-a", "secretName": "aso-credential", "podIdentity": PRINCIPAL}
    places = found(root, named__again=given)
    assert "reads by itself" in places["credfleet:asoCredentials.named.again.secretName"].problem


@pytest.mark.parametrize("name", ["aso-credential", "aso-controller-settings"])
def test_a_name_that_aso_reads_by_itself_is_kept_for_that(root: Path, name: str) -> None:
    named = {"namespace": "team-a", "podIdentity": PRINCIPAL}

    place = f"credfleet:asoCredentials.named.{name}"
    told = problems(aso_stack(**{f"named__{name}": named}), root=root)
    assert "reads by itself" in next(one.problem for one in told if one.place == place)


@tabled("credential, words")
def test_what_aso_could_not_use_is_told_without_its_text(
    root: Path, credential: dict[str, str], words: str
) -> None:
    contents = {
        "field": json.dumps({"secret": CANARY}),
        "newline": f"{CANARY}\n",
        "keyless": without_key().decode(),
        "pkcs12": "base64:" + base64.b64encode(pkcs12(b"right")).decode(),
        "wrong": CANARY,
    }
    changes = {f"credentials__{name}": text for name, text in contents.items()}
    problem = told(root, **changes, **team_a(servicePrincipal={**PRINCIPAL, **credential}))

    key = next(key for key in ("certificateFrom", "secretFrom") if key in credential)
    assert (problem.place, words in problem.problem) == (f"{TEAM_A}.servicePrincipal.{key}", True)


def many(count: int) -> dict[str, Any]:
    """A stack with one identity in so many namespaces, in strict mode."""
    names = [f"ns-{number}" for number in range(count)]
    return {
        "operator__workloadIdentityMode": "strict",
        "resources": {},
        "named": {},
        "namespaces": {name: {"workloadIdentity": IDENTITY} for name in names},
        **{f"tenants__{name}": {"namespace": name} for name in names},
    }


def test_names_that_are_one_to_azure_are_told(root: Path) -> None:
    again = {"resourceGroup": "RG-identities", "location": "westeurope"}
    groups = {"resourceGroups__RG-Identities": {"location": "westeurope"}}
    problem = found(root, identities__Billing=again)["credfleet:asoCredentials.identities.Billing"]
    assert "the same as billing" in problem.problem
    assert "the same as rg-identities" in told(root, **groups).problem


def test_a_federated_credential_of_ones_own_never_takes_the_place_of_the_stacks(root: Path) -> None:
    name = "azureserviceoperator-system_azureserviceoperator-default"
    subject = "system:serviceaccount:a:b"
    taken = {name: {"issuer": "https://oidc.example/blue/", "subject": subject}}
    problem = told(root, **{"identities__team-b__federations": taken})
    assert problem.place == f"credfleet:asoCredentials.identities.team-b.federations.{name}"
    assert "the stack itself makes" in problem.problem


def test_an_identity_takes_twenty_federated_credentials_and_no_more(root: Path) -> None:
    assert found(root, **many(20)) == {}
    problem = told(root, **many(21))
    assert (problem.place, "21 federated credentials" in problem.problem) == (
        "credfleet:asoCredentials.identities.team-b",
        True,
    )


def test_an_identity_trusts_each_issuer_and_subject_once(root: Path) -> None:
    subject = "system:serviceaccount:azureserviceoperator-system:azureserviceoperator-default"
    again = {"blue-cluster": {"issuer": ISSUER, "subject": subject}}
    problem = told(root, **{"identities__team-b__federations": again})
    assert "blue-cluster" in problem.problem

    other = {"blue-cluster": {"issuer": "https://oidc.example/blue/", "subject": subject}}
    assert found(root, **{"identities__team-b__federations": other}) == {}


def resource(root: Path, *documents: Any, **changes: Any) -> Problem:
    put(root, team_a=[*documents])
    return told(root, **changes)


@tabled("annotations, words")
def test_a_resource_that_no_credential_would_serve_is_told_in_asos_words(
    root: Path, annotations: dict[str, str], words: str
) -> None:
    problem = resource(root, manifest("team-a", "shop", annotations=annotations))

    assert (problem.place, words in problem.problem) == (f"{RESOURCE} team-a/ResourceGroup/shop", True)


def test_a_copy_of_a_claimed_account_serves_with_the_keys_of_its_method(root: Path) -> None:
    slot = "tenants__acme__accounts__azure__deliverTo"
    assert found(root) == {}
    problem = told(root, **{slot: None})
    assert problem.place.endswith("tenant-acme/ResourceGroup/acme")
    assert "global credential not configured" in problem.problem
    plain = told(root, **{slot: {"name": "aso-credential", "keys": {"AZURE_CLIENT_ID": "clientID"}}})
    assert "does not contain key AZURE_SUBSCRIPTION_ID" in plain.problem


def test_a_child_of_an_owner_in_another_subscription_is_refused(root: Path) -> None:
    owner = manifest("team-a", "shop")
    child = manifest("team-a", "files", "StorageAccount", annotations={CREDENTIAL_FROM: "billing"})
    child["spec"]["owner"] = {"name": "shop"}
    put(root, team_a=[owner, child])
    problem = told(root, named__billing__workloadIdentity__subscriptionId=OTHER_SUB)

    assert "does not match parent subscription" in problem.problem


def test_the_annotation_of_a_manifest_and_that_of_its_entry_may_not_differ(root: Path) -> None:
    put(root, billing=[manifest("team-a", "billing", annotations={CREDENTIAL_FROM: "aso-credential"})])

    assert "two Secrets" in told(root).problem


@tabled("document, words")
def test_what_cannot_be_declared_from_a_file_is_told_by_its_document(
    root: Path, document: dict[str, Any], words: str
) -> None:
    put(root, team_a=[document])
    told = problems(aso_stack(), root=root)

    assert any(each.place.startswith(RESOURCE) and words in each.problem for each in told)


@tabled("text, place")
def test_a_file_that_is_no_yaml_is_told_by_its_line_without_its_text(
    root: Path, text: str, place: str
) -> None:
    put(root, team_a=text)

    assert told(root).place.endswith(place)


def test_a_date_which_kubernetes_does_not_know_is_told(root: Path) -> None:
    text = "metadata: {name: x, namespace: team-a}\nspec: {until: 2026-11-21}\n"
    put(root, team_a=f"apiVersion: resources.azure.com/v1\nkind: ResourceGroup\n{text}")

    assert told(root).fix == "write it in quotes"


def test_annotation_that_yaml_takes_for_a_number_is_refused_with_its_place_and_fix(root: Path) -> None:
    metadata = "metadata: {name: x, namespace: team-a, annotations: {kept: 1}}\n"
    put(root, team_a=f"apiVersion: resources.azure.com/v1\nkind: ResourceGroup\n{metadata}")
    found = told(root)
    assert (found.fix, found.problem.endswith("parsed a number or a boolean")) == ("write it in quotes", True)
    assert found.at is not None
    assert found.at[1] == 3


def test_everything_is_told_at_once_and_a_faulty_credential_makes_no_faults_of_its_resources(
    root: Path,
) -> None:
    put(root, team_b=[manifest("team-b", "x", annotations={CREDENTIAL_FROM: "gone"})])
    changes = {
        "named__billing__namespace": "elsewhere",
        "identities__billing__resourceGroup": "rg-others",
        "resources__x": {"file": "x.yaml"},
        **team_a(servicePrincipal={**PRINCIPAL, "secretFrom": "gone"}),
    }

    assert [place.removeprefix("credfleet:asoCredentials.") for place in found(root, **changes)] == [
        "namespaces.team-a.servicePrincipal.secretFrom",
        "named.billing.namespace",
        "identities.billing.location",
        "resources.x.file",
        "resources.team-b.file (team-b.yaml, document 1) team-b/ResourceGroup/x",
        "resources.billing.file (billing.yaml, document 1) team-a/ResourceGroup/billing",
    ]


def test_resources_are_not_judged_while_a_part_of_the_section_cannot_be_read(root: Path) -> None:
    assert set(found(root, **team_a(servicePrincipal={}))) == {
        f"{TEAM_A}.servicePrincipal.{key}" for key in ("subscriptionId", "tenantId", "clientId")
    }
