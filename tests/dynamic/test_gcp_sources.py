"""Secrets made of versions in Google's Secret Manager: genuine host, real API server, stand-in of Google."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import TYPE_CHECKING
from uuid import uuid4

import grpc
import pytest
from pulumi_sandbox.services.cloud.front import Fault

from components.account_pool.member_data import OWNER
from components.account_pool.member_secret import MemberSecretProvider
from components.secret_manager import SecretManager, SecretManagerTarget, open_secret_manager, secret_name
from components.secret_stores.provider import LoginSecretProvider
from components.service_credentials.provider import ServiceSecretProvider
from sandbox.tests.support.clouds import Served
from tests.support.dynamic_host import Host, Properties, Provider, dynamic_host, provided
from tests.support.secrets import Secrets

if TYPE_CHECKING:
    from pulumi_sandbox.services.control_plane import ControlPlane

SENTINEL = "s3ntinel-of-a-version"
PLACE = "credfleet:services.instances.db.credentialsFrom"


@pytest.fixture(scope="module")
def host(google: Served, control_plane: ControlPlane) -> Generator[Host]:
    config = {"gcp:secretManagerCustomEndpoint": f"{google.url}/v1/", "gcp:accessToken": "any"}
    cluster = {"kubeconfig": str(control_plane.kubeconfig("admin"))}
    with dynamic_host({**config, "cluster": cluster}) as host:
        yield host


provider = provided(ServiceSecretProvider)


@pytest.fixture
def manager(google: Served) -> Generator[SecretManager]:
    yield open_secret_manager(SecretManagerTarget(f"{google.url}/v1/", "any"))
    google.service.faults.clear()


@pytest.fixture
def secret(manager: SecretManager) -> str:
    name = secret_name("test-project", f"s-{uuid4()}")
    manager.create(name, {})
    manager.add(name, json.dumps({"type": "a", "password": SENTINEL}).encode())
    return name


def wanted(secrets: Secrets, secret: str, version: str = "latest") -> Properties:
    bound = {"instance_guid": "i", "instance_name": "db", "binding_guid": "b", "tags": [], "label": "sql"}
    return {
        "namespace": secrets.namespace,
        "targetName": "made",
        "owner": "pulumi/o/p/s/services/db",
        "sources": [{"place": PLACE, "declared": False, "version": f"{secret}/versions/{version}"}],
        "recipe": {
            "form": "binding",
            "instances": [{"numbers": "float", "strict": False, "bound": bound, "takesFile": False}],
        },
        "labels": {},
        "content": "",
    }


def test_a_version_becomes_a_binding_and_only_a_digest_of_it_is_kept(
    provider: Provider, secrets: Secrets, secret: str
) -> None:
    given = wanted(secrets, secret)
    assert provider.refusals(given) == []
    made = provider.create(given)
    assert secrets.data("made") == {"type": "a", "password": SENTINEL}
    assert SENTINEL not in repr(made)
    assert not provider.is_changed(made, given)
    provider.delete(made)
    assert secrets.names() == set()


def test_a_new_version_is_followed_and_a_fixed_one_stays(
    provider: Provider, secrets: Secrets, secret: str, manager: SecretManager
) -> None:
    newest, first = wanted(secrets, secret), {**wanted(secrets, secret, "1"), "targetName": "first"}
    made, fixed = provider.create(newest), provider.create(first)
    manager.add(secret, b'{"type": "a", "password": "2"}')
    assert provider.is_changed(made, newest)
    assert not provider.is_changed(fixed, first)
    followed = provider.update(made, newest)
    assert secrets.data("made")["password"] == "2"
    assert not provider.is_changed(followed, newest)


def test_what_somebody_else_wrote_into_the_secret_is_written_anew(
    provider: Provider, secrets: Secrets, secret: str
) -> None:
    given = wanted(secrets, secret)
    made = provider.create(given)
    secrets.change("made", "password", "others")
    provider.update(made, given)
    assert secrets.data("made")["password"] == SENTINEL


def test_a_version_that_is_not_there_is_told_with_its_place_and_the_fix(
    provider: Provider, secrets: Secrets, secret: str
) -> None:
    (reason,) = provider.refusals(wanted(secrets, f"{secret}-gone"))
    assert f"{PLACE} ({secret}-gone/versions/latest): Secret Manager answers NOT_FOUND" in reason
    assert "see whether it was deleted" in reason


def test_a_right_that_is_missing_is_told_with_its_place_and_the_fix(
    provider: Provider, secrets: Secrets, secret: str, google: Served
) -> None:
    google.service.faults.append(Fault(path="access", status=403, times=9))
    (reason,) = provider.refusals(wanted(secrets, secret))
    assert f"{PLACE} ({secret}/versions/latest): Secret Manager answers PERMISSION_DENIED" in reason
    assert "give the identity that runs this secretmanager.versions.access there" in reason


def test_a_store_logs_in_with_a_version_whose_fields_are_its_keys(
    host: Host, secrets: Secrets, secret: str, manager: SecretManager
) -> None:
    provider = host.provider(LoginSecretProvider())
    given = {**wanted(secrets, secret), "recipe": {"keys": ["password", "type"]}}
    made = provider.create(given)
    assert secrets.data("made") == {"type": "a", "password": SENTINEL}
    assert SENTINEL not in repr(made)
    manager.add(secret, b'{"type": "a"}')
    (reason,) = provider.refusals(given)
    assert PLACE in reason
    assert "it is not a JSON object with exactly password, type" in reason
    provider.create({**given, "targetName": "whole", "recipe": {"keys": ["token"]}})
    assert secrets.data("whole") == {"token": '{"type": "a"}'}


def member(secrets: Secrets, secret: str, **labels: str) -> Properties:
    return {
        **wanted(secrets, secret),
        "owner": OWNER,
        "recipe": {},
        "labels": {"hyperscaler-type": "aws", **labels},
        "annotations": {"credfleet.io/account-id": "111111111111"},
    }


def test_an_account_is_opened_with_a_version_and_what_claims_write_on_it_stays(
    host: Host, secrets: Secrets, secret: str, manager: SecretManager
) -> None:
    provider = host.provider(MemberSecretProvider())
    made = provider.create(member(secrets, secret, region="eu"))
    assert secrets.data("made") == {"type": "a", "password": SENTINEL}
    assert SENTINEL not in repr(made)
    labels = secrets.live("made")["metadata"]["labels"]
    assert labels == {"hyperscaler-type": "aws", "region": "eu"}

    secrets.mark("made", {"tenant-name": "acme"})
    manager.add(secret, b'{"type": "a", "password": "2"}')
    moved = member(secrets, secret, zone="b")
    assert provider.is_changed(made, member(secrets, secret, region="eu"))
    made = provider.update(made, moved)
    assert secrets.data("made")["password"] == "2"
    live = secrets.live("made")["metadata"]
    assert live["labels"] == {"hyperscaler-type": "aws", "tenant-name": "acme", "zone": "b"}
    assert live["annotations"]["credfleet.io/account-id"] == "111111111111"
    assert not provider.is_changed(made, moved)
    secrets.mark("made", {"hyperscaler-type": None})
    assert provider.is_changed(made, moved)
    provider.update(made, moved)
    assert secrets.live("made")["metadata"]["labels"]["hyperscaler-type"] == "aws"


def test_an_account_that_a_claim_gave_to_one_tenant_is_not_declared_anothers(
    host: Host, secrets: Secrets, secret: str
) -> None:
    provider = host.provider(MemberSecretProvider())
    made = provider.create(member(secrets, secret))
    secrets.mark("made", {"tenant-name": "acme"})
    before = secrets.version("made")
    with pytest.raises(grpc.RpcError, match="tenant-name: it says acme, which this stack did not write"):
        provider.update(made, member(secrets, secret, **{"tenant-name": "globex"}))
    assert secrets.version("made") == before


def test_a_version_that_no_account_is_opened_with_is_refused_with_its_place(
    host: Host, secrets: Secrets, secret: str, manager: SecretManager
) -> None:
    provider = host.provider(MemberSecretProvider())
    for content, problem in (
        (f"{SENTINEL}", "it names is not a JSON object with fields"),
        (f"base64:{SENTINEL}", "it names is not a JSON object with fields"),
        (f'{{"a": "{SENTINEL}", "a": ""}}', "a is given twice"),
        (f'{{"a b": "{SENTINEL}"}}', "a b cannot be a key of a Secret"),
    ):
        manager.add(secret, content.encode())
        (reason,) = provider.refusals(member(secrets, secret))
        assert PLACE in reason
        assert problem in reason
        assert SENTINEL not in reason
