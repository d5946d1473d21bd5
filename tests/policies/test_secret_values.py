"""Declared secrets in plaintext: what is known as a secret, and where it is found."""

import base64
import json
from collections.abc import Mapping, Sequence
from random import Random

import pytest
import secret_values
from pulumi_policy import ResourceValidationArgs
from secret_values import Sightings, declared_secrets

from tests.support.cases import tabled
from tests.support.policies import OPTIONS, UNKNOWN, judge, judge_stack, secret

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
PASSWORD = "canary-of-the-stack-7f3a"
SLASHED = "canary/K7MDENG/bPxRfi+CYEXAMPLEKEY"
QUOTED = 'canary"öf\\quotes&more'
PADDED = base64.b64encode(b"canary of an account: 0123456789").decode()
BEGIN, END = (f"-----{word} {'RSA '}PRIVATE KEY-----" for word in ("BEGIN", "END"))
PEM = f"{BEGIN}\nMIIEcanary/0123456789+abcdef\nZm9v/canary=\n{END}\n"
SERVICE_ACCOUNT = {
    "type": "service_account",
    "project_id": "example-project",
    "private_key": PEM,
    "client_email": "fleet@example-project.iam.gserviceaccount.com",
    "token_uri": "https://oauth2.googleapis.com/token",
}
SHAPES = {
    "word": PASSWORD,
    "with-slashes": SLASHED,
    "with-quotes": QUOTED,
    "in-base64": PADDED,
    "of-lines": PEM,
}
CREDENTIALS = {
    "orders": json.dumps({"user": "orders-application", "password": PASSWORD}),
    "registry": json.dumps({"auths": {"quay.io": {"auth": "b3JkZXJzOmNhbmFyeQ=="}}}),
    "token": "glpat-canary",
    "short": "abc",
    "nested": json.dumps({"serviceaccount.json": json.dumps({"private_key": "canary-key-of-gcp"})}),
    "aws": json.dumps({"accessKeyID": "AKIAEXAMPLE", "secretAccessKey": SLASHED}),
    "quoted": QUOTED,
    "storage": PADDED,
    "gcp": json.dumps(SERVICE_ACCOUNT),
}
BEGIN_AS_ESCAPES = {"example:token": "token-canary-7f3a", "example:unicode": "ucafe-canary-7f3a"}
CONFIG = {
    **BEGIN_AS_ESCAPES,
    "credfleet:credentials": json.dumps(CREDENTIALS),
    "gcp:accessToken": "canary-access-token",
    "gcp:project": "example-project",
}


@pytest.fixture(autouse=True)
def sightings(monkeypatch: pytest.MonkeyPatch) -> Sightings:
    """Let the rule have secrets of its own, and nothing seen so far."""
    fresh = Sightings(declared_secrets(CONFIG, ["gcp:accessToken", *BEGIN_AS_ESCAPES]))
    monkeypatch.setattr(secret_values._OF_THE_STACK, "sightings", fresh)  # pyright: ignore[reportPrivateUsage]
    return fresh


def found(**inputs: object) -> list[str]:
    return judge(secret_values.secrets_stay_marked, CONFIG_MAP, inputs)


@tabled("text")
def test_a_declared_secret_in_plain_is_told_by_its_path_and_never_its_value(text: str) -> None:
    said = found(data={"note": text})

    assert said == ["data.note is a secret in plaintext"]
    assert text not in repr(said)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("value", SHAPES.values(), ids=SHAPES)
@tabled("written")
def test_a_secret_is_found_between_whatever_signs_and_with_signs_of_its_own(written: str, value: str) -> None:
    text = written.format(value, value)

    for each in (text, encoded(text), json.dumps(text), json.dumps({"in": json.dumps({"it": text})})):
        assert found(data={"note": each}) == ["data.note is a secret in plaintext"]


@pytest.mark.parametrize("value", SHAPES.values(), ids=SHAPES)
def test_a_secret_is_found_in_base64_inside_a_longer_text(value: str) -> None:
    for each in (encoded(value), encoded(f"orders:{value}"), encoded(value).rstrip("=")):
        assert found(data={"note": f"Authorization: Basic {each}"}) == ["data.note is a secret in plaintext"]
        assert found(data={"note": encoded(f'{{"auth": "{each}"}}')}) == [
            "data.note is a secret in plaintext"
        ]


