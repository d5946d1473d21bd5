"""What ASO takes of a Secret, as azidentity itself says: acceptance, method and what was refused.

The program in tests/witness/program chooses the constructor as ASO's credential provider does; all else is
the library's. Not asked is Entra, so whether a token is given stays open; nor is what is malformed, which is
refused here whatever the library makes of it.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, TypeAlias

import pytest

from components.aso_credentials import keys
from components.aso_credentials.certificate import CertificateFault, certificate_fault
from components.aso_credentials.credential import AsoCredential
from components.aso_credentials.model import method_of
from components.aso_credentials.resolution import Operator, Reason, Resolution, Resource
from components.aso_credentials.resolver import resolve
from components.aso_credentials.scoped import incompleteness, refusal
from components.projection.keys import AsoMethod, plan_keys
from components.projection.model import SecretRef
from tests.support import certificates
from tests.support.proving import counted
from tests.witness.conftest import Witness

pytestmark = pytest.mark.built

Data: TypeAlias = dict[str, bytes]
ID: Final = b"00000000-0000-4000-8000-0000000000cc"
OWN: Final = {key: b"00000000-0000-4000-8000-0000000000dd" for key in keys.REQUIRED}
CASES: Final = counted(150, 5_000)
OURS: Final[Mapping[str, str]] = {
    "does not contain key": "incomplete",
    f"{keys.ALLOW_MULTI_ENV}|go together": "cloud",
    f"^{keys.CLIENT_SECRET} ": "client-secret",
    f"^{keys.TENANT} ": "tenant",
    f"^{keys.CLIENT} ": "client",
    f"^{keys.AUTHORITY_HOST} ": "authority",
    f"^{keys.AUTH_MODE} ": "mode",
    f"^{keys.SERVICE_ACCOUNT} ": "account",
    f"^cannot parse {keys.CERTIFICATE}: ": "certificate",
}
"""What is said here → its class."""
SAID: Final[Mapping[str, str]] = {
    "does not contain key": "incomplete",
    "ALLOW_MULTI_ENV|go together": "cloud",
    "secret can't be empty": "client-secret",
    "invalid tenantID": "tenant",
    "no tenant ID specified": "tenant",
    "empty .*UserAssignedClientID|no client ID specified": "client",
    "without https|^parse ": "authority",
    "authorization mode": "mode",
    "invalid ServiceAccount": "account",
    "multiple private keys": CertificateFault.SEVERAL_KEYS.name,
    "found no certificate": CertificateFault.NO_CERTIFICATE.name,
    "found no private key": CertificateFault.NO_KEY.name,
    "must be an RSA|ParseECPrivateKey|unknown private key type": CertificateFault.NOT_RSA.name,
    "match any certificate": CertificateFault.OTHER_KEY.name,
}
"""What the library says → the same; of a certificate anything else is unreadable."""
UNREADABLE: Final = {"UNREADABLE", "FOLDED", "LOCKED_PEM", "NEWER_PKCS12"}
"""Of what the library calls a parsing error, the causes that people are told apart."""


def of_the_library(answer: Mapping[str, Any]) -> tuple[bool, str, str]:
    said, method = answer["refused"], answer["method"]
    known = (kind for words, kind in SAID.items() if re.search(words, said))
    return answer["accepted"], method, next(known, "UNREADABLE" if said else "")


def of_this_project(data: Data, operator: Operator) -> tuple[bool, str, str]:
    found = incompleteness(data) or refusal(data, operator)
    kind = next(kind for words, kind in OURS.items() if re.search(words, found)) if found else ""
    method = "" if kind in ("incomplete", "cloud", "mode") else method_of(data) or ""
    if kind != "certificate":
        return not found, str(method), kind
    fault = certificate_fault(data[keys.CERTIFICATE], data.get(keys.CERTIFICATE_PASSWORD))
    return False, str(method), "UNREADABLE" if fault is None or fault.name in UNREADABLE else fault.name


def asked(data: Data, operator: Operator) -> dict[str, Any]:
    return {
        "data": {key: b64encode(value).decode() for key, value in data.items()},
        "strict": operator.strict,
        "multiEnv": operator.multi_env,
        "environment": {key: value.decode() for key, value in (operator.environment or {}).items()},
    }


def compare(witness: Witness, given: list[tuple[Data, Operator]]) -> Sequence[Any]:
    """Hold what is said here to what the library says; return its answers."""
    answers = witness("azure", [asked(*each) for each in given])
    assert len(answers) == len(given)
    for (data, operator), answer in zip(given, answers, strict=True):
        told = of_the_library(answer)
        assert of_this_project(data, operator) == told, (data, operator, answer)
        settings = operator.environment or {}
        if method_of(data) is not None or told[2] == "mode":
            found = explained(data, settings, operator)
            assert (found.fault is None or found.fault.reason is not Reason.FAILED) == told[0], (data, found)
    return answers


def explained(data: Data, settings: Mapping[str, bytes], operator: Operator) -> Resolution:
    """Return what `aso explain` says of a resource that the Secret serves."""
    secrets = {
        SecretRef("team", keys.NAMESPACE_SECRET): data,
        SecretRef(operator.namespace, keys.GLOBAL_SETTINGS): settings,
    }
    return resolve([Resource("team", "ResourceGroup", "rg")], secrets, operator)[0]


_KEY_SIGN: Final = "\U0001f511".encode()
_EURO: Final = "p\xe4ss\u20ac".encode()


def _certificates() -> dict[str, tuple[bytes, bytes | None]]:
    pem, password = certificates.pem(), b"pass"
    key, other = certificates.only_key(), certificates.only_key(certificates.rsa_key(1))
    legacy = certificates.pkcs12(password)
    curve = certificates.certificate_pem(certificates.curve_key())
    return {
        "PEM": (pem, None),
        "key first": (key + certificates.without_key(), None),
        "with Windows' line ends": (pem.replace(b"\n", b"\r\n"), None),
        "folded to blanks": (pem.replace(b"\n", b" "), None),
        "on one line": (pem.replace(b"\n", b""), None),
        "with the two characters of an escape": (pem.replace(b"\n", b"\\n"), None),
        "indented": (b"".join(b"  " + line for line in pem.splitlines(keepends=True)), None),
        "blanks behind lines": (pem.replace(b"\n", b" \t\n"), None),
        "a leading line end": (b"\n" + pem, None),
        "no line end between blocks": (pem.replace(b"-----\n-----BEGIN", b"----------BEGIN"), None),
        "no line end at the end": (pem.rstrip(), None),
        "words between blocks": (pem.replace(b"-----\n-----", b"-----\nof: mine\n-----"), None),
        "base64 in one line": (certificates.in_one_line(pem), None),
        "an empty password": (pem, b""),
        "PEM with a password": (pem, password),
        "no key": (certificates.without_key(), None),
        "key alone": (key, None),
        "another's key": (certificates.without_key() + other, None),
        "two keys": (pem + other, None),
        "the same key twice": (pem + key, None),
        "two certificates": (curve + pem, None),
        "a locked key": (certificates.without_key() + certificates.only_key(None, password), None),
        "PKCS1": (certificates.without_key() + certificates.pkcs1(), None),
        "PKCS8 under the name of PKCS1": (
            certificates.without_key() + key.replace(b"PRIVATE", b"RSA PRIVATE"),
            None,
        ),
        "a locked PKCS1": (certificates.without_key() + certificates.pkcs1(password), None),
        "of a curve": (curve + certificates.only_key(certificates.curve_key()), None),
        "of a curve, in its own form": (curve + certificates.own_form(certificates.curve_key()), None),
        "noise under the name of a key": (
            certificates.without_key() + certificates.noise(b"PRIVATE KEY"),
            None,
        ),
        "noise under the name of a certificate": (certificates.noise(b"CERTIFICATE") + pem, None),
        "empty": (b"", None),
        "no certificate at all": (b"\xff\x00", None),
        "PKCS12": (legacy, password),
        "PKCS12 without its password": (legacy, None),
        "PKCS12 with another password": (legacy, b"other"),
        "PKCS12 and an empty password": (certificates.pkcs12(b"x"), b""),
        "PKCS12 cut off": (legacy[:-7], password),
        "PKCS12 and a line end": (legacy + b"\n", password),
        "PKCS12 in base64": (b64encode(legacy), password),
        "PKCS12 of AES": (certificates.modern_pkcs12(password), password),
        "PKCS12 without encryption": (certificates.modern_pkcs12(), None),
        "PKCS12 without encryption, with a password": (certificates.modern_pkcs12(), password),
        "PKCS12 with a MAC of SHA-256": (certificates.pkcs12(password, mac="sha256"), password),
        "PKCS12 of AES with a MAC of SHA-1": (certificates.modern_pkcs12(password, mac="sha1"), password),
        "PKCS12 of a curve": (certificates.pkcs12(password, certificates.curve_key()), password),
        "PKCS12 with a chain": (certificates.pkcs12(password, chain=True), password),
        "PKCS12 without a name": (certificates.pkcs12(password, name=None), password),
        "PKCS12, a password with a zero in it": (legacy, b"pa\0ss"),
        "PKCS12, a password of more than two bytes a character": (certificates.pkcs12(_KEY_SIGN), _KEY_SIGN),
        "PKCS12, a password of two bytes a character": (certificates.pkcs12(_EURO), _EURO),
        "PKCS12, a password that is not UTF-8": (certificates.pkcs12("p\xe4ss".encode()), b"p\xe4ss"),
    }


CERTIFICATES: Final = _certificates()


def test_a_certificate_is_taken_or_refused_as_azidentity_does(witness: Witness) -> None:
    given: list[tuple[Data, Operator]] = []
    for content, password in CERTIFICATES.values():
        locked = {} if password is None else {keys.CERTIFICATE_PASSWORD: password}
        given.append(({**dict.fromkeys(keys.REQUIRED, ID), keys.CERTIFICATE: content, **locked}, Operator()))
    compare(witness, given)


_SERVICE: Final = dict.fromkeys(("subscriptionId", "tenantId", "clientId"), ID.decode())
_METHODS: Final[Mapping[str, tuple[dict[str, Any], list[bytes]]]] = {
    "servicePrincipalSecret": ({"servicePrincipal": {**_SERVICE, "secretFrom": "x"}}, [b"s"]),
    "servicePrincipalCertificate": (
        {"servicePrincipal": {**_SERVICE, "certificateFrom": "x", "passwordFrom": "y"}},
        [certificates.pkcs12(b"p"), b"p"],
    ),
    "workloadIdentity": ({"workloadIdentity": _SERVICE}, []),
    "podIdentity": ({"podIdentity": _SERVICE}, []),
}
_CLOUD: Final = {
    "authorityHost": "https://login.example/",
    "resourceManagerEndpoint": "https://management.example",
    "resourceManagerAudience": "https://management.example",
}
_ACCOUNT: Final = {
    **dict.fromkeys(("subscriptionID", "tenantID", "clientID"), ID),
    "clientSecret": b"s",
    "clientCertificate": certificates.pem(),
}


def test_every_secret_that_is_written_is_taken_by_the_method_that_was_meant(witness: Witness) -> None:
    given: list[tuple[Data, Operator]] = []
    meant: list[str] = []
    for method, (credential, contents) in _METHODS.items():
        for cloud in (None, _CLOUD):
            written = AsoCredential.model_validate({**credential, "cloud": cloud}).data(contents)
            given += [(dict(written), Operator(multi_env=True, strict=strict)) for strict in (True, False)]
            meant += [method] * 2
        source = {key: b64encode(value).decode() for key, value in _ACCOUNT.items()}
        copied = plan_keys({}, AsoMethod(method)).apply(source, "an account")
        given.append(({key: b64decode(value) for key, value in copied.items()}, Operator()))
        meant.append(method)
    answers = compare(witness, given)
    assert [(answer["accepted"], answer["method"]) for answer in answers] == [(True, each) for each in meant]


def test_random_secrets_are_taken_or_refused_as_azidentity_does(witness: Witness) -> None:
    given = [*_random_secrets(Random(20), CASES)]
    compare(witness, given)
    if len(given) > 1_000:
        seen = {of_this_project(*each)[1:] for each in given}
        assert {kind for _, kind in seen} >= {*OURS.values()} - {"certificate"}


_IDS: Final = (
    ID,
    ID,
    ID,
    b"",
    b" ",
    ID + b"\n",
    b" " + ID,
    b"\tx",
    b"contoso.example",
    b"a/b",
    b"*",
    "é".encode(),
)
_HOSTS: Final = (
    *("https://login.example/", "https://login.example", "HTTPS://LOGIN.EXAMPLE", "https://h:80/", ""),
    *("https://login.example\n", "http://login.example/", " https://login.example/", "login.example"),
    *("https://h:x/", "https://h:80:80/", "https://[::1", "https://[x]/", "https://a b/", "https://h/%zz"),
    *("https://%zz/", "https://u p@h/", "https://h\x7f/", "://h", "ht tps://h"),
)
_MODES: Final = (b"", b"workloadidentity", b"podidentity", b"PodIdentity", b"podidentity\n", b"x")
_ACCOUNTS: Final = (b"", b"mine", b"my.own", b"My_Own", b"-x", b"x" * 254, b"x\n")


def _random_secrets(random: Random, count: int) -> Iterator[tuple[Data, Operator]]:
    """Yield Secrets and the operators that read them: mostly whole, often odd in one place or two."""
    certificate_cases = [*CERTIFICATES.values()]
    for _ in range(count):
        odd = random.random() < 0.6
        data: Data = {}
        for key in keys.REQUIRED:
            if not odd or random.random() > 0.05:
                data[key] = random.choice(_IDS) if odd and random.random() < 0.4 else ID
        if random.random() < 0.3:
            data[keys.CLIENT_SECRET] = random.choice((b"s", b"", b" ", b"s\n", b"\xff"))
        if random.random() < 0.3:
            data[keys.CERTIFICATE], password = random.choice(certificate_cases)
            if password is not None and random.random() < 0.9:
                data[keys.CERTIFICATE_PASSWORD] = password
        if random.random() < 0.5:
            data[keys.AUTH_MODE] = random.choice(_MODES)
        if random.random() < 0.3:
            data[keys.SERVICE_ACCOUNT] = random.choice(_ACCOUNTS)
        if random.random() < 0.2:
            data[keys.ADDITIONAL_TENANTS] = random.choice((b"", b"a, b", b"*", b" ,"))
        if random.random() < 0.4:
            cloud = (
                random.choice(_HOSTS).encode(),
                b"https://management.example",
                random.choice((b"x", b"x", b"")),
            )
            data |= {
                key: value for key, value in zip(keys.CLOUD, cloud, strict=True) if random.random() < 0.95
            }
        yield data, _random_operator(random)


def _random_operator(random: Random) -> Operator:
    environment = {key: b"" if random.random() < 0.3 else value for key, value in OWN.items()}
    if random.random() < 0.2:
        del environment[random.choice(keys.REQUIRED)]
    if random.random() < 0.1:
        environment[keys.AUTHORITY_HOST] = random.choice(
            (b"", b"https://login.example/", b"http://login.example/")
        )
    operator = Operator(multi_env=random.random() < 0.8, strict=random.random() < 0.3)
    return replace(operator, environment=environment)
