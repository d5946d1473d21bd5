"""A fleet's tenants over more stacks: who has whom is proposed by their names, and what they have is moved.

What is moved keeps its objects in the cluster, and the name under which the stack that made them holds them
(docs/adr/0010-held-as.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Final, TypeAlias

from pulumi_sandbox import files
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Properties, Secret, Value

from components.config.shards import STACKS, Shard, Shards, Stacks
from components.credentials import KEY as CREDENTIALS
from components.errors import ConfigurationError, CredfleetError, how_many
from components.naming import HELD_AS, TENANT_NAMESPACE, TENANT_NAMESPACE_END
from components.stack_config.stack import NAMESPACE, Settings
from components.stack_config.tenant_files import DIGEST, PARTS, TenantFiles, owner_of, read_tenants
from operations.cli.answer import CommandResult
from operations.cli.inputs import ask
from operations.cli.tables import Column, Table
from operations.config.settings import read_settings
from operations.fleet.backend import Backend, Exported, deployment_of
from operations.fleet.tenants import stacks_of
from operations.folders import Folders
from operations.sandbox.deployment import interruptible
from operations.sandbox.results import FLEET
from operations.stack.at_rest import StackAtRest
from operations.stack.state import Resource, Snapshot, decode, encode
from operations.stack.yaml_file import load_yaml, merge

_FIX: Final = "move the one with the other, or leave both"


def regroup(
    states: Mapping[str, Snapshot],
    place: Callable[[Resource], str | None],
    is_shared: Callable[[Resource], bool] = lambda _: False,
) -> dict[str, Snapshot]:
    """Return the states of stacks, each resource in the one where it belongs.

    states: by stack; one that is to be made is empty. place: the stack of a resource and of all below it;
    None: that of its parent. What moved resources refer to and what stays is copied, if it stands for nothing
    outside: components, providers, and what is_shared says.
    Raises CredfleetError `state-entangled`, where one of two has to know the other, or an update was not
    finished.
    """
    homes: dict[str, str] = {}
    for stack, snapshot in states.items():
        if snapshot.pending or any(each.delete for each in snapshot.resources):
            problem = "an update of it was not finished, so what it has is not known"
            raise _entangled(f"stack {stack}", problem, "run refresh, then up")
        for each in snapshot.resources:
            homes[each.urn] = place(each) or homes.get(each.parent, stack)
    found = {
        stack: {each.urn: each for each in snapshot.resources if homes[each.urn] == stack}
        for stack, snapshot in states.items()
    }
    for stack, snapshot in states.items():
        known = {each.urn: each for each in snapshot.resources}

        def bring(resource: Resource, to: str, known: Mapping[str, Resource] = known) -> None:
            for urn in (*resource.references, resource.provider_urn):
                if urn and _within(urn, to) not in found[to]:
                    if (referred := known.get(urn)) is None:
                        raise _entangled(
                            resource.urn,
                            f"it refers to {urn}, which its state lacks",
                            "run pulumi state repair",
                        )
                    if referred.custom and not (referred.is_provider or is_shared(referred)):
                        raise _entangled(
                            resource.urn, f"it goes to stack {to} and refers to {urn}, which does not"
                        )
                    bring(referred, to)
            moved = _moved(resource, to)
            there = found[to].get(moved.urn)
            if there is not None and there.id == moved.id:
                return
            if there is not None:
                raise _entangled(resource.urn, f"stack {to} has one of that name already")
            provider = found[to].get(moved.provider_urn)
            reference = f"{provider.urn}::{provider.id}" if provider else ""
            found[to][moved.urn] = replace(moved, provider=reference)

        for each in snapshot.resources:
            if homes[each.urn] != stack:
                bring(each, homes[each.urn])
            elif gone := [urn for urn in each.references if homes.get(urn) != stack]:
                raise _entangled(
                    each.urn, f"it stays in stack {stack} and refers to {gone[0]}, which does not"
                )
    return {stack: Snapshot(tuple(resources.values())) for stack, resources in found.items()}


def _entangled(place: str, problem: str, fix: str = _FIX) -> CredfleetError:
    return CredfleetError(code="state-entangled", place=place, problem=problem, fix=fix)


def _moved(resource: Resource, to: str) -> Resource:
    def named(references: Iterable[str]) -> tuple[str, ...]:
        return tuple(_within(each, to) for each in references)

    return replace(
        resource,
        urn=_within(resource.urn, to),
        parent=_within(resource.parent, to),
        provider=_within(resource.provider, to),
        deleted_with=_within(resource.deleted_with, to),
        dependencies=named(resource.dependencies),
        replace_with=named(resource.replace_with),
        aliases=named(resource.aliases),
        property_dependencies={key: named(each) for key, each in resource.property_dependencies.items()},
    )


def _within(urn: str, stack: str) -> str:
    """Return the name of a resource in another stack; that of the stack itself ends in the stack's."""
    if not urn:
        return urn
    named = urns.parse(urn)
    own = f"{named.project}-{stack}" if named.qualified_type == urns.ROOT_STACK_TYPE else named.name
    return str(named._replace(stack=stack, name=own))


