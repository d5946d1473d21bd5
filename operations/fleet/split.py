"""A fleet's tenants over more stacks: who has whom is proposed by their names, and what they have is moved.

What is moved keeps its objects in the cluster, and the name under which the stack that made them holds them
(docs/adr/0010-held-as.md).
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox import engine
from pulumi_sandbox.engine import Resource, Snapshot, StackAtRest, Workspace, find_backend
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Properties, Secret, Value

from components.credentials import KEY as CREDENTIALS
from components.errors import ConfigurationError, CredfleetError, how_many
from components.naming import HELD_AS
from components.settings.shards import STACKS, Shard, Shards, Stacks
from components.settings.stack import NAMESPACE, Settings
from components.settings.tenant_files import DIGEST, PARTS, TenantFiles, owner_of, read_tenants
from operations.cli.answer import Answer
from operations.cli.ask import ask
from operations.cli.tables import Column, Table
from operations.config.settings import judged
from operations.fleet.tenants import had, states_in
from operations.folders import Folders
from operations.sandbox.results import FLEET
from operations.sandbox.stack_state import open_workspace, stack_here

_STORES: Final = "credfleet:index:SecretStores"
_ROSTER: Final = "pulumi-python:dynamic/credfleet:PoolRoster"
_START: Final = "pulumi-python:dynamic/credfleet:PullSecretStart"
_DYNAMIC: Final = "pulumi:providers:pulumi-python"
_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes:core/v1:Namespace": ("tenants",),
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
    "kubernetes:core/v1:Namespace": "-namespace",
    "azure-native:resources:ResourceGroup": "-group",
    _START: "-start",
}
_IN_STORES: Final = {"-credential": "providers", "-login": "providers", "-read": "reads", "-push": "pushes"}
"""How names below the stores end → the map of the entries they are named after."""


@dataclass(frozen=True)
class Split:
    """The stacks of a fleet as they are and as they would be.

    before: as their file says it. had: tenant → the stack whose state has it, where one does, whatever that
    file says. files: all tenants of the folder they share.
    """

    name: str
    before: Shards
    after: Shards
    files: TenantFiles
    had: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def homes(self) -> Mapping[str, str]:
        """Each tenant's stack, as it would be."""
        return {file.name: self.after.stack_of(file.name) for file in self.files.files}

    @cached_property
    def moves(self) -> Mapping[str, tuple[str, str]]:
        """Tenant → from which stack it goes to which."""
        was = {tenant: self.had.get(tenant, self.before.stack_of(tenant)) for tenant in self.homes}
        return {tenant: (was[tenant], to) for tenant, to in self.homes.items() if was[tenant] != to}

    @property
    def changed(self) -> Collection[str]:
        """The stacks that lose or gain a tenant, in order."""
        touched = {stack for move in self.moves.values() for stack in move}
        return [stack for stack in self.after.stacks if stack in touched]

    @cached_property
    def _owners(self) -> Mapping[tuple[str, ...], str]:
        files, of_namespaces = self.files.files, _OWN["credfleet:index:AsoServiceAccount"]
        namespaces = {(*of_namespaces, str(each.data.get("namespace"))): each.name for each in files}
        return {**namespaces, **{entry.place: file.name for file in files for entry in file.entries}}

    def home(self, place: tuple[str, ...], otherwise: str) -> str:
        """Return the stack of an entry of the configuration; otherwise: of one in no tenant's file."""
        return self.homes[self._owners[place]] if place in self._owners else otherwise

    def home_of_credential(self, name: str) -> str | None:
        """Return the stack of the tenant after whom a credential is called."""
        return self.homes.get(owner_of(name, self.homes) or "")

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


def proposed(name: str, before: Shards, tenants: Sequence[str], most: int) -> Shards:
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


