"""Mapping from keys of the source to keys of the target, and checks of their values.

The formats for Azure Service Operator (ASO) have exactly the keys of one method: ASO chooses the method by
the keys that exist, so an additional key would silently select another one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from components.errors import ProjectionError
from components.naming import GUID, is_data_key

_GUID = re.compile(GUID.encode())


class AsoMethod(StrEnum):
    """Authentication method of an ASO credential."""

    SERVICE_PRINCIPAL_SECRET = "servicePrincipalSecret"  # noqa: S105 - the name of a method
    SERVICE_PRINCIPAL_CERTIFICATE = "servicePrincipalCertificate"
    WORKLOAD_IDENTITY = "workloadIdentity"
    POD_IDENTITY = "podIdentity"


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """Keys of a target Secret.

    `keys`: target key → source key; empty means all keys unchanged. `optional`: target keys that the source
    can lack. `fixed`: target key → constant value. `guids`: target keys whose value is a GUID. `exact`:
    target keys whose value is used with surrounding whitespace.
    """

    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    optional: frozenset[str] = frozenset()
    fixed: Mapping[str, str] = field(default_factory=dict[str, str])
    guids: frozenset[str] = frozenset()
    exact: frozenset[str] = frozenset()

    def apply(self, source: Mapping[str, str], place: str) -> dict[str, str]:
        """Return the target's data from the source's, both base64-encoded.

        `place`: of the source, for messages. Raises ProjectionError for a missing or invalid key.
        """
        names = self.keys or {key: key for key in source}
        missing = [key for target, key in names.items() if key not in source and target not in self.optional]
        if missing:
            has = ", ".join(sorted(source)) or "none"
            raise ProjectionError(
                code="keys-missing",
                place=place,
                problem=f"of its keys ({has}), {', '.join(sorted(missing))} is missing",
                fix="name its keys under deliverTo.keys, or add the missing ones to the credential",
            )
        data = {target: source[key] for target, key in names.items() if key in source}
        if self.keys:
            for target, value in data.items():
                self._examine(target, value, f"{place}, key {names[target]}")
        return data | {
            target: base64.b64encode(text.encode()).decode() for target, text in self.fixed.items()
        }

    def _examine(self, target: str, value: str, place: str) -> None:
        content = base64.b64decode(value)
        if not content:
            raise _unfit(place, "it is empty, and an empty credential opens nothing")
        if target in self.guids and not _GUID.fullmatch(content):
            raise _unfit(place, f"{target} must be a GUID alone, without a line end")
        text = content.decode(errors="replace")
        if target in self.exact and text != text.strip():
            raise _unfit(place, "it begins or ends with a blank or a line end, and ASO keeps it")


def _unfit(place: str, problem: str) -> ProjectionError:
    return ProjectionError(
        code="value-unfit", place=place, problem=problem, fix="correct the account's credential and run again"
    )


_IDENTITY: Final = {
    "AZURE_SUBSCRIPTION_ID": "subscriptionID",
    "AZURE_TENANT_ID": "tenantID",
    "AZURE_CLIENT_ID": "clientID",
}
_ASO: Final[Mapping[AsoMethod, KeyPlan]] = {
    AsoMethod.SERVICE_PRINCIPAL_SECRET: KeyPlan(
        {**_IDENTITY, "AZURE_CLIENT_SECRET": "clientSecret"}, exact=frozenset({"AZURE_CLIENT_SECRET"})
    ),
    AsoMethod.SERVICE_PRINCIPAL_CERTIFICATE: KeyPlan(
        {
            **_IDENTITY,
            "AZURE_CLIENT_CERTIFICATE": "clientCertificate",
            "AZURE_CLIENT_CERTIFICATE_PASSWORD": "clientCertificatePassword",
        },
        optional=frozenset({"AZURE_CLIENT_CERTIFICATE_PASSWORD"}),
    ),
    AsoMethod.WORKLOAD_IDENTITY: KeyPlan(_IDENTITY),
    AsoMethod.POD_IDENTITY: KeyPlan(_IDENTITY, fixed={"AUTH_MODE": "podidentity"}),
}
"""ASO method → its keys. Source keys are those of Gardener's Secrets with Azure credentials."""


def plan_keys(keys: Mapping[str, str], aso_method: AsoMethod | None) -> KeyPlan:
    """Return the key mapping of a target.

    `keys`: target key → source key; for an ASO method, only overrides of its defaults. Raises ProjectionError
    for a key that ASO does not use, or that is not a valid Secret key.
    """
    strange = [key for pair in keys.items() for key in pair if not is_data_key(key)]
    if strange:
        raise _unfit_keys(
            f"{', '.join(strange)} cannot be a key of a Secret", "use letters, digits, - _ and ."
        )
    if aso_method is None:
        return KeyPlan(dict(keys))
    plan = _ASO[aso_method]
    foreign = sorted(keys.keys() - plan.keys.keys())
    if foreign:
        raise _unfit_keys(
            f"{', '.join(foreign)} is not a key of method {aso_method}, and could make ASO choose another",
            f"map only {', '.join(plan.keys)}",
        )
    return replace(plan, keys={**plan.keys, **keys}, guids=frozenset(_IDENTITY))


def _unfit_keys(problem: str, fix: str) -> ProjectionError:
    return ProjectionError(code="keys-unfit", place="deliverTo.keys", problem=problem, fix=fix)
