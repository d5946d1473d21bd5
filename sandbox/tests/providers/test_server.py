"""No form of a secret stays in a message of a provider."""

import base64

from hypothesis import given
from hypothesis import strategies as st
from pulumi_sandbox.protocol.values import Secret
from pulumi_sandbox.providers.redaction import without_secrets


@given(st.text(min_size=5).filter(lambda text: text not in "[secret]"), st.text(), st.text())
def test_no_form_of_a_secret_stays_in_a_message(secret: str, before: str, after: str):
    encoded = base64.b64encode(secret.encode()).decode()
    cleaned = without_secrets(f"{before}|{encoded}|{secret}|{after}", {"data": Secret({"k": secret})})
    assert "[secret]" in cleaned
    assert encoded not in cleaned
    assert f"|{secret}|" not in cleaned


def test_a_secret_that_is_given_as_base64_is_hidden_decoded_too():
    cleaned = without_secrets("bad value hunter2!", {"data": {"k": Secret("aHVudGVyMiE=")}})
    assert cleaned == "bad value [secret]"


def test_a_message_without_secrets_stays_as_it_is():
    assert without_secrets("plain", {"data": {"k": "plain"}, "short": Secret("a")}) == "plain"
