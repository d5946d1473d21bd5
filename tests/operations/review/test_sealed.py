"""What stands in for a credential: of its shape, another with each ciphertext, and no word of what it holds.

Not proved: that a program makes the same of two texts of one shape.
"""

import asyncio
import base64
import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import Properties, Secret

from components.credentials import read_credentials
from components.seals import UNSEEN, hides
from operations.review.sealed import (
    SEALED,
    Seals,
    ValueStanding,
    align,
    ciphertexts,
    conceal_unmade,
    shape_of,
    unread,
    unread_outputs,
)

NAME: Final = "credfleet:credentials.aws-1"
PULL_SECRET: Final = json.dumps({"auths": {"quay.io": {"auth": base64.b64encode(b"canary:word").decode()}}})
CREDENTIALS: Final = {
    "a text": "canary-text",
    "an object": '{"id": "canary-id", "key": "canary-key"}',
    "nested": '{"user": {"name": "canary"}, "hosts": ["canary-1", "canary-2"]}',
    "a pull secret": PULL_SECRET,
    "a guid": '{"clientID": "0c0ffee0-cafe-4000-8000-00000000cafe", "secret": "canary"}',
    "an address": '{"uri": "https://canary.example/canary"}',
    "a number": '{"port": 31415, "big": 9007199254740993, "ratio": 0.31415}',
    "a truth": '{"on": true, "off": null, "few": 7}',
}


def seals(text: str, ciphertext: str = "v1:a:b") -> Seals:
    blank = Seals("key", {}, {})
    return Seals("key", {NAME: blank.identity(ciphertext)}, {NAME: shape_of(text)})


def structure(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: structure(item) for key, item in value.items()}
    return [structure(item) for item in value] if isinstance(value, list) else None


@pytest.mark.parametrize("text", CREDENTIALS.values(), ids=CREDENTIALS)
def test_a_stand_in_has_the_shape_of_the_credential_and_nothing_of_what_it_holds(text: str) -> None:
    record = seals(text)
    stand_in = record.find(NAME, "v1:a:b").text

    written = json.dumps(record.shapes) + stand_in
    assert not [word for word in ("canary", "cafe", "31415", "Y2FuYXJ5") if word in written]
    if text.startswith("{"):
        assert structure(json.loads(stand_in)) == structure(json.loads(text))


@pytest.mark.parametrize("text", [each for each in CREDENTIALS.values() if each.startswith("{")])
def test_each_part_of_a_stand_in_is_another_one_with_another_ciphertext(text: str) -> None:
    one, other = (json.loads(seals(text, each).find(NAME, each).text) for each in ("v1:a:b", "v1:c:d"))

    def leaves(value: Any) -> list[Any]:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return [value] if inner is None else [leaf for each in inner for leaf in leaves(each)]

    assert not [pair for pair in zip(leaves(one), leaves(other), strict=True) if pair[0] == pair[1]]


def test_a_pull_secret_can_still_be_read_as_one() -> None:
    auth = json.loads(seals(PULL_SECRET).find(NAME, "v1:a:b").text)["auths"]["quay.io"]["auth"]

    assert base64.b64decode(auth).decode().count(":") == 1


def test_a_value_is_the_same_under_another_name_and_changed_or_new_with_another_ciphertext() -> None:
    record = seals("text")
    renamed = NAME.replace("aws-1", "aws-one")

    assert (
        record.find(NAME, "v1:a:b").standing is record.find(renamed, "v1:a:b").standing is ValueStanding.SAME
    )
    assert record.find(NAME, "v1:a:b").text == record.find(renamed, "v1:a:b").text
    assert record.find(NAME, "v1:c:d").standing is ValueStanding.CHANGED
    assert record.find(renamed, "v1:c:d").standing is ValueStanding.NEW


