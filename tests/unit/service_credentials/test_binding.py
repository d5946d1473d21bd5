"""What credentials become, row by row of the byte tables A, B, C and E."""

from __future__ import annotations

import json

import pytest

from components.errors import CredfleetError
from components.go_json import Numbers
from components.service_credentials.binding import (
    BoundInstance,
    ServiceCredentials,
    binding_data,
    binding_type,
    read_credentials_object,
    source_data,
    vcap_services,
)

BOUND = BoundInstance(instance_guid="i-1", instance_name="orders-db", binding_guid="b-1")
DEFAULT = {"type": b"user-provided"}


def credentials(text: str) -> ServiceCredentials:
    return read_credentials_object(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="A1-empty"),
        pytest.param("user=bob", id="A1-not-JSON"),
        pytest.param('{"a":NaN}', id="A2-NaN"),
        pytest.param('{"a":1e400}', id="A2-out-of-range"),
        pytest.param("[1]", id="A-list"),
        pytest.param('"text"', id="A-string"),
        pytest.param("5", id="A-number"),
        pytest.param("true", id="A-boolean"),
    ],
)
def test_what_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(CredfleetError) as caught:
        credentials(text)
    assert caught.value.code == "credentials-invalid"


@pytest.mark.parametrize(
    ("text", "source"), [pytest.param("{}", b"{}", id="A3"), pytest.param("null", b"null", id="A4")]
)
def test_no_credentials_at_all_bind_with_a_type_only(text: str, source: bytes) -> None:
    given = credentials(text)

    assert source_data(given) == {"credentials": source}
    assert binding_type(given) == "servicebinding.io/user-provided"
    assert binding_data(given) == DEFAULT
    (entry,) = json.loads(vcap_services(BOUND, given))["user-provided"]
    assert entry["credentials"] == json.loads(source)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        pytest.param('"bob"', "bob", id="B1"),
        pytest.param('""', "", id="B2"),
        pytest.param('"x=1&y=<2>"', "x=1&y=<2>", id="B3"),
        pytest.param(r'"{\"a\":1}"', '{"a":1}', id="B4"),
        pytest.param(r'"one\ntwo"', "one\ntwo", id="B5"),
        pytest.param('{"name":"alice", "password": "bob"}', '{"name":"alice","password":"bob"}', id="B6"),
        pytest.param('{"z":1,"b":{"d":"e","c":[1, 2]}}', '{"b":{"c":[1,2],"d":"e"},"z":1}', id="B7"),
        pytest.param('{"n":"héllo"}', '{"n":"héllo"}', id="B8"),
        pytest.param('[1,"x",null,{"b":false}]', '[1,"x",null,{"b":false}]', id="B9"),
        pytest.param("{}", "{}", id="B10-object"),
        pytest.param("[]", "[]", id="B10-list"),
        pytest.param("true", "true", id="B10-true"),
        pytest.param("null", "null", id="B10-null"),
        pytest.param("5", "5", id="B11-5"),
        pytest.param("5.0", "5", id="B11-5.0"),
        pytest.param("1.50", "1.5", id="B11-1.50"),
        pytest.param("1e3", "1000", id="B11-1e3"),
        pytest.param('{"u":"x=1&y=<2>"}', r'{"u":"x=1\u0026y=\u003c2\u003e"}', id="B-escaped-when-nested"),
    ],
)
def test_an_entry_is_a_string_as_it_is_or_the_json_text_of_anything_else(value: str, stored: str) -> None:
    given = credentials(f'{{"entry": {value}}}')

    assert binding_data(given) == {**DEFAULT, "entry": stored.encode()}


@pytest.mark.parametrize(
    ("text", "secret_type", "data"),
    [
        pytest.param('{"a":"b"}', "user-provided", {**DEFAULT, "a": b"b"}, id="C1"),
        pytest.param('{"type":"my-type"}', "my-type", {"type": b"my-type"}, id="C2"),
        pytest.param('{"type":7}', "user-provided", {"type": b"7"}, id="C3"),
        pytest.param('{"type":null}', "user-provided", {"type": b"null"}, id="C4"),
        pytest.param('{"type":""}', "", {"type": b""}, id="C5"),
        pytest.param(
            '{"provider":"my-provider"}', "user-provided", {**DEFAULT, "provider": b"my-provider"}, id="C6"
        ),
        pytest.param('{"provider":{"a":1}}', "user-provided", {**DEFAULT, "provider": b'{"a":1}'}, id="C7"),
        pytest.param(
            '{"type":"database","user":{"name":"alice", "password": "bob"}}',
            "database",
            {"type": b"database", "user": b'{"name":"alice","password":"bob"}'},
            id="C8",
        ),
    ],
)
def test_the_type_of_a_binding_is_that_of_its_credentials_or_the_default(
    text: str, secret_type: str, data: dict[str, bytes]
) -> None:
    given = credentials(text)

    assert binding_type(given) == f"servicebinding.io/{secret_type}"
    assert binding_data(given) == data


