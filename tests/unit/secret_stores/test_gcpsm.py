"""The client of Secret Manager: what it deletes, and who gets a key."""

import json
from collections.abc import Generator
from typing import Any, cast
from uuid import uuid4

import pytest
from google.auth.exceptions import TransportError
from google.auth.transport import requests as google_requests

from components.errors import SecretManagerError, StoreError
from components.secret_manager import (
    LATEST,
    SecretManagerTarget,
    new_secret_manager,
    secret_name,
    version_name,
)
from components.secret_stores.clients.client import ClientRequest, Validity
from components.secret_stores.clients.gcpsm import PUSHED_BY, GcpSecretManagerClient, open_gcpsm, owner_label
from components.secret_stores.consumers import Place, RemoteRef, UpdatePolicy
from components.secret_stores.pushing import Move, decide
from components.secret_stores.specs import GcpSecretManagerSpec
from components.secret_stores.stack_cluster import StackCluster
from sandbox.tests.support import clouds
from tests.support.cases import cases, table
from tests.support.certificates import only_key

OWNER = "pulumi/o/p/s/stores/it"
PROJECT = "test-project"


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Generator[SecretManagerTarget]:
    with clouds.secret_manager(tmp_path_factory.mktemp("secret-manager")) as cloud:
        yield SecretManagerTarget(f"{cloud.url}/v1/", "any")


def test_a_secret_that_became_anothers_since_it_was_looked_at_is_not_deleted(
    google: SecretManagerTarget,
) -> None:
    manager, place = new_secret_manager(google), Place(f"s-{uuid4()}")
    client = GcpSecretManagerClient(manager, PROJECT, fetch=False)
    assert client.write(place, b"ours", OWNER, None)
    seen = client.look(place, OWNER)
    assert seen is not None
    manager.delete(name := secret_name(PROJECT, place.key), seen.edition.etag)
    assert manager.create(name, {})
    manager.add(name, b"theirs")
    with pytest.raises(SecretManagerError) as caught:
        client.remove(place, seen)
    assert caught.value.code == "refused"
    there = client.look(place, OWNER)
    assert there is not None
    assert (there.content, there.owned) == (b"theirs", False)


def test_a_secret_with_a_newer_version_than_the_one_seen_is_not_deleted(google: SecretManagerTarget) -> None:
    manager, place = new_secret_manager(google), Place(f"s-{uuid4()}")
    client = GcpSecretManagerClient(manager, PROJECT, fetch=False)
    assert client.write(place, b"one", OWNER, None)
    seen = client.look(place, OWNER)
    assert seen is not None
    manager.add(secret_name(PROJECT, place.key), b"two")
    assert not client.remove(place, seen)
    assert not client.write(place, b"three", OWNER, seen)
    assert client.look(place, OWNER) is not None


@cases(
    "owned, versions, move",
    {
        "no-version": (False, "", Move.KEEP),
        "disabled": (False, "-", Move.KEEP),
        "older-enabled": (False, "+-", Move.KEEP),
        "enabled": (False, "+", Move.KEEP),
        "ours-without-version": (True, "", Move.WRITE),
        "ours-disabled": (True, "-", Move.WRITE),
        "ours-older-enabled": (True, "+-", Move.KEEP),
    },
)
def test_if_not_exists_goes_by_what_exists_and_stops_nothing(
    google: SecretManagerTarget, owned: bool, versions: str, move: Move
) -> None:
    manager, place = new_secret_manager(google), Place(f"s-{uuid4()}")
    manager.create(name := secret_name(PROJECT, place.key), {PUSHED_BY: owner_label(OWNER)} if owned else {})
    for each in versions:
        added = manager.add(name, b"theirs")
        if each == "-":
            manager.disable(added)
    there = GcpSecretManagerClient(manager, PROJECT, fetch=False).look(place, OWNER)
    assert decide(there, b"new", UpdatePolicy.IF_NOT_EXISTS) is move
    assert (decide(there, b"new", UpdatePolicy.REPLACE) is Move.REFUSE) == (not owned)


