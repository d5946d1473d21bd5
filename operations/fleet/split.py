"""Distributes a fleet's tenants among more stacks: proposes a split by name, and moves their resources.

Moved resources keep their objects in the cluster, and are still held under the name of their original stack
(docs/adr/0010-held-as.md).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, Final, TypeAlias

from pulumi_sandbox import files
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Properties, Secret, Value

from components.config.shards import STACKS, Shard, Shards, Stacks
from components.credentials import KEY as CREDENTIALS
from components.errors import ConfigurationError, CredfleetError, how_many
from components.naming import HELD_AS
from components.stack_config.stack import NAMESPACE, Settings
from components.stack_config.tenant_file import PARTS, owner_of
from components.stack_config.tenant_files import DIGEST, TenantFiles, read_tenants
from operations.cli.answer import CommandResult
from operations.cli.inputs import ask
from operations.cli.tables import Column, Table
from operations.config.settings import read_settings
from operations.fleet.backend import Backend, Exported, deployment_of
from operations.fleet.plan import STORES, Split, propose
from operations.fleet.regroup import regroup
from operations.fleet.tenants import stacks_of
from operations.folders import Folders
from operations.sandbox.deployment import interruptible
from operations.sandbox.results import FLEET
from operations.stack.at_rest import StackAtRest
from operations.stack.state import Resource, Snapshot, decode, encode
from operations.stack.yaml_file import load_yaml, merge

MOST: Final = 100
"""Proposed tenants per stack. With file and bucket backends, the CLI writes the whole state at every step:
a first update of 100 tenants took a minute of CPU time, one of 300 took ten."""

_ROSTER: Final = "pulumi-python:dynamic/credfleet:PoolRoster"
_DYNAMIC: Final = "pulumi:providers:pulumi-python"
_KEYS: Final = ("secretsprovider", "encryptedkey", "encryptionsalt")
"""Keys of a stack file that configure its encryption."""


def split(stack: str, most: int | None, *, write: bool, yes: bool) -> CommandResult:
    """Propose a split, or execute it. most: tenants per stack; None for that of stacks.yaml, or MOST.

    Whenever a split is interrupted, each tenant is in one state, or in two and protected in the one it
    leaves. Raises CredfleetError as `Folders.find`, `plan`, `regroup`, `ask`, `_files` and `Backend.import_`;
    `state-changed`; SandboxError as `Backend.find`.
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
        move = _Move.of(backend, found, first, before, stopped)
        loses, gains = (dict.fromkeys(each) for each in zip(*found.moves.values(), strict=True))
        for each in loses:
            move.write(each, move.held(each))
        for path, text in _files(found, first).items():
            files.replace(path, text)
        configs = {each: backend.stack(each).get_all_config() for each in found.changed}
        for each in gains:
            move.write(each, move.held(each) | move.final(each, configs[each]))
        for each in loses:
            move.write(each, move.final(each, configs[each]))
    return _told(found, "moved")


_States: TypeAlias = Mapping[str, Exported]


def plan(backend: Backend, at_rest: StackAtRest, most: int | None) -> tuple[Split, _States]:
    """Return the proposed split for a stack's fleet, and the states of its stacks.

    Raises CredfleetError `no-tenant-files`, `pool-not-apart`; ConfigurationError for an unreadable file; and
    as `read_settings` and the backend.
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
    """Return the stack of the project that declares the pool from which a stack claims."""
    for stack, path in at_rest.project.stacks().items():
        config = load_yaml(path).get("config") or {}
        pool = config.get(f"{NAMESPACE}accountPool")
        own = isinstance(pool, dict) and "from" not in pool and pool.get("namespace", "account-pool")
        if settings.account_pool and own == settings.account_pool.namespace:
            return stack
    return None


def _told(found: Split, done: str) -> CommandResult:
    """Return the tenants of each stack; done: what to report about those that move."""
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
    """Return the project's files to write: those of new stacks first, then stacks.yaml.

    Raises CredfleetError: `held-otherwise`, `credential-missing`.
    """
    root = first.project.directory
    paths = {stack: first.project.stack_file(stack) for stack in found.after.stacks}
    documents = {stack: load_yaml(path) for stack, path in paths.items() if path.exists()}
    held = {stack: _config(each).get(f"{NAMESPACE}{HELD_AS}", stack) for stack, each in documents.items()}
    own = held[first.stack]
    if strange := [stack for stack in found.changed if held.get(stack, own) != own]:
        raise CredfleetError(
            code="held-otherwise",
            place=str(paths[strange[0]]),
            problem=f"it holds accounts as {held[strange[0]]}, and {first.stack} as {own}, so what moves"
            " would be written again",
            fix="share tenants out among stacks of one heldAs: docs/adr/0010-held-as.md",
        )
    texts: dict[Path, str] = {}
    for stack in found.changed:
        document = _completed(found, stack, documents.get(stack) or _stack_file(first), documents, paths)
        if document != documents.get(stack):
            former = paths[stack].read_text(encoding="utf-8") if stack in documents else ""
            texts[paths[stack]] = merge(former, document)
    path = root / STACKS
    former = path.read_text(encoding="utf-8") if path.exists() else ""
    document = load_yaml(path) if former else {"fleets": {}}
    fleets = {**document["fleets"], found.name: found.after.model_dump(by_alias=True, exclude_none=True)}
    return {**texts, path: merge(former, {**document, "fleets": fleets})}


def _completed(
    found: Split,
    stack: str,
    document: dict[str, Any],
    documents: Mapping[str, dict[str, Any]],
    paths: Mapping[str, Path],
) -> dict[str, Any]:
    """Return a stack's file with the encrypted credentials of its tenants, taken from other stacks."""
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
    """Return the encryption settings of a stack file; empty if the service encrypts."""
    return {key: document[key] for key in _KEYS if document.get(key)}


