"""The operator's own settings, `aso-controller-settings`: exactly the keys that are meant (ASO facts 1.2).

ASO reads them at its start only, so a change counts from its next restart (case L4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from components.aso_credentials import keys
from components.aso_credentials.model import Credential, PodIdentity, Unfit, WorkloadIdentity


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of the operator.

    credential: for resources that no other credential serves; None for no such credential. Raises Unfit for
    one of strict mode, which the operator's own never is (case W6). plain: further settings that hold no
    secret, by key. strict, multi_env: how the operator runs.
    """

    credential: Credential | None = None
    plain: Mapping[str, str] = field(default_factory=dict[str, str])
    strict: bool = False
    multi_env: bool = False

    def __post_init__(self) -> None:
        method = self.credential.method if self.credential else None
        if isinstance(method, WorkloadIdentity) and method.strict:
            raise Unfit(["the operator proves itself by its own ServiceAccount, in strict mode too"])

    def emit(self) -> dict[str, bytes]:
        """Give the data of the Secret."""
        data = {key: text.encode() for key, text in self.plain.items()}
        if self.strict:
            data[keys.WORKLOAD_IDENTITY_MODE] = b"strict"
        if self.multi_env:
            data[keys.ALLOW_MULTI_ENV] = b"true"
        return data | _own(self.credential)


def _own(credential: Credential | None) -> dict[str, bytes]:
    """Say the operator's credential, whose method is chosen by other keys than that of a scoped one."""
    if credential is None:
        return {}
    match credential.method:
        case WorkloadIdentity():
            return credential.emit() | {keys.USE_WORKLOAD_IDENTITY: b"true"}
        case PodIdentity():
            return {key: value for key, value in credential.emit().items() if key != keys.AUTH_MODE}
        case _:
            return credential.emit()
