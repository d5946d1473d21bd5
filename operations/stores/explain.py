"""The results of `credfleet stores`: who reads which credential, a namespace's access, the other form."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from components.connection import ClusterTarget
from components.errors import ConfigurationError, Problem
from components.secret_stores.access import StoreAccess, find_access
from components.secret_stores.conditions import namespace_labels
from components.secret_stores.eso_cluster import path_of, shortcoming
from components.secret_stores.explain import Explanation, KnownObjects, explain
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import SecretStore
from components.secret_stores.rewriting import ESO, with_blocks, with_references
from components.secret_stores.settings import SecretStoresSection
from components.secret_stores.stack_cluster import StackCluster
from operations.cli.answer import CommandResult, Part, as_json, as_yaml
from operations.cli.failures import UNDECIDED
from operations.cli.tables import Column, Table
from operations.config.settings import settings_of
from operations.stores.documents import Documents, read

_KINDS: Final = (
    (ESO, "SecretStore"),
    (ESO, "ClusterSecretStore"),
    (ESO, "ExternalSecret"),
    ("external-secrets.io/v1alpha1", "PushSecret"),
)


def explain_all(
    documents: Documents, callers: Sequence[str], cluster: ClusterTarget | None = None
) -> CommandResult:
    """Return the result of each store for each caller, and the status of ESO's objects in a cluster.

    Without callers a store is validated as ESO does: from its own namespace, or from none. Raises StoreError.
    """
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
    parts: list[Part] = [Table("Secret stores", columns, map(_row, told)) if told else "There is no store."]
    document: Any = [_as_document(each) for each in told]
    if cluster is not None:
        said = [*_said(StackCluster(cluster), callers)]
        columns = (Column("Object", names=True), "Ready", Column("Why not", folds=True))
        rows = [(name, "no" if why else "yes", why or "") for name, why in said]
        objects = [{"object": name, "ready": why is None, "reason": why} for name, why in said]
        document = {"stores": document, "objects": objects}
        parts.append(Table("What they say themselves", columns, rows))
    return CommandResult(document, parts, UNDECIDED if any(each.undecided for each in told) else 0)


def _said(cluster: StackCluster, namespaces: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each object of ESO as Kind/namespace/name, and why it is not applied as written."""
    for version, kind in _KINDS:
        if kind not in cluster.served(version):
            continue
        for namespace in (None,) if kind == "ClusterSecretStore" else dict.fromkeys(namespaces):
            found = cluster.found(path_of(version, kind, namespace, None), kind) or {}
            for each in found.get("items", ()):
                title = "/".join(filter(None, (kind, namespace, each["metadata"]["name"])))
                yield title, shortcoming(each)


def _as_document(each: Explanation) -> dict[str, Any]:
    names = ("store", "caller", "admitted", "provider", "referent", "selectors", "ready", "reason")
    told = {name: getattr(each, name) for name in names}
    return {**told, "selectors": dict(each.selectors), "ready": str(each.ready)}


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


def list_access(namespace: str, documents: Documents) -> CommandResult:
    """Return every store that a namespace can use, its target, and its identity there."""
    found = [*find_access(namespace, documents.stores, documents.around)]
    columns = (
        Column("Store", names=True),
        "May",
        "Where",
        Column("Logs in by", folds=True),
        Column("Let in by", leaves=1, folds=True),
    )
    table = Table(f"What namespace {namespace} reaches", columns, map(_access_row, found))
    nothing = f"Namespace {namespace} reaches nothing through the stores that are known."
    code = UNDECIDED if any(each.unknown for each in found) else 0
    return CommandResult([_access_document(each) for each in found], [table if found else nothing], code)


def of_stack(stack: str) -> Documents:
    """Return the stores that a stack declares. Raises as `settings_of`."""
    settings = settings_of(stack)
    section = settings.secret_stores or SecretStoresSection()
    labels = namespace_labels({name: tenant.namespace for name, tenant in settings.tenants.items()})
    around = KnownObjects(KINDS, section.models, labels, by_eso=True, labels_are_whole=False)
    return Documents((*map(section.store, section.stores),), around)


def _access_document(each: StoreAccess) -> dict[str, Any]:
    between = [asdict(one) for one in each.between]
    names = {name: getattr(each, name) for name in ("store", "provider", "reads", "writes")}
    names |= {} if each.unknown is None else {"unknown": each.unknown}
    return {**names, "admittedBy": [*each.admitted_by], "where": dict(each.where), "between": between}


def _access_row(each: StoreAccess) -> tuple[str, ...]:
    may = " and ".join(word for word, able in (("read", each.reads), ("write", each.writes)) if able)
    where = ", ".join(f"{path}={text}" for path, text in each.where.items())
    between = ", ".join(f"{one} ({one.path})" for one in each.between)
    return (
        each.store,
        may,
        f"{each.provider.partition('/')[0]} {where}".strip(),
        between or "the identity that runs the update",
        each.unknown or ", ".join(each.admitted_by) or "-",
    )


def convert(files: Sequence[str], *, embed: bool) -> CommandResult:
    """Return documents in the other form, providers separate or embedded; raises as `read`.

    Raises ConfigurationError for what has no equivalent in the other form.
    """
    told = [*(with_blocks if embed else with_references)(read(files, takes_old=True).raw, KINDS)]
    if problems := [each for each in told if isinstance(each, Problem)]:
        raise ConfigurationError(problems)
    items = json.loads(as_json(told))  # Kubernetes has no dates
    text = "---\n".join(map(as_yaml, items)).removesuffix("\n")
    return CommandResult({"apiVersion": "v1", "kind": "List", "items": items}, [text])