MOST: Final = 100
"""Tenants of a stack that are proposed. The CLI writes the whole state of a stack at every step where a
backend keeps files or buckets: a first update with 100 took a minute of its processor, one with 300 ten.
"""

_STORES: Final = "credfleet:index:SecretStores"
_ROSTER: Final = "pulumi-python:dynamic/credfleet:PoolRoster"
_START: Final = "pulumi-python:dynamic/credfleet:PullSecretStart"
_DYNAMIC: Final = "pulumi:providers:pulumi-python"
_KEYS: Final = ("secretsprovider", "encryptedkey", "encryptionsalt")
"""What a stack's file says of who encrypts it."""
_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    TENANT_NAMESPACE: ("tenants",),
    "credfleet:index:TenantAccounts": ("tenants",),
    "credfleet:index:TenantDeliveries": ("tenants",),
    "credfleet:index:UserProvidedService": ("services", "instances"),
    "credfleet:index:ServiceBinding": ("services", "instances"),
    "credfleet:index:ServiceApp": ("services", "apps"),
    "credfleet:index:AsoNamespaceCredential": ("asoCredentials", "namespaces"),
    "credfleet:index:AsoResourceCredential": ("asoCredentials", "named"),
    "credfleet:index:AsoServiceAccount": ("asoCredentials", "namespaces"),
    "credfleet:index:AsoWorkloadIdentity": ("asoCredentials", "identities"),
    "credfleet:index:AsoResources": ("asoCredentials", "resources"),
    "credfleet:index:PullSecret": ("pullSecrets", "clusters"),
    _START: ("pullSecrets", "clusters"),
    "azure-native:resources:ResourceGroup": ("asoCredentials", "resourceGroups"),
}
"""Type of what stands right below the fleet → where the configuration has the entries it is named after."""

_ENDS: Final = {
    TENANT_NAMESPACE: TENANT_NAMESPACE_END,
    "azure-native:resources:ResourceGroup": "-group",
    _START: "-start",
}
_IN_STORES: Final = {"-credential": "providers", "-login": "providers", "-read": "reads", "-push": "pushes"}
"""How names below the stores end → the map of the entries they are named after."""


