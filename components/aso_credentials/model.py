"""One credential of ASO: who it is, by which method it proves that, and exactly the keys that say so.

ASO chooses the method by the keys that are present, and reads a wrong or an empty one without a word; so a
credential that cannot be said in this model is not declared (ASO facts 1.2, 1.3 and 3.2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

from components.aso_credentials import keys
from components.aso_credentials.certificate import certificate_fault
from components.naming import is_object_name
from components.projection.keys import AsoMethod

_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_URL = re.compile(r"https://[^\s/]\S*")


class Unfit(ValueError):  # noqa: N818 - the word of the model
    """What cannot be a credential: everything that is wrong with it, none of which holds a value."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A service principal that proves itself with a secret."""

    METHOD: ClassVar = AsoMethod.SERVICE_PRINCIPAL_SECRET
    secret: str = field(repr=False)

    def emit(self) -> dict[str, bytes]:
        """Give the keys of this method alone."""
        return {keys.CLIENT_SECRET: self.secret.encode()}

    def faults(self) -> Iterator[str]:
        """Tell what is wrong."""
        if not self.secret:
            yield f"{keys.CLIENT_SECRET} is empty, which still chooses this method, and opens nothing"
        elif self.secret != self.secret.strip():
            yield f"{keys.CLIENT_SECRET} begins or ends with a blank or a line end, and ASO keeps it"


def client_secret_of(content: bytes) -> str:
    """Read a client secret that is text, or field clientSecret of a JSON object; raises Unfit."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise Unfit([f"{keys.CLIENT_SECRET} is no text"]) from None
    if not text.lstrip().startswith("{"):
        return text
    try:
        secret: Any = json.loads(text).get("clientSecret")
    except ValueError:
        return text
    if not isinstance(secret, str):
        raise Unfit([f"{keys.CLIENT_SECRET}: a JSON object without a text in its field clientSecret"])
    return secret


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A service principal that proves itself with a certificate, PEM or PKCS12, with its private key."""

    METHOD: ClassVar = AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE
    certificate: bytes = field(repr=False)
    password: str | None = field(default=None, repr=False)

    def emit(self) -> dict[str, bytes]:
        """Give the keys of this method alone."""
        password = {} if self.password is None else {keys.CERTIFICATE_PASSWORD: self.password.encode()}
        return {keys.CERTIFICATE: self.certificate, **password}

    def faults(self) -> Iterator[str]:
        """Tell what is wrong."""
        if self.password == "":
            yield f"{keys.CERTIFICATE_PASSWORD} is empty; leave it out"
        password = None if self.password is None else self.password.encode()
        if fault := certificate_fault(self.certificate, password):
            yield f"{keys.CERTIFICATE}: {fault}"


@dataclass(frozen=True, slots=True)
class WorkloadIdentity:
    """A managed identity that trusts a ServiceAccount of the cluster.

    strict: the ServiceAccount is one of the Secret's namespace, not the operator's. service_account: its
    name where it is not ASO's own; only strict mode looks at it.
    """

    METHOD: ClassVar = AsoMethod.WORKLOAD_IDENTITY
    strict: bool = False
    service_account: str | None = None

    def subject(self, namespace: str, operator_namespace: str) -> str:
        """Name whom the federated credential must trust (ASO facts 1.5); namespace: the Secret's."""
        if self.strict:
            return f"system:serviceaccount:{namespace}:{self.service_account or keys.STRICT_ACCOUNT}"
        return f"system:serviceaccount:{operator_namespace}:{keys.OPERATOR_ACCOUNT}"

    def emit(self) -> dict[str, bytes]:
        """Give the keys of this method alone."""
        return {} if self.service_account is None else {keys.SERVICE_ACCOUNT: self.service_account.encode()}

    def faults(self) -> Iterator[str]:
        """Tell what is wrong."""
        if self.service_account is None:
            return
        if not self.strict:
            yield f"{keys.SERVICE_ACCOUNT} is ignored unless the operator runs in strict mode"
        if not is_object_name(self.service_account):
            yield f"{keys.SERVICE_ACCOUNT} is no name a ServiceAccount can have"


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """A managed identity of the node or pod the operator runs on."""

    METHOD: ClassVar = AsoMethod.POD_IDENTITY

    def emit(self) -> dict[str, bytes]:
        """Give the keys of this method alone."""
        return {keys.AUTH_MODE: keys.POD_IDENTITY.encode()}

    def faults(self) -> Iterator[str]:
        """Tell what is wrong."""
        yield from ()


Method: TypeAlias = ClientSecret | ClientCertificate | WorkloadIdentity | PodIdentity