@pytest.mark.parametrize("value", BEGIN_AS_ESCAPES.values(), ids=BEGIN_AS_ESCAPES)
@pytest.mark.parametrize("written", ["CORP\\{}", "C:\\{}\\x", "a\\\\{}"])
def test_a_secret_behind_a_backslash_is_found_whatever_it_begins_with(written: str, value: str) -> None:
    text = written.format(value)

    for each in (text, encoded(text), json.dumps(text)):
        assert found(data={"note": each}) == ["data.note is a secret in plaintext"]


def test_a_key_of_several_lines_is_found_in_a_block_of_yaml() -> None:
    block = "key: |\n" + "".join(f"    {line}\n" for line in PEM.splitlines())

    assert found(data={"note": block}) == ["data.note is a secret in plaintext"]


@tabled("text")
def test_what_merely_stands_beside_a_secret_is_let_through(text: str) -> None:
    assert found(data={"note": text}) == []


KEY = f"Canary{'0123456789'}/of+a+cloud=="
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nTUlJLWNhbmFyeQ==\n-----END CERTIFICATE-----\n"


def others(marked: object, plain: str) -> list[tuple[str, str]]:
    """Return what is found of a value that one resource marks, in a text of another."""
    stack: Sequence[Mapping[str, object]] = ({"data": secret(marked)}, {"note": plain})
    for urn, inputs in enumerate(stack):
        assert judge(secret_values.secrets_stay_marked, CONFIG_MAP, inputs, urn=str(urn)) == []
    return judge_stack(
        secret_values.secrets_stay_marked_everywhere, [(CONFIG_MAP, inputs) for inputs in stack]
    )


@tabled("marked, plain")
def test_what_another_marks_is_found_inside_a_longer_text(marked: str, plain: str) -> None:
    assert others({"a": marked}, plain) == [("1", "note is a secret in plaintext")]


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("https://db.example.com/a", "https://db.example.com/a/orders"),
        ("/subscriptions/aa/resourceGroups/rg", "/subscriptions/aa/resourceGroups/rg/providers/x"),
        ("system:serviceaccount:team-a:work", "subject: system:serviceaccount:team-a:work"),
        ("orders and their application", "of orders and their application"),
        (CERTIFICATE, f"# all that are trusted\n{CERTIFICATE}{CERTIFICATE}"),
    ],
)
def test_names_and_addresses_that_another_marks_are_no_secret_inside_a_longer_text(
    marked: str, plain: str
) -> None:
    assert others({"a": marked}, plain) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("t", KEY),
        ("t", "https://a:b@db.example.com"),
        ("t", json.dumps({"user": "orders", "password": "canary"})),
        pytest.param("t", PEM.replace("canary", "cloud"), id="t-of-lines"),
        ("password", "canary-of-a-cloud"),
    ],
)
def test_what_another_marks_in_base64_is_found_as_it_is(key: str, value: str) -> None:
    for plain in (value, f"it is {value}, no more", encoded(value)):
        assert others({key: encoded(value)}, plain) == [("1", "note is a secret in plaintext")]


def test_a_secret_of_the_configuration_that_another_marks_is_told_once() -> None:
    judge(secret_values.secrets_stay_marked, CONFIG_MAP, {"data": secret({"password": SLASHED})}, urn="other")
    told = judge(secret_values.secrets_stay_marked, CONFIG_MAP, {"note": SLASHED}, urn="0")

    assert told == ["note is a secret in plaintext"]
    assert judge_stack(secret_values.secrets_stay_marked_everywhere, [(CONFIG_MAP, {"note": SLASHED})]) == []


def test_what_a_resource_marks_in_base64_is_found_in_its_own_annotations() -> None:
    assert found(data=secret({"t": encoded(KEY)}), metadata={"annotations": {"note": KEY}}) == [
        "metadata.annotations.note is a secret in plaintext"
    ]


@tabled("key, value")
def test_what_stands_in_base64_beside_a_secret_is_let_through(key: str, value: str) -> None:
    assert others({key: encoded(value), "password": encoded(PASSWORD)}, value) == []


def asset(text: str) -> dict[str, str]:
    """A text as Pulumi sends one that stands in for a file."""
    return {"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17", "text": text}


def archive(**assets: object) -> dict[str, object]:
    """Files as Pulumi sends them in one."""
    return {"4dabf18193072939515e22adb298388d": "0def7320c3a5731c473e5ecbe6d01bc7", "assets": assets}


@tabled("inputs, path")
def test_a_secret_in_plain_is_found_wherever_it_stands(inputs: Mapping[str, object], path: str) -> None:
    assert found(**inputs) == [f"{path} is a secret in plaintext"]


