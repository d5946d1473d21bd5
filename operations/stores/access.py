"""`credfleet stores reach`: what a namespace can read and write, and through what."""

from dataclasses import asdict
from typing import Any

from components.errors import Problem
from components.secret_stores.access import StoreAccess, find_access
from components.secret_stores.conditions import NAME_LABEL
from components.secret_stores.explain import KnownObjects
from components.secret_stores.kinds import KINDS
from components.secret_stores.settings import SecretStoresSection, namespace_labels
from components.stack_config.review import usable_namespaces
from operations.cli.answer import CommandResult
from operations.cli.tables import Column, Table
from operations.config.settings import settings_of
from operations.stores.documents import Documents


def list_access(namespace: str, documents: Documents) -> CommandResult:
    """Return every store that a namespace can use, where it leads, and as whom it logs in."""
    found = [*find_access(namespace, documents.stores, documents.around)]
    columns = (
        Column("Store", names=True),
        "May",
        "Where",
        Column("Logs in by", folds=True),
        Column("Let in by", leaves=1),
    )
    table = Table(f"What namespace {namespace} reaches", columns, map(_row, found))
    nothing = f"Namespace {namespace} reaches nothing through the stores that are known."
    return CommandResult([_as_document(each) for each in found], [table if found else nothing])


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
    around = KnownObjects(KINDS, {each.key: each for each in providers}, namespaces)
    return Documents((*map(section.store, section.stores),), around)


def _as_document(each: StoreAccess) -> dict[str, Any]:
    names = {"store": each.store, "provider": each.provider, "reads": each.reads, "writes": each.writes}
    between = [asdict(one) for one in each.between]
    return {**names, "admittedBy": [*each.admitted_by], "where": dict(each.where), "between": between}


def _row(each: StoreAccess) -> tuple[str, ...]:
    may = " and ".join(word for word, able in (("read", each.reads), ("write", each.writes)) if able)
    where = ", ".join(f"{path}={text}" for path, text in each.where.items())
    between = ", ".join(f"{one} ({one.path})" for one in each.between)
    return (
        each.store,
        may,
        f"{each.provider.partition('/')[0]} {where}".strip(),
        between or "whoever runs the update",
        ", ".join(each.admitted_by) or "-",
    )