@dataclass(frozen=True, slots=True)
class Cloud:
    """Another cloud than the operator's: where tokens come from, and where resources are managed."""

    authority_host: str
    manager_endpoint: str
    manager_audience: str

    def emit(self) -> dict[str, bytes]:
        """Give the three keys."""
        texts = (self.authority_host, self.manager_endpoint, self.manager_audience)
        return {key: text.encode() for key, text in zip(keys.CLOUD, texts, strict=True)}

    def faults(self) -> Iterator[str]:
        """Tell what is wrong."""
        for key, text in self.emit().items():
            if not _URL.fullmatch(text.decode()):
                yield f"{key} is no https:// address"


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential of a namespace or of a resource. Raises Unfit with all that is wrong.

    subscription, tenant, client: GUIDs, kept without the blanks around them, which ASO would not forgive.
    client: of a managed identity its *client* id, never its principal id. additional_tenants: GUIDs.
    """

    subscription: str
    tenant: str
    client: str
    method: Method
    additional_tenants: tuple[str, ...] = ()
    cloud: Cloud | None = None

    def __post_init__(self) -> None:
        for name in ("subscription", "tenant", "client"):
            object.__setattr__(self, name, getattr(self, name).strip())
        tenants = tuple(tenant.strip() for tenant in self.additional_tenants)
        object.__setattr__(self, "additional_tenants", tenants)
        if faults := [*self._faults()]:
            raise Unfit(faults)

    def emit(self) -> dict[str, bytes]:
        """Give the data of the Secret: exactly the keys of this credential, none of them empty."""
        ids = (self.subscription, self.tenant, self.client)
        data = {key: text.encode() for key, text in zip(keys.REQUIRED, ids, strict=True)}
        if self.additional_tenants:
            data[keys.ADDITIONAL_TENANTS] = ",".join(self.additional_tenants).encode()
        return data | self.method.emit() | (self.cloud.emit() if self.cloud else {})

    def _faults(self) -> Iterator[str]:
        ids = (self.subscription, self.tenant, self.client)
        yield from (
            f"{key} is no GUID" for key, text in zip(keys.REQUIRED, ids, strict=True) if not is_guid(text)
        )
        if not all(map(is_guid, self.additional_tenants)):
            yield f"{keys.ADDITIONAL_TENANTS} is no list of GUIDs with commas between them"
        if self.additional_tenants and isinstance(self.method, PodIdentity):
            yield f"{keys.ADDITIONAL_TENANTS} is ignored with {keys.AUTH_MODE} {keys.POD_IDENTITY}"
        yield from self.method.faults()
        if self.cloud:
            yield from self.cloud.faults()


def is_guid(text: str) -> bool:
    """Whether a text is a GUID and nothing else."""
    return _GUID.fullmatch(text) is not None


def method_of(data: Mapping[str, bytes]) -> AsoMethod | None:
    """Tell which method ASO chooses for a Secret: the first key present wins, even if empty (ASO facts 1.3).

    None for an AUTH_MODE that ASO does not know, and for a file inside the operator's pod.
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


_KEYS: Final[Mapping[AsoMethod, frozenset[str]]] = {
    AsoMethod.SERVICE_PRINCIPAL_SECRET: frozenset({keys.CLIENT_SECRET}),
    AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE: frozenset({keys.CERTIFICATE, keys.CERTIFICATE_PASSWORD}),
    AsoMethod.WORKLOAD_IDENTITY: frozenset({keys.AUTH_MODE, keys.SERVICE_ACCOUNT}),
    AsoMethod.POD_IDENTITY: frozenset({keys.AUTH_MODE}),
}


def read(data: Mapping[str, bytes], *, strict: bool) -> Credential:
    """Read the data of a Secret that `Credential.emit` could have written.

    strict: of the operator. Raises Unfit with all that is wrong: keys without effect, empty ones and a second
    method among them.
    """
    chosen = method_of(data)
    if chosen is None:
        raise Unfit(["no method of these is chosen by its keys: " + ", ".join(AsoMethod)])
    try:
        texts = {key: value.decode() for key, value in data.items() if key != keys.CERTIFICATE}
    except UnicodeDecodeError:
        raise Unfit(["one of its values is no text"]) from None
    known = {*keys.REQUIRED, keys.ADDITIONAL_TENANTS, *keys.CLOUD, *_KEYS[chosen]}
    faults = [f"{key} has no effect here" for key in sorted(data.keys() - known)]
    faults += [f"{key} is empty" for key in sorted(data) if key in known and not data[key]]
    cloud = [texts[key] for key in keys.CLOUD if key in texts]
    if 0 < len(cloud) < len(keys.CLOUD):
        faults.append(f"{', '.join(keys.CLOUD)} go together")
    try:
        credential = Credential(
            *(texts.get(key, "") for key in keys.REQUIRED),
            method=_method(chosen, data, texts, strict=strict),
            additional_tenants=tuple(t for t in texts.get(keys.ADDITIONAL_TENANTS, "").split(",") if t),
            cloud=Cloud(*cloud) if len(cloud) == len(keys.CLOUD) else None,
        )
    except Unfit as unfit:
        raise Unfit([*faults, *unfit.faults]) from None
    if faults:
        raise Unfit(faults)
    return credential


def _method(
    chosen: AsoMethod, data: Mapping[str, bytes], texts: Mapping[str, str], *, strict: bool
) -> Method:
    match chosen:
        case AsoMethod.SERVICE_PRINCIPAL_SECRET:
            return ClientSecret(texts[keys.CLIENT_SECRET])
        case AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE:
            return ClientCertificate(data[keys.CERTIFICATE], texts.get(keys.CERTIFICATE_PASSWORD))
        case AsoMethod.WORKLOAD_IDENTITY:
            return WorkloadIdentity(strict, texts.get(keys.SERVICE_ACCOUNT))
        case AsoMethod.POD_IDENTITY:
            return PodIdentity()
