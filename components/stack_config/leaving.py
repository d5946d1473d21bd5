"""Objects in a stack's state that its configuration no longer has: renames and removals.

A stack's file that declares nothing, without stating so, is treated as truncated. If a name disappears while
another with the same content appears, it is a rename, unless stated otherwise: a namespace or account in use
would be deleted or cleaned. All this is rejected before anything changes.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from components.config.places import locate
from components.config.section import Section
from components.documents import Unreadable, read_file
from components.errors import Problem
from components.labels import TENANT
from components.naming import TENANT_NAMESPACE, TENANT_NAMESPACE_END, config_path
from components.pull_secret.names import is_pull_secret, label_value
from components.stack_config.models import Tenant
from components.stack_config.stack import NAMESPACE, Settings

ALLOW_REMOVALS: Final = "allowRemovals"
_DECLARES_NOTHING: Final = frozenset(f"{NAMESPACE}{key}" for key in ("cluster", "credentials", "heldAs"))
SILENCE: Final = Problem(
    "configuration",
    f"the file has no key of {NAMESPACE}… that declares anything: the next update would delete all that the"
    " stack had",
    "restore it from version control; a stack that declares nothing says so: config: {}, or beside other keys"
    " credfleet:tenants: {}",
)
_CLAIM: Final = "pulumi-python:dynamic/credfleet:AccountClaim"
_COPY: Final = "pulumi-python:dynamic/credfleet:SecretProjection"
_Advise: TypeAlias = Callable[..., str]
_UNASKED: Final = 4
"""One entry of this many can be removed without confirmation; a single entry always can."""


@dataclass(slots=True)
class FormerSlot:
    """Claim that has an account. `copy`: name of its Secret in the tenant's namespace."""

    type: str
    copy: str = ""


@dataclass(slots=True)
class FormerTenant:
    """Tenant in the state. `urn`: of its namespace."""

    urn: str
    namespace: str
    slots: dict[str, FormerSlot] = field(default_factory=dict[str, FormerSlot])


def read_former(resources: Mapping[str, Mapping[str, Any]]) -> Mapping[str, FormerTenant]:
    """Return the tenants of a state. `resources`: URN → `type` and `outputs`."""
    tenants: dict[str, FormerTenant] = {}
    for type_ in (TENANT_NAMESPACE, _CLAIM, _COPY):
        for urn, one in resources.items():
            if one.get("type") == type_:
                _note(tenants, type_, urn, one.get("outputs") or {})
    return tenants


def _note(tenants: dict[str, FormerTenant], type_: str, urn: str, outputs: Mapping[str, Any]) -> None:
    """Add a resource by its logical name, namespaces first."""
    metadata, name = outputs.get("metadata") or {}, urn.rpartition("::")[2]
    tenant, _, slot = name.removesuffix("-copy").partition("/")
    if type_ == TENANT_NAMESPACE and TENANT in (metadata.get("labels") or {}):
        tenants[name.removesuffix(TENANT_NAMESPACE_END)] = FormerTenant(urn, str(metadata["name"]))
    elif type_ == _CLAIM and outputs.get("secretName") and tenant in tenants:
        tenants[tenant].slots[slot] = FormerSlot(str(outputs["type"]))
    elif type_ == _COPY and tenant in tenants and slot in tenants[tenant].slots:
        tenants[tenant].slots[slot].copy = str(outputs["targetName"])


_Entries: TypeAlias = Mapping[str, Mapping[str, object]]
"""Part of a section → entries by name, each with a value that distinguishes it from the others."""


def read_entries(resources: Mapping[str, Mapping[str, Any]]) -> _Entries:
    """Return the entries of a state whose objects are named after them. `resources`: as in `read_former`."""
    found: dict[str, dict[str, object]] = defaultdict(dict)
    all_ = [
        (urn.rpartition("::")[2], one.get("type"), one.get("outputs") or {}) for urn, one in resources.items()
    ]
    bound = [name.partition("/") for name, type_, _ in all_ if str(type_).endswith(":ServiceBinding")]
    for name, type_, outputs in all_:
        own = name.partition("/")[2].rpartition("-")[0]
        match str(type_).rpartition(":")[2]:
            case "UserProvidedService":
                keys = {key for service, _, key in bound if service == name}
                found["instances"][name] = outputs.get("namespace"), keys
            case "ServiceApp":
                found["apps"][name] = {key.partition("/")[2] for key in outputs.get("bindings") or ()}
            case "AsoResourceCredential":
                found["named"][name] = str(outputs.get("reference")).partition("/")[0]
            case "SecretRead":
                found["reads"][own] = outputs.get("namespace"), {*_data_of(outputs.get("read"))}
            case "SecretPush":
                found["pushes"][own.partition("/")[0]] = (
                    outputs["namespace"],
                    {each["remoteKey"] for each in _data_of(outputs.get("push"))},
                )
            case "Secret" if is_pull_secret(outputs.get("labels") or {}):
                found["clusters"][name.removesuffix("-entry")] = outputs["labels"].get("cluster-name")
            case "Secret" | "LoginSecret" if name.startswith("stores/"):
                found["providers"][own] = _namespace_of(outputs)
            case "SecretStore" | "ClusterSecretStore":
                found["stores"][own] = _namespace_of(outputs)
            case _:
                pass
    return found


