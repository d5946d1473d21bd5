"""Keeping the secrets of a call's properties out of what an API said of it."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import Properties, Secret
from pulumi_sandbox.providers.server import without_secrets

_DOCUMENT = json.dumps({"user": {"password": "hunter2-hunter2"}, "pin": 48151623, "key": "A\nMIIEow\nZ"})


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        pytest.param("s3cret-token", "401 for s3cret-token", id="as it is"),
        pytest.param('quo"ted\\one', 'body: "quo\\"ted\\\\one"', id="quoted"),
        pytest.param("s3cret-é", 'body: "s3cret-\\u00e9"', id="escaped"),
        pytest.param("s3cret-token", f"data: {base64.b64encode(b's3cret-token').decode()}", id="in base64"),
        pytest.param("aHVudGVyMi1odW50ZXIy", "bad password hunter2-hunter2", id="out of base64"),
        pytest.param(_DOCUMENT, f"wrote {_DOCUMENT}", id="a document"),
        pytest.param(_DOCUMENT, "bad password hunter2-hunter2", id="a text of a document"),
        pytest.param(_DOCUMENT, "no such pin: 48151623", id="a number of a document"),
        pytest.param(_DOCUMENT, "parse error at MIIEow", id="a line of a text of a document"),
        pytest.param("-----BEGIN-----\nMIIEow\n-----END-----", "parse error at MIIEow", id="a line"),
    ],
)
def test_secret_of_a_property_is_taken_out_in_each_form(secret: str, text: str) -> None:
    shown = without_secrets(text, {"data": Secret({"k": [secret]})})
    assert "[secret]" in shown
    for word in ("s3cret", "hunter2", "MIIEow", "quo", "czNjcmV0", "48151623"):
        assert word not in shown


def test_secret_within_a_secret_is_taken_out() -> None:
    assert without_secrets("bad outer inner", {"a": Secret({"b": Secret("inner"), "c": "outer"})}) == (
        "bad [secret] [secret]"
    )


def test_what_is_in_the_open_too_or_too_short_stays() -> None:
    given: Properties = {"labels": Secret({"app": "orders"}), "name": "orders", "short": Secret("abcd")}
    assert without_secrets("no orders, no abcd", given) == "no orders, no abcd"


@given(st.text(min_size=5).filter(lambda text: text not in "[secret]"), st.text(), st.text())
def test_no_form_of_a_secret_stays_in_a_message(secret: str, before: str, after: str) -> None:
    encoded = base64.b64encode(secret.encode()).decode()
    cleaned = without_secrets(f"{before}|{encoded}|{secret}|{after}", {"data": Secret({"k": secret})})
    assert "[secret]" in cleaned
    assert encoded not in cleaned
    assert f"|{secret}|" not in cleaned
