"""The rights in its cluster that a stack's identities need according to its configuration, as Roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from components.account_pool.admission.roles import RIGHTS, Right, rights_to_bring, rights_to_clean
from components.account_pool.admission.state_machine import VIRTUAL_GROUP, Verb
from components.account_pool.settings import AccountPool
from components.aso_credentials.settings import AsoCredentials
from components.secret_stores.rewriting import ESO
from components.service_credentials.migration import CORE, READERS
from components.service_credentials.settings import Services
from components.stack_config.stack import Settings


class Identity(StrEnum):
    """The identity of a workflow: for pull request previews, for drift and plans, or for updates."""

    PREVIEW = "preview"
    DRIFT = "drift"
    DEPLOY = "deploy"


CLUSTER: Final = ""
"""In place of a namespace: the right applies to the whole cluster."""

Rights: TypeAlias = Mapping[str, Sequence[Right]]
"""Namespace → rights in it."""
_Needed: TypeAlias = tuple[str, Right]

_ESO: Final = ESO.partition("/")[0]
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_MANAGE: Final = ("create", "delete", "get", "list", "patch", "watch")
"""Verbs that Pulumi's Kubernetes provider uses; it watches deletions with list and watch."""


def rights_of(identity: Identity, settings: Settings, root: Path) -> Rights:
    """Return an identity's rights by namespace; creating namespaces needs rights in the whole cluster."""
    match identity:
        case Identity.PREVIEW:
            needed = _reads(settings)
        case Identity.DRIFT:
            seen = ((place, _right(kind, "get")) for place, kind in declared(settings, root))
            needed = chain(_reads(settings), seen)
        case Identity.DEPLOY:
            written = (right for _, right in _writes(settings, root))
            needed = ((CLUSTER, right) for right in written)
    return _merged(needed)


Kind: TypeAlias = tuple[str, str]
"""API group and resource."""
_NAMESPACES: Final[Kind] = ("", "namespaces")
_SECRETS: Final[Kind] = ("", "secrets")
_CONFIG_MAPS: Final[Kind] = ("", "configmaps")
_ACCOUNTS: Final[Kind] = ("", "serviceaccounts")
_GRANTS: Final[Sequence[Kind]] = ((_RBAC, "rolebindings"), (_RBAC, "roles"))
_POLICIES: Final[Sequence[Kind]] = (
    (_ADMISSION, "validatingadmissionpolicies"),
    (_ADMISSION, "validatingadmissionpolicybindings"),
)


def declared(settings: Settings, root: Path) -> Iterator[tuple[str, Kind]]:
    """Yield the kinds of objects that a stack creates, with their namespaces."""
    pool, stores = _own_pool(settings), settings.secret_stores
    if settings.tenants or pool or settings.pull_secrets:
        yield CLUSTER, _NAMESPACES
    yield from ((namespace, _SECRETS) for namespace, *_ in settings.written())
    if pool is not None:
        yield pool.namespace, _CONFIG_MAPS
        served = [tenant.namespace for tenant in settings.tenants.values() if tenant.accounts]
        yield from ((namespace, _ACCOUNTS) for namespace in served)
        if served or pool.claimers or pool.cleaners or pool.bringers:
            yield from ((pool.namespace, kind) for kind in _GRANTS)
        if pool.admission_policy:
            yield from ((CLUSTER, kind) for kind in _POLICIES)
    if settings.aso_credentials is not None:
        yield from _of_aso(settings.aso_credentials, root)
    if stores is not None:
        of_eso = [stores.stores[name] for name in stores.served_by_eso]
        for each in of_eso:
            yield each.namespace or CLUSTER, (_ESO, f"{'' if each.namespace else 'cluster'}secretstores")
        for plural, consumers in (("externalsecrets", stores.reads), ("pushsecrets", stores.pushes)):
            by_eso = (each for each in consumers.values() if each.backend == "eso")
            yield from ((each.namespace, (_ESO, plural)) for each in by_eso)


def _of_aso(section: AsoCredentials, root: Path) -> Iterator[tuple[str, Kind]]:
    for namespace, _ in section.strict_accounts():
        yield namespace, _ACCOUNTS
        yield from ((namespace, kind) for kind in _GRANTS)
    for each in section.read_resources(root)[0]:
        # ASO serves hundreds of kinds, whose plurals only the cluster knows.
        yield each.resource.namespace, (str(each.manifest["apiVersion"]).partition("/")[0], "*")


def _own_pool(settings: Settings) -> AccountPool | None:
    pool = settings.account_pool
    return pool if pool is not None and pool.from_ is None else None


def _right(kind: Kind, *verbs: str, names: Sequence[str] = ()) -> Right:
    return Right(*kind, verbs, tuple(names))


def _reads(settings: Settings) -> Iterator[_Needed]:
    """Yield the rights that a preview needs; new objects need none, as the provider previews them locally."""
    pool, services = settings.account_pool, settings.services
    if settings.cluster.uid is not None:
        yield CLUSTER, _right(_NAMESPACES, "get", names=["kube-system"])
    if pool is not None and not pool.is_in_other_cluster:
        yield pool.namespace, _right(_SECRETS, "get", "list")
        yield pool.namespace, _right(_CONFIG_MAPS, "get", "list")
    places = [namespace for namespace, *_ in settings.written()]
    given = chain.from_iterable(section.sources() for section in settings.sections)
    places += [place[0] for _, source in given if (place := source.in_secret) is not None]
    yield from ((namespace, _right(_SECRETS, "get")) for namespace in places)
    if services is not None:
        yield from _of_workloads(services, "get")