def test_another_default_type_stands_in_only_where_there_is_none() -> None:
    bare, typed, numbered = credentials("{}"), credentials('{"type":"redis"}'), credentials('{"type":7}')

    assert (binding_type(bare, "sql"), binding_data(bare, "sql")) == (
        "servicebinding.io/sql",
        {"type": b"sql"},
    )
    assert (binding_type(typed, "sql"), binding_data(typed, "sql")) == (
        "servicebinding.io/redis",
        {"type": b"redis"},
    )
    assert (binding_type(numbered, "sql"), binding_data(numbered, "sql")) == (
        "servicebinding.io/sql",
        {"type": b"7"},
    )


def test_a_key_with_dots_stays_apart_from_nested_keys_d4() -> None:
    given = credentials('{"a.b": "one", "a": {"b": "two"}}')

    assert binding_data(given) == {**DEFAULT, "a.b": b"one", "a": b'{"b":"two"}'}


def test_a_key_named_credentials_is_an_ordinary_entry_d7() -> None:
    given = credentials('{"credentials": "mine"}')

    assert source_data(given) == {"credentials": b'{"credentials":"mine"}'}
    assert binding_data(given) == {**DEFAULT, "credentials": b"mine"}


E = '{"type":"database","port":5432,"user":{"name":"alice"}}'


def test_one_input_has_three_outputs_e1_e2_e3() -> None:
    given = credentials(E)

    assert source_data(given) == {"credentials": b'{"port":5432,"type":"database","user":{"name":"alice"}}'}
    assert binding_data(given) == {"type": b"database", "port": b"5432", "user": b'{"name":"alice"}'}
    assert vcap_services(BOUND, given) == (
        b'{"user-provided":[{"label":"user-provided","name":"orders-db","tags":[],"instance_guid":"i-1",'
        b'"instance_name":"orders-db","binding_guid":"b-1","binding_name":null,'
        b'"credentials":{"port":5432,"type":"database","user":{"name":"alice"}},'
        b'"syslog_drain_url":null,"volume_mounts":[]}]}'
    )


def test_the_default_type_shows_neither_in_the_source_nor_in_vcap_services() -> None:
    given = credentials('{"a":"b"}')

    assert source_data(given) == {"credentials": b'{"a":"b"}'}
    assert b'"credentials":{"a":"b"}' in vcap_services(BOUND, given)


def test_vcap_services_groups_by_label_and_names_the_binding_if_it_has_a_name() -> None:
    bound = BoundInstance(
        instance_guid="i-1",
        instance_name="orders-db",
        binding_guid="b-1",
        binding_name="orders & api",
        tags=("sql", "eu"),
        label="postgresql",
    )

    written = vcap_services(bound, credentials("{}"))

    (entry,) = json.loads(written)["postgresql"]
    assert (entry["label"], entry["name"], entry["binding_name"]) == (
        "postgresql",
        "orders & api",
        "orders & api",
    )
    assert entry["tags"] == ["sql", "eu"]
    assert rb"orders \u0026 api" in written


def test_exact_numbers_reach_all_three_outputs() -> None:
    given = read_credentials_object(b'{"id": 9007199254740993}', numbers=Numbers.EXACT)

    assert source_data(given)["credentials"] == b'{"id":9007199254740993}'
    assert binding_data(given)["id"] == b"9007199254740993"
    assert b'{"id":9007199254740993}' in vcap_services(BOUND, given)


def test_credentials_show_nothing_when_printed() -> None:
    read = credentials('{"password":"hunter2"}')

    assert binding_data(read)["password"] == b"hunter2"
    assert "hunter2" not in repr(read)
