"""How External Secrets Operator (ESO) resolves a selector without namespace in a ClusterSecretStore.

Each provider of ESO implements this itself. `eso_namespaces.json` records how the providers of one ESO
version behaved, for each selector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from components.secret_stores.eso_providers import read_table
from components.secret_stores.model import AnyProvider, CaSelector, ClusterProvider
from components.secret_stores.referent import selectors

_FILE: Final = "eso_namespaces.json"
_INDEX: Final = re.compile(r"\[\d+\]")


class NamespaceRule(StrEnum):
    """Behaviour for such a selector; the file explains each value."""

    FOLLOWED = "followed"
    REFUSED = "refused"
    EARLY = "early"
    LATE = "late"
    UNUSED = "unused"
    UNSEEN = "unseen"


def list_unfollowed(provider: AnyProvider, embedded: str) -> Iterator[tuple[str, NamespaceRule, str]]:
    """Yield each selector that requires a namespace: path, ESO's behaviour, and the problem as text.

    Certificates always require one, and in a provider with a namespace all selectors use that. If one
    selector follows the caller, ESO resolves none before there is a caller. `embedded`: key of the kind.
    """
    if not isinstance(provider, ClusterProvider):
        return
    told = read_table(_FILE)["selectors"].get(embedded, {})
    absent = {
        path: NamespaceRule(told.get(_INDEX.sub("", path), NamespaceRule.UNSEEN))
        for path, selector in selectors(provider.spec)
        if selector.namespace is None and not isinstance(selector, CaSelector)
    }
    always = (NamespaceRule.REFUSED, NamespaceRule.LATE)
    follows = NamespaceRule.FOLLOWED in absent.values()
    for path, habit in absent.items():
        if habit in always or (habit in _CAUSES and not follows):
            yield path, habit, _CAUSES[habit]


def list_unused(provider: AnyProvider, embedded: str) -> Iterator[str]:
    """Yield the path of each selector that ESO ignores because it logs in as its own pod."""
    told = read_table(_FILE)["selectors"].get(embedded, {})
    for path, _ in selectors(provider.spec):
        if told.get(_INDEX.sub("", path)) == NamespaceRule.UNUSED:
            yield path


_CAUSES: Final[Mapping[NamespaceRule, str]] = {
    NamespaceRule.REFUSED: "ESO refuses it so in a ClusterSecretStore",
    NamespaceRule.EARLY: "ESO looks for it before anybody calls, so the store never gets ready",
    NamespaceRule.LATE: "ESO refuses each read through such a ClusterSecretStore",
    NamespaceRule.UNSEEN: "it is not known here that ESO follows it to the caller",
}
