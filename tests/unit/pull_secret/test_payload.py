"""Which bytes are a pull secret, by the rows of the payload table (C), and what is told of them."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.errors import PullSecretError
from components.pull_secret.payload import LIMIT, judge, list_winners, merge
from tests.support.cases import cases, table, tabled


def auth(plain: str) -> str:
    return base64.b64encode(plain.encode()).decode()


SOUND = {"auth": auth("user:password"), "email": "e"}


def pull_secret(auths: Any, **others: Any) -> bytes:
    return json.dumps({"auths": auths, **others}).encode()


def errors(payload: bytes, *, strict: bool = False) -> list[tuple[str, str]]:
    return [(fault.place, fault.problem) for fault in judge(payload, strict=strict).errors]


def warnings(payload: bytes) -> list[tuple[str, str]]:
    return [(fault.place, fault.problem) for fault in judge(payload).warnings]


@tabled("payload, registries")
def test_what_kubelet_and_hyperfleets_job_accept_is_valid(payload: str, registries: list[str]) -> None:
    verdict = judge(payload.encode())
    assert (verdict.errors, [*verdict.registries], verdict.size) == ((), registries, len(payload))


LONG = '{"auths":{"quay.io":{}},"more":%s}'
DEEP = '{"auths":%s}'
REFUSED_WHOLE = {
    **table(__file__, "test_what_holds_no_credentials_by_registry_is_refused"),
    "long": (LONG % ("9" * 5000), "payload", "it holds a number that is too large for a 64-bit float"),
    "deep": (
        DEEP % ("[" * 30_000 + "]" * 30_000),
        "payload",
        "it is nested more deeply than readers of JSON follow",
    ),
}


@cases("payload, place, problem", REFUSED_WHOLE)
@pytest.mark.parametrize("strict", [False, True])
def test_what_holds_no_credentials_by_registry_is_refused(
    payload: str, place: str, problem: str, strict: bool
) -> None:
    assert errors(payload.encode("latin-1"), strict=strict) == [(place, problem)]


@tabled("payload, fix")
def test_another_format_is_told_with_the_command_that_gets_the_right_one(payload: str, fix: str) -> None:
    assert [error.fix for error in judge(payload.encode()).errors] == [fix]


def test_one_byte_over_64_kib_is_refused_beside_everything_else_that_is_wrong() -> None:
    told = errors(pull_secret({"a.io": SOUND, "quay.io": {}}).ljust(LIMIT + 1), strict=True)
    assert told == [
        ("payload", "it has 65537 bytes, and Secret Manager takes 65536"),
        ('auths["quay.io"]', "it holds no auth, so it opens nothing"),
    ]


@tabled("entry, problem")
def test_an_entry_that_opens_nothing_is_a_warning_and_an_error_to_the_strict(
    entry: object, problem: str
) -> None:
    payload = pull_secret({"quay.io": SOUND, "r": entry})
    assert errors(payload) == []
    assert warnings(payload) == errors(payload, strict=True) == [('auths["r"]', problem)]
    assert judge(payload, strict=True).warnings == ()


REFUSED = "kubelet refuses the whole pull secret for it: "


@pytest.mark.parametrize("strict", [False, True])
@tabled("entry, problem")
def test_an_entry_that_kubelet_refuses_is_an_error_of_the_whole(
    entry: object, problem: str, strict: bool
) -> None:
    payload = pull_secret({"quay.io": SOUND, "r": entry})
    assert errors(payload, strict=strict) == [('auths["r"]', REFUSED + problem)]


@tabled("payload, place, problem")
def test_what_kubelet_refuses_besides_is_an_error(payload: str, place: str, problem: str) -> None:
    given = payload.replace("ENTRY", json.dumps(SOUND)).encode()
    assert errors(given) == [(place, REFUSED + problem)]


def test_auths_that_a_later_null_empties_for_kubelet_are_an_error() -> None:
    given = f'{{"auths":{{"r":{json.dumps(SOUND)}}},"Auths":null}}'.encode()
    assert errors(given) == [("auths", "a second one, null, has kubelet find no registry")]


@tabled("auths")
def test_registries_none_of_which_a_node_can_pull_from_are_an_error(auths: str) -> None:
    told = errors(f'{{"auths":{auths}}}'.encode())
    assert told == [("auths", "no registry has both a user and a password, so no node pulls with it")]


@tabled("entry")
def test_an_entry_that_kubelet_signs_in_with_is_sound(entry: object) -> None:
    assert errors(pull_secret({"r": entry}), strict=True) == []


@tabled("payload, places, registries")
def test_a_repeated_key_is_told_and_every_one_is_judged(
    payload: str, places: list[str], registries: list[str]
) -> None:
    given = payload.replace("ENTRY", json.dumps(SOUND)).encode()
    assert [place for place, _ in warnings(given)] == places
    assert [*judge(given).registries] == registries


@tabled("payloads, auths, winners")
def test_of_pull_secrets_that_merge_the_first_that_has_a_registry_wins(
    payloads: list[str], auths: dict[str, Any], winners: list[str]
) -> None:
    given = [*map(str.encode, payloads)]
    merged = merge(given)
    assert json.loads(merged) == {"auths": auths}
    assert judge(merged, strict=True).errors == ()
    names = ("first", "second", "third")
    assert [
        *list_winners(dict(zip(names, (judge(each).registries for each in given), strict=False)))
    ] == winners


def test_pull_secrets_that_are_too_large_together_are_refused() -> None:
    half = [pull_secret({f"{name}.io": {**SOUND, "x": "y" * (LIMIT // 2)}}) for name in "ab"]
    assert not any(judge(each).errors for each in half)
    with pytest.raises(PullSecretError, match="Secret Manager takes 65536"):
        merge(half)


@tabled("name")
def test_a_registry_is_told_by_its_name(name: str) -> None:
    verdict = judge(pull_secret({name: SOUND}), strict=True)
    assert (verdict.errors, verdict.registries) == ((), (name,))


@tabled("name")
def test_a_key_that_may_be_a_credential_is_told_by_its_place_only(name: str) -> None:
    verdict = judge(pull_secret({"quay.io": SOUND, name: SOUND}))
    assert verdict.registries == ("quay.io",)
    assert [fault.place for fault in verdict.warnings] == ["auths, entry 2"]
    assert not name or name not in repr(verdict)


@given(secret=st.text(alphabet="QXZ", min_size=12), position=st.integers(min_value=0, max_value=6))
def test_no_value_is_ever_told(secret: str, position: int) -> None:
    payload = (
        pull_secret({"quay.io": {"auth": secret}}),
        pull_secret({"quay.io": {"auth": auth(f"{secret}:{secret}\n")}}),
        pull_secret({"quay.io": {"password": secret, "auth": None}}),
        pull_secret({f"https://{secret}@quay.io": secret}),
        f'{{"auths":{{"quay.io":{secret}}}}}'.encode(),
        f'{{"auths":"{secret}"}}'.encode(),
        secret.encode(),
    )[position]
    for strict in (False, True):
        verdict = judge(payload, strict=strict)
        assert verdict.errors or verdict.warnings
        assert secret not in repr(verdict)
        assert auth(f"{secret}:{secret}\n") not in repr(verdict)


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,auths \\x01', max_size=60).map(str.encode))
def test_any_bytes_are_judged(payload: bytes) -> None:
    assert judge(payload).size == len(payload)
