"""Which bytes are a pull secret, by the rows of the payload table (C), and what is told of them."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.pull_secret.payload import LIMIT, judge
from tests.support.cases import cases, table


def auth(plain: str) -> str:
    return base64.b64encode(plain.encode()).decode()


SOUND = {"auth": auth("user:password"), "email": "e"}


def pull_secret(auths: Any, **others: Any) -> bytes:
    return json.dumps({"auths": auths, **others}).encode()


def errors(payload: bytes, *, strict: bool = False) -> list[tuple[str, str]]:
    return [(fault.place, fault.problem) for fault in judge(payload, strict=strict).errors]


def warnings(payload: bytes) -> list[tuple[str, str]]:
    return [(fault.place, fault.problem) for fault in judge(payload).warnings]


@cases(
    "payload, registries",
    {
        "a-further-field": (pull_secret({"quay.io": {**SOUND, "more": 5}}), ("quay.io",)),
        "two-registries": (pull_secret({"quay.io": SOUND, "ghcr.io": SOUND}), ("quay.io", "ghcr.io")),
        "more-keys": (pull_secret({"quay.io": SOUND}, credsStore="x"), ("quay.io",)),
        "whitespace-around": (b" \r\n\t" + pull_secret({"quay.io": SOUND}) + b"\n\n", ("quay.io",)),
        "large-numbers": (pull_secret({"quay.io": SOUND}, most=1e308, whole=10**300), ("quay.io",)),
        "empty-entry": (pull_secret({"r": {}}), ("r",)),
        "null-entry": (pull_secret({"r": None}), ("r",)),
    },
)
def test_what_kubelet_and_hyperfleets_job_accept_is_valid(
    payload: bytes, registries: tuple[str, ...]
) -> None:
    verdict = judge(payload)
    assert (verdict.errors, verdict.registries, verdict.size) == ((), registries, len(payload))


MISSING = ("auths", "it is missing, so no registry has a credential")


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        pytest.param(b"null", MISSING, id="null"),
        pytest.param(b'{"registries":{}}', MISSING, id="other-key"),
        pytest.param(
            b'{"Auths":{"quay.io":{}}}',
            ("auths", "it is spelt in another case, and case counts, so no registry has a credential"),
            id="other-case",
        ),
        pytest.param(b"[]", MISSING, id="array"),
        pytest.param(b'"text"', MISSING, id="text"),
        pytest.param(b"7", MISSING, id="number"),
        *(
            pytest.param(
                f'{{"auths":{other}}}'.encode(),
                ("auths", "it is not a map, so no registry has a credential"),
                id=f"auths-{other}",
            )
            for other in ("null", "[]", '"quay.io"', "1", "true")
        ),
        pytest.param(b'{"auths":{}}', ("auths", "it is empty, so no registry has a credential"), id="empty"),
        pytest.param(b"", ("payload", "it is empty, so the cluster could pull nothing"), id="empty"),
        pytest.param(b" \n", ("payload", "it is empty, so the cluster could pull nothing"), id="blanks"),
        *(
            pytest.param(
                mark + pull_secret({"quay.io": SOUND}),
                ("payload", "it begins with a byte order mark, which is not JSON"),
                id=f"byte-order-mark-{mark.hex()}",
            )
            for mark in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
        ),
        pytest.param(
            b'{"auths":{"\xe9":{}}}',
            ("payload", "it is not UTF-8 from byte 11 on, and JSON is"),
            id="latin-1",
        ),
        pytest.param(
            b'{"auths":{"quay.io":{}}}\nmore',
            ("payload", "it is not JSON from line 2, column 1 on"),
            id="trailing-text",
        ),
        pytest.param(b"{'auths':{}}", ("payload", "it is not JSON from line 1, column 2 on"), id="quotes"),
        pytest.param(b'{"auths":{"r":NaN}}', ("payload", "NaN is not JSON"), id="not-a-number"),
        *(
            pytest.param(
                b'{"auths":{"quay.io":{}},"more":%s}' % number,
                ("payload", "it holds a number that is too large for a 64-bit float"),
                id=name,
            )
            for name, number in {"large": b"1e400", "negative": b"-1e400", "long": b"9" * 5000}.items()
        ),
        pytest.param(
            b'{"auths":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
            ("payload", "it is nested more than 200 levels deep, and no pull secret is"),
            id="deep",
        ),
        pytest.param(
            base64.encodebytes(pull_secret({"quay.io": SOUND})),
            ("payload", "it is not JSON from line 1, column 1 on: it is encoded in base64"),
            id="encoded-twice",
        ),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_what_holds_no_credentials_by_registry_is_refused(
    payload: bytes, expected: tuple[str, str], strict: bool
) -> None:
    assert errors(payload, strict=strict) == [expected]


def test_one_byte_over_64_kib_is_refused_beside_everything_else_that_is_wrong() -> None:
    told = errors(pull_secret({"quay.io": {}}).ljust(LIMIT + 1), strict=True)
    assert told == [
        ("payload", "it has 65537 bytes, and Secret Manager takes 65536"),
        ('auths["quay.io"]', "it holds no auth, so it opens nothing"),
    ]


@cases(
    "entry, problem",
    table(__file__, "test_an_entry_that_opens_nothing_is_a_warning_and_an_error_to_the_strict"),
)
def test_an_entry_that_opens_nothing_is_a_warning_and_an_error_to_the_strict(
    entry: object, problem: str
) -> None:
    payload = pull_secret({"quay.io": SOUND, "r": entry})
    assert errors(payload) == []
    assert warnings(payload) == errors(payload, strict=True) == [('auths["r"]', problem)]
    assert judge(payload, strict=True).warnings == ()


REFUSED = "kubelet refuses the whole pull secret for it: "


@pytest.mark.parametrize("strict", [False, True])
@cases("entry, problem", table(__file__, "test_an_entry_that_kubelet_refuses_is_an_error_of_the_whole"))
def test_an_entry_that_kubelet_refuses_is_an_error_of_the_whole(
    entry: object, problem: str, strict: bool
) -> None:
    payload = pull_secret({"quay.io": SOUND, "r": entry})
    assert errors(payload, strict=strict) == [('auths["r"]', REFUSED + problem)]


@cases("payload, place, problem", table(__file__, "test_what_kubelet_refuses_besides_is_an_error"))
def test_what_kubelet_refuses_besides_is_an_error(payload: str, place: str, problem: str) -> None:
    given = payload.replace("ENTRY", json.dumps(SOUND)).encode()
    assert errors(given) == [(place, REFUSED + problem)]


def test_auths_that_a_later_null_empties_for_kubelet_are_an_error() -> None:
    given = f'{{"auths":{{"r":{json.dumps(SOUND)}}},"Auths":null}}'.encode()
    assert errors(given) == [("auths", "a second one, null, has kubelet find no registry")]


@cases("entry", table(__file__, "test_an_entry_that_kubelet_signs_in_with_is_sound"))
def test_an_entry_that_kubelet_signs_in_with_is_sound(entry: object) -> None:
    assert errors(pull_secret({"r": entry}), strict=True) == []


@cases("payload, places, registries", table(__file__, "test_a_repeated_key_is_told_and_every_one_is_judged"))
def test_a_repeated_key_is_told_and_every_one_is_judged(
    payload: str, places: list[str], registries: list[str]
) -> None:
    given = payload.replace("ENTRY", json.dumps(SOUND)).encode()
    assert [place for place, _ in warnings(given)] == places
    assert [*judge(given).registries] == registries


@cases("name", table(__file__, "test_a_registry_is_told_by_its_name"))
def test_a_registry_is_told_by_its_name(name: str) -> None:
    verdict = judge(pull_secret({name: SOUND}), strict=True)
    assert (verdict.errors, verdict.registries) == ((), (name,))


@cases("name", table(__file__, "test_a_key_that_may_be_a_credential_is_told_by_its_place_only"))
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
