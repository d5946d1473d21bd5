"""Models of a resolution: a resource, the operator, and the credential that ASO uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias

from components.aso_credentials import keys
from components.aso_credentials.azure import SUBJECT
from components.errors import CredfleetError
from components.projection.keys import AsoMethod
from components.projection.model import SecretRef

TRUE: Final = frozenset({b"1", b"t", b"T", b"true", b"TRUE", b"True"})
"""Values that Go parses as true."""

WITHHELD: Final = b"\0withheld"
"""Stands for an existing value of a Secret that is unknown: before an update, only the keys are known."""


Secrets: TypeAlias = Mapping[SecretRef, Mapping[str, bytes]]


class Scope(StrEnum):
    """Scope of a credential."""

    RESOURCE = "resource"
    NAMESPACE = "namespace"
    GLOBAL = "global"


class Severity(StrEnum):
    """Severity: ASO retries after a Warning, never after an Error."""

    WARNING = "Warning"
    ERROR = "Error"


class Reason(StrEnum):
    """Reason that ASO sets in the Ready condition."""

    FAILED = "Failed"
    SUBSCRIPTION_MISMATCH = "SubscriptionMismatch"
    UNKNOWN_ERROR = "UnknownError"
    WAITING_FOR_OWNER = "WaitingForOwner"


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner of a resource: another one in its namespace, by name and optional kind, or an ARM id."""

    name: str | None = None
    kind: str | None = None
    arm_id: str | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """Custom resource of ASO.

    `misplaced`: annotations under `metadata.annotation`, which is ignored. `writes`: names of Secrets that
    ASO writes for it (`operatorSpec.secrets`), with their keys.
    """

    namespace: str
    kind: str
    name: str
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    owner: Owner | None = None
    misplaced: Mapping[str, str] = field(default_factory=dict[str, str])
    deleting: bool = False
    writes: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Operator:
    """Operator: namespace, ServiceAccount, and whether it serves several clouds or is in strict mode.

    `targets`: the only namespaces it watches; empty means all. `environment`: of its pod, from its settings
    Secret; None if that Secret is unknown.
    """

    namespace: str = keys.OPERATOR_NAMESPACE
    multi_env: bool = False
    strict: bool = False
    account: str = keys.OPERATOR_ACCOUNT
    targets: frozenset[str] = frozenset()
    environment: Mapping[str, bytes] | None = None

    def subject(self, namespace: str, account: str | None = None) -> str:
        """Return the subject that the federated credential of a workload identity must trust.

        `namespace`: of its Secret. `account`: ServiceAccount that it names; used only in strict mode.
        """
        if self.strict:
            return f"{SUBJECT}{namespace}:{account or keys.STRICT_ACCOUNT}"
        return f"{SUBJECT}{self.namespace}:{self.account}"

    def with_settings(self, secrets: Secrets) -> Operator:
        """Return the operator with the options of its settings Secret.

        Raises CredfleetError, code `misconfigured`, for settings that prevent ASO from starting.
        """
        place = SecretRef(self.namespace, keys.GLOBAL_SETTINGS)
        environment = secrets.get(place)
        settings = environment or {}
        mode = settings.get(keys.WORKLOAD_IDENTITY_MODE, b"")
        if mode not in (b"", b"relaxed", b"strict"):
            raise CredfleetError(
                code="misconfigured",
                place=f"Secret {place}, key {keys.WORKLOAD_IDENTITY_MODE}",
                problem="it is neither relaxed nor strict, and the operator does not start with anything"
                " else",
                fix="write relaxed or strict, or leave the key out, which means relaxed",
            )
        multi_env = self.multi_env or settings.get(keys.ALLOW_MULTI_ENV) in TRUE
        named = settings.get(keys.TARGET_NAMESPACES, b"").decode(errors="replace").split(",")
        targets = frozenset(name.strip() for name in named) - {""}
        strict = self.strict or mode == b"strict"
        return replace(self, multi_env=multi_env, strict=strict, targets=targets, environment=environment)


@dataclass(frozen=True, slots=True)
class NotReady:
    """Problem as ASO reports it in the Ready condition, with the fix."""

    severity: Severity
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """Credential that ASO uses for a resource.

    `subject`: that the federated credential must trust, only for workload identity. `hints`: surprising facts
    that are not errors.
    """

    resource: Resource
    secret: SecretRef | None = None
    scope: Scope | None = None
    method: AsoMethod | None = None
    subject: str | None = None
    subscription: str | None = None
    fault: NotReady | None = None
    hints: tuple[str, ...] = ()

    @property
    def message(self) -> str | None:
        """The fault and the hints in one string."""
        texts = [self.fault.message] if self.fault else []
        return "; ".join([*texts, *self.hints]) or None
