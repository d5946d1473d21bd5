"""How ASO interprets the data of a Secret: the method it chooses, and faults that credfleet rejects.

ASO chooses the method by the keys that exist, and silently accepts wrong or empty ones; a credential with a
fault is therefore not declared (docs/compatibility.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from components.aso_credentials import keys
from components.aso_credentials.certificate import certificate_fault
from components.credentials import is_text
from components.documents import read_json
from components.naming import is_guid, is_object_name
from components.projection.keys import AsoMethod

Data: TypeAlias = Mapping[str, bytes]

ADDRESS: Final = re.compile(r"https://[a-z0-9.-]+(:[0-9]+)?(/[^\s%?#]*)?", re.IGNORECASE | re.ASCII)
"""Address of a cloud. Stricter than Go's `net/url`, because no Azure address uses the other forms."""

_KEYS: Final[Mapping[AsoMethod, frozenset[str]]] = {
    AsoMethod.SERVICE_PRINCIPAL_SECRET: frozenset({keys.CLIENT_SECRET}),
    AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE: frozenset({keys.CERTIFICATE, keys.CERTIFICATE_PASSWORD}),
    AsoMethod.WORKLOAD_IDENTITY: frozenset({keys.AUTH_MODE, keys.SERVICE_ACCOUNT}),
    AsoMethod.POD_IDENTITY: frozenset({keys.AUTH_MODE}),
}


class Unfit(ValueError):  # noqa: N818 - the word of the model
    """Invalid credential. The message gives the reason, without values."""


def client_secret_of(content: bytes) -> str:
    """Return a client secret: the string, or field clientSecret of a JSON object. Raises Unfit if missing."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise Unfit(f"{keys.CLIENT_SECRET} is not a string") from None
    if not text.lstrip().startswith("{"):
        return text
    try:
        secret: Any = read_json(text).get("clientSecret")
    except ValueError:
        return text
    if not is_text(secret):
        raise Unfit(f"{keys.CLIENT_SECRET}: a JSON object without a text in its field clientSecret")
    return secret


def method_of(data: Data) -> AsoMethod | None:
    """Return the method that ASO chooses for a Secret: the first existing key wins, even if it is empty.

    None for an unknown AUTH_MODE, and for a file inside the operator's pod.
    """
    if keys.CLIENT_SECRET in data:
        return AsoMethod.SERVICE_PRINCIPAL_SECRET
    if keys.CERTIFICATE in data:
        return AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE
    if keys.IDENTITY_FILE in data:
        return None
    match data.get(keys.AUTH_MODE, b"").decode(errors="replace"):
        case keys.POD_IDENTITY:
            return AsoMethod.POD_IDENTITY
        case "" | keys.WORKLOAD_IDENTITY:
            return AsoMethod.WORKLOAD_IDENTITY
        case _:
            return None


def faults_of(data: Data, *, strict: bool) -> tuple[str, ...]:
    """Return all faults of a Secret's data that credfleet rejects, without values.

    `strict`: mode of the operator. Keys without effect, empty ones and a second method are also faults.
    """
    chosen = method_of(data)
    if chosen is None:
        return ("no method of these is chosen by its keys: " + ", ".join(AsoMethod),)
    try:
        texts = {key: value.decode() for key, value in data.items() if key != keys.CERTIFICATE}
    except UnicodeDecodeError:
        return ("one of its values is not a string",)
    known = {*keys.REQUIRED, keys.ADDITIONAL_TENANTS, *keys.CLOUD, *_KEYS[chosen]}
    faults = [f"{key} has no effect here" for key in sorted(data.keys() - known)]
    faults += [f"{key} is empty" for key in sorted(known - {*keys.PROOFS}) if data.get(key) == b""]
    return (
        *faults,
        *_id_faults(chosen, texts),
        *_proof_faults(chosen, data, texts, strict=strict),
        *_cloud_faults(texts),
    )


def _id_faults(chosen: AsoMethod, texts: Mapping[str, str]) -> Iterator[str]:
    for key in keys.REQUIRED:
        if not is_guid(texts.get(key, "").strip()):
            yield f"{key} is not a GUID"
    tenants = [text for text in texts.get(keys.ADDITIONAL_TENANTS, "").split(",") if text]
    if not all(keys.is_tenant(tenant.strip()) for tenant in tenants):
        yield f"{keys.ADDITIONAL_TENANTS} is not a list of GUIDs, or *, with commas between them"
    if tenants and chosen is AsoMethod.POD_IDENTITY:
        yield f"{keys.ADDITIONAL_TENANTS} is ignored with {keys.AUTH_MODE} {keys.POD_IDENTITY}"


def _proof_faults(chosen: AsoMethod, data: Data, texts: Mapping[str, str], *, strict: bool) -> Iterator[str]:
    match chosen:
        case AsoMethod.SERVICE_PRINCIPAL_SECRET:
            secret = texts[keys.CLIENT_SECRET]
            if not secret:
                yield f"{keys.CLIENT_SECRET} is empty, which still chooses this method, and opens nothing"
            elif secret != secret.strip():
                yield f"{keys.CLIENT_SECRET} begins or ends with a blank or a line end, and ASO keeps it"
        case AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE:
            password = data.get(keys.CERTIFICATE_PASSWORD)
            if password == b"":
                yield f"{keys.CERTIFICATE_PASSWORD} is empty; leave it out"
            if fault := certificate_fault(data[keys.CERTIFICATE], password):
                yield f"{keys.CERTIFICATE}: {fault}"
        case AsoMethod.WORKLOAD_IDENTITY if keys.SERVICE_ACCOUNT in texts:
            if not strict:
                yield f"{keys.SERVICE_ACCOUNT} is ignored unless the operator runs in strict mode"
            if not is_object_name(texts[keys.SERVICE_ACCOUNT]):
                yield f"{keys.SERVICE_ACCOUNT} is not a name a ServiceAccount can have"
        case _:
            pass


def _cloud_faults(texts: Mapping[str, str]) -> Iterator[str]:
    given = [key for key in keys.CLOUD if key in texts]
    if 0 < len(given) < len(keys.CLOUD):
        yield f"{', '.join(keys.CLOUD)} go together"
    else:
        yield from (f"{key} is not an https:// address" for key in given if not ADDRESS.fullmatch(texts[key]))
