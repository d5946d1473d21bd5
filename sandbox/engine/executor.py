"""What happens to each resource a program registers: planning first, then its steps (engine facts 4)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NoReturn

from sandbox.engine import planner, urns
from sandbox.engine.aliases import former_urns
from sandbox.engine.callbacks import CallbackError
from sandbox.engine.config import ProgramConfig
from sandbox.engine.gate import Gate
from sandbox.engine.goal import Goal
from sandbox.engine.ledger import Ledger
from sandbox.engine.operations import Operations
from sandbox.engine.planner import Diff, Plan
from sandbox.engine.policies import PolicyPack
from sandbox.engine.plugins import DYNAMIC
from sandbox.engine.provider import (
    INTERNAL,
    CheckFailure,
    DiffUnavailable,
    Live,
    Provider,
    ProviderError,
)
from sandbox.engine.registry import UNKNOWN_ID, Registry
from sandbox.engine.run import Run, StepDetail
from sandbox.engine.state import CustomTimeouts, Resource, now
from sandbox.engine.values import UNKNOWN, Properties, Secret, Value, equal
from sandbox.errors import SandboxError

_PENDING_CONFIG = (
    "the configuration of this resource's provider is not known during preview: "
    "this preview may not show what the update will do"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Where a deployment takes place."""

    project: str
    stack: str
    config: ProgramConfig

    @property
    def root(self) -> str:
        """The URN of the stack itself."""
        name = f"{self.project}-{self.stack}"
        return urns.make(self.stack, self.project, "", urns.ROOT_STACK_TYPE, name)


@dataclass(frozen=True, slots=True)
class _Planned:
    """The outcome of planning one registration; `plan` is None for what does not exist yet."""

    new: Resource
    old: Resource | None
    plan: Plan | None
    recreating: bool = False