@pytest.mark.parametrize("key", [PASSWORD, f"a.txt/{PASSWORD}", encoded(PASSWORD)])
def test_a_secret_that_is_a_key_is_told_without_it(key: str) -> None:
    said = found(data={key: {"a": PASSWORD, "b": "c"}, "other": "c"})

    assert said == ["data.* is a secret in plaintext", "data.*.a is a secret in plaintext"]


def test_a_file_that_only_the_machine_has_is_not_read() -> None:
    file = {"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17", "path": "./notes.txt"}

    assert found(source=file) == []


def test_a_secret_that_is_marked_is_let_through_wherever_the_mark_stands() -> None:
    assert found(data=secret({"note": PASSWORD}), items=[secret(PASSWORD)], __provider=PASSWORD) == []


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
        alone[urn] = judge(secret_values.secrets_stay_marked, CONFIG_MAP, inputs, urn=urn)

    assert {urn: said for urn, said in alone.items() if said} == {
        "1": ["same is a secret in plaintext"],
        "2": ["b is a secret in plaintext"],
    }
    everywhere = judge_stack(
        secret_values.secrets_stay_marked_everywhere, [(CONFIG_MAP, inputs) for inputs in STACK]
    )
    assert everywhere == [("1", "note is a secret in plaintext"), ("3", "c is a secret in plaintext")]


def test_login_to_a_cloud_in_plain_is_told_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    def judged() -> list[tuple[str, str]]:
        return judge_stack(secret_values.secrets_stay_marked_everywhere, [(CONFIG_MAP, {})])

    monkeypatch.setattr(secret_values.STACK_CONFIG, "values", CONFIG)
    assert judged() == [("0", "gcp:accessToken of the configuration is a secret in plaintext")]
    monkeypatch.setattr(secret_values.STACK_CONFIG, "secret_keys", ["gcp:accessToken"])
    assert judged() == []


THE_STACK = "pulumi:pulumi:Stack"
COMPONENT = "credfleet:index:Fleet"


def told_at_the_end(*resources: tuple[str, Mapping[str, object]]) -> list[tuple[str, str]]:
    """Return what is found in outputs, once a resource was judged that marks the key of a cloud."""
    judge(secret_values.secrets_stay_marked, CONFIG_MAP, {"data": secret({"k": KEY})}, urn="other")
    return judge_stack(secret_values.secrets_stay_marked_everywhere, resources)


def test_what_the_stack_and_components_put_out_is_judged_at_the_end() -> None:
    exported = {"token": PASSWORD, "key": {"of": [KEY]}, "kept": secret(PASSWORD), "name": "orders"}
    address = {"address": f"postgres://orders:{PASSWORD}@db/x"}

    assert told_at_the_end((THE_STACK, exported), (COMPONENT, address)) == [
        ("0", "key.of[0] is a secret in plaintext"),
        ("0", "token is a secret in plaintext"),
        ("1", "address is a secret in plaintext"),
    ]


def test_what_a_provider_adds_to_a_resource_is_not_judged() -> None:
    assert told_at_the_end((CONFIG_MAP, {"added": PASSWORD}), ("pulumi:providers:gcp", {"a": PASSWORD})) == []


def test_a_secret_that_a_component_was_given_in_plain_is_told_once() -> None:
    judge(secret_values.secrets_stay_marked, COMPONENT, {"a": PASSWORD}, urn="0")

    assert told_at_the_end((COMPONENT, {"a": PASSWORD, "b": PASSWORD})) == [
        ("0", "b is a secret in plaintext")
    ]


def test_names_in_what_is_put_out_marked_as_a_whole_are_no_secrets() -> None:
    exported = {"all": secret({"namespace": "accounts-of-the-fleet"})}

    assert told_at_the_end((THE_STACK, exported), (COMPONENT, {"namespace": "accounts-of-the-fleet"})) == []


def test_a_host_that_shows_no_marks_is_no_host_for_the_rule() -> None:
    args = ResourceValidationArgs(CONFIG_MAP, {"data": {"note": "x"}}, "urn:x", "x", OPTIONS, None)

    with pytest.raises(TypeError, match="shows no marks"):
        secret_values.secrets_stay_marked.validate(args, lambda _message, _urn: None)


def test_no_value_is_kept(sightings: Sightings) -> None:
    assert found(data={"note": PASSWORD}) == ["data.note is a secret in plaintext"]

    kept = repr({name: getattr(sightings, name) for name in vars(sightings)})
    assert PASSWORD not in kept
    assert base64.b64encode(PASSWORD.encode()).decode() not in kept
