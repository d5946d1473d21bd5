"""Which ExternalSecrets and PushSecrets can be read, and what a fake store answers them."""

from typing import Any

import pytest
from pydantic import ValidationError

from components.errors import StoreError
from components.secret_stores.clients.fake import FakeClient
from components.secret_stores.consumers import ExternalSecret, PushSecret, RemoteRef
from components.secret_stores.specs import FakeSpec

READ: dict[str, Any] = {
    "namespace": "a",
    "name": "it",
    "store": {"name": "s"},
    "backend": "direct",
    "data": {"password": {"key": "db"}},
}
ENTRY = {"secret": "db", "key": "password", "remoteKey": "k"}
PUSH: dict[str, Any] = {**READ, "data": [ENTRY]}


def test_a_read_makes_a_secret_of_its_own_name_unless_it_names_a_target() -> None:
    assert ExternalSecret.model_validate(READ).target == "it"
    assert ExternalSecret.model_validate({**READ, "target": "other"}).target == "other"


@pytest.mark.parametrize(
    "change",
    [
        {"data": {}},
        {"data": {"no key": {"key": "db"}}},
        {"data": {"password": {"key": " db"}}},
        {"data": {"password": {"key": "db", "propety": "x"}}},
        {"refreshInterval": "hourly"},
        {"backend": "vault"},
        {"store": {"kind": "Store", "name": "s"}},
        {"namespace": "A"},
    ],
)
def test_a_read_that_eso_would_not_take_is_none(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExternalSecret.model_validate({**READ, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"data": []},
        {"data": [ENTRY, {**ENTRY, "key": "user"}]},
        {"updatePolicy": "Always"},
        {"deletionPolicy": "Retain"},
    ],
)
def test_a_push_that_would_lose_something_is_none(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PushSecret.model_validate({**PUSH, **change})


def test_two_entries_may_go_to_two_properties_of_one_key() -> None:
    entries = [{**ENTRY, "property": "one"}, {**ENTRY, "property": "two"}]
    assert len(PushSecret.model_validate({**PUSH, "data": entries}).data) == 2


FAKE = FakeClient(
    "Fake/s",
    FakeSpec.model_validate(
        {
            "data": [
                {"key": "db", "value": "first"},
                {"key": "db", "value": '{"user": "u", "port": 5432}'},
                {"key": "db", "value": "old", "version": "1"},
            ]
        }
    ),
)


@pytest.mark.parametrize(
    ("ref", "content"),
    [
        ({"key": "db", "property": "user"}, b"u"),
        ({"key": "db", "property": "port"}, b"5432"),
        ({"key": "db", "version": "1"}, b"old"),
        ({"key": "none"}, None),
        ({"key": "db", "version": "2"}, None),
    ],
)
def test_a_fake_says_what_its_spec_says(ref: dict[str, str], content: bytes | None) -> None:
    found = FAKE.read(RemoteRef.model_validate(ref))
    assert (None if found is None else found.content) == content


def test_a_property_that_is_not_there_is_told_without_the_value() -> None:
    with pytest.raises(StoreError) as caught:
        FAKE.read(RemoteRef.model_validate({"key": "db", "property": "password"}))
    assert "no JSON object with a field password" in str(caught.value)
    assert "5432" not in str(caught.value)
