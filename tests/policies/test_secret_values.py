"""Declared secrets in plain: what is known as a secret, and where it is found."""

import base64
import json
from collections.abc import Mapping, Sequence
from random import Random

import pytest
import secret_values
from secret_values import Sightings, declared_secrets

from tests.support.policies import UNKNOWN, judge, judge_stack, remedied, secret

PASSWORD = "canary-of-the-stack-7f3a"
CREDENTIALS = {
    "orders": json.dumps({"user": "orders-application", "password": PASSWORD}),
    "registry": json.dumps({"auths": {"quay.io": {"auth": "b3JkZXJzOmNhbmFyeQ=="}}}),
    "token": "glpat-canary",
    "short": "abc",
    "nested": json.dumps({"serviceaccount.json": json.dumps({"private_key": "canary-key-of-gcp"})}),
}
CONFIG = {
    "credfleet:credentials": json.dumps(CREDENTIALS),
    "gcp:accessToken": "canary-access-token",
    "gcp:project": "example-project",
}


@pytest.fixture(autouse=True)
def sightings(monkeypatch: pytest.MonkeyPatch) -> Sightings:
    """Let the rule have secrets of its own, and nothing seen so far."""
    fresh = Sightings(declared_secrets(CONFIG, ["gcp:accessToken"]))
    monkeypatch.setattr(secret_values, "_SIGHTINGS", fresh)
    return fresh


def found(**inputs: object) -> list[str]:
    assert remedied(secret_values.secrets_stay_marked, CONFIG_MAP, inputs) is None
    return judge(secret_values.secrets_stay_marked, CONFIG_MAP, inputs)


@pytest.mark.parametrize(
    "text",
    [
        PASSWORD,
        base64.b64encode(PASSWORD.encode()).decode(),
        f"  {PASSWORD}\n",
        f"postgres://orders:{PASSWORD}@db/x",
        base64.b64encode(f"password={PASSWORD};".encode()).decode(),
        "b3JkZXJzOmNhbmFyeQ==",
        "glpat-canary",
        "canary-key-of-gcp",
        "canary-access-token",
        CREDENTIALS["orders"],
    ],
)
def test_a_declared_secret_in_plain_is_told_by_its_path_and_never_its_value(text: str) -> None:
    said = found(data={"note": text})

    assert said == ["data.note is a secret in plain"]
    assert text not in repr(said)


@pytest.mark.parametrize("text", ["orders-application", "abc", "example-project", "quay.io", UNKNOWN, ""])
def test_what_merely_stands_beside_a_secret_is_let_through(text: str) -> None:
    assert found(data={"note": text}) == []


def test_a_secret_that_is_marked_is_let_through_wherever_the_mark_stands() -> None:
    assert found(data=secret({"note": PASSWORD}), items=[secret(PASSWORD)], __provider=PASSWORD) == []


CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
STACK: Sequence[Mapping[str, object]] = (
    {"a": secret("generated-by-a-cloud")},
    {"note": "generated-by-a-cloud", "same": PASSWORD},
    {"a": secret("made-by-the-resource"), "b": "made-by-the-resource"},
    {"c": "made-by-the-resource"},
    {"d": ["00000000-0000-4000-8000-000000000001", "Opaque", UNKNOWN]},
    {"a": secret(["00000000-0000-4000-8000-000000000001", "Opaque", UNKNOWN])},
)


@pytest.mark.parametrize("seed", range(8))
def test_the_same_resources_are_named_in_whatever_order_they_are_registered(seed: int) -> None:
    alone: dict[str, list[str]] = {}
    for place in Random(seed).sample(range(len(STACK)), len(STACK)):
        urn, inputs = str(place), STACK[place]
        assert remedied(secret_values.secrets_stay_marked, CONFIG_MAP, inputs, urn) is None
        alone[urn] = judge(secret_values.secrets_stay_marked, CONFIG_MAP, inputs, urn=urn)

    assert {urn: said for urn, said in alone.items() if said} == {
        "1": ["same is a secret in plain"],
        "2": ["b is a secret in plain"],
    }
    everywhere = judge_stack(
        secret_values.secrets_stay_marked_everywhere, [(CONFIG_MAP, inputs) for inputs in STACK]
    )
    assert everywhere == [("1", "note is a secret in plain"), ("3", "c is a secret in plain")]


def test_without_a_look_at_the_marks_the_rule_finds_nothing() -> None:
    """At another level than remediate the host shows no marks."""
    rule, inputs = secret_values.secrets_stay_marked, {"data": {"note": PASSWORD}}

    assert judge(rule, "kubernetes:core/v1:Secret", inputs) == []
    assert remedied(rule, "kubernetes:core/v1:Secret", inputs) is None
    assert judge(rule, "kubernetes:core/v1:Secret", inputs) == ["data.note is a secret in plain"]


def test_no_value_is_kept(sightings: Sightings) -> None:
    assert found(data={"note": PASSWORD}) == ["data.note is a secret in plain"]

    kept = repr({name: getattr(sightings, name) for name in vars(sightings)})
    assert PASSWORD not in kept
    assert base64.b64encode(PASSWORD.encode()).decode() not in kept
