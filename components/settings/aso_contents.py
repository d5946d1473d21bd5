"""From the words of the configuration to credentials as ASO knows them, and to what identities trust."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from components.aso_credentials import keys, model
from components.aso_credentials.controller import ControllerSettings
from components.aso_credentials.federation import Federation, federation_name
from components.aso_credentials.nouns import WITHHELD
from components.credentials import Credentials
from components.settings.aso_credentials import (
    AsoCredential,
    AsoCredentials,
    Entry,
    GlobalSettings,
    Operator,
    PodIdentity,
    ServicePrincipal,
    WorkloadIdentity,
)

T = TypeVar("T")

_SECRET_KEYS: Final = (keys.CLIENT_SECRET, keys.CERTIFICATE, keys.CERTIFICATE_PASSWORD)
_ANY_ID: Final = "00000000-0000-0000-0000-000000000000"


def sources(credential: AsoCredential) -> Mapping[str, str]:
    """Tell which entries of `credentials` it is made of, by the key that names each."""
    if not isinstance(credential.method, ServicePrincipal):
        return {}
    given = {
        "secretFrom": credential.method.secret_from,
        "certificateFrom": credential.method.certificate_from,
        "passwordFrom": credential.method.password_from,
    }
    return {key: name for key, name in given.items() if name is not None}


def content(
    credential: AsoCredential,
    contents: Sequence[bytes],
    *,
    strict: bool,
    tenant: str | None = None,
    client: str | None = None,
) -> model.Credential:
    """Make what its Secret says; raises Unfit with all that is wrong.

    contents: of its sources, in their order. strict: workload identity is in strict mode. tenant, client: of
    the identity of this stack it is made for.
    """
    given, cloud = credential.method, credential.cloud
    return model.Credential(
        subscription=given.subscription_id,
        tenant=given.tenant_id or tenant or "",
        client=given.client_id or client or "",
        method=_method(given, contents, strict=strict),
        additional_tenants=credential.additional_tenants,
        cloud=cloud
        and model.Cloud(
            cloud.authority_host, cloud.resource_manager_endpoint, cloud.resource_manager_audience
        ),
    )


def _method(
    given: ServicePrincipal | WorkloadIdentity | PodIdentity, contents: Sequence[bytes], *, strict: bool
) -> model.Method:
    match given:
        case ServicePrincipal(certificate_from=None):
            return model.ClientSecret(model.client_secret_of(contents[0]))
        case ServicePrincipal():
            password = contents[1].decode(errors="replace") if given.password_from else None
            return model.ClientCertificate(contents[0], password)
        case WorkloadIdentity():
            return model.WorkloadIdentity(strict, given.service_account)
        case PodIdentity():
            return model.PodIdentity()


def controller(
    given: GlobalSettings, operator: Operator, credential: model.Credential | None
) -> ControllerSettings:
    """Make the operator's settings."""
    limit = given.rate_limit
    plain = {
        "AZURE_SYNC_PERIOD": given.sync_period,
        "AZURE_OPERATOR_MODE": given.operator_mode,
        keys.TARGET_NAMESPACES: ",".join(given.target_namespaces) or None,
        "DEFAULT_RECONCILE_POLICY": given.default_reconcile_policy,
        "MAX_CONCURRENT_RECONCILES": given.max_concurrent_reconciles,
        "RATE_LIMIT_MODE": limit and "bucket",
        "RATE_LIMIT_QPS": limit and limit.qps,
        "RATE_LIMIT_BUCKET_SIZE": limit and limit.bucket_size,
        "AZURE_USER_AGENT_SUFFIX": given.user_agent_suffix,
    }
    return ControllerSettings(
        credential=credential,
        plain={key: str(value) for key, value in plain.items() if value is not None},
        strict=operator.strict,
        multi_env=operator.multi_env,
    )


def judged(
    credential: AsoCredential, credentials: Credentials, by: Callable[[Sequence[bytes]], T]
) -> T | None:
    """Have a pure function judge what a credential is made of, as `Credentials.judged` does.

    None when an entry it is made of is absent or unreadable.
    """

    def step(names: Sequence[str], contents: Sequence[bytes]) -> T | None:
        if not names:
            return by(contents)
        return credentials.judged(names[0], lambda found: step(names[1:], [*contents, found]))

    return step([*sources(credential).values()], [])


def faults_of(credential: AsoCredential, credentials: Credentials, *, strict: bool) -> Sequence[str]:
    """Tell everything that is wrong with a credential; none of it holds a value."""

    def by(contents: Sequence[bytes]) -> Sequence[str]:
        try:
            content(credential, contents, strict=strict, tenant=_ANY_ID, client=_ANY_ID)
        except model.Unfit as unfit:
            return unfit.faults
        return ()

    return judged(credential, credentials, by) or ()


def secret_data(credential: AsoCredential, credentials: Credentials, *, strict: bool) -> Mapping[str, bytes]:
    """Give the data its Secret will have, what is secret withheld; the three ids alone when it has faults.

    Ids of an identity of this stack, which only the update knows, are stood in for.
    """

    def by(contents: Sequence[bytes]) -> Mapping[str, bytes]:
        try:
            data = content(credential, contents, strict=strict, tenant=_ANY_ID, client=_ANY_ID).emit()
        except model.Unfit:
            return {}
        return {key: WITHHELD if key in _SECRET_KEYS else value for key, value in data.items()}

    return judged(credential, credentials, by) or dict.fromkeys(keys.REQUIRED, WITHHELD)


def federations(section: AsoCredentials, identity: str) -> Mapping[str, Federation]:
    """Tell whom an identity trusts, by the name of the federated credential: also in other clusters."""
    declared = section.identities[identity].federations
    others = {name: Federation(one.issuer, one.subject) for name, one in declared.items()}
    return {**others, **own_federations(section, identity)}


def own_federations(section: AsoCredentials, identity: str) -> Mapping[str, Federation]:
    """Tell whom an identity trusts in this cluster, by the name of the federated credential (ASO facts 1.5).

    Relaxed, all its credentials come to one subject, the operator's; strict, each namespace and
    ServiceAccount has one. Without an issuer there are none.
    """
    issuer = section.operator.issuer
    if issuer is None:
        return {}
    subjects = sorted(_subjects(section, identity))
    return {federation_name(subject): Federation(issuer, subject) for subject in subjects}


def _subjects(section: AsoCredentials, identity: str) -> set[str]:
    operator, own = section.operator, section.global_entry()
    subjects = {subject_of(entry, operator) for entry in section.entries() if uses(entry, identity)}
    if own is not None and uses(own, identity):
        subjects.add(model.WorkloadIdentity().subject(own.secret.namespace, operator.namespace))
    return subjects


def uses(entry: Entry, identity: str) -> bool:
    """Whether a credential is for an identity of this stack."""
    method = entry.credential.method
    return isinstance(method, WorkloadIdentity) and method.identity == identity


def subject_of(entry: Entry, operator: Operator) -> str:
    """Name whom the identity of a credential of a namespace or of resources must trust."""
    given = entry.credential.workload_identity
    account = given.service_account if given else None
    return model.WorkloadIdentity(operator.strict, account).subject(
        entry.secret.namespace, operator.namespace
    )