def _stack_file(first: StackAtRest) -> dict[str, Any]:
    """Return the file of a new stack: that of the first one without what belongs to it alone.

    Raises CredfleetError `credential-missing` for a secret that the service encrypts for one stack only.
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
    sealed = [name for name, value in config.items() if '{"secure": ' in json.dumps(value, default=str)]
    if sealed and not key:
        raise CredfleetError(
            code="credential-missing",
            place=str(first.stack_file.path),
            problem=f"it has {', '.join(sealed)} encrypted for itself alone, which a new stack needs as well",
            fix="make the new stacks first, each with its file: `pulumi stack init`, `pulumi config set`",
        )
    return {**key, "config": config}


_Resources: TypeAlias = dict[str, Resource]
"""Resources of a state by URN, in the order of the state."""


@dataclass(frozen=True, slots=True)
class _Move:
    """The states of a fleet's stacks before (encrypted) and after a split (in plaintext).

    Plaintext is only in this process. known: the states as this move last wrote them.
    """

    backend: Backend
    found: Split
    before: _States
    were: Mapping[str, Snapshot]
    are: Mapping[str, Snapshot]
    like: Exported
    stopped: Event
    known: dict[str, Exported]

    @classmethod
    def of(cls, backend: Backend, found: Split, first: StackAtRest, before: _States, stopped: Event) -> _Move:
        """Read the states; raises as `regroup` if they cannot be separated."""
        were = {
            stack: decode(deployment_of(backend.exported(stack, in_plain=True) if stack in before else {}))
            for stack in found.changed
        }
        are = regroup(were, found.home_of, lambda resource: resource.type == _ROSTER)
        return cls(backend, found, before, were, are, before[first.stack], stopped, {**before})

    def held(self, stack: str) -> _Resources:
        """Return a stack's former resources; those that it loses are protected from deletion."""
        stays = {each.urn for each in self.are[stack].resources}
        had = self.were[stack].resources
        return {
            each.urn: each if each.urn in stays else replace(each, other={**each.other, "protect": True})
            for each in had
        }

    def final(self, stack: str, config: Mapping[str, Any]) -> _Resources:
        """Return a stack's final resources. config: as the CLI passes it to a program."""
        return {each.urn: self._declared(stack, each, config) for each in self.are[stack].resources}

    def write(self, stack: str, resources: _Resources) -> None:
        """Replace a state. Raises CredfleetError `state-changed` if the stack was updated meanwhile."""
        if self.stopped.is_set():
            raise KeyboardInterrupt("a signal")
        if stack in self.known and self.backend.exported(stack) != self.known[stack]:
            raise CredfleetError(
                code="state-changed",
                place=f"stack {stack}",
                problem="it was updated while its tenants were to be moved",
                fix=f"run it again when no update runs: `credfleet fleet split --stack {stack} --write`",
            )
        exports = [self.like, *self.before.values()]
        features = {feature for each in exports for feature in each.get("features") or ()}
        own, like = (deployment_of(each) for each in (self.before.get(stack, {}), self.like))
        state = {
            "version": max(each["version"] for each in exports),
            **({"features": sorted(features)} if features else {}),
            "deployment": {
                **encode(Snapshot(tuple(resources.values()))),
                "secrets_providers": own.get("secrets_providers") or like["secrets_providers"],
            },
        }
        self.backend.import_(stack, state)
        self.known[stack] = self.backend.exported(stack)

    def _declared(self, stack: str, resource: Resource, config: Mapping[str, Any]) -> Resource:
        """Return a resource that every stack of a fleet has as this stack's next update would write it."""
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
            case type_ if type_ == STORES:
                outputs = resource.outputs if self._had(stack, resource) else {}
                given = {**resource.inputs, "stores": self._stores(stack)}
                return replace(resource, inputs=given, outputs=outputs)
            case type_ if type_ == _ROSTER:
                return _with(resource, {"claims": self._claims(stack)}, ())
            case type_ if type_ == _DYNAMIC:
                values: Properties = {
                    key: Secret(each.value) if each.secret else each.value for key, each in config.items()
                }
                return _with(resource, values, [key for key in resource.inputs if ":" in key])
            case _:
                return resource

    def _had(self, stack: str, resource: Resource) -> Resource | None:
        had = self.were[stack].resources
        return next((each for each in had if each.urn == resource.urn), None)

    def _all(self, type_: str) -> Iterator[tuple[str, Properties]]:
        for stack, state in self.were.items():
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
        for was, inputs in self._all(STORES):
            stores = inputs.get("stores")
            for key, title in stores.items() if isinstance(stores, dict) else ():
                if self.found.home(("secretStores", "stores", key), was) == stack:
                    found[key] = title
        return found


def _with(resource: Resource, given: Properties, gone: Collection[str]) -> Resource:
    """Return a resource with changed properties, both in inputs and in outputs."""

    def changed(props: Properties) -> Properties:
        return {**{key: value for key, value in props.items() if key not in gone}, **given}

    return replace(resource, inputs=changed(resource.inputs), outputs=changed(resource.outputs))


def _listed(value: Value) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