class Executor:
    """Takes registrations as they come and answers each with the resource it led to."""

    def __init__(
        self,
        run: Run,
        ledger: Ledger,
        registry: Registry,
        operations: Operations,
        packs: asyncio.Task[tuple[PolicyPack, ...]],
        identity: Identity,
    ) -> None:
        """Begin with nothing registered."""
        self._run = run
        self._ledger = ledger
        self._registry = registry
        self._operations = operations
        self._packs = packs
        self._identity = identity
        self._gate = Gate()
        self._goals: dict[str, Goal] = {}
        self._done: dict[str, Resource] = {}
        self._claimed: set[str] = set()
        self._renamed: dict[str, str] = {}
        self._planned: set[str] = set()
        self._replaced: set[str] = set()
        self._recreated_later: set[str] = set()
        self._default_providers: dict[tuple[str, str], asyncio.Task[Resource]] = {}
        self._before = {each.urn: each for each in ledger.old if not each.delete}
        self._root_outputs: Properties | None = None

    # What others ask

    def find(self, urn: str) -> Resource | None:
        """Return a resource registered or read in this run, as far as it is done."""
        return self._done.get(urn)

    def goal(self, urn: str) -> Goal | None:
        """Return what the program asked for under this URN."""
        return self._goals.get(urn)

    async def provider_reference(self, package: str, version: str, given: str) -> str:
        """Return the reference of the provider that serves a package: the given one, or the default one."""
        if given:
            return given
        key = (package, version)
        if key not in self._default_providers:
            goal = _default_provider(package, version, self._identity)
            self._default_providers[key] = asyncio.create_task(self.register(goal))
        record = await self._default_providers[key]
        return f"{record.urn}::{record.id or UNKNOWN_ID}"

    async def provider(self, reference: str) -> Provider:
        """Return the provider behind a reference, with the configuration of the state if nobody registered it.

        Raises:
            ProviderError: When nobody knows it.
        """
        if not self._registry.knows(reference):
            record = self._before.get(reference.rpartition("::")[0])
            if record is not None and reference == f"{record.urn}::{record.id}":
                await self._registry.keep(record)
        return self._registry.get(reference)

    # Registrations

    async def register(self, goal: Goal) -> Resource:
        """Bring a resource to its goal and return its record.

        Raises:
            Stopped: When this resource, or another one meanwhile, stopped the deployment.
        """
        self._run.check()
        urn = self._claim(goal.parent, goal.type, goal.name)
        try:
            return await self._register(urn, goal)
        except CallbackError as error:
            raise self._run.fail_unless_stopping(str(error), urn) from error
        except (ProviderError, SandboxError) as error:
            raise self._run.fail(str(error), urn) from error

    async def _register(self, urn: str, goal: Goal) -> Resource:
        managed = goal.custom and not goal.is_provider
        reference = (
            await self.provider_reference(goal.package, goal.version, goal.provider) if managed else ""
        )
        goal = replace(goal, provider=reference)
        self._goals[urn] = goal
        former = self._former(urn, goal)
        async with self._gate.shared():
            provider = await self._provider_of(goal)
            planned = await self._plan(urn, former, goal, provider)
            self._planned.add(urn)
        if planned.plan and planned.plan.verdict == "replace" or planned.recreating:
            self._replaced.add(urn)
        record = await self._take(planned, goal, provider)
        self._done[urn] = record
        return record

    def _claim(self, parent: str, type_: str, name: str) -> str:
        """Name a resource, once."""
        urn = urns.make(self._identity.stack, self._identity.project, parent, type_, name)
        if parent and parent not in self._goals:
            raise self._run.fail(f"its parent {parent} is not registered", urn)
        if urn in self._claimed:
            raise self._run.fail("duplicate resource: the program registers this type and name twice", urn)
        self._claimed.add(urn)
        return urn

    def _former(self, urn: str, goal: Goal) -> str:
        """Return the URN under which the state has the resource; its own comes first (engine facts 4, lookup)."""
        taken = {former: new for new, former in self._renamed.items()}
        if urn in taken:
            raise self._run.fail(
                f"{taken[urn]} was found under this URN by an alias; only one can have it", urn
            )
        aliases = former_urns(urn, goal.parent, goal.aliases, self._renamed)
        former = next((each for each in (urn, *aliases) if each in self._before), urn)
        if former == urn:
            return urn
        other = former if former in self._claimed else taken.get(former)
        if other:
            raise self._run.fail(f"its alias {former} belongs to {other}, too; only one can have it", urn)
        self._renamed[urn] = former
        self._ledger.rename(former, urn)
        return former

    async def _provider_of(self, goal: Goal) -> Provider | None:
        if not goal.custom:
            return None
        return self._registry if goal.is_provider else await self.provider(goal.provider)

    # Planning

    async def _plan(self, urn: str, former: str, goal: Goal, provider: Provider | None) -> _Planned:
        old = self._ledger.live(former)
        new = goal.record(urn, former if former != urn else "", old)
        self._run.learn(goal.inputs)
        recreating = former in self._recreated_later
        known = None if recreating or (old and old.external) else old
        new = await self._check(new, goal, provider, known)
        new = await self._judge(new, goal)
        if old is None or known is None:
            return _Planned(new, old, None, recreating)
        diff = planner.forced_by(new, self._replaced) or await self._diff(known, new, provider)
        plan = planner.plan(
            old,
            diff,
            replace_on_changes=goal.replace_on_changes,
            delete_first=goal.delete_before_replace,
        )
        if plan.verdict == "replace":
            if old.protect and new.protect:
                self._refuse_replacement(urn)
            new = await self._check(new, goal, provider, None)
        return _Planned(new, old, plan)

    async def _check(
        self, new: Resource, goal: Goal, provider: Provider | None, old: Resource | None
    ) -> Resource:
        """Let the provider complete the inputs; without old inputs it chooses new automatic names.

        What an interrupted create had chosen counts as old inputs, so that the same name comes out and the provider
        finds what it made (engine facts 5, leaked auto-named Secrets).
        """
        inputs = goal.inputs
        if old is not None:
            inputs, refused = planner.ignore_changes(old.inputs, inputs, goal.ignore_changes)
            if refused:
                self._run.say(
                    "info", f"cannot ignore added or removed elements of {', '.join(refused)}", new.urn
                )
        if provider is None:
            return replace(new, inputs=inputs)
        begun = self._ledger.interrupted(new.urn)
        olds = old.inputs if old else begun.inputs if begun else None
        checked = await provider.check(new.urn, olds, inputs, preview=self._run.preview)
        if checked.failures:
            self._refuse_inputs(new, checked.failures)
        return replace(new, inputs=checked.inputs)

    def _refuse_inputs(self, new: Resource, failures: Iterable[CheckFailure]) -> NoReturn:
        for failure in failures:
            about = f"its property {failure.property} " if failure.property else ""
            self._run.flaw(f"{about}{'is invalid: ' if about else ''}{failure.reason}", new.urn)
        raise self._run.stop()

    async def _judge(self, new: Resource, goal: Goal) -> Resource:
        """Let the policy packs change and then judge a resource; in previews their objections stop nothing."""
        provider = self._done.get(planner.provider_urn(new))
        mandatory = False
        for pack in await self._packs:
            judged = await pack.judge(new, goal, provider)
            new = replace(new, inputs=judged.inputs)
            for violation in judged.violations:
                self._run.objected(violation)
                mandatory |= violation.level == "mandatory"
        if mandatory and not self._run.preview:
            raise self._run.stop()
        return new

    async def _diff(self, old: Resource, new: Resource, provider: Provider | None) -> Diff:
        if await self._provider_changed(old, new):
            return Diff("some", replaces=("provider",))
        if provider is None:
            return planner.NO_DIFFERENCE if equal(old.inputs, new.inputs) else Diff("some")
        try:
            answer = await provider.diff(
                new.urn,
                old.id,
                old.inputs,
                old.outputs,
                new.inputs,
                unknowns=self._run.preview,
                ignored=new.ignore_changes,
            )
        except DiffUnavailable:
            self._run.say("warning", _PENDING_CONFIG, new.urn)
            return Diff("some")
        return planner.settle(answer, old.inputs, new.inputs, new.ignore_changes)

    async def _provider_changed(self, old: Resource, new: Resource) -> bool:
        """Tell whether moving to another provider means replacement: that provider's own opinion."""
        if old.provider == new.provider:
            return False
        if not old.provider or not new.provider:
            return True
        former = self._before.get(self._renamed.get(planner.provider_urn(old), planner.provider_urn(old)))
        present = self._done.get(planner.provider_urn(new))
        if former is None or present is None:
            return True
        diff = await self._registry.diff_config(new.provider, former, present.inputs)
        return diff.demands_replacement

    def _refuse_replacement(self, urn: str) -> None:
        """Refuse to replace what is protected; a preview goes on to show what would happen."""
        message = "it must be replaced, but it is protected\n→ remove `protect` from it in the program and run again"
        if not self._run.preview:
            raise self._run.fail(message, urn)
        self._run.flaw(message, urn)

    # Steps

    async def _take(self, planned: _Planned, goal: Goal, provider: Provider | None) -> Resource:
        new, old, plan = planned.new, planned.old, planned.plan
        if planned.recreating and old:
            self._recreated_later.discard(old.urn)
            self._run.tell("replace", old, new)
            return await self._replacement(old, new, provider, StepDetail())
        if old is None:
            return await self._create(new, provider)
        if plan is None:
            record = await self._replacement(old, new, provider, StepDetail())
            self._run.tell("replace", old, record)
            return record
        detail = StepDetail(plan.diff.replaces, plan.diff.detailed)
        if plan.verdict == "same":
            return await self._same(old, new, goal)
        if plan.verdict == "update":
            return await self._update(old, new, provider, detail)
        if plan.delete_first:
            old = await self._delete_first(old)
            self._run.tell("replace", old, new, detail)
            return await self._replacement(old, new, provider, detail)
        record = await self._replacement(old, new, provider, detail)
        self._run.tell("replace", old, record, detail)
        return record

    async def _same(self, old: Resource, new: Resource, goal: Goal) -> Resource:
        """Keep id and outputs, store the new inputs and options (engine facts 4, same)."""
        record = planner.with_secret_outputs(replace(new, id=old.id, outputs=old.outputs))
        if goal.is_provider:
            await self._registry.keep(replace(record, inputs=old.inputs))
        record = self._ledger.put(record, replaces=old.urn)
        self._run.tell("same", old, record)
        return record

    async def _create(self, new: Resource, provider: Provider | None) -> Resource:
        return _present(
            await self._run.step("create", None, new, lambda: self._operations.create(new, provider))
        )

    async def _replacement(
        self, old: Resource, new: Resource, provider: Provider | None, detail: StepDetail
    ) -> Resource:
        async def create() -> Resource:
            return await self._operations.create(new, provider, old=old)

        return _present(await self._run.step("create-replacement", old, new, create, detail))

    async def _update(
        self, old: Resource, new: Resource, provider: Provider | None, detail: StepDetail
    ) -> Resource:
        async def update() -> Resource:
            return await self._operations.update(old, new, provider)

        return _present(await self._run.step("update", old, replace(new, id=old.id), update, detail))

    # Delete before replace

    async def _delete_first(self, old: Resource) -> Resource:
        """Delete a resource before its replacement exists, what depends on it and would be replaced before that."""
        async with self._gate.alone():
            condemned = await self._condemned_with(old)
            for each in condemned:
                if each.protect:
                    raise self._run.fail(
                        f"replacing it means replacing {each.urn}, which is protected", old.urn
                    )
                self._recreated_later.add(each.urn)
            if not old.pending_replacement:
                condemned.insert(0, old)
        for each in reversed(condemned):
            await self._delete_for_replacement(each)
        return replace(old, pending_replacement=True)

    async def _delete_for_replacement(self, old: Resource) -> None:
        provider = await self.provider_of(old)
        self._operations.deleted.add(old.urn)

        async def delete() -> None:
            await self._operations.delete(old, provider, lambda: self._ledger.await_replacement(old.urn))

        await self._run.step("delete-replaced", old, None, delete)

    async def provider_of(self, old: Resource) -> Provider | None:
        """Return who manages a resource of the state; nobody manages components.

        Raises:
            ProviderError: When its provider is gone from the state.
        """
        if not old.custom or old.external:
            return None
        if old.type.startswith(urns.PROVIDER_TYPE_PREFIX):
            return self._registry
        return await self.provider(old.provider)

    async def _condemned_with(self, root: Resource) -> list[Resource]:
        """List what must be replaced because `root` is deleted, each after what it depends on."""
        waiting = [each for each in self._ledger.old if each.urn not in self._planned and not each.delete]
        gone = {root.urn}
        condemned: list[Resource] = []
        for each in planner.dependents(root.urn, waiting):
            if await self._falls_with(each, gone):
                gone.add(each.urn)
                condemned.append(each)
        tied = (each for each in waiting if root.urn in (*each.replace_with, each.deleted_with))
        return [*condemned, *(each for each in tied if each.urn not in gone)]

    async def _falls_with(self, resource: Resource, gone: set[str]) -> bool:
        """Tell whether a resource must be replaced when others are: its provider says so of unknown inputs."""
        if not resource.custom or resource.external or resource.pending_replacement:
            return False
        if planner.provider_urn(resource) in gone or resource.deleted_with in gone:
            return True
        inputs = {
            key: UNKNOWN if gone.intersection(resource.property_dependencies.get(key, ())) else value
            for key, value in resource.inputs.items()
        }
        if equal(inputs, resource.inputs):
            return False
        provider = await self.provider_of(resource)
        if provider is None:
            return False
        diff = await provider.diff(
            resource.urn,
            resource.id,
            resource.inputs,
            resource.outputs,
            inputs,
            unknowns=True,
            ignored=resource.ignore_changes,
        )
        diff = planner.settle(diff, resource.inputs, inputs, resource.ignore_changes)
        return planner.force_replacements(diff, resource.replace_on_changes).demands_replacement

    # Reads and outputs

    async def read(
        self,
        *,
        type_: str,
        name: str,
        parent: str,
        id_: str,
        inputs: Properties,
        dependencies: tuple[str, ...],
        provider: str,
        secret_outputs: tuple[str, ...],
    ) -> Resource:
        """Look a resource up that is not managed here; previews look as well.

        Raises:
            Stopped: When it does not exist, or the deployment stopped meanwhile.
        """
        self._run.check()
        urn = self._claim(parent, type_, name)
        old = self._ledger.live(urn)
        new = Resource(
            urn=urn,
            type=type_,
            custom=True,
            id=id_,
            inputs=inputs,
            parent=parent,
            external=True,
            dependencies=dependencies,
            provider=provider,
            additional_secret_outputs=secret_outputs,
            created=old.created if old else "",
            modified=old.modified if old else "",
            other=old.other if old else {},
        )
        replaces_own = old is not None and not old.external and old.id != id_
        op = "read-replacement" if replaces_own else "read"

        async def read() -> Resource:
            live = await self._look(new)
            record = planner.with_secret_outputs(replace(new, id=live.id, outputs=live.outputs))
            if old and not (equal(old.inputs, record.inputs) and equal(old.outputs, record.outputs)):
                record = replace(record, modified=now())
            if replaces_own:
                self._ledger.put(record)
                self._ledger.condemn(urn)
            else:
                record = self._ledger.put(record, replaces=urn)
            await self._ledger.settled()
            return record

        try:
            record = _present(await self._run.step(op, old, new, read))
        except (ProviderError, SandboxError) as error:
            raise self._run.fail(str(error), urn) from error
        if replaces_own:
            self._run.tell("replace", old, record)
        self._planned.add(urn)
        self._done[urn] = record
        return record

    async def _look(self, new: Resource) -> Live:
        if new.id == UNKNOWN_ID:
            return Live("", {})
        provider = await self.provider(new.provider)
        live = await provider.read(new.urn, new.id, new.inputs, new.inputs)
        if not live.id:
            raise ProviderError(f"resource {new.id!r} does not exist")
        return live

    async def outputs(self, urn: str, outputs: Properties) -> None:
        """Take the outputs of a component; the stack's own are kept aside until the end."""
        self._run.learn(outputs)
        if urn == self._identity.root:
            self._root_outputs = outputs
            return
        record = self._done.get(urn)
        if record is None:
            raise self._run.fail("outputs for a resource that is not registered", urn)
        record = planner.with_secret_outputs(replace(record, outputs=outputs))
        self._done[urn] = record
        self._ledger.amend(record)
        await self._ledger.settled()

    # The end

    def finish_stack(self) -> Properties:
        """Record the stack's outputs and return them: new ones replace the old, or join them after a failure."""
        record = self._done.get(self._identity.root)
        if record is None:
            return {}
        if self._root_outputs is not None:
            joined = {**record.outputs, **self._root_outputs} if self._run.failed else self._root_outputs
            record = replace(record, outputs=joined)
            self._done[record.urn] = record
            self._ledger.amend(record)
        return record.outputs

    async def judge_stack(self) -> None:
        """Let the policy packs judge the stack as a whole."""
        resources = [
            (each, self._goals.get(each.urn), self._done.get(planner.provider_urn(each)))
            for each in self._done.values()
            if not each.external
        ]
        for pack in await self._packs:
            for violation in await pack.judge_stack(resources, self._identity.root):
                self._run.objected(violation)