@dataclass(frozen=True)
class Split:
    """The stacks of a fleet as they are and as they would be.

    before: as their file says it. had: tenant → the stacks whose states have it, where any does, whatever the
    file says: two where a split was killed. files: all tenants of the folder they share.
    """

    name: str
    before: Shards
    after: Shards
    files: TenantFiles
    had: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])

    @cached_property
    def homes(self) -> Mapping[str, str]:
        """Each tenant's stack, as it would be."""
        return {file.name: self.after.stack_of(file.name) for file in self.files.files}

    @cached_property
    def moves(self) -> Mapping[str, tuple[str, str]]:
        """Tenant → from which stack it goes to which."""
        moves: dict[str, tuple[str, str]] = {}
        for tenant, to in self.homes.items():
            was = self.had.get(tenant, (self.before.stack_of(tenant),))
            if others := [stack for stack in was if stack != to]:
                moves[tenant] = (others[0], to)
        return moves

    @property
    def changed(self) -> Sequence[str]:
        """The stacks that lose or gain a tenant, each after those to which it loses one.

        So no tenant is in no state, whenever a split is killed.
        Raises CredfleetError `stacks-in-a-circle`.
        """
        order = TopologicalSorter[str]()
        for was, to in self.moves.values():
            order.add(was, to)
        try:
            return [*order.static_order()]
        except CycleError as error:
            stacks = " and ".join(sorted({*error.args[1]}))
            raise CredfleetError(
                code="stacks-in-a-circle",
                place=STACKS,
                problem=f"stacks {stacks} give tenants to each other",
                fix="move the tenants of one of them first, with another since; then those of the other",
            ) from None

    @cached_property
    def _owners(self) -> Mapping[tuple[str, ...], str]:
        files, of_namespaces = self.files.files, _OWN["credfleet:index:AsoServiceAccount"]
        namespaces = {(*of_namespaces, str(each.data.get("namespace"))): each.name for each in files}
        return {**namespaces, **{entry.place: file.name for file in files for entry in file.entries}}

    def home(self, place: tuple[str, ...], otherwise: str) -> str:
        """Return the stack of an entry of the configuration; otherwise: of one in no tenant's file."""
        return self.homes[self._owners[place]] if place in self._owners else otherwise

    def home_of(self, resource: Resource) -> str | None:
        """Return the stack of what is named after an entry of a tenant's file; None for all else."""
        named = urns.parse(resource.urn)
        parent = named.qualified_type.rpartition("$")[0]
        if parent.endswith(_STORES):
            entry, _, end = named.name.partition("/")[2].rpartition("-")
            place: tuple[str, ...] = ("secretStores", _IN_STORES.get(f"-{end}", ""))
        elif parent.endswith(FLEET) and resource.type in _OWN:
            entry, place = named.name.removesuffix(_ENDS.get(resource.type, "")), _OWN[resource.type]
        else:
            return None
        return self.home((*place, entry.partition("/")[0]), "") or None

    @property
    def document(self) -> dict[str, Any]:
        """The file of the project's stacks' part that says it."""
        return self.after.model_dump(by_alias=True, exclude_none=True)


