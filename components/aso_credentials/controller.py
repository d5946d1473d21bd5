"""The operator's own settings, `aso-controller-settings`: exactly the keys that are meant (ASO facts 1.2).

ASO reads them at its start only, so a change counts from its next restart (case L4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from components.aso_credentials import keys
from components.aso_credentials.model import Credential, PodIdentity, Unfit, WorkloadIdentity

SYNC_PERIOD: Final = "AZURE_SYNC_PERIOD"
_DURATION: Final = re.compile(r"never|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+")


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of the operator. Raises Unfit with all that is wrong.

    credential: for resources that no other credential serves; None for no such credential. plain: further
    settings that hold no secret, by key. strict, multi_env: how the operator runs.
    """

    credential: Credential | None = None
    plain: Mapping[str, str] = field(default_factory=dict[str, str])
    strict: bool = False
    multi_env: bool = False

    def __post_init__(self) -> None:
        if faults := [*self._faults()]:
            raise Unfit(faults)

    def emit(self) -> dict[str, bytes]:
        """Give the data of the Secret, none of them empty."""
        data = {key: text.encode() for key, text in self.plain.items()}
        if self.strict:
            data[keys.WORKLOAD_IDENTITY_MODE] = b"strict"
        if self.multi_env:
            data[keys.ALLOW_MULTI_ENV] = b"true"
        return data | _own(self.credential)

    def _faults(self) -> Iterator[str]:
        yield from (f"{key} is empty; leave it out" for key, text in self.plain.items() if not text)
        if not _DURATION.fullmatch(self.plain.get(SYNC_PERIOD, "never")):
            yield f"{SYNC_PERIOD} is no duration such as 1h or 90m, nor never"
        method = self.credential.method if self.credential else None
        if isinstance(method, WorkloadIdentity) and (method.strict or method.service_account):
            yield "the operator proves itself by its own ServiceAccount, in strict mode too"


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
