"""What credentials break, row by row, and the entries with a meaning of their own."""

import errno
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from components.service_credentials.binding import BoundInstance, read_credentials_object, vcap_services
from components.service_credentials.conformity import ENVIRONMENT_LIMIT, SIZE_LIMIT, Conformity, judge_text
from tests.support.cases import cases, table

KEY = ed25519.Ed25519PrivateKey.generate()
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "orders")])
NOW = datetime.now(UTC)
CERTIFICATE = (
    x509.CertificateBuilder()
    .subject_name(NAME)
    .issuer_name(NAME)
    .public_key(KEY.public_key())
    .serial_number(1)
    .not_valid_before(NOW)
    .not_valid_after(NOW + timedelta(days=1))
    .sign(KEY, None)
    .public_bytes(Encoding.PEM)
    .decode()
)
PLAIN_KEY = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
LOCKED_KEY = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw")).decode()
SSH_KEY = KEY.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def judged(members: dict[str, object], *, strict: bool = False) -> Conformity:
    return judge_text(json.dumps(members).encode(), strict=strict)


def places(verdict: Conformity) -> tuple[list[str], list[str]]:
    return [each.place for each in verdict.errors], [each.place for each in verdict.warnings]


@cases(
    "key, place",
    {
        "blank": ("my key", '["my key"]'),
        "slash": ("a/b", '["a/b"]'),
        "dollar": ("$x", '["$x"]'),
        "accent": ("é", '["é"]'),
        "empty": ("", '[""]'),
        "two dots": ("..x", '["..x"]'),
        "parent": ("..", '[".."]'),
        "dot": (".", '["."]'),
        "too long": ("k" * 254, f'["{"k" * 60}…"]'),
        "line end": ("a\n", '["a\\n"]'),
    },
)
def test_a_key_that_kubernetes_refuses_is_an_error(key: str, place: str) -> None:
    assert places(judged({key: "value"}))[0] == [place]


def test_a_type_that_shows_another_than_it_is_is_an_error() -> None:
    assert places(judged({"type": "database\n"})) == (["type"], [])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *table(__file__, "test_an_entry_that_means_what_the_specification_says_passes"),
        pytest.param("certificates", CERTIFICATE, id="certificate"),
        pytest.param("certificates", CERTIFICATE * 2, id="chain"),
        pytest.param("private-key", PLAIN_KEY, id="key"),
        pytest.param("private-key", LOCKED_KEY, id="encrypted-key"),
        pytest.param("private-key", SSH_KEY, id="ssh-key"),
    ],
)
def test_an_entry_that_means_what_the_specification_says_passes(key: str, value: object) -> None:
    assert judged({key: value}) == Conformity()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *table(__file__, "test_an_entry_that_breaks_the_specification_is_a_warning_and_with_strict_an_error"),
        pytest.param("certificates", PLAIN_KEY, id="certificates-key"),
        pytest.param("certificates", [CERTIFICATE], id="certificates-list"),
        pytest.param("private-key", CERTIFICATE, id="key-certificate"),
        pytest.param("private-key", PLAIN_KEY.partition("-----END")[0], id="key-cut-short"),
        pytest.param("private-key", PLAIN_KEY.replace("M", "*"), id="key-no-base64"),
        pytest.param(
            "private-key", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n", id="key-empty"
        ),
    ],
)
def test_an_entry_that_breaks_the_specification_is_a_warning_and_with_strict_an_error(
    key: str, value: object
) -> None:
    assert places(judged({key: value})) == ([], [key])
    assert places(judged({key: value}, strict=True)) == ([key], [])


def test_everything_is_told_at_once_errors_apart_from_warnings() -> None:
    verdict = judge_text(b'{"my key": 1, "apiKey": 9007199254740993, "port": "x", "port": "y"}')

    assert places(verdict) == (['["my key"]'], ["apiKey", "port", "apiKey", "port"])


def test_a_verdict_never_holds_a_value() -> None:
    secret = "hunter2 hunter2"
    keys = ("port", "host", "uri", "certificates", "private-key", "apiKey", "my key")
    verdict = judged({**dict.fromkeys(keys, secret), "username": [secret], "type": {"x": secret}})

    assert len(verdict.errors) == 1
    assert len(verdict.warnings) == 8
    assert "hunter2" not in repr(verdict)


def source_of(size: int) -> bytes:
    overhead = len(b'{"type":"t","v":""}')
    return json.dumps({"type": "t", "v": "x" * (size - overhead)}).encode()


def test_the_source_secret_may_hold_exactly_1_mib() -> None:
    assert judge_text(source_of(SIZE_LIMIT)).errors == ()
    (error,) = judge_text(source_of(SIZE_LIMIT + 1)).errors
    assert f"source Secret would hold {SIZE_LIMIT + 1} bytes" in error.problem


def test_the_binding_secret_counts_too_because_a_default_type_makes_it_the_larger_one() -> None:
    fitting = SIZE_LIMIT - len("user-provided")

    assert judge_text(json.dumps({"v": "x" * fitting}).encode()).errors == ()
    (error,) = judge_text(json.dumps({"v": "x" * (fitting + 1)}).encode()).errors
    assert "binding Secret" in error.problem


def test_what_no_environment_variable_holds_is_a_warning_and_with_strict_an_error() -> None:
    beside = len(judged_environment(0))
    fitting = json.dumps({"v": "x" * (ENVIRONMENT_LIMIT - beside)}).encode()
    larger = json.dumps({"v": "x" * (ENVIRONMENT_LIMIT - beside + 1)}).encode()
    assert judge_text(fitting, strict=True) == Conformity()
    (warning,) = judge_text(larger).warnings
    assert f"{ENVIRONMENT_LIMIT + 1} bytes or more" in warning.problem
    assert judge_text(larger, strict=True).errors == (warning,)


def judged_environment(size: int) -> bytes:
    bound = BoundInstance(instance_guid="", instance_name="", binding_guid="")
    return vcap_services([(bound, read_credentials_object(json.dumps({"v": "x" * size}).encode()))])


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_linux_itself_starts_a_program_with_a_variable_of_exactly_that_size() -> None:
    def starts(size: int) -> bool:
        try:
            done = subprocess.run(
                [sys.executable, "-S", "-c", ""], env={"VCAP_SERVICES": "x" * size}, check=False
            )
        except OSError as error:
            return error.errno != errno.E2BIG
        return done.returncode == 0

    assert [starts(ENVIRONMENT_LIMIT), starts(ENVIRONMENT_LIMIT + 1)] == [True, False]
