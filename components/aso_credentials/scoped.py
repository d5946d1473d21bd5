"""Data of a namespace's or resource's credential Secret: what ASO rejects, and what is only surprising.

ASO checks which keys exist, azidentity checks their values. `tests/witness/test_azure.py` compares both with
the library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from components.aso_credentials import keys, model
from components.aso_credentials.certificate import certificate_fault
from components.aso_credentials.model import Data, method_of
from components.aso_credentials.resolution import WITHHELD, Operator
from components.naming import is_object_name
from components.projection.keys import AsoMethod
from components.projection.model import SecretRef

_TENANT: Final = re.compile(rb"[A-Za-z0-9.-]+")
_NO_CLIENT: Final = f"{keys.CLIENT} is empty: write it"


def incompleteness(data: Data) -> str:
    """Return which required keys a Secret lacks, empty for none: ASO then ignores the other keys."""
    return ", ".join(f"does not contain key {key}" for key in keys.REQUIRED if key not in data)


def refusal(data: Data, operator: Operator) -> str | None:
    """Return why ASO cannot create a credential from a complete Secret, without values; None if it can."""
    if fault := _foreign_cloud(data, operator):
        return fault
    match method_of(data):
        case None:
            known = f"{keys.WORKLOAD_IDENTITY} nor {keys.POD_IDENTITY}"
            text = f"{keys.AUTH_MODE} is neither {known}, in lower case: correct it"
            return None if keys.IDENTITY_FILE in data else text
        case AsoMethod.POD_IDENTITY:
            return None if data[keys.CLIENT] else _NO_CLIENT
        case method:
            return _unproved(method, data, operator) or _unknown_place(method, data, operator)


def _unproved(method: AsoMethod, data: Data, operator: Operator) -> str | None:
    match method:
        case AsoMethod.SERVICE_PRINCIPAL_SECRET if not data[keys.CLIENT_SECRET]:
            return f"{keys.CLIENT_SECRET} is empty: remove the key"
        case AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE if data[keys.CERTIFICATE] != WITHHELD:
            fault = certificate_fault(data[keys.CERTIFICATE], data.get(keys.CERTIFICATE_PASSWORD))
            return fault and f"cannot parse {keys.CERTIFICATE}: {fault}"
        case AsoMethod.WORKLOAD_IDENTITY if operator.strict and keys.SERVICE_ACCOUNT in data:
            named = is_object_name(data[keys.SERVICE_ACCOUNT].decode(errors="replace"))
            return None if named else f"{keys.SERVICE_ACCOUNT} is not a name of a ServiceAccount: correct it"
        case _:
            return None


def _unknown_place(method: AsoMethod, data: Data, operator: Operator) -> str | None:
    """Return what is wrong with the tenant or the token endpoint."""
    own = operator.environment
    tenant = data[keys.TENANT]
    borrows = _takes_the_environment(method, operator)
    if borrows and not data[keys.CLIENT] and own is not None and keys.CLIENT not in own:
        return _NO_CLIENT
    if borrows and not tenant:
        tenant = WITHHELD if own is None else own.get(keys.TENANT, b"")
    if tenant != WITHHELD and not _TENANT.fullmatch(tenant):
        how = "is not an id of a tenant, with nothing around it" if tenant else "is empty"
        return f"{keys.TENANT} {how}: write the bare GUID"
    host = data.get(keys.AUTHORITY_HOST) or (own or {}).get(keys.AUTHORITY_HOST)
    if not host or model.ADDRESS.fullmatch(host.decode(errors="replace")):
        return None
    return f"{keys.AUTHORITY_HOST} is not an https:// address: correct it"


def _takes_the_environment(method: AsoMethod | None, operator: Operator) -> bool:
    """Return whether azidentity replaces an empty id by that in the operator pod's environment."""
    return method is AsoMethod.WORKLOAD_IDENTITY and not operator.strict


def list_borrowed(data: Data, operator: Operator) -> tuple[str, ...]:
    """Return the empty ids of a complete Secret that are replaced by the operator's own."""
    if not _takes_the_environment(method_of(data), operator):
        return ()
    empty = [key for key in (keys.TENANT, keys.CLIENT) if not data[key]]
    return tuple(key for key in empty if operator.environment is None or operator.environment.get(key))


def refused_by_entra(data: Data, operator: Operator) -> str | None:
    """Return why Azure rejects what ASO accepts: an empty id, or one with surrounding whitespace."""
    for key in (keys.SUBSCRIPTION, keys.CLIENT):
        if not data[key] and key not in list_borrowed(data, operator):
            return f"{key} is empty, which is not an identity of Azure"
        if data[key] != data[key].strip():
            return f"{key} begins or ends with a blank or a line end, with which Azure refuses it"
    return None


def subject_of(data: Data, secret: SecretRef, operator: Operator) -> str | None:
    """Return the subject to trust in the federated credential; None without workload identity."""
    if method_of(data) is not AsoMethod.WORKLOAD_IDENTITY:
        return None
    account = data.get(keys.SERVICE_ACCOUNT, b"").decode() if operator.strict else None
    return operator.subject(secret.namespace, account)


def _foreign_cloud(data: Mapping[str, bytes], operator: Operator) -> str | None:
    given = [key for key in keys.CLOUD if key in data]
    if not given:
        return None
    if not operator.multi_env:
        return f"{', '.join(given)} need an operator with {keys.ALLOW_MULTI_ENV}=true"
    missing = [key for key in keys.CLOUD if not data.get(key)]
    return f"{', '.join(keys.CLOUD)} go together, {', '.join(missing)} is missing" if missing else None