def _default_provider(package: str, version: str, identity: Identity) -> Goal:
    """Describe the provider that serves a package when the program names none (engine facts 2.5).

    It is given the configuration of its namespace; the one for dynamic providers the whole, by full keys.
    """
    config = identity.config
    inputs: dict[str, Value] = {}
    for key, text in config.values.items():
        namespace, _, name = key.partition(":")
        if package in (namespace, DYNAMIC):
            value = Secret(text) if key in config.secret_keys else text
            inputs[key if package == DYNAMIC else name] = value
    name = "default"
    if version:
        inputs |= {"version": version, INTERNAL: {}}
        name += "_" + re.sub(r"[.+-]", "_", version)
    return Goal(
        type=f"{urns.PROVIDER_TYPE_PREFIX}{package}",
        name=name,
        custom=True,
        inputs=inputs,
        parent="",
        provider="",
        providers={},
        version="",
        dependencies=(),
        property_dependencies={},
        protect=None,
        retain_on_delete=None,
        delete_before_replace=None,
        ignore_changes=(),
        replace_on_changes=(),
        additional_secret_outputs=(),
        aliases=(),
        custom_timeouts=CustomTimeouts(),
        deleted_with="",
        replace_with=(),
        hooks={},
    )


def _present(record: Resource | None) -> Resource:
    if record is None:
        raise AssertionError
    return record
