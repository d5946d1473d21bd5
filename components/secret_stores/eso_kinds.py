"""What External Secrets Operator (ESO) makes of each kind of provider: there the kinds follow no common rule.

ESO judges selectors and pushes in the code of each provider. Source: that code, as of ESO 2.9, beyond what
secret store providers 1.3 and the rows C12, C17 and C18 of 2.3 tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final


class Properties(Enum):
    """What a push may say of a property of a remote secret.

    ANY: one or none. REQUIRED: one. UNSEEN: one or none, but ESO neither sees whether it is there nor deletes
    it alone. IGNORED: none; the whole secret is written whatever is said.
    """

    ANY = auto()
    REQUIRED = auto()
    UNSEEN = auto()
    IGNORED = auto()


@dataclass(frozen=True, slots=True)
class Habits:
    """How ESO treats a kind: its selectors, told by their paths, its reads, and its pushes.

    pinned: in a ClusterSecretStore it takes these with a namespace only. followed: there it knows that these
    mean the caller's when they have none; while a store is validated, all others are looked up. whole: of
    these Secrets it reads more than one key. versions: whether a read gets the version it asks for; if
    not, it gets the latest without a word.
    """

    pinned: Set[str] = frozenset()
    followed: Set[str] = frozenset()
    whole: Set[str] = frozenset()
    versions: bool = True
    properties: Properties = Properties.ANY


UNKNOWN: Final = Habits()
"""Those of a kind of the stack's own: it is not known to follow a caller."""

HABITS: Final[Mapping[str, Habits]] = MappingProxyType(
    {
        "fake": Habits(properties=Properties.IGNORED),
        "kubernetes": Habits(
            pinned={"auth.cert.clientCert", "auth.token.bearerToken"},
            followed={"auth.cert.clientKey", "auth.serviceAccount"},
            versions=False,
            properties=Properties.REQUIRED,
        ),
        "gcpsm": Habits(
            followed={
                "auth.secretRef.secretAccessKeySecretRef",
                "auth.workloadIdentity.serviceAccountRef",
            },
            whole={"auth.workloadIdentityFederation.awsSecurityCredentials.awsCredentialsSecretRef"},
            properties=Properties.UNSEEN,
        ),
        "gitlab": Habits(pinned={"auth.SecretRef.accessToken"}, versions=False),
        "azurekv": Habits(
            followed={"authSecretRef.clientId", "authSecretRef.clientSecret", "serviceAccountRef"},
            properties=Properties.IGNORED,
        ),
    }
)
"""By the key of the embedded block."""
