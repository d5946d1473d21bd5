"""`credfleet stores explain`: who reads which credential through a store, as files or a cluster say."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from components.connection import Connection
from components.secret_stores.eso_cluster import path_of, shortcoming
from components.secret_stores.explain import Explanation, explain
from components.secret_stores.model import SecretStore
from components.secret_stores.stack_cluster import StackCluster
from operations.cli.answer import CommandResult
from operations.cli.tables import Column, Table
from operations.stores.documents import Documents, live, read

_V1: Final = "external-secrets.io/v1"
_KINDS: Final = (
    (_V1, "SecretStore"),
    (_V1, "ClusterSecretStore"),
    (_V1, "ExternalSecret"),
    ("external-secrets.io/v1alpha1", "PushSecret"),
)


def explain_files(files: Sequence[str], callers: Sequence[str]) -> CommandResult:
    """Return what each store comes to for each caller; raises as `documents.read`.

    Without callers a store is validated as ESO does: from its own namespace, or from none.
    """
    told, part = _told(read(files), callers)
    return CommandResult([_as_document(each) for each in told], [part])


def explained_live(connection: Connection, cluster: StackCluster, callers: Sequence[str]) -> CommandResult:
    """Return the same of the stores of a cluster, and what every object of ESO there says of itself.

    connection and cluster are of one cluster. Raises as `documents.live` and StoreError.
    """
    told, part = _told(live(connection, *callers), callers)
    said = [*_said(cluster, callers)]
    columns = (Column("Object", names=True), "Ready", Column("Why not", folds=True))
    rows = [(name, "no" if why else "yes", why or "") for name, why in said]
    document = {
        "stores": [_as_document(each) for each in told],
        "objects": [{"object": name, "ready": why is None, "reason": why} for name, why in said],
    }
    return CommandResult(document, [part, Table("What they say themselves", columns, rows)])


def _said(cluster: StackCluster, namespaces: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each object of ESO as Kind/namespace/name, and why it does not stand as it is written."""
    for version, kind in _KINDS:
        if kind not in cluster.served(version):
            continue
        for namespace in (None,) if kind == "ClusterSecretStore" else dict.fromkeys(namespaces):
            found = cluster.found(path_of(version, kind, namespace, None), kind) or {}
            for each in found.get("items", ()):
                title = "/".join(filter(None, (kind, namespace, each["metadata"]["name"])))
                yield title, shortcoming(each)


def _told(documents: Documents, callers: Sequence[str]) -> tuple[Sequence[Explanation], Table | str]:
    told = [
        explain(store, caller, documents.around)
        for store in documents.stores
        for caller in dict.fromkeys(callers) or [store.namespace if isinstance(store, SecretStore) else ""]
    ]
    columns = (
        Column("Store", names=True),
        "Caller",
        "Ready",
        Column("Provider", leaves=2),
        Column("Reads", leaves=1),
        Column("Why", folds=True),
    )
    table = Table("Secret stores", columns, [_row(each) for each in told])
    return told, table if told else "The files hold no store."


def _as_document(each: Explanation) -> dict[str, Any]:
    return {
        "store": each.store,
        "caller": each.caller,
        "admitted": each.admitted,
        "provider": each.provider,
        "referent": each.referent,
        "selectors": dict(each.selectors),
        "ready": str(each.ready),
        "reason": each.reason,
    }


def _row(each: Explanation) -> tuple[str, ...]:
    reads = ", ".join(f"{path} in {namespace}" for path, namespace in each.selectors.items())
    return (
        each.store,
        each.caller or "(none)",
        str(each.ready),
        each.provider or "",
        f"{reads} (by caller)" if each.referent and reads else reads,
        each.reason or "",
    )
