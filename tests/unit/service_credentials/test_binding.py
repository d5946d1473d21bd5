"""What credentials become, byte for byte (docs/compatibility.md)."""

import json

import pytest

from components.errors import CredfleetError
from components.service_credentials.binding import (
    BoundInstance,
    ServiceCredentials,
    binding_data,
    binding_type,
    read_credentials_object,
    source_data,
    vcap_services,
)
from tests.support.cases import tabled

BOUND = BoundInstance(instance_guid="i-1", instance_name="orders-db", binding_guid="b-1")
DEFAULT = {"type": b"user-provided"}


def credentials(text: str) -> ServiceCredentials:
    return read_credentials_object(text.encode())


@pytest.mark.parametrize("text", ["", "user=bob", '{"a":NaN}', '{"a":1e400}', "[1]", '"text"', "5", "true"])
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(CredfleetError) as caught:
        credentials(text)
    assert caught.value.code == "credentials-invalid"


@pytest.mark.parametrize(("text", "source"), [("{}", b"{}"), ("null", b"null")])
def test_no_credentials_at_all_bind_with_a_type_only(text: str, source: bytes) -> None:
    given = credentials(text)

    assert source_data(given) == {"credentials": source}
    assert binding_type(given) == "servicebinding.io/user-provided"
    assert binding_data(given) == DEFAULT
    (entry,) = json.loads(vcap_services([(BOUND, given)]))["user-provided"]
    assert entry["credentials"] == json.loads(source)


@tabled("value, stored")
def test_an_entry_is_a_string_as_it_is_or_the_json_text_of_anything_else(value: str, stored: str) -> None:
    given = credentials(f'{{"entry": {value}}}')

    assert binding_data(given) == {**DEFAULT, "entry": stored.encode()}


@tabled("text, secret_type, data")
def test_the_type_of_a_binding_is_that_of_its_credentials_or_the_default(
    text: str, secret_type: str, data: dict[str, str]
) -> None:
    given = credentials(text)

    assert binding_type(given) == f"servicebinding.io/{secret_type}"
    assert binding_data(given) == {key: value.encode() for key, value in data.items()}


def test_vcap_services_groups_by_label_and_names_the_binding_if_it_has_a_name() -> None:
    bound = BoundInstance(
        instance_guid="i-1",
        instance_name="orders-db",
        binding_guid="b-1",
        binding_name="orders & api",
        tags=("sql", "eu"),
        label="postgresql",
    )

    written = vcap_services([(bound, credentials("{}"))])

    (entry,) = json.loads(written)["postgresql"]
    assert (entry["label"], entry["name"], entry["binding_name"]) == (
        "postgresql",
        "orders & api",
        "orders & api",
    )
    assert entry["tags"] == ["sql", "eu"]
    assert rb"orders \u0026 api" in written


def test_credentials_show_nothing_when_printed() -> None:
    read = credentials('{"password":"hunter2"}')

    assert binding_data(read)["password"] == b"hunter2"
    assert "hunter2" not in repr(read)