def test_an_older_version_is_fetched_only_where_none_is_named(google: SecretManagerTarget) -> None:
    manager, key = new_secret_manager(google), f"s-{uuid4()}"
    manager.create(name := secret_name(PROJECT, key), {})
    manager.add(name, b"one")
    manager.disable(manager.add(name, b"two"))
    client = GcpSecretManagerClient(manager, PROJECT, fetch=True)
    found = client.read(RemoteRef.model_validate({"key": key}))
    assert found is not None
    assert found.content == b"one"
    with pytest.raises(SecretManagerError, match="FAILED_PRECONDITION"):
        client.read(RemoteRef.model_validate({"key": key, "version": "latest"}))


def test_a_property_is_of_json_only(google: SecretManagerTarget) -> None:
    manager, key = new_secret_manager(google), f"s-{uuid4()}"
    manager.create(name := secret_name(PROJECT, key), {})
    manager.add(name, b'{"a":1,')
    client = GcpSecretManagerClient(manager, PROJECT, fetch=False)
    with pytest.raises(StoreError, match="not a JSON object with a field a"):
        client.read(RemoteRef.model_validate({"key": key, "property": "a"}))


def test_a_store_with_a_location_reads_and_writes_the_secrets_of_that_region(
    google: SecretManagerTarget,
) -> None:
    key = f"s-{uuid4()}"
    manager = new_secret_manager(google)
    manager.create(name := secret_name(PROJECT, key), {})
    manager.add(name, b"global")
    spec = GcpSecretManagerSpec.model_validate({"projectID": PROJECT, "location": "europe-west1"})
    client = open_gcpsm(ClientRequest("GCPSM/a/it", spec, "a", cast("StackCluster", None), google))
    ref = RemoteRef.model_validate({"key": key})
    assert client.read(ref) is None
    assert client.write(Place(key), b"regional", OWNER, None)
    found = client.read(ref)
    assert found is not None
    assert found.content == b"regional"
    assert manager.access(version_name(name, LATEST)).content == b"global"


@cases(
    "endpoint, location, asked",
    table(__file__, "test_a_region_has_an_address_of_its_own_unless_another_is_configured"),
)
def test_a_region_has_an_address_of_its_own_unless_another_is_configured(
    endpoint: str | None, location: str | None, asked: str | None
) -> None:
    assert SecretManagerTarget(endpoint, "t").at(location) == SecretManagerTarget(asked, "t")


class Login:
    """A cluster that has one Secret."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def secret(self, _selector: object) -> bytes:
        return self._content


KEY = {
    "type": "service_account",
    "client_email": "reader@acme.iam.gserviceaccount.com",
    "token_uri": "https://thief.example/token",
}


def opened(key: dict[str, Any]) -> GcpSecretManagerClient:
    auth = {"secretRef": {"secretAccessKeySecretRef": {"name": "login", "key": "key.json"}}}
    spec = GcpSecretManagerSpec.model_validate({"projectID": "p", "auth": auth})
    cluster = cast("StackCluster", Login(json.dumps(key).encode()))
    request = ClientRequest("GCPSM/a/it", spec, "a", cluster, SecretManagerTarget("http://127.0.0.1:1"))
    client = open_gcpsm(request)
    assert isinstance(client, GcpSecretManagerClient)
    return client


class Answer:
    """What a token endpoint says."""

    def __init__(self, status: int, said: dict[str, Any]) -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self.data = json.dumps(said).encode()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(200, {"access_token": "t", "expires_in": 3600}), None),
        (Answer(400, {"error": "invalid_grant"}), "misconfigured"),
        (None, "unreachable"),
    ],
)
def test_a_key_is_traded_with_google_wherever_the_key_itself_points_to(
    monkeypatch: pytest.MonkeyPatch, answer: Answer | None, code: str | None
) -> None:
    asked: list[str] = []

    def ask(_: object, url: str, **_given: object) -> Answer:
        asked.append(url)
        if answer is None:
            raise TransportError("no route")
        return answer

    monkeypatch.setattr(google_requests.Request, "__call__", ask)
    key = {**KEY, "private_key": only_key().decode()}
    if code is None:
        assert opened(key).validate() is Validity.UNKNOWN
    else:
        with pytest.raises(StoreError) as caught:
            opened(key)
        assert caught.value.code == code
        assert "PRIVATE KEY" not in str(caught.value)
    assert set(asked) == {"https://oauth2.googleapis.com/token"}