def split(stack: str, most: int | None, *, write: bool, yes: bool) -> Answer:
    """Propose who has whom, or have it so. most: tenants of a stack; None: as stacks.yaml says it.

    Raises:
        CredfleetError: codes `no-tenant-files`, `pool-not-apart`; and as `judged`, `had` and `ask`.
        SandboxError: as `Folders.find`, the stores, `regrouped` and `replace_together`.
    """
    folders = Folders.find(Path.cwd())
    with _by_files(), ExitStack() as locks:
        if not write:
            return _told(planned(folders, stack, most), "would move: --write moves them")
        first = open_workspace(folders, stack)
        for path in sorted(first.store.path.parent.glob("*.json")):
            locks.enter_context(first.store.beside(path.stem).locked())
        if engine.finish(first.store.journal):
            return Answer({"finished": True}, ["✓ what was being moved when it was killed is moved now"])
        found = planned(folders, stack, most)
        if not found.moves:
            return _told(found, "moved")
        moved, stacks = how_many(len(found.moves), "tenant"), len(found.after.stacks)
        ask(f"{moved} of {len(found.homes)} will go to another of {stacks} stacks. Go on?", yes=yes)
        texts = _files(found, first)
        spaces = {each: _workspace(folders, first, each, texts) for each in found.changed}
        for each in found.after.stacks:
            if not spaces.get(each, first).store.path.exists() and each in spaces:
                locks.enter_context(spaces[each].store.locked())
        states: dict[str, Snapshot] = {}
        for each, space in spaces.items():
            space.store.fold()
            states[each] = space.store.load()
        after = engine.regrouped(states, found.home_of, lambda resource: resource.type == _ROSTER)
        common = _Common(found, states)
        for each, space in spaces.items():
            own = Snapshot(tuple(common.of(space, one) for one in after[each].resources))
            texts |= space.store.texts(own)
        engine.replace_together(first.store.journal, texts)
    return _told(found, "moved")


@contextmanager
def _by_files() -> Generator[None]:
    """Say of a backend, or a secrets provider, that only the Pulumi CLI knows, how a fleet is split there."""
    try:
        yield
    except SandboxError as error:
        if error.code not in ("backend-unsupported", "stack-unsupported"):
            raise
        mend = "bring its stacks to files and a passphrase, and back: docs/how-to/split-a-fleet.md"
        raise CredfleetError(code=error.code, place=error.place, cause=error.cause, mend=mend) from None


def planned(folders: Folders, stack: str, most: int | None) -> Split:
    """Return the proposal for the fleet of a stack; raises as `split`, and for a file that cannot be read."""
    at_rest = stack_here(stack)
    settings, root = judged(at_rest), at_rest.project.directory
    if settings.tenants_from is None:
        cause = "its tenants lie in the stack's file, which alone knows them, so none can go to another stack"
        mend = "write a file for each: docs/configuration.md, tenants in files of their own"
        raise CredfleetError(
            code="no-tenant-files", place=str(at_rest.stack_file.path), cause=cause, mend=mend
        )
    if settings.account_pool is not None and settings.account_pool.from_ is None:
        raise CredfleetError(
            code="pool-not-apart",
            place=f"{at_rest.stack_file.path} credfleet:accountPool",
            cause="the stack declares the pool, and gives rights in it that other stacks could not give",
            mend="move the pool to a stack of its own first: docs/how-to/move-a-pool-to-another-stack.md",
        )
    files, fleets = read_tenants(settings.tenants_from, root), Stacks.read(root).fleets
    if files.unreadable:
        raise ConfigurationError(files.unreadable)
    alone = Shards(pool=_pool_stack(at_rest, settings), stacks={at_rest.stack: Shard()})
    own = ((name, fleet) for name, fleet in fleets.items() if at_rest.stack in fleet.stacks)
    free = at_rest.stack if at_rest.stack not in fleets else f"{at_rest.stack}-fleet"
    name, before = next(own, (free, alone))
    tenants = [file.name for file in files.files]
    after = before if most is None else proposed(next(iter(before.stacks)), before, tenants, most)
    states = states_in(find_backend(folders.backend), at_rest.project.name)
    return Split(name, before, after, files, had(states, before.stacks))


def _pool_stack(at_rest: StackAtRest, settings: Settings) -> str | None:
    """Return which stack of the project declares the pool that a stack claims from."""
    for path in sorted(at_rest.project.stack_files.glob("Pulumi.*.yaml")):
        config = engine.load_yaml(path).get("config") or {}
        pool = config.get(f"{NAMESPACE}accountPool")
        own = isinstance(pool, dict) and "from" not in pool and pool.get("namespace", "account-pool")
        if settings.account_pool and own == settings.account_pool.namespace:
            return path.name[len("Pulumi.") : -len(".yaml")]
    return None


def _told(found: Split, done: str) -> Answer:
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
    end = f"✓ {what} {done}" if found.moves else "✓ nobody moves"
    return Answer(document, [Table(f"Fleet {found.name}", columns, rows), end])


