"""Keeping known secrets out of texts made elsewhere."""

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

_YAML = """
users:
- name: admin-of-acme
  user:
    server: https://api.acme:6443
    token: s3cret-token
    password: 'hunter2-X9'
    client-key-data: |
        MIIEow
"""


def _folded(raw: bytes, width: int, end: str) -> str:
    return end.join(re.findall(f".{{1,{width}}}", base64.b64encode(raw).decode()))


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
    lambda text: json.dumps({"data": _folded(text.encode(), 64, "\r\n")}),
    lambda text: json.dumps(json.dumps(_folded(f"{text}, and so on".encode(), 20, "\r\n"))),
    lambda text: re.sub(
        r"\\u....",
        lambda found: f"\\u{found[0][2:].upper()}",
        json.dumps(text)[1:-1]
        .replace('\\"', "\\u0022")
        .translate({ord(c): f"\\u{ord(c):04X}" for c in "<>&'+"}),
    ),
    lambda text: json.dumps(text, ensure_ascii=False).translate({ord(c): f"\\u{ord(c):04X}" for c in "<>&"}),
    lambda text: f"postgres://user:{quote(text, safe='$&+,;=')}@db/orders",
    lambda text: f"https://db/orders?password={quote(text, safe=';,/?:@&=+$!~*()#' + chr(39))}",
    lambda text: f"next=https%3A%2F%2Fdb%3Fpassword%3D{quote(quote(text, safe=''), safe='')}",
    lambda text: urlencode({"next": "https://db?" + urlencode({"password": text})}),
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
        pytest.param("postgres://u:hunter2-X9@db/o", "bad password hunter2-X9", id="the password of a URL"),
        pytest.param("postgres://u:hunter2%2DX9@db/o", "bad password hunter2-X9", id="quoted in a URL"),
        pytest.param(_YAML, "bad token s3cret-token", id="a field of YAML"),
        pytest.param(_YAML, 'bad password "hunter2-X9"', id="a quoted field of YAML"),
        pytest.param(_YAML, "parse error at MIIEow", id="a line within a field of YAML"),
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


_BYTES = st.binary(min_size=9, max_size=90).map(lambda raw: b"\xff" + raw)


_WRITERS_OF_BYTES: tuple[Callable[[bytes], str], ...] = (
    lambda raw: base64.b64encode(raw).decode(),
    lambda raw: base64.b64encode(raw).decode().rstrip("="),
    lambda raw: base64.urlsafe_b64encode(raw).decode(),
    lambda raw: base64.b64encode(b"user:" + raw + b":rest").decode(),
    lambda raw: _folded(b"user:" + raw, 20, "\n"),
    lambda raw: json.dumps(_folded(raw, 76, "\r\n")),
    lambda raw: raw.hex(),
    lambda raw: raw.hex().upper(),
)


@given(_BYTES, st.sampled_from(_WRITERS_OF_BYTES))
def test_a_secret_that_is_no_text_is_taken_out_in_every_form(raw: bytes, write: Callable[[bytes], str]):
    written = write(raw)
    shown = Redactor({f"base64:{base64.b64encode(raw).decode()}"})(f"answer: {written}; and so on")

    assert "[secret]" in shown
    assert not any(written[at : at + 10] in shown for at in range(len(written) - 9))


def test_beside_a_secret_in_base64_other_lines_stay():
    text = "data:\n  password: aHVudGVyMi1YOSEh\n  user: b3JkZXJz\n"
    assert Redactor({"hunter2-X9!!"})(text) == "data:\n  password: [secret]\n  user: b3JkZXJz\n"


def test_what_a_credential_in_yaml_names_stays():
    text = "no cluster answers at https://api.acme:6443 for admin-of-acme"
    assert Redactor({_YAML})(text) == text


@pytest.mark.parametrize("name", ["orders-db", "orders2", "ORDERS", "OrdersApi", "acme2", "orders_db-2"])
def test_a_secret_that_reads_as_a_name_is_taken_out_as_one_and_hides_no_longer_name(name: str):
    redact = Redactor({json.dumps({"user": name})})

    longer = f"Secret tenant-{name}/{name}-env of {name}.tenant.svc"
    assert redact(longer) == longer
    assert redact(f"login as {name} failed; postgres://{name}@db") == (
        "login as [secret] failed; postgres://[secret]@db"
    )
    assert redact(json.dumps(f"login as\n{name}")) == '"login as\\n[secret]"'


@pytest.mark.parametrize(
    "secret",
    [
        "hunter2-X9f!",
        "hunter2-X9f",
        "s3cret-token",
        f"AKIA{'IOSFODNN7EXAMPLE'}",
        "0123456789abcdef0123456789abcdef",
        "c0ffee00-1234-4abc-8def-0123456789ab",
        "tGzv3JOkF0XG5Qx2TlKWIA",
        "Passw0rd",
        "Summer2024",
    ],
)
def test_a_secret_that_reads_as_no_name_is_taken_out_within_names_too(secret: str):
    assert Redactor({secret})(f"tenant-{secret}-env") == "tenant-[secret]-env"


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
