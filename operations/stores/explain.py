"""What `credfleet stores` answers: who reads which credential, what a namespace reaches, the other form."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from components.connection import Connection
from components.errors import ConfigurationError, Problem
from components.secret_stores.access import StoreAccess, find_access
from components.secret_stores.conditions import NAME_LABEL
from components.secret_stores.eso_cluster import path_of, shortcoming
from components.secret_stores.explain import Explanation, KnownObjects, explain
from components.secret_stores.kinds import KINDS
from components.secret_stores.model import SecretStore
from components.secret_stores.rewriting import with_blocks, with_references
from components.secret_stores.settings import SecretStoresSection, namespace_labels
from components.secret_stores.stack_cluster import StackCluster
from components.stack_config.review import usable_namespaces
from operations.cli.answer import CommandResult, as_yaml
from operations.cli.failures import UNDECIDED
from operations.cli.tables import Column, Table
from operations.config.settings import settings_of
from operations.stores.documents import Documents, live, read

_V1: Final = "external-secrets.io/v1"
_KINDS: Final = (
    (_V1, "SecretStore"),
    (_V1, "ClusterSecretStore"),
    (_V1, "ExternalSecret"),
    ("external-secrets.io/v1alpha1", "PushSecret"),
)


def explain_all(documents: Documents, callers: Sequence[str]) -> CommandResult:
    """Return what each store comes to for each caller.

    Without callers a store is validated as ESO does: from its own namespace, or from none.
    """
    told, part = _told(documents, callers)
    return CommandResult([_as_document(each) for each in told], [part], _exit_code(told))


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
    parts = [part, Table("What they say themselves", columns, rows)]
    return CommandResult(document, parts, _exit_code(told))


def _exit_code(told: Iterable[Explanation]) -> int:
    return UNDECIDED if any(each.undecided for each in told) else 0


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
    return told, table if told else "There is no store."


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
    """Return every store that a namespace can use, where it leads, and as whom it logs in."""
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
    """Return the stores of a stack as it declares them. Raises as `settings_of`."""
    settings = settings_of(stack)
    section = settings.secret_stores or SecretStoresSection()
    providers = [
        each for name in section.providers if not isinstance(each := section.provider(name), Problem)
    ]
    labels = namespace_labels({name: tenant.namespace for name, tenant in settings.tenants.items()})
    usable = usable_namespaces(settings.tenants, settings.cluster)
    namespaces = {name: {NAME_LABEL: name, **labels.get(name, {})} for name in usable}
    around = KnownObjects(
        KINDS, {each.key: each for each in providers}, namespaces, by_eso=True, labels_are_whole=False
    )
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
    """Return documents in the other form, providers apart or embedded; raises as `read`.

    What cannot be in the other form is a ConfigurationError.
    """
    told = [*(with_blocks if embed else with_references)(read(files, takes_old=True).raw, KINDS)]
    if problems := [each for each in told if isinstance(each, Problem)]:
        raise ConfigurationError(problems)
    items = [dict(each) for each in told if not isinstance(each, Problem)]
    text = "---\n".join(map(as_yaml, items)).removesuffix("\n")
    return CommandResult({"apiVersion": "v1", "kind": "List", "items": items}, [text])