def _of_stores(settings: Settings) -> Iterator[_Needed]:
    """Yield the rights on ServiceAccounts that direct reads and pushes need for their providers' logins."""
    stores = settings.secret_stores
    for _, _, each in stores.consumers() if stores else ():
        provider = stores.provider_of(each.store, each.namespace) if stores else None
        login = str(getattr(provider, "spec", ""))
        if each.backend == "direct" and "service_account" in login:
            yield each.namespace, _right(("", "serviceaccounts/token"), "create")


def _of_workloads(services: Services, *verbs: str) -> Iterator[_Needed]:
    for app in services.apps.values():
        if (workload := app.workload) is not None:
            group = workload.api_version.rpartition("/")[0]
            yield app.namespace, _right((group, f"{workload.kind.lower()}s"), *verbs)


def _writes(settings: Settings, root: Path) -> Iterator[_Needed]:
    pool, own, services = settings.account_pool, _own_pool(settings), settings.services
    yield from _reads(settings)
    yield from _of_stores(settings)
    yield from ((place, _right(kind, *_MANAGE)) for place, kind in declared(settings, root))
    yield from ((place, _right(_SECRETS, "create", "delete", "update")) for place, *_ in settings.written())
    if pool is not None and not pool.is_in_other_cluster:
        works = [Verb.CLAIM] if any(each.accounts for each in settings.tenants.values()) else []
        works += [Verb.OPERATE] if own is not None else []
        rights = chain.from_iterable(RIGHTS[work] for work in works)
        guarded = own is None or own.admission_policy
        yield from ((pool.namespace, each) for each in rights if guarded or each.group != VIRTUAL_GROUP)
    if own is not None:
        yield from ((own.namespace, each) for each in _given(own))
    if services is not None:
        yield from _of_workloads(services, "get", "patch")
        yield from _of_legacy(services)
    if settings.aso_credentials is not None:
        for namespace, account in settings.aso_credentials.strict_accounts():
            yield namespace, _right(("", "serviceaccounts/token"), "create", names=[account])


def _given(pool: AccountPool) -> Iterable[Right]:
    """Return the rights that the pool's Roles grant: a deployer can only grant its own rights."""
    yield from RIGHTS[Verb.CLAIM] if pool.claimers else ()
    yield from rights_to_clean(pool.new_keys) if pool.cleaners else ()
    yield from chain.from_iterable(map(rights_to_bring, pool.bringers))


def _of_legacy(services: Services) -> Iterator[_Needed]:
    """Yield the rights to list possible readers of a legacy Secret before it is removed."""
    for instance in services.instances.values():
        for group, kinds in READERS.items() if instance.remove_legacy else ():
            name = "" if group == CORE else group.split("/")[1]
            yield from ((instance.namespace, _right((name, kind), "list")) for kind in kinds)


def _merged(needed: Iterable[_Needed]) -> Rights:
    """Merge rights on the same resource, and drop those that a right on all objects includes."""
    verbs: dict[tuple[str, str, str, tuple[str, ...]], set[str]] = {}
    for place, right in needed:
        verbs.setdefault((place, right.group, right.resource, right.names), set()).update(right.verbs)
    merged: dict[str, list[Right]] = {}
    for place, group, resource, names in sorted(verbs):
        held = verbs[place, group, resource, names]
        left = held - verbs.get((place, group, resource, ()), set()) if names else held
        if left:
            merged.setdefault(place, []).append(Right(group, resource, tuple(sorted(left)), names))
    return merged


@dataclass(frozen=True, slots=True)
class Subject:
    """An identity as a subject in the cluster."""

    kind: Literal["Group", "User"]
    name: str


def manifests(
    names: Mapping[Identity, str], subjects: Mapping[Identity, Subject], rights: Mapping[Identity, Rights]
) -> Iterator[dict[str, Any]]:
    """Yield a Role and a binding for each identity and place with rights. names: of the Roles."""
    for identity, places in rights.items():
        for place, those in places.items():
            kind = "ClusterRole" if place == CLUSTER else "Role"
            subject, name = subjects[identity], names[identity]
            metadata = {"name": name} | ({"namespace": place} if place != CLUSTER else {})
            head = {"apiVersion": f"{_RBAC}/v1"}
            yield {**head, "kind": kind, "metadata": {**metadata}, "rules": [*map(_rule, those)]}
            yield {
                **head,
                "kind": f"{kind}Binding",
                "metadata": {**metadata},
                "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
                "subjects": [{"apiGroup": _RBAC, "kind": subject.kind, "name": subject.name}],
            }


def as_text(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return manifests as YAML."""
    import yaml

    return str(yaml.safe_dump_all(documents, sort_keys=False, default_flow_style=None, width=110))


def _rule(right: Right) -> Mapping[str, Sequence[str]]:
    verbs = [str(verb) for verb in right.verbs]
    rule = {"apiGroups": [right.group], "resources": [right.resource], "verbs": verbs}
    return {**rule, "resourceNames": [*right.names]} if right.names else rule