def _files(found: Split, first: Workspace) -> dict[Path, str]:
    """Return what the files of the project become: that of all stacks, and of each that is new."""
    root = first.project.directory
    path = root / STACKS
    former = path.read_text(encoding="utf-8") if path.exists() else ""
    document = engine.load_yaml(path) if former else {"fleets": {}}
    fleets = {**document["fleets"], found.name: found.document}
    texts = {path: engine.merged(former, {**document, "fleets": fleets})}
    key = f"{NAMESPACE}{CREDENTIALS}"
    kind, project = type(first.stack_file), first.project
    files = {
        stack: kind.load(project.stack_files / f"Pulumi.{stack}.yaml", project.name)
        for stack in found.after.stacks
    }
    held = {
        stack: file.config.get(f"{NAMESPACE}{HELD_AS}", stack) for stack, file in files.items() if file.config
    }
    if strange := [
        stack for stack in found.changed if held.get(stack, held[first.stack]) != held[first.stack]
    ]:
        raise CredfleetError(
            code="held-otherwise",
            place=str(files[strange[0]].path),
            cause=f"it holds accounts as {held[strange[0]]}, and {first.stack} as {held[first.stack]}, so"
            " what moves would be written anew",
            mend="share tenants out among stacks of one heldAs: docs/adr/0010-held-as.md",
        )
    for stack in found.changed:
        file = files[stack]
        former = file.path.read_text(encoding="utf-8") if file.path.exists() else ""
        document = engine.load_yaml(file.path) if former else _stack_file(first)
        salt = document.get("encryptionsalt", "")
        missing: dict[str, Any] = {}
        for other in files.values():
            given = other.config.get(key) or {}
            own = {name: each for name, each in given.items() if found.home_of_credential(name) == stack}
            lacking = own.keys() - (document["config"].get(key) or {})
            if lacking and other.salt != salt:
                path = f"{key}.{min(lacking)}"
                raise CredfleetError(
                    code="credential-missing",
                    place=str(file.path),
                    cause=f"it lacks {', '.join(sorted(lacking))}, and {other.path.name} has another key",
                    mend=f"set each, as by `pulumi config set --secret --path '{path}'`",
                )
            missing |= {name: own[name] for name in own if name in lacking}
        if missing:
            document["config"][key] = {**(document["config"].get(key) or {}), **missing}
        if missing or not former:
            texts[file.path] = engine.merged(former, document)
    return texts


def _stack_file(first: Workspace) -> dict[str, Any]:
    """Return the file of a new stack: that of the first without what is that one's alone."""
    alone = {f"{NAMESPACE}{each}" for each in ("tenants", CREDENTIALS)}
    config = {key: value for key, value in first.stack_file.config.items() if key not in alone}
    for section, parts in PARTS.items():
        given = config.get(f"{NAMESPACE}{section}")
        if isinstance(given, dict):
            of_tenants = (*parts, "globalSettings")
            config[f"{NAMESPACE}{section}"] = {k: each for k, each in given.items() if k not in of_tenants}
    config.setdefault(f"{NAMESPACE}{HELD_AS}", first.stack)
    return {"encryptionsalt": first.stack_file.salt, "config": config}


def _workspace(folders: Folders, first: Workspace, stack: str, texts: Mapping[Path, str]) -> Workspace:
    """Open a stack, also one whose file is yet to be written."""
    path = first.project.stack_files / f"Pulumi.{stack}.yaml"
    if path not in texts:
        return first if stack == first.stack else open_workspace(folders, stack)
    with tempfile.TemporaryDirectory(prefix="credfleet-") as folder:
        written = Path(folder, path.name)
        written.write_text(texts[path], encoding="utf-8")
        return first.beside(stack, type(first.stack_file).load(written, first.project.name))


@dataclass(frozen=True, slots=True)
class _Common:
    """What every stack of a fleet has for itself, made as the next update of each would make it.

    states: as they were.
    """

    found: Split
    states: Mapping[str, Snapshot]

    def of(self, space: Workspace, resource: Resource) -> Resource:
        """Return a resource of a stack, if it is such a one, as the stack will declare it."""
        stack = space.stack
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
                config = space.config()
                values = config.values.items()
                keys = config.secret_keys
                return _with(
                    resource,
                    {key: Secret(value) if key in keys else value for key, value in values},
                    [key for key in resource.inputs if ":" in key],
                )
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
        return [
            claim
            for was, inputs in self._all(_ROSTER)
            for claim in _listed(inputs.get("claims"))
            if homes.get(claim["tenant"], was) == stack
        ]

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
