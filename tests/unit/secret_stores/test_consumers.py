"""Which ExternalSecrets and PushSecrets can be read, and what a fake store answers them."""

from typing import Any

import pytest
from pydantic import ValidationError

from components.errors import StoreError
from components.secret_stores.clients.fake import FakeClient
from components.secret_stores.consumers import PushSecret, RemoteRef
from components.secret_stores.specs import FakeSpec
from tests.support.cases import cases, table

ENTRY = {"secret": "db", "key": "password", "remoteKey": "k"}
PUSH: dict[str, Any] = {"namespace": "a", "name": "it", "store": {"name": "s"}, "data": [ENTRY]}


@cases("change", table(__file__, "test_a_push_that_would_lose_something_is_none"))
def test_a_push_that_would_lose_something_is_none(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PushSecret.model_validate({**PUSH, **change})


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
    assert "not a JSON object with a field password" in str(caught.value)
    assert "5432" not in str(caught.value)
