"""Validation of credentials: Kubernetes limits are errors, servicebinding.io rules are warnings.

Korifi checks neither: a key that Kubernetes rejects leaves the binding without its Secret, retried forever
(docs/compatibility.md).
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from components.errors import CredfleetError, Problem
from components.go_json import JsonValue, Number, Numbers, key_path
from components.naming import is_data_key
from components.service_credentials.binding import (
    TYPE_KEY,
    BoundInstance,
    ServiceCredentials,
    binding_data,
    read_credentials_object,
    source_data,
    vcap_services,
)

SIZE_LIMIT: Final = 1024 * 1024
"""Maximum size of all values of a Secret together, in bytes, as in Kubernetes."""

ENVIRONMENT_LIMIT: Final = 131_071 - len("VCAP_SERVICES=")
"""Maximum size of VCAP_SERVICES in bytes: Linux limits a variable, including the NUL after it, to
MAX_ARG_STRLEN."""

_FILE_NAME = re.compile(r"[a-z0-9.-]{1,253}")
_HOST_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_PORT = re.compile(r"[0-9]{1,5}")
_PCHAR = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_REGISTERED_NAME = r"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
_USER = r"(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*"
_URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:"
    rf"(?://(?:{_USER}@)?(?:\[[0-9A-Za-z:.~_-]+\]|{_REGISTERED_NAME})(?::[0-9]*)?(?:/{_PCHAR}*)*"
    rf"|(?!//)/?(?:{_PCHAR}+(?:/{_PCHAR}*)*)?)"
    rf"(?:\?(?:{_PCHAR}|[/?])*)?(?:\#(?:{_PCHAR}|[/?])*)?"
)
_KEY_BEGIN = re.compile(r"-----BEGIN (?P<kind>([A-Z0-9]+ )*PRIVATE KEY)-----")


@dataclass(frozen=True, slots=True)
class Conformity:
    """Result of the validation; without errors, Kubernetes accepts both Secrets."""

    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def judge_text(text: bytes, *, numbers: Numbers = Numbers.FLOAT, strict: bool = False) -> Conformity:
    """Validate credentials byte for byte as given. `strict`: warnings are errors too.

    Warnings are changes by parsing, file names, and entries that servicebinding.io 1.1 defines.
    """
    try:
        credentials = read_credentials_object(text, numbers=numbers)
    except CredfleetError as error:
        return Conformity((Problem(error.place, error.problem, error.fix),))
    members = credentials.members or {}
    errors = (*_unfit_keys(members), *_unfit_type(members), *_oversize(credentials))
    warnings = (*credentials.remarks, *_unfit_entries(members), *_unfit_environment(credentials))
    return Conformity(errors + warnings) if strict else Conformity(errors, warnings)


def _unfit_keys(members: Mapping[str, JsonValue]) -> Iterator[Problem]:
    for key in members:
        if not is_data_key(key):
            yield Problem(
                key_path((key,)),
                "Kubernetes takes no such key, so the binding Secret could never be written",
                "use at most 253 letters, digits, - _ and ., and not . alone nor .. in front",
            )


def _unfit_type(members: Mapping[str, JsonValue]) -> Iterator[Problem]:
    type_ = members.get(TYPE_KEY)
    if isinstance(type_, str) and not type_.isprintable():
        yield Problem(
            TYPE_KEY,
            "it has a line end or another invisible character, so the type is not what it seems",
            "give a word such as postgresql",
        )


def _oversize(credentials: ServiceCredentials) -> Iterator[Problem]:
    held = {"source": source_data(credentials), "binding": binding_data(credentials)}
    for secret, data in held.items():
        size = sum(map(len, data.values()))
        if size > SIZE_LIMIT:
            yield Problem(
                key_path(()),
                f"the {secret} Secret would hold {size} bytes, and Kubernetes refuses more than {SIZE_LIMIT}",
                "leave out what is not a credential",
            )
            return


def _unfit_environment(credentials: ServiceCredentials) -> Iterator[Problem]:
    """Yield a warning if the credentials exceed an environment variable, without names and ids."""
    anyone = BoundInstance(instance_guid="", instance_name="", binding_guid="")
    size = len(vcap_services([(anyone, credentials)]))
    if size > ENVIRONMENT_LIMIT:
        yield Problem(
            key_path(()),
            f"VCAP_SERVICES would have {size} bytes or more, and Linux starts no program with a variable of"
            f" more than {ENVIRONMENT_LIMIT}",
            "let the application read files: the binding's, or VCAP_SERVICES_FILE_PATH of an entry of apps",
        )


def _unfit_entries(members: Mapping[str, JsonValue]) -> Iterator[Problem]:
    for key, value in members.items():
        if is_data_key(key) and not _FILE_NAME.fullmatch(key):
            yield Problem(
                key_path((key,)),
                "servicebinding.io allows file names of a-z, 0-9, - and . only, so libraries may miss it",
                "rename the key",
            )
        if key == TYPE_KEY and not (isinstance(value, str) and value):
            yield Problem(
                key,
                "a type that is empty or no string classifies nothing, and differs from the Secret's type",
                "give a string such as postgresql, or leave it out",
            )
        wanted, holds = _WELL_KNOWN.get(key, ("", bool))
        text = value.text if key == "port" and isinstance(value, Number) else value
        if wanted and not (isinstance(text, str) and holds(text)):
            yield Problem(
                key,
                f"servicebinding.io gives this key a meaning, and its value is not {wanted}",
                "correct it, or choose another key name",
            )


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        labels = text.removesuffix(".").split(".")
        return len(text) <= 253 and all(map(_HOST_LABEL.fullmatch, labels)) and not labels[-1].isdigit()
    return True


def _is_certificate_chain(text: str) -> bool:
    from cryptography.x509 import load_pem_x509_certificates

    try:
        load_pem_x509_certificates(text.encode())
    except ValueError:
        return False
    return True


def _is_private_key(text: str) -> bool:
    """Return whether a string contains a PEM private key, of any kind, encrypted or not."""
    begin = _KEY_BEGIN.search(text)
    if begin is None:
        return False
    body, end, _ = text[begin.end() :].partition(f"-----END {begin['kind']}-----")
    try:
        content = base64.b64decode(
            "".join(line.strip() for line in body.splitlines() if ":" not in line), validate=True
        )
    except ValueError:
        return False
    return bool(end and content)


_WELL_KNOWN: Final[Mapping[str, tuple[str, Callable[[str], bool]]]] = {
    "host": ("a host name or an IP address", _is_host),
    "port": ("a port from 1 to 65535", lambda text: bool(_PORT.fullmatch(text)) and 1 <= int(text) <= 65535),
    "uri": ("a URI (RFC 3986)", lambda text: bool(_URI.fullmatch(text))),
    "username": ("a string", lambda _: True),
    "password": ("a string", lambda _: True),
    "certificates": ("a chain of X.509 certificates in PEM", _is_certificate_chain),
    "private-key": ("a private key in PEM", _is_private_key),
}
"""Entries with a defined meaning (servicebinding.io 1.1, "Well-known Secret Entries")."""
