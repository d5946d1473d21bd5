"""What Resource Manager keeps, answers and refuses: the rules that users of Azure trip over."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import pytest
import requests
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.services.cloud.resource_manager.app import make_app

from sandbox.tests.support.clouds import Answer, Served, overlap, resource_manager, trusted

SUBSCRIPTION = "/subscriptions/00000000-0000-4000-8000-0000000000aa"
GROUP = f"{SUBSCRIPTION}/resourceGroups/rg-identities"
IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/team-b"
OTHER = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/billing"
READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
HERE = {"location": "westeurope"}


@dataclass(frozen=True)
class Rest:
    """Requests as a client of Azure makes them."""

    url: str
    headers: dict[str, str] = field(default_factory=lambda: {"Authorization": "Bearer anything"})

    def call(self, method: str, path: str, body: object = None, **query: str) -> Answer:
        answer = requests.request(
            method,
            self.url + path,
            json=body,
            params=query or {"api-version": "2023-01-31"},
            headers=self.headers,
            verify=str(trusted()),
            timeout=10,
        )
        return Answer(answer.status_code, answer.json() if answer.text else None)

    def put(self, path: str, body: object) -> Answer:
        return self.call("PUT", path, body)

    def get(self, path: str) -> Answer:
        return self.call("GET", path)

    def delete(self, path: str) -> int:
        return self.call("DELETE", path).status

    def with_identity(self) -> str:
        """Make a group with an identity in it, and give the identity's principal id."""
        self.put(GROUP, HERE)
        return self.put(IDENTITY, HERE).body["properties"]["principalId"]


def federation(
    issuer: str = "https://oidc.example/dev/", subject: str = "system:serviceaccount:a:b"
) -> dict[str, object]:
    audiences = ["api://AzureADTokenExchange"]
    return {"properties": {"issuer": issuer, "subject": subject, "audiences": audiences}}


def credential(name: str, identity: str = IDENTITY) -> str:
    return f"{identity}/federatedIdentityCredentials/{name}"


def grant(principal: str, role: str = READER, **more: object) -> dict[str, object]:
    definition = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{role}"
    kind = {"principalType": "ServicePrincipal"}
    return {"properties": {"roleDefinitionId": definition, "principalId": principal, **kind, **more}}


def assignment(name: str | None = None, scope: str = SUBSCRIPTION) -> str:
    return f"{scope}/providers/Microsoft.Authorization/roleAssignments/{name or uuid4()}"


@pytest.fixture
def service(tmp_path: Path) -> Generator[Served]:
    with resource_manager(tmp_path / "kept", 0) as running:
        yield running


@pytest.fixture
def rest(service: Served) -> Rest:
    return Rest(service.url)


def test_an_identity_keeps_its_ids_and_answers_three_different_ones(rest: Rest):
    rest.put(GROUP, HERE)
    first = rest.put(IDENTITY, HERE).body["properties"]
    again = rest.put(IDENTITY, {**HERE, "tags": {"a": "b"}}).body
    assert again["properties"] == first
    assert again["tags"] == {"a": "b"}
    assert len({first["clientId"], first["principalId"], first["tenantId"]}) == 3
    rest.delete(IDENTITY)
    assert rest.put(IDENTITY, HERE).body["properties"]["principalId"] != first["principalId"]


def test_paths_mean_the_same_in_any_case_and_answers_keep_the_first_one(rest: Rest):
    rest.with_identity()
    answer = rest.get(IDENTITY.upper().replace("/SUBSCRIPTIONS", "/Subscriptions"))
    assert (answer.status, answer.body["id"]) == (200, IDENTITY)
    assert rest.put(IDENTITY.lower(), HERE).body["id"] == IDENTITY
    assert rest.delete(GROUP.lower()) == 200
    assert rest.get(GROUP).status == 404


def test_nothing_is_put_below_what_does_not_exist(rest: Rest):
    assert rest.put(IDENTITY, HERE).refusal == (404, "ResourceGroupNotFound")
    rest.put(GROUP, HERE)
    assert rest.put(credential("one"), federation()).refusal == (404, "ParentResourceNotFound")
    missing = f"{SUBSCRIPTION}/resourceGroups/other"
    assert rest.put(assignment(scope=missing), grant(str(uuid4()))).refusal == (404, "ResourceGroupNotFound")
    assert rest.get(IDENTITY).refusal == (404, "ResourceNotFound")
    assert rest.get(assignment()).refusal == (404, "RoleAssignmentNotFound")


def test_a_group_takes_all_that_is_in_it_along_but_not_what_was_granted_elsewhere(rest: Rest):
    principal = rest.with_identity()
    rest.put(credential("one"), federation())
    elsewhere, inside = assignment(), assignment(scope=GROUP)
    rest.put(elsewhere, grant(principal))
    rest.put(inside, grant(principal))
    rest.delete(GROUP)
    rest.put(GROUP, HERE)
    assert rest.get(IDENTITY).status == rest.get(inside).status == 404
    assert rest.get(elsewhere).status == 200


