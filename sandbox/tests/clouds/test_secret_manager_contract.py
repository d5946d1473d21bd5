"""The stand-in as Google's own client meets it."""

from collections.abc import Generator
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud.secretmanager_v1 import SecretManagerServiceClient
from google.cloud.secretmanager_v1.services.secret_manager_service.transports.rest import (
    SecretManagerServiceRestTransport,
)
from google.cloud.secretmanager_v1.types import Secret, SecretPayload, SecretVersion
from google.oauth2.credentials import Credentials

from sandbox.tests.support.clouds import Served, secret_manager

PROJECT = "projects/acme-prod-1"
SECRET = f"{PROJECT}/secrets/orders"
AUTOMATIC = Secret({"replication": {"automatic": {}}})

State = SecretVersion.State


@pytest.fixture
def service(tmp_path: Path) -> Generator[Served]:
    with secret_manager(tmp_path) as running:
        yield running


@pytest.fixture
def client(service: Served) -> Generator[SecretManagerServiceClient]:
    transport = SecretManagerServiceRestTransport(
        host=service.authority, url_scheme="http", credentials=Credentials("an-owner")
    )
    with SecretManagerServiceClient(transport=transport) as connected:
        yield connected


def add(client: SecretManagerServiceClient, data: bytes) -> SecretVersion:
    return client.add_secret_version(parent=SECRET, payload=SecretPayload(data=data))


def test_what_is_added_is_read_back_byte_for_byte_by_number_and_as_latest(
    client: SecretManagerServiceClient,
):
    client.create_secret(parent=PROJECT, secret_id="orders", secret=AUTOMATIC)
    data = bytes(range(256)) * 256
    version = add(client, data)
    assert [each.name for each in client.list_secret_versions(parent=SECRET)] == [version.name]
    assert version.name.endswith("/secrets/orders/versions/1")
    for name in (version.name, f"{SECRET}/versions/latest"):
        answer = client.access_secret_version(name=name)
        assert (answer.name, answer.payload.data) == (version.name, data)


def test_a_secret_keeps_what_it_was_created_with(client: SecretManagerServiceClient):
    wanted = Secret(
        {
            "replication": {"user_managed": {"replicas": [{"location": "europe-west1"}]}},
            "labels": {"cluster-id": "cls-1"},
        }
    )
    created = client.create_secret(parent=PROJECT, secret_id="orders", secret=wanted)
    read = client.get_secret(name=SECRET)
    assert read == created
    assert Secret.to_dict(read)["labels"] == {"cluster-id": "cls-1"}
    assert [replica.location for replica in read.replication.user_managed.replicas] == ["europe-west1"]


def test_a_version_goes_through_its_states_and_never_comes_back_from_the_last(
    client: SecretManagerServiceClient,
):
    client.create_secret(parent=PROJECT, secret_id="orders", secret=AUTOMATIC)
    name = add(client, b"1").name
    assert client.disable_secret_version(name=name).state == State.DISABLED
    with pytest.raises(exceptions.BadRequest, match="is in DISABLED state"):
        client.access_secret_version(name=name)
    assert client.enable_secret_version(name=name).state == State.ENABLED
    assert client.access_secret_version(name=name).payload.data == b"1"
    destroyed = client.destroy_secret_version(name=name)
    assert destroyed.state == State.DESTROYED
    assert destroyed.destroy_time
    with pytest.raises(exceptions.BadRequest, match="is in DESTROYED state"):
        client.enable_secret_version(name=name)


def test_a_deleted_secret_is_gone_and_its_name_free_again(client: SecretManagerServiceClient):
    client.create_secret(parent=PROJECT, secret_id="orders", secret=AUTOMATIC)
    add(client, b"old")
    client.delete_secret(name=SECRET)
    with pytest.raises(exceptions.NotFound):
        client.get_secret(name=SECRET)
    client.create_secret(parent=PROJECT, secret_id="orders", secret=AUTOMATIC)
    assert add(client, b"new").name.endswith("/versions/1")
