"""Keeping known secrets out of texts made elsewhere (sandbox/docs/engine-facts.md, traps)."""

import base64
import json

import pytest
from pulumi_sandbox.protocol.redaction import Redactor, texts_of
from pulumi_sandbox.protocol.values import Properties, Secret

_DOCUMENT = json.dumps({"user": {"password": "hunter2-hunter2"}, "port": 5432, "hosts": ["db.internal"]})


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        pytest.param("s3cret-token", "401 for s3cret-token", id="as it is"),
        pytest.param('quo"ted\\one', 'body: "quo\\"ted\\\\one"', id="quoted"),
        pytest.param("s3cret-token", f"data: {base64.b64encode(b's3cret-token').decode()}", id="in base64"),
        pytest.param("aHVudGVyMi1odW50ZXIy", "bad password hunter2-hunter2", id="out of base64"),
        pytest.param(_DOCUMENT, f"wrote {_DOCUMENT}", id="a document"),
        pytest.param(_DOCUMENT, "bad password hunter2-hunter2", id="a text of a document"),
        pytest.param("-----BEGIN-----\nMIIEow\n-----END-----", "parse error at MIIEow", id="a line"),
    ],
)
def test_a_secret_is_taken_out_in_every_form(secret: str, text: str):
    shown = Redactor({secret})(text)
    assert "[secret]" in shown
    for word in ("s3cret", "hunter2", "MIIEow", "quo", "czNjcmV0"):
        assert word not in shown


def test_the_longer_of_two_secrets_is_taken_out_whole():
    assert Redactor({"token", "token-extended"})("my token-extended") == "my [secret]"


def test_a_short_secret_does_not_blot_out_innocent_words():
    assert Redactor({"in"})("written in full") == "written in full"


def test_without_secrets_a_text_stays_as_it_is():
    assert Redactor(set())("anything") == "anything"


def test_what_a_resource_also_holds_in_the_open_is_no_secret():
    resource: Properties = {
        "labels": {"managed-by": "hyperfleet"},
        "effectiveLabels": Secret({"managed-by": "hyperfleet", "team": "platform"}),
        "data": [Secret("s3cret-token")],
    }

    assert texts_of(resource) == ({"platform", "s3cret-token"}, {"hyperfleet"})


def test_what_a_secret_holds_beside_others_in_the_open_is_shown_but_never_the_secret_itself():
    text = "user admin-of-acme cannot log in with hunter2-hunter2"
    document = json.dumps({"user": "admin-of-acme", "password": "hunter2-hunter2"})
    shown = Redactor({document, "s3cret-token"}, {"admin-of-acme", "s3cret-token"})

    assert shown(text) == "user admin-of-acme cannot log in with [secret]"
    assert shown("401 for s3cret-token") == "401 for [secret]"