def _namespace_of(outputs: Mapping[str, Any]) -> Any:
    return outputs.get("namespace") or (outputs.get("metadata") or {}).get("namespace")


def _data_of(document: Any) -> Any:
    return (document or {}).get("data") or ()


def _renamed_entries(former: _Entries, settings: Settings, advise: _Advise) -> Iterator[Problem]:
    """Yield probable renames among the entries of sections."""
    services, stores = settings.services, settings.secret_stores
    parts: Sequence[tuple[Section | None, str, Callable[[Any], object]]] = (
        (services, "instances", lambda one: (one.namespace, {*one.bindings})),
        (services, "apps", lambda one: {each.partition("/")[2] for each in one.bindings}),
        (settings.aso_credentials, "named", lambda one: one.namespace),
        (stores, "providers", lambda one: one.namespace),
        (stores, "stores", lambda one: one.namespace),
        (stores, "reads", lambda one: (one.namespace, {*one.data})),
        (stores, "pushes", lambda one: (one.namespace, {v.remote_key or key for key, v in one.data.items()})),
    )
    for section, part, content in parts:
        entries: Mapping[str, Any] = {} if section is None else getattr(section, part)
        had, known = (
            former.get(part, {}),
            {each for name in entries for each in (name, *entries[name].previously)},
        )
        gone = {name: told for name, told in had.items() if name not in known}
        for name, one in entries.items():
            alike = [old for old, told in gone.items() if told == content(one)]
            if section and alike and had.keys().isdisjoint((name, *one.previously)):
                old = max(alike, key=lambda each: SequenceMatcher(None, each, name).ratio())
                del gone[old]
                yield Problem(
                    section.place(part, name),
                    f"it is as {old}, which is no longer configured: what {old} has would be deleted",
                    advise(old, one.previously, part, name, section=section.KEY),
                )


