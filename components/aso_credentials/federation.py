"""Whom a managed identity trusts: federated credentials, their names and Azure's limits."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

AUDIENCE: Final = "api://AzureADTokenExchange"
"""The one audience that Entra's token exchange takes."""

MOST: Final = 20
"""Federated credentials of one identity."""

SUBJECT: Final = "system:serviceaccount:"
"""What the subject of a ServiceAccount begins with; NAMESPACE:NAME follow."""

_LONGEST: Final = 600
"""Characters of an issuer or a subject."""

_NAME: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_]{2,119}")


@dataclass(frozen=True, slots=True)
class Federation:
    """A ServiceAccount that an identity trusts.

    issuer: of the cluster's tokens, to the letter, a slash at its end included. subject:
    `system:serviceaccount:NAMESPACE:NAME`; Azure knows no wildcards.
    """

    issuer: str
    subject: str


def is_federation_name(text: str) -> bool:
    """Whether Azure takes the text as the name of a federated credential."""
    return _NAME.fullmatch(text) is not None


def federation_name(subject: str, issuer: str | None = None) -> str:
    """Return `NAMESPACE_NAME`, the name of a ServiceAccount's federated credential, which no two share.

    What Azure does not take in a name, such as a dot, becomes `-`, with a digest behind it. issuer: told by
    the digest too, where the ServiceAccount is trusted by two.
    """
    words = subject.removeprefix(SUBJECT).replace(":", "_")
    if issuer is None and is_federation_name(words):
        return words
    digest = hashlib.sha256(f"{issuer or ''}{subject}".encode()).hexdigest()[:16]
    return f"{re.sub(r'[^-A-Za-z0-9_]', '-', words)[:100]}_{digest}"


def federation_faults(federations: Mapping[str, Federation]) -> Iterator[str]:
    """Yield what Azure would refuse of the federated credentials of one identity, by name."""
    if len(federations) > MOST:
        yield f"it would have {len(federations)} federated credentials, and an identity takes {MOST}"
    seen: dict[Federation, str] = {}
    for name, federation in federations.items():
        first = seen.setdefault(federation, name)
        if first != name:
            yield f"federated credentials {first} and {name} trust the same issuer and subject"
        same = next(other for other in federations if other.lower() == name.lower())
        if same != name:
            yield f"federated credentials {same} and {name} are one to Azure, where case does not count"
        if max(len(federation.issuer), len(federation.subject)) > _LONGEST:
            yield f"issuer or subject of federated credential {name} is longer than {_LONGEST} characters"