def test_a_location_is_required(rest: Rest):
    assert rest.put(GROUP, {}).refusal == (400, "LocationRequired")
    assert rest.put(GROUP, {"location": "West Europe"}).body["location"] == "westeurope"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"properties": {"issuer": "https://x/", "subject": "s", "audiences": []}},
        {"properties": {"issuer": "https://x/", "subject": "", "audiences": ["a"]}},
    ],
    ids=["nothing", "no audience", "no subject"],
)
def test_a_federated_credential_names_issuer_subject_and_audience(rest: Rest, body: object):
    rest.with_identity()
    assert rest.put(credential("one"), body).status == 400


def test_issuer_and_subject_are_one_identitys_only_once_and_case_matters(rest: Rest):
    rest.with_identity()
    rest.put(credential("one"), federation())
    assert rest.put(credential("two"), federation()).refusal == (409, "Conflict")
    assert rest.put(credential("two"), federation(issuer="https://oidc.example/DEV/")).status == 201
    rest.put(OTHER, HERE)
    assert rest.put(credential("one", OTHER), federation()).status == 201


def test_an_identity_has_twenty_federated_credentials_at_most(rest: Rest):
    rest.with_identity()
    made = [rest.put(credential(f"fic-{n}"), federation(subject=f"s{n}")).status for n in range(20)]
    assert set(made) == {201}
    assert rest.put(credential("fic-20"), federation(subject="s20")).status == 400
    assert rest.put(credential("fic-0"), federation(subject="changed")).status == 200
    rest.delete(credential("fic-1"))
    assert rest.put(credential("fic-20"), federation(subject="s20")).status == 201


def test_of_two_writes_to_one_identity_at_once_the_second_is_refused(tmp_path: Path):
    together = Barrier(2)
    with resource_manager(tmp_path, federated_write=3) as running:
        rest = Rest(running.url)
        rest.with_identity()
        rest.put(OTHER, HERE)

        def put(path: str) -> Answer:
            together.wait()
            return rest.put(path, federation(subject=path))

        with ThreadPoolExecutor(2) as pool:
            answers = sorted(pool.map(put, (credential("one"), credential("two"))), key=lambda a: a.status)
            apart = pool.map(put, (credential("three"), credential("three", OTHER)))
            assert [answer.status for answer in apart] == [201, 201]
        assert answers[0].status == 201
        assert answers[1].refusal == (
            409,
            "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity",
        )
        first, second = [r for r in running.service.requests if r.path.endswith(("/one", "/two"))]
        assert overlap(first, second)


def test_a_new_principal_is_assigned_as_what_it_is_alone(rest: Rest):
    principal = rest.with_identity()
    assert rest.put(assignment(), grant(principal, principalType=None)).refusal == (400, "PrincipalNotFound")
    assert rest.put(assignment(), grant(str(uuid4()))).refusal == (400, "PrincipalNotFound")
    assert rest.put(assignment(), grant(principal)).status == 201


def test_the_same_principal_role_and_scope_are_assigned_once(rest: Rest):
    principal = rest.with_identity()
    rest.put(assignment(), grant(principal))
    assert rest.put(assignment(), grant(principal)).refusal == (409, "RoleAssignmentExists")
    again = assignment(scope=SUBSCRIPTION.upper())
    assert rest.put(again, grant(principal)).refusal == (409, "RoleAssignmentExists")
    assert rest.put(assignment(), grant(principal, CONTRIBUTOR)).status == 201
    assert rest.put(assignment(scope=GROUP), grant(principal)).status == 201


def test_what_an_assignment_assigns_never_changes(rest: Rest):
    principal, path = rest.with_identity(), assignment()
    rest.put(path, grant(principal))
    changed = rest.put(path, grant(principal, CONTRIBUTOR))
    assert changed.refusal == (400, "RoleAssignmentUpdateNotPermitted")
    assert rest.put(path, grant(principal)).status == 200


def test_a_request_without_version_or_token_is_refused(rest: Rest):
    assert rest.call("GET", GROUP, x="y").refusal == (400, "MissingApiVersionParameter")
    stranger = Rest(rest.url, headers={})
    assert stranger.get(GROUP).refusal == (401, "AuthenticationFailed")


def test_an_unserved_type_is_named(rest: Rest):
    vault = f"{GROUP}/providers/Microsoft.KeyVault/vaults/v"
    assert rest.get(vault).refusal == (404, "InvalidResourceType")
    assert rest.call("POST", GROUP).refusal == (405, "HttpMethodNotAllowed")


def test_a_body_that_is_no_object_is_refused(rest: Rest):
    assert rest.put(GROUP, [1]).refusal == (400, "InvalidRequestContent")


def test_what_was_answered_is_there_after_a_restart(tmp_path: Path):
    with resource_manager(tmp_path) as first:
        rest, path = Rest(first.url), assignment()
        rest.put(path, grant(rest.with_identity()))
        before = [rest.get(each).body for each in (GROUP, IDENTITY, path)]
    with resource_manager(tmp_path) as second:
        assert [Rest(second.url).get(each).body for each in (GROUP, IDENTITY, path)] == before
    assert (tmp_path / "resources.json").stat().st_mode & 0o777 == 0o600


def test_a_file_that_holds_no_resources_is_named(tmp_path: Path):
    (tmp_path / "resources.json").write_text("[1]")
    with pytest.raises(SandboxError) as told:
        make_app(tmp_path)
    assert (told.value.code, told.value.place) == ("state-unreadable", str(tmp_path / "resources.json"))
