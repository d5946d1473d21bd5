"""Keeping known secrets out of texts made elsewhere (sandbox/docs/engine-facts.md, traps)."""

import base64
import html
import json
import re
from collections.abc import Callable
from textwrap import fill
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.redaction import Redactor, texts_of
from pulumi_sandbox.protocol.values import Properties, Secret

_DOCUMENT = json.dumps(
    {"user": {"password": "hunter2-hunter2"}, "pin": 48151623, "s3cret-token": {}, "key": "A\nMIIEow\nZ"}
)
_WRITERS: tuple[Callable[[str], str], ...] = (
    str,
    json.dumps,
    lambda text: json.dumps(json.dumps(text)),
    lambda text: json.dumps({"message": json.dumps({"password": text}, ensure_ascii=False)}),
    lambda text: json.dumps(text, ensure_ascii=False).translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&"}),
    repr,
    html.escape,
    lambda text: json.dumps(text).replace("/", "\\/"),
    lambda text: f"postgres://user:{quote(text, safe='')}@db/orders",
    lambda text: re.sub("%..", lambda found: found[0].lower(), quote(text, safe="")),
    lambda text: urlencode({"user": "u", "password": text}),
    lambda text: text.encode().hex(" ").replace(" ", "").upper(),
    lambda text: f"Basic {base64.b64encode(f'u:{text}'.encode()).decode()}",
    lambda text: base64.urlsafe_b64encode(f"us:{text}:rest".encode()).decode().rstrip("="),
    lambda text: fill(
        base64.b64encode(f"{'first line, ' * 9}{text}{', and so on' * 9}".encode()).decode(), 64
    ),
    lambda text: base64.encodebytes(json.dumps({"a": "b" * 70, "c": text}).encode()).decode(),
)


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
        pytest.param(_DOCUMENT, "no such pin: 48151623", id="a number of a document"),
        pytest.param(_DOCUMENT, "no field s3cret-token", id="a field that reads like a token"),
        pytest.param(_DOCUMENT, "parse error at MIIEow", id="a line of a text of a document"),
        pytest.param("base64:czNjcmV0LXRva2Vu", "401 for s3cret-token", id="after a scheme"),
        pytest.param("base64:czNjcmV0LXRva2Vu", "data: czNjcmV0LXRva2Vu", id="after a scheme, as it stands"),
    ],
)
def test_a_secret_is_taken_out_in_every_form(secret: str, text: str):
    shown = Redactor({secret})(text)
    assert "[secret]" in shown
    for word in ("s3cret", "hunter2", "MIIEow", "quo", "czNjcmV0", "48151623"):
        assert word not in shown


SECRETS = st.text(st.sampled_from("aZ0-_ /+=<>&'\"\\\n\té☃\U0001f511"), min_size=8).filter(
    lambda text: len(text.strip()) > 7 and not re.fullmatch("[A-Z]?[a-z]+", text) and not text.isdecimal()
)


@given(SECRETS, st.sampled_from(_WRITERS))
def test_whoever_wrote_a_secret_into_a_text_left_nothing_that_reads_as_it(
    secret: str, write: Callable[[str], str]
):
    assert "[secret]" in Redactor({secret})(f"answer: {write(secret)}; and so on")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Secret tenant-acme/orders-api-env", "Secret tenant-acme/orders-api-env"),
        ("reorders of preorders_2", "reorders of preorders_2"),
        ("orders.tenant.svc answers", "orders.tenant.svc answers"),
        ("login as orders failed.", "login as [secret] failed."),
        ("postgres://orders@db", "postgres://[secret]@db"),
        ("no user orders.", "no user [secret]."),
    ],
)
def test_a_secret_that_is_a_word_is_taken_out_as_one_and_hides_no_name(text: str, shown: str):
    assert Redactor({"orders"})(text) == shown


def test_the_fields_of_a_credential_keep_their_names():
    credential = json.dumps({"client_email": "robot@project", "auth_provider_x509_cert_url": "https://certs"})
    text = "client_email and auth_provider_x509_cert_url are there"
    assert Redactor({credential})(text) == text


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
