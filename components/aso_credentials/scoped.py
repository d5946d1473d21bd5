"""What is in a Secret of a namespace or a resource: what ASO cannot use, and what only surprises people."""

from __future__ import annotations

from components.aso_credentials import keys, model
from components.aso_credentials.certificate import certificate_fault
from components.aso_credentials.model import Data, method_of
from components.aso_credentials.nouns import WITHHELD, Operator, SecretName
from components.naming import is_object_name
from components.projection.keys import AsoMethod


def incomplete(data: Data) -> str | None:
    """Return which of the three required keys are missing or empty, all at once; None when all are there."""
    bad = [f"does not contain key {key}" for key in keys.REQUIRED if key not in data]
    bad += [f"has an empty {key}" for key in keys.REQUIRED if data.get(key) == b""]
    return ", ".join(bad) or None


def invalid(data: Data, operator: Operator) -> str | None:
    """Return why ASO cannot make a credential of a complete Secret, None when it can."""
    if fault := _foreign_cloud(data, operator):
        return fault
    match method_of(data):
        case AsoMethod.SERVICE_PRINCIPAL_SECRET:
            return None if data[keys.CLIENT_SECRET] else f"{keys.CLIENT_SECRET} is empty: remove the key"
        case AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE:
            certificate, password = data[keys.CERTIFICATE], data.get(keys.CERTIFICATE_PASSWORD)
            fault = None if certificate == WITHHELD else certificate_fault(certificate, password)
            return f"cannot parse {keys.CERTIFICATE}: {fault}" if fault else None
        case AsoMethod.WORKLOAD_IDENTITY:
            account = data.get(keys.SERVICE_ACCOUNT) if operator.strict else None
            named = account is None or is_object_name(account.decode(errors="replace"))
            return None if named else f"{keys.SERVICE_ACCOUNT} is no name of a ServiceAccount: correct it"
        case None if keys.IDENTITY_FILE not in data:
            known = f"{keys.WORKLOAD_IDENTITY} nor {keys.POD_IDENTITY}"
            return f"{keys.AUTH_MODE} is neither {known}, in lower case: correct it"
        case _:
            return None


def subject_of(data: Data, secret: SecretName, operator: Operator) -> str | None:
    """Return whom the federated credential must trust; None unless the method is workload identity."""
    if method_of(data) is not AsoMethod.WORKLOAD_IDENTITY:
        return None
    account = data.get(keys.SERVICE_ACCOUNT, b"").decode() if operator.strict else None
    return model.subject_of(secret.namespace, operator.namespace, strict=operator.strict, account=account)


def with_blanks(data: Data) -> str | None:
    """Return the required keys whose value Azure refuses: ASO keeps blanks and line ends around it."""
    return ", ".join(key for key in keys.REQUIRED if data[key] != data[key].strip()) or None


def oddities(data: Data, operator: Operator) -> tuple[str, ...]:
    """Return what keeps a Secret that ASO takes from being one that credfleet would declare.

    Values that are withheld are left to whoever writes them.
    """
    return () if WITHHELD in data.values() else model.faults_of(data, strict=operator.strict)


def _foreign_cloud(data: Data, operator: Operator) -> str | None:
    given = [key for key in keys.CLOUD if key in data]
    if not given:
        return None
    if not operator.multi_env:
        return f"{', '.join(given)} need an operator with {keys.ALLOW_MULTI_ENV}=true"
    missing = [key for key in keys.CLOUD if not data.get(key)]
    return f"{', '.join(keys.CLOUD)} go together, {', '.join(missing)} is missing" if missing else None