def propose(name: str, before: Shards, tenants: Sequence[str], most: int) -> Shards:
    """Return stacks with at most so many tenants each, as even as can be; those that are there stay.

    name: of the first stack that there was; further ones are called after it.
    """
    stacks = [*before.stacks]
    count = max(-(-len(tenants) // most), len(stacks))
    if len(tenants) < count:
        return before
    further = (f"{name}-{number}" for number in range(2, count + 2 + len(stacks)))
    stacks += [each for each in further if each not in stacks][: count - len(stacks)]
    firsts = [tenants[len(tenants) * index // count] for index in range(count)]
    shards = {stack: Shard(since=first) for stack, first in zip(stacks, firsts, strict=True)}
    return before.model_copy(update={"stacks": {**shards, stacks[0]: Shard()}})


def split(stack: str, most: int | None, *, write: bool, yes: bool) -> CommandResult:
    """Propose who has whom, or have it so. most: tenants of a stack; None: as stacks.yaml says it, or MOST.

    Raises CredfleetError as `Folders.find`, `plan`, `regroup`, `ask`, `_files`, `Split.changed` and
    `Backend.import_`; `state-changed`; SandboxError as `Backend.find`.
    """
    backend = Backend.find(Folders.find(Path.cwd()))
    folders = backend.folders
    first = StackAtRest.find(folders.project, stack, backend_dir=folders.backend)
    found, before = plan(backend, first, most)
    if not write:
        return _told(found, "would move: --write moves them")
    if not found.moves:
        return _told(found, "moved")
    moved, stacks = how_many(len(found.moves), "tenant"), len(found.after.stacks)
    ask(f"{moved} of {len(found.homes)} will go to another of {stacks} stacks. Go on?", yes=yes)
    with interruptible() as stopped:
        move = _Move.of(backend, found, first, before).protected()
        for path, text in _files(found, first).items():
            files.replace(path, text)
        for each, state in move.states().items():
            if stopped.is_set():
                raise KeyboardInterrupt
            move.refuse_changed(each)
            backend.import_(each, state)
    return _told(found, "moved")


_States: TypeAlias = Mapping[str, Exported]


def plan(backend: Backend, at_rest: StackAtRest, most: int | None) -> tuple[Split, _States]:
    """Return the proposal for the fleet of a stack, and the states that its stacks have.

    Raises CredfleetError `no-tenant-files`, `pool-not-apart`; ConfigurationError for a file that cannot be
    read; and as `read_settings` and the backend.
    """
    settings, root = read_settings(at_rest), at_rest.project.directory
    if settings.tenants_from is None:
        problem = (
            "its tenants lie in the stack's file, which alone knows them, so none can go to another stack"
        )
        fix = "write a file for each: docs/configuration.md#tenants-in-separate-files"
        raise CredfleetError(
            code="no-tenant-files", place=str(at_rest.stack_file.path), problem=problem, fix=fix
        )
    if settings.account_pool is not None and settings.account_pool.from_ is None:
        raise CredfleetError(
            code="pool-not-apart",
            place=f"{at_rest.stack_file.path} credfleet:accountPool",
            problem="the stack declares the pool, and gives rights in it that other stacks could not give",
            fix="move the pool to a stack of its own first: docs/how-to/move-a-pool-to-another-stack.md",
        )
    tenant_files, fleets = read_tenants(settings.tenants_from, root), Stacks.read(root).fleets
    if tenant_files.unreadable:
        raise ConfigurationError(tenant_files.unreadable)
    alone = Shards(pool=_pool_stack(at_rest, settings), stacks={at_rest.stack: Shard()})
    own = ((name, fleet) for name, fleet in fleets.items() if at_rest.stack in fleet.stacks)
    free = at_rest.stack if at_rest.stack not in fleets else f"{at_rest.stack}-fleet"
    name, before = next(own, (free, alone))
    most = most or (None if name in fleets else MOST)
    tenants = [file.name for file in tenant_files.files]
    after = before if most is None else propose(next(iter(before.stacks)), before, tenants, most)
    known = {*backend.names()}
    states = {each: backend.exported(each) for each in after.stacks if each in known}
    there = stacks_of({each: deployment_of(state) for each, state in states.items()}, before.stacks)
    return Split(name, before, after, tenant_files, there), states


def _pool_stack(at_rest: StackAtRest, settings: Settings) -> str | None:
    """Return which stack of the project declares the pool that a stack claims from."""
    for path in sorted(at_rest.project.stack_files.glob("Pulumi.*.yaml")):
        config = load_yaml(path).get("config") or {}
        pool = config.get(f"{NAMESPACE}accountPool")
        own = isinstance(pool, dict) and "from" not in pool and pool.get("namespace", "account-pool")
        if settings.account_pool and own == settings.account_pool.namespace:
            return path.name[len("Pulumi.") : -len(".yaml")]
    return None


def _told(found: Split, done: str) -> CommandResult:
    """Return who has whom; done: what is to be said of those who go elsewhere."""
    rows: list[tuple[str, ...]] = []
    stacks: list[dict[str, Any]] = []
    for stack in found.after.stacks:
        own = [tenant for tenant, home in found.homes.items() if home == stack]
        comes = sum(to == stack for _, to in found.moves.values())
        goes = sum(was == stack for was, _ in found.moves.values())
        span = f"{own[0]} … {own[-1]}" if own else "-"
        rows.append((stack, str(len(own)), span, str(comes), str(goes)))
        stacks.append({"stack": stack, "tenants": own, "comes": comes, "goes": goes})
    columns = (Column("Stack", names=True), "Tenants", Column("From … to", folds=True), "Come", "Go")
    document = {
        "fleet": found.name,
        "stacks": stacks,
        "moves": {tenant: {"from": was, "to": to} for tenant, (was, to) in found.moves.items()},
    }
    what = f"{how_many(len(found.moves), 'tenant')} of {len(found.homes)}"
    end = f"✓ {what} {done}" if found.moves else "✓ no tenant moves"
    return CommandResult(document, [Table(f"Fleet {found.name}", columns, rows), end])


def _files(found: Split, first: StackAtRest) -> dict[Path, str]:
    """Return what the files of the project become: of each stack that is new, then that of all stacks.

    Raises CredfleetError: `held-otherwise`, `credential-missing`.
    """
    root = first.project.directory
    paths = {stack: first.project.stack_file(stack) for stack in found.after.stacks}
    documents = {stack: load_yaml(path) for stack, path in paths.items() if path.exists()}
    _refuse_held_otherwise(found, first, paths, documents)
    texts: dict[Path, str] = {}
    for stack in found.changed:
        document = _completed(found, stack, documents.get(stack) or _stack_file(first), documents, paths)
        if document != documents.get(stack):
            former = paths[stack].read_text(encoding="utf-8") if stack in documents else ""
            texts[paths[stack]] = merge(former, document)
    path = root / STACKS
    former = path.read_text(encoding="utf-8") if path.exists() else ""
    document = load_yaml(path) if former else {"fleets": {}}
    fleets = {**document["fleets"], found.name: found.document}
    return {**texts, path: merge(former, {**document, "fleets": fleets})}


_Documents: TypeAlias = Mapping[str, dict[str, Any]]


def _refuse_held_otherwise(
    found: Split, first: StackAtRest, paths: Mapping[str, Path], documents: _Documents
) -> None:
    held = {
        stack: _config(document).get(f"{NAMESPACE}{HELD_AS}", stack) for stack, document in documents.items()
    }
    own = held[first.stack]
    if strange := [stack for stack in found.changed if held.get(stack, own) != own]:
        raise CredfleetError(
            code="held-otherwise",
            place=str(paths[strange[0]]),
            problem=f"it holds accounts as {held[strange[0]]}, and {first.stack} as {own}, so what moves"
            " would be written again",
            fix="share tenants out among stacks of one heldAs: docs/adr/0010-held-as.md",
        )


def _completed(
    found: Split, stack: str, document: dict[str, Any], documents: _Documents, paths: Mapping[str, Path]
) -> dict[str, Any]:
    """Return the file of a stack with the credentials of its tenants, which other stacks have encrypted."""
    name = f"{NAMESPACE}{CREDENTIALS}"
    own: dict[str, Any] = _config(document).get(name) or {}
    missing: dict[str, Any] = {}
    for other, former in documents.items():
        given: dict[str, Any] = _config(former).get(name) or {}
        lacking = {
            each: sealed
            for each, sealed in given.items()
            if each not in own and found.homes.get(owner_of(each, found.homes) or "") == stack
        }
        if lacking and (_key(former) != _key(document) or not _key(document)):
            raise CredfleetError(
                code="credential-missing",
                place=str(paths[stack]),
                problem=f"it lacks {', '.join(sorted(lacking))}, and {paths[other].name} has another key",
                fix=f"set each, as by `pulumi config set --secret --path '{name}.{min(lacking)}'`",
            )
        missing |= lacking
    return {**document, "config": {**_config(document), name: {**own, **missing}}} if missing else document


def _config(document: Mapping[str, Any]) -> dict[str, Any]:
    return document.get("config") or {}


def _key(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what encrypts a stack's file, as it says it; nothing where the service does."""
    return {key: document[key] for key in _KEYS if document.get(key)}


def _stack_file(first: StackAtRest) -> dict[str, Any]:
    """Return the file of a new stack: that of the first without what is that one's alone.

    Raises CredfleetError `credential-missing` for a secret that the service encrypts, for that stack alone.
    """
    alone = {f"{NAMESPACE}{each}" for each in ("tenants", CREDENTIALS)}
    config = {key: value for key, value in first.stack_file.config.items() if key not in alone}
    for section, parts in PARTS.items():
        given = config.get(f"{NAMESPACE}{section}")
        if isinstance(given, dict):
            of_tenants = (*parts, "globalSettings")
            config[f"{NAMESPACE}{section}"] = {k: each for k, each in given.items() if k not in of_tenants}
    config.setdefault(f"{NAMESPACE}{HELD_AS}", first.stack)
    key = _key(load_yaml(first.stack_file.path))
    if not key and (sealed := [name for name, value in config.items() if _is_sealed(value)]):
        raise CredfleetError(
            code="credential-missing",
            place=str(first.stack_file.path),
            problem=f"it has {', '.join(sealed)} encrypted for itself alone, which a new stack needs as well",
            fix="make the new stacks first, each with its file: `pulumi stack init`, `pulumi config set`",
        )
    return {**key, "config": config}


def _is_sealed(value: Any) -> bool:
    if isinstance(value, dict):
        return value.keys() == {"secure"} or any(map(_is_sealed, value.values()))
    return isinstance(value, list) and any(map(_is_sealed, value))


@dataclass(frozen=True, slots=True)
class _Move:
    """The states of a fleet's stacks as they are, encrypted, and as they come apart, in plaintext.

    Nothing but the process has them in plaintext.
    """

    backend: Backend
    found: Split
    before: _States
    were: Mapping[str, Snapshot]
    are: Mapping[str, Snapshot]
    like: Exported

    @classmethod
    def of(cls, backend: Backend, found: Split, first: StackAtRest, before: _States) -> _Move:
        """Read the states; raises as `regroup` where they do not come apart."""
        were = {
            stack: decode(deployment_of(backend.exported(stack, in_plain=True) if stack in before else {}))
            for stack in found.changed
        }
        are = regroup(were, found.home_of, lambda resource: resource.type == _ROSTER)
        return cls(backend, found, before, were, are, before[first.stack])

    def protected(self) -> _Move:
        """Protect what a stack loses in its state, so that no update deletes it if the move is killed."""
        before = {**self.before}
        for stack in self.found.changed:
            stays = {each.urn for each in self.are[stack].resources}
            lost = {each.urn for each in self.were[stack].resources} - stays
            if lost:
                self.refuse_changed(stack)
                self.backend.import_(stack, _protecting(self.before[stack], lost))
                before[stack] = self.backend.exported(stack)
        return replace(self, before=before)

    def states(self) -> dict[str, Exported]:
        """Make the stacks that are new; return what each is to import, in the order of `Split.changed`."""
        made = {stack: self.backend.stack(stack) for stack in self.found.changed}
        common = _Common(
            self.found, self.were, {stack: each.get_all_config() for stack, each in made.items()}
        )
        return {
            stack: self._state(
                stack, Snapshot(tuple(common.of(stack, each) for each in self.are[stack].resources))
            )
            for stack in made
        }

    def refuse_changed(self, stack: str) -> None:
        """Raise CredfleetError `state-changed` where a stack was updated since its state was read."""
        if stack in self.before and self.backend.exported(stack) != self.before[stack]:
            raise CredfleetError(
                code="state-changed",
                place=f"stack {stack}",
                problem="it was updated while its tenants were to be moved",
                fix=f"run it again when no update runs: `credfleet fleet split --stack {stack} --write`",
            )

    def _state(self, stack: str, snapshot: Snapshot) -> Exported:
        own = self.before.get(stack, self.like)
        exports = [self.like, *self.before.values()]
        features = {feature for each in exports for feature in each.get("features") or ()}
        provider = (
            deployment_of(own).get("secrets_providers") or deployment_of(self.like)["secrets_providers"]
        )
        return {
            "version": max(each["version"] for each in exports),
            **({"features": sorted(features)} if features else {}),
            "deployment": {**encode(snapshot), "secrets_providers": provider},
        }


def _protecting(exported: Exported, lost: Collection[str]) -> Exported:
    deployment = deployment_of(exported)
    resources = [
        {**each, "protect": True} if each["urn"] in lost else each for each in deployment["resources"]
    ]
    return {**exported, "deployment": {**deployment, "resources": resources}}


@dataclass(frozen=True, slots=True)
class _Common:
    """What every stack of a fleet has for itself, made as the next update of each would make it.

    states: as they were. configs: as the CLI gives them to a program.
    """

    found: Split
    states: Mapping[str, Snapshot]
    configs: Mapping[str, Mapping[str, Any]]

    def of(self, stack: str, resource: Resource) -> Resource:
        """Return a resource of a stack, if it is such a one, as the stack will declare it."""
        match resource.type:
            case urns.ROOT_STACK_TYPE:
                return replace(resource, outputs=resource.outputs if self._had(stack, resource) else {})
            case type_ if type_ == FLEET:
                had = self._had(stack, resource)
                files = [file for file in self.found.files.files if self.found.homes[file.name] == stack]
                others = _listed(had and had.inputs.get("tenantNames"))
                names = {
                    *(file.name for file in files),
                    *(each for each in others if each not in self.found.homes),
                }
                given: Properties = {"tenantNames": sorted(names)}
                if files:
                    given[DIGEST] = TenantFiles(files).digest(())
                return replace(resource, inputs=given, outputs=had.outputs if had else {})
            case type_ if type_ == _STORES:
                outputs = resource.outputs if self._had(stack, resource) else {}
                given = {**resource.inputs, "stores": self._stores(stack)}
                return replace(resource, inputs=given, outputs=outputs)
            case type_ if type_ == _ROSTER:
                return _with(resource, {"claims": self._claims(stack)}, ())
            case type_ if type_ == _DYNAMIC:
                config = self.configs[stack].items()
                values: Properties = {
                    key: Secret(each.value) if each.secret else each.value for key, each in config
                }
                return _with(resource, values, [key for key in resource.inputs if ":" in key])
            case _:
                return resource

    def _had(self, stack: str, resource: Resource) -> Resource | None:
        had = self.states[stack].resources
        return next((each for each in had if each.urn == resource.urn), None)

    def _all(self, type_: str) -> Iterator[tuple[str, Properties]]:
        for stack, state in self.states.items():
            yield from ((stack, each.inputs) for each in state.resources if each.type == type_)

    def _claims(self, stack: str) -> list[Value]:
        """Return the claims of a stack's tenants, wherever they were declared."""
        homes = self.found.homes
        claims: list[Value] = []
        for was, inputs in self._all(_ROSTER):
            own = (each for each in _listed(inputs.get("claims")) if homes.get(each["tenant"], was) == stack)
            claims += [each for each in own if each not in claims]
        return claims

    def _stores(self, stack: str) -> Properties:
        """Return the stores of a stack's tenants, and its own."""
        found: Properties = {}
        for was, inputs in self._all(_STORES):
            stores = inputs.get("stores")
            for key, title in stores.items() if isinstance(stores, dict) else ():
                if self.found.home(("secretStores", "stores", key), was) == stack:
                    found[key] = title
        return found


def _with(resource: Resource, given: Properties, gone: Collection[str]) -> Resource:
    """Return a resource whose inputs, which its outputs repeat, are others."""

    def changed(props: Properties) -> Properties:
        return {**{key: value for key, value in props.items() if key not in gone}, **given}

    return replace(resource, inputs=changed(resource.inputs), outputs=changed(resource.outputs))


def _listed(value: Value) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