def test_what_changed_or_is_new_is_marked_and_what_is_as_it_was_is_not() -> None:
    record = seals(CREDENTIALS["an object"])

    assert not hides(record.find(NAME, "v1:a:b").text)
    assert hides(record.find(NAME, "v1:c:d").text)
    assert hides(base64.b64encode(record.find("credfleet:credentials.new", "v1:c:d").text.encode()).decode())


@pytest.mark.parametrize(
    "text", ["base64:AAAA", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"]
)
def test_nothing_can_stand_in_for_bytes_and_certificates_so_nothing_is_said_of_them(text: str) -> None:
    credentials, problems = read_credentials(
        json.dumps({"aws-1": seals(text).find(NAME, "v1:a:b").text}), secret=True
    )

    assert shape_of(text) is None
    assert problems == ()
    assert credentials.is_unseen("aws-1")
    assert credentials.shape("aws-1") is None
    assert credentials.judged("aws-1", bytes) is None


@given(st.text(min_size=1), st.text(min_size=1))
def test_two_ciphertexts_have_two_identities_and_two_keys_as_well(one: str, other: str) -> None:
    key = Seals("key", {}, {})

    assert (key.identity(one) == key.identity(other)) == (one == other)
    assert key.identity(one) != Seals("another", {}, {}).identity(one)


def test_all_that_a_file_has_encrypted_is_found_by_its_place() -> None:
    config = {
        "gcp:accessToken": {"secure": "v1:a"},
        "credfleet:credentials": {"x": {"secure": "v1:b"}, "y": "z"},
    }

    assert ciphertexts(config) == {"gcp:accessToken": "v1:a", "credfleet:credentials.x": "v1:b"}


def test_a_secret_of_the_state_becomes_what_the_program_made_there() -> None:
    state: Properties = {"data": Secret({"key": "canary"}), "name": "plain"}
    inputs, became = align(state, {"data": Secret({"key": f"{SEALED}-1"}), "name": "other"})

    assert inputs == {"data": Secret({"key": f"{SEALED}-1"}), "name": "plain"}
    assert conceal_unmade({"copy": Secret("canary"), "own": Secret("canary-2")}, became) == {
        "copy": Secret(f"{SEALED}-1"),
        "own": Secret(f"{SEALED}-made-by-none"),
    }


def test_a_secret_of_a_state_that_nobody_can_decrypt_becomes_what_the_program_made_there_too() -> None:
    """Its outputs are other ciphertexts of the same values: what they are is told by their place."""
    one, two, three, other = (Secret(json.loads(unread(each))) for each in ("v1:1", "v1:2", "v1:3", "v1:4"))
    made: Properties = {"data": Secret({"key": f"{SEALED}-1"})}
    inputs, became = align({"data": one}, made)
    outputs: Properties = {"data": two, "__inputs": {"data": three}, "own": other}

    assert inputs == made
    assert conceal_unmade(outputs, {**unread_outputs(outputs, inputs), **became}) == {
        **made,
        "__inputs": made,
        "own": Secret(f"{SEALED}-made-by-none"),
    }


@pytest.mark.parametrize("made", [None, {"another": "x"}, "text"], ids=["nothing", "another key", "a text"])
def test_a_secret_that_the_program_makes_otherwise_is_known_to_nobody(made: Any) -> None:
    inputs, _ = align({"data": Secret({"key": "canary"})}, {} if made is None else {"data": Secret(made)})

    assert inputs == {"data": Secret({"key": f"{SEALED}-made-by-none"})}


def test_an_unseen_credential_is_handed_on_whatever_is_made_of_it() -> None:
    credentials, _ = read_credentials(json.dumps({"new": json.dumps({UNSEEN: "x"})}), secret=True)

    async def handed_on() -> object:
        return await credentials.secret("new", lambda text: text.decode()[:0] or 1 // 0).future()

    assert credentials.names == {"new"}
    assert asyncio.run(handed_on()) == {UNSEEN: base64.b64encode(b"x").decode()}
