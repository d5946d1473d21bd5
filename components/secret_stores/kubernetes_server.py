"""Which API server a provider of kind Kubernetes means, and what that one is known by.

External Secrets Operator (ESO) knows no server of its own: without an address it has none, and to one without
`https://` it speaks in plain unless it was given certificates (docs/design/store-facts.md, the cluster's own
server). So the address of its own server is always written out for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, TypeGuard

from components.errors import Problem
from components.secret_stores.model import CaSelector
from components.secret_stores.specs import KubernetesServer, KubernetesSpec

_OWN: Final = re.compile(r"(https://)?kubernetes\.default(\.svc(\.cluster\.local)?)?(:443)?/?", re.IGNORECASE)
"""What leads to the API server of the cluster it is said in."""

_HTTPS: Final = "https://"
_ROOT_CA: Final = CaSelector(type="ConfigMap", name="kube-root-ca.crt", key="ca.crt")
"""Where Kubernetes puts the certificates of its API server, in every namespace."""

_ANY_NAMESPACE: Final = "default"


def is_own(server: KubernetesServer | None) -> bool:
    """Whether the stack's own cluster is meant."""
    return server is None or _OWN.fullmatch(server.url) is not None


def is_foreign(server: KubernetesServer | None) -> TypeGuard[KubernetesServer]:
    """Whether the API server of another cluster is meant."""
    return not is_own(server)


def written_out(given: Any, *, of_all: bool) -> KubernetesSpec:
    """Return a spec that says where its API server is and what it is known by.

    of_all: whether it is for a store of the whole cluster, where certificates need a namespace.
    """
    spec: KubernetesSpec = given
    if spec.auth_ref is not None or is_foreign(spec.server):
        return spec
    server = spec.server or KubernetesServer()
    url = server.url if server.url.startswith(_HTTPS) else f"{_HTTPS}{server.url}"
    known_by = server.ca_bundle or server.ca_provider
    root = _ROOT_CA.model_copy(update={"namespace": _ANY_NAMESPACE if of_all else None})
    certificates = {} if known_by else {"ca_provider": root}
    return spec.model_copy(update={"server": server.model_copy(update={"url": url, **certificates})})


def missed_by_eso(given: Any) -> Iterator[Problem]:
    """Find what ESO misses in a spec as it stands, to reach the API server of its own cluster."""
    spec: KubernetesSpec = given
    if spec.auth_ref is not None or is_foreign(spec.server):
        return
    known_by = spec.server and (spec.server.ca_bundle or spec.server.ca_provider)
    if spec.server is None:
        cause = "there is no server.url, and ESO knows no API server of its own"
    elif known_by:
        return
    elif spec.server.url.startswith(_HTTPS):
        cause = "nothing says what the API server is known by, and ESO trusts public authorities only"
    else:
        cause = "server.url has no https://, so ESO sends the token in plain"
    yield Problem(
        "server",
        cause,
        f"write url: {_HTTPS}kubernetes.default and a caProvider for the ConfigMap {_ROOT_CA.name}",
    )