def _renamed_clusters(former: Mapping[str, object], settings: Settings) -> Iterator[Problem]:
    """Yield clusters that seem to have a new id, which cannot be declared as a rename."""
    section = settings.pull_secrets
    declared = {} if section is None else section.clusters
    gone = {old: name for old, name in former.items() if old not in declared}
    for id_, cluster in declared.items():
        named = None if id_ in former else label_value(cluster.name)
        for old in (each for each, name in gone.items() if name == named):
            yield Problem(
                config_path("pullSecrets", "clusters", id_),
                f"its name is that of {old}, which is no longer configured: {old} would lose its pull secret",
                f"HyperFleet looks for a pull secret by the cluster's id, which never changes: write {old};"
                f" if {id_} is another cluster, take {old} out in an update of its own first",
            )


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses of an update that the configuration does not state.

    `renames`: probable renames. `removals`: too many at once, whether or not the stack allows that.
    """

    renames: Sequence[Problem]
    removals: Sequence[Problem]
    is_allowed: bool

    @property
    def refused(self) -> Sequence[Problem]:
        """Losses that reject an update."""
        return [*self.renames, *(() if self.is_allowed else self.removals)]


def find_losses(
    former: Mapping[str, FormerTenant],
    settings: Settings,
    root: Path,
    entries: _Entries = MappingProxyType({}),
) -> Losses:
    """Compare a state with the configuration. `root`: directory of Pulumi.yaml. `entries`: of sections."""
    known = {name for new, tenant in settings.tenants.items() for name in (new, *tenant.previously)}
    gone = [name for name in former if name not in known]
    advise = partial(_advise, settings, root)
    renames, slots = list[Problem](), list[str]()
    for name, tenant in settings.tenants.items():
        renames += _renamed_tenants(name, tenant, former, gone, advise)
        for each in {name, *tenant.previously} & former.keys():
            found, going = _renamed_slots(name, tenant, former[each], settings, advise)
            renames += found
            slots += (f"{each}/{slot}" for slot in going)
    in_use = sum(len(tenant.slots) for tenant in former.values())
    removals = [
        *_too_many("tenants", () if renames else gone, len(former)),
        *_too_many("accounts in use", slots, in_use),
    ]
    renames += _renamed_entries(entries, settings, advise)
    renames += _renamed_clusters(entries.get("clusters", {}), settings)
    return Losses(renames, removals, settings.allow_removals)


def _advise(
    settings: Settings, root: Path, old: str, given: Sequence[str], *place: str, section: str = "tenants"
) -> str:
    """Return how to add a former name to an entry, if it was renamed."""
    tenant, *inside = place
    file = Path(settings.tenants_from or "", f"{tenant}.yaml")
    if settings.tenants_from and (root / file).exists():
        line = f"`previously: [{', '.join((*given, old))}]`"
        how = f"write {line} into {file}" + (f", under {'.'.join(inside)}" if inside else "")
    else:
        path = config_path(section, *place, "previously", len(given))
        how = f"run `{shlex.join(['pulumi', 'config', 'set', '--path', path, old])}`"
    return f"if {old} is called {place[-1]} by now, {how}; else take {old} out in an update of its own first"


def _renamed_tenants(
    name: str, tenant: Tenant, former: Mapping[str, FormerTenant], gone: Collection[str], advise: _Advise
) -> Iterator[Problem]:
    for old in (each for each in former if former[each].namespace == tenant.namespace):
        place, why = config_path("tenants", name), f"its namespace {tenant.namespace} is that of tenant {old}"
        if old != name and name in former and old in {*gone, *tenant.previously}:
            urn = shlex.quote(former[old].urn)
            yield Problem(
                place,
                f"{why} in the state as well, from which it would be deleted with all that is in it",
                f"run `pulumi state delete --target-dependents {urn}`, which deletes nothing in the cluster",
            )
        elif old in gone:
            yield Problem(
                place,
                f"{why}, which is no longer configured: it would be deleted with all that is in it",
                advise(old, tenant.previously, name),
            )


def _renamed_slots(
    name: str, tenant: Tenant, former: FormerTenant, settings: Settings, advise: _Advise
) -> tuple[Sequence[Problem], Sequence[str]]:
    """Return probable renames among a tenant's slots, and the slots that are removed."""
    known = {each for slot, one in tenant.accounts.items() for each in (slot, *one.previously)}
    gone = {slot: one for slot, one in former.slots.items() if slot not in known}
    problems: list[Problem] = []
    for slot, one in tenant.accounts.items():
        if not former.slots.keys().isdisjoint((slot, *one.previously)):
            continue
        target, type_ = one.deliver_to and one.deliver_to.target, settings.type_of(one)
        by_copy = [old for old, was in gone.items() if was.copy and was.copy == target]
        by_type = [old for old, was in gone.items() if was.type == type_]
        for old in (by_copy or by_type)[:1]:
            del gone[old]
            same = f"the same deliverTo, {target}," if by_copy else f"an account of type {type_}"
            problems.append(
                Problem(
                    config_path("tenants", name, "accounts", slot),
                    f"it asks for {same} as slot {old}, which is no longer configured: the account of"
                    f" {old} would be released, and another claimed",
                    advise(old, one.previously, name, "accounts", slot),
                )
            )
    return problems, [*gone]


def _too_many(what: str, going: Collection[str], of: int) -> Iterator[Problem]:
    if len(going) > 1 and len(going) * _UNASKED > of:
        key = config_path(ALLOW_REMOVALS)
        yield Problem(
            config_path("tenants"),
            f"{len(going)} of {of} {what} would be removed in one update: {', '.join(sorted(going))}",
            f"put them back; if they are to go, add `--config {key}=true`, which Pulumi keeps in the stack's"
            f" file, and run `pulumi config rm {key}` after the update",
        )


def declares(keys: Iterable[str]) -> bool:
    """Return whether one of these full keys declares something, even an empty map: `{}`."""
    return any(key.startswith(NAMESPACE) and key not in _DECLARES_NOTHING for key in keys)


def find_silence(settings: Settings, file: Path, project: str) -> Sequence[Problem]:
    """Reject settings that declare nothing, unless their file states so explicitly.

    Only the file shows this: in the values, defaults of Pulumi.yaml look like explicit ones.
    """
    if settings.tenants or settings.tenants_from or settings.account_pool or settings.sections:
        return ()
    if not file.is_file() or (said := _config_in(file)) == {}:
        return ()
    keys = map(str, said) if isinstance(said, dict) else ()
    full = (key if ":" in key else f"{project}:{key}" for key in keys)
    return () if declares(full) else locate([SILENCE], file)


def _config_in(file: Path) -> Any:
    """Return the value of `config` in a file; empty if it is unreadable."""
    try:
        data = read_file(file).data
    except Unreadable:
        return {}
    return data.get("config") if isinstance(data, dict) else None
