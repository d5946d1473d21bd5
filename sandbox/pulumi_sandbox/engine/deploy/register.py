"""What happens to each resource a program registers or reads: it is planned, then its steps are taken."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pulumi_sandbox.engine.deploy import decide, order
from pulumi_sandbox.engine.deploy.apply import Applier, as_it_exists
from pulumi_sandbox.engine.deploy.callbacks import CallbackError
from pulumi_sandbox.engine.deploy.control import Control, Unfulfilled
from pulumi_sandbox.engine.deploy.gate import Gate
from pulumi_sandbox.engine.deploy.plan import Planned, Planner
from pulumi_sandbox.engine.deploy.provider_resources import UNKNOWN_ID, ProviderResources
from pulumi_sandbox.engine.deploy.resources import Resources
from pulumi_sandbox.engine.deploy.targets import Targets
from pulumi_sandbox.engine.model.diff import NO_DIFFERENCE, Diff
from pulumi_sandbox.engine.model.events import Op
from pulumi_sandbox.engine.model.goal import INTERNAL, Goal
from pulumi_sandbox.engine.model.resource import Resource, now, with_secret_outputs
from pulumi_sandbox.engine.plugins.provider import Live, Provider, ProviderError
from pulumi_sandbox.engine.plugins.provider_processes import DYNAMIC
from pulumi_sandbox.engine.project.identity import Identity
from pulumi_sandbox.engine.project.program_config import ProgramConfig
from pulumi_sandbox.engine.state.journal import Journal
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Secret, Value, equal

ProviderOf: TypeAlias = "Callable[[Resource], Awaitable[Provider | None]]"


async def falling_with(root: str, waiting: Sequence[Resource], provider_of: ProviderOf) -> list[Resource]:
    """List which of the old resources must be replaced because `root` is, each after what it depends on.

    `waiting` are those not registered yet in this run; only they can still depend on `root`.
    """
    gone = {root}
    falling: list[Resource] = []
    for each in order.dependents(root, waiting):
        if await _falls(each, gone, provider_of):
            gone.add(each.urn)
            falling.append(each)
    tied = (each for each in waiting if root in (*each.replace_with, each.deleted_with))
    return [*falling, *(each for each in tied if each.urn not in gone)]


async def _falls(resource: Resource, gone: Collection[str], provider_of: ProviderOf) -> bool:
    """Whether a resource must be replaced.

    Its provider says so when the inputs that hang on it are unknown.
    """
    if not resource.custom or resource.external or resource.pending_replacement:
        return False
    if resource.provider_urn in gone or resource.deleted_with in gone:
        return True
    lost = {key for key, urns in resource.property_dependencies.items() if not set(urns).isdisjoint(gone)}
    inputs = {key: UNKNOWN if key in lost else value for key, value in resource.inputs.items()}
    if equal(inputs, resource.inputs):
        return False
    provider = await provider_of(resource)
    if provider is None:
        return False
    diff = await provider.diff(resource, replace(resource, inputs=inputs), preview=True)
    diff = decide.settle(diff, resource.inputs, inputs, resource.ignore_changes)
    return decide.force_replacements(diff, resource.replace_on_changes).demands_replacement


@dataclass(frozen=True, slots=True, eq=False)
class Registrar:
    """Takes registrations as they come and answers each with the resource it led to."""

    control: Control
    journal: Journal
    provider_resources: ProviderResources
    applier: Applier
    resources: Resources
    planner: Planner
    identity: Identity
    targets: Targets
    destroys: bool = False
    _gate: Gate = field(default_factory=Gate, init=False)
    _taking: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event], init=False)
    _default_providers: dict[tuple[str, str], asyncio.Task[Resource]] = field(
        default_factory=dict[tuple[str, str], "asyncio.Task[Resource]"], init=False
    )

    async def provider_reference(self, package: str, version: str, given: str) -> str:
        """Return the reference of the provider that serves a package: the given one, or the default one."""
        if given:
            return given
        key = (package, version)
        if key not in self._default_providers:
            goal = default_provider(package, version, self.identity.config)
            self._default_providers[key] = asyncio.create_task(self.register(goal))
        record = await self._default_providers[key]
        return f"{record.urn}::{record.id or UNKNOWN_ID}"

    async def provider(self, reference: str) -> Provider:
        """Return the provider behind a reference; one not registered in this run is as the state has it.

        Also the old half of one that was replaced, which is there as long as anything of it.
        Raises ProviderError when nobody knows it.
        """
        if not self.provider_resources.knows(reference):
            former = self.resources.before(urns.of_provider(reference))
            halves = (each for each in self.journal.old if each.delete and each.is_provider)
            for record in filter(None, (former, *halves)):
                if reference == f"{record.urn}::{record.id}":
                    await self.provider_resources.keep(record)
        return self.provider_resources.get(reference)

    async def provider_of(self, old: Resource) -> Provider | None:
        """Return who manages a resource of the state; nobody manages components.

        Raises ProviderError when its provider is gone from the state.
        """
        if not old.custom or old.external:
            return None
        if old.is_provider:
            return self.provider_resources
        return await self.provider(old.provider)

    async def register(self, goal: Goal) -> Resource:
        """Bring a resource to its goal and return its record.

        Raises Stopped when this resource, or another one meanwhile, stopped the deployment, and Unfulfilled
        when that goes on without it.
        """
        self.control.check()
        urn = self.resources.claim(goal.parent, goal.type, goal.name)
        try:
            return await self._register(urn, goal)
        except CallbackError as error:
            raise self.control.fail_unless_stopping(str(error), urn) from error
        except (ProviderError, SandboxError) as error:
            raise self.control.fail(str(error), urn) from error

    async def _register(self, urn: str, goal: Goal) -> Resource:
        goal = replace(goal, provider=await self._reference(urn, goal))
        self.resources.goals[urn] = goal
        former = self.resources.find_old(urn, goal)
        record = goal.record(urn, "", None)
        if not self.resources.unfulfilled.isdisjoint(order.depends_on(record)):
            raise self._unfulfilled(urn)
        is_meant = self.targets.includes(record) or former in self.resources.recreated_later
        if not is_meant or (self.destroys and self._needs_no_work(record)):
            return self._left_alone(record, former)
        if former in self.resources.brought_forward:
            raise self.control.fail(
                "it is registered after what depends on it by the state: leave out its target", urn
            )
        self._demand(record)
        await self._gate.enter()
        try:
            provider = await self._provider_of(goal)
            imported = await self._import(former, record, provider)
            planned = await self.planner.plan(urn, former, goal, provider, imported)
            self.resources.planned.update({urn, former})
            if planned.recreating or (planned.plan and planned.plan.verdict == "replace"):
                self.resources.replaced.add(urn)
        finally:
            self._gate.leave()
        self._taking[former] = taken = asyncio.Event()
        try:
            is_as_imported = imported and planned.plan and planned.plan.verdict == "same"
            record = imported if imported and is_as_imported else await self._take(planned, goal, provider)
        except (CallbackError, ProviderError, SandboxError) as error:
            if not self.control.goes_on or self.control.stopping:
                raise
            self.control.flaw(str(error), urn)
            raise self._unfulfilled(urn) from error
        finally:
            taken.set()
        self.control.learn(record.outputs)
        self.resources.done[urn] = record
        return record

    def _needs_no_work(self, new: Resource) -> bool:
        """Whether a destroy leaves a registration as it is until its end: only providers are configured."""
        is_implied = new.is_provider or new.type == urns.ROOT_STACK_TYPE
        return not is_implied or not self.resources.not_made.isdisjoint(order.depends_on(new))

    async def _import(self, former: str, new: Resource, provider: Provider | None) -> Resource | None:
        """Take an object that exists as this resource, in place of one of another id; None: none is wanted.

        Raises ProviderError where it does not exist, or its provider does not tell what was asked for.
        """
        old = self.journal.live(former)
        if not new.import_id or provider is None or (old and _is_there(old, new.import_id)):
            return None
        if new.is_provider:
            raise ProviderError("provider resources may not be imported")
        replaces = old is not None and not old.external

        async def read() -> Resource:
            record = await as_it_exists(new, provider, self.control)
            if replaces:
                self.journal.put(record)
                self.journal.condemn(former)
                self.resources.replaced.add(new.urn)
            else:
                self.journal.put(record, replaces=former)
            await self.journal.settled()
            return record

        op: Op = "import-replacement" if replaces else "import"
        record = await self.control.step(op, old, new, read)
        if replaces:
            self.control.tell("replace", old, record)
        return record

    def _left_alone(self, new: Resource, former: str) -> Resource:
        """Leave what is not meant as the state has it, where it stands there; or unmade."""
        self.resources.planned.add(new.urn)
        old = self.resources.brought_forward.get(former) or self.journal.live(former)
        if old is None:
            self.resources.not_made.add(new.urn)
            self.control.tell("same", new, new)
            return new
        if old.provider_urn and not self.destroys:
            present = self.resources.done.get(old.provider_urn)
            if present is None or old.provider != f"{present.urn}::{present.id}":
                became = "replaced" if present else "not registered"
                raise self.control.fail(
                    f"its provider {old.provider_urn} is {became}: with targets, change no providers", new.urn
                )
        self.resources.left_alone.add(old.urn)
        self.resources.planned.add(old.urn)
        self.resources.goals[old.urn] = self.resources.goals[new.urn]
        self.resources.done[old.urn] = old
        if old.urn not in self.resources.brought_forward:
            self.control.tell("same", old, old)
        return old

    def _demand(self, new: Resource) -> None:
        """See to it that all stands that a resource depends on, before it in the state.

        Raises Stopped where that is not made, because it is not meant; a preview tells of it and goes on.
        """
        for missing in sorted(order.depends_on(new) & self.resources.not_made):
            message = f"it depends on {missing}, which was not specified in --target list"
            if not self.control.preview:
                raise self.control.fail(message, new.urn)
            self.control.flaw(message, new.urn)
        for urn in order.depends_on(new):
            self._bring_forward(urn)

    def _bring_forward(self, urn: str) -> None:
        """Put what was left alone before what is new, after all that it depends on."""
        old = self.journal.live(urn)
        if old and urn in self.resources.left_alone:
            for each in order.depends_on(old):
                self.resources.left_alone.add(each)
                self._bring_forward(each)
            self.journal.put(old, replaces=urn)
            self.resources.brought_forward[urn] = old
            if urn not in self.resources.planned:
                self.control.tell("same", old, old)

    async def _reference(self, urn: str, goal: Goal) -> str:
        if not goal.custom or goal.is_provider:
            return ""
        try:
            return await self.provider_reference(goal.package, goal.version, goal.provider)
        except Unfulfilled as waiting:
            raise self._unfulfilled(urn) from waiting

    def _unfulfilled(self, urn: str) -> Unfulfilled:
        self.resources.unfulfilled.add(urn)
        return Unfulfilled(urn)

    async def _provider_of(self, goal: Goal) -> Provider | None:
        if not goal.custom:
            return None
        return self.provider_resources if goal.is_provider else await self.provider(goal.provider)

    async def _take(self, planned: Planned, goal: Goal, provider: Provider | None) -> Resource:
        new, old, plan = planned.new, planned.old, planned.plan
        if old is None:
            return await self.control.step("create", None, new, lambda: self.applier.create(new, provider))
        if plan is None or plan.verdict == "replace":
            return await self._replace(planned, old, provider)
        if plan.verdict == "update":
            return await self._update(old, new, provider, plan.diff)
        return await self._same(old, new, goal)

    async def _replace(self, planned: Planned, old: Resource, provider: Provider | None) -> Resource:
        """Make another one; the old one goes before (at once) or after (at the end of the deployment)."""
        new, plan = planned.new, planned.plan
        diff = plan.diff if plan else NO_DIFFERENCE
        if plan and plan.delete_first:
            old = await self._delete_first(old)
        self.resources.recreated_later.discard(old.urn)

        async def create() -> Resource:
            return await self.applier.create(new, provider, old=old)

        if old.pending_replacement:
            self.control.tell("replace", old, new, diff)
            return await self.control.step("create-replacement", old, new, create, diff)
        record = await self.control.step("create-replacement", old, new, create, diff)
        self.control.tell("replace", old, record, diff)
        return record

    async def _same(self, old: Resource, new: Resource, goal: Goal) -> Resource:
        """Keep id and outputs, store the new inputs and options."""
        record = with_secret_outputs(replace(new, id=old.id, outputs=old.outputs))
        if goal.is_provider:
            await self.provider_resources.keep(replace(record, inputs=old.inputs))
        record = self.journal.put(record, replaces=old.urn)
        self.control.tell("same", old, record)
        return record

    async def _update(self, old: Resource, new: Resource, provider: Provider | None, diff: Diff) -> Resource:
        async def update() -> Resource:
            return await self.applier.update(old, new, provider)

        return await self.control.step("update", old, replace(new, id=old.id), update, diff)

    async def _delete_first(self, old: Resource) -> Resource:
        """Delete a resource before its replacement is made, and before that all that falls with it."""
        async with self._gate.alone():
            planned = self.resources.planned
            waiting = [each for each in self.journal.old if each.urn not in planned and not each.delete]
            condemned = await falling_with(old.urn, waiting, self.provider_of)
            for each in condemned:
                if each.protect:
                    raise self.control.fail(
                        f"replacing it means replacing {each.urn}, which is protected", old.urn
                    )
                self.resources.recreated_later.add(each.urn)
            if not old.pending_replacement:
                condemned.insert(0, old)
            freed = [each for each in order.dependents(old.urn, self.journal.old) if each.urn in self._taking]
        await self._wait_for(old.urn, freed)
        for each in reversed(condemned):
            await self._delete_for_replacement(each)
        return replace(old, pending_replacement=True)

    async def _wait_for(self, host: str, freed: Sequence[Resource]) -> None:
        """Return once what no longer depends on a host was changed so, and the host may go.

        Raises ProviderError when something could not be, and would go with it.
        """
        for each in freed:
            await self._taking[each.urn].wait()
        for each in freed:
            live = self.journal.live(each.urn)
            if live and live.deleted_with == host:
                raise ProviderError(f"{each.urn} would go with it, and could not be changed to stay")

    async def _delete_for_replacement(self, old: Resource) -> None:
        provider = None if self.control.preview else await self.provider_of(old)
        self.applier.announce((old,))

        async def delete() -> None:
            await self.applier.delete(old, provider, lambda: self.journal.await_replacement(old.urn))

        await self.control.step("delete-replaced", old, None, delete)

    async def read(self, name: str, wanted: Resource) -> Resource:
        """Look a resource up that is not managed here; previews look as well.

        wanted: its record, as yet without URN and outputs.

        Raises Stopped when it does not exist, or the deployment stopped meanwhile.
        """
        self.control.check()
        urn = self.resources.claim(wanted.parent, wanted.type, name)
        old = self.journal.live(urn)
        new = replace(wanted, urn=urn)
        if old:
            new = replace(new, created=old.created, modified=old.modified, other=old.other)
        for failed in sorted(order.depends_on(new) & self.resources.unfulfilled):
            raise self.control.fail(f"it depends on {failed}, which could not be brought", urn)
        self._demand(new)
        replaces_own = old is not None and not old.external and old.id != new.id

        async def read() -> Resource:
            live = await self._look(new)
            record = with_secret_outputs(replace(new, id=live.id, outputs=live.outputs))
            if old and not (equal(old.inputs, record.inputs) and equal(old.outputs, record.outputs)):
                record = replace(record, modified=now())
            if replaces_own:
                self.journal.put(record)
                self.journal.condemn(urn)
            else:
                record = self.journal.put(record, replaces=urn)
            await self.journal.settled()
            return record

        try:
            record = await self.control.step("read-replacement" if replaces_own else "read", old, new, read)
        except (ProviderError, SandboxError) as error:
            raise self.control.fail(str(error), urn) from error
        if replaces_own:
            self.control.tell("replace", old, record)
        self.resources.planned.add(urn)
        self.resources.done[urn] = record
        return record

    async def _look(self, new: Resource) -> Live:
        if new.id == UNKNOWN_ID:
            return Live("", {})
        provider = await self.provider(new.provider)
        live = await provider.read(replace(new, outputs=new.inputs))
        if not live.id:
            raise ProviderError(f"resource {new.id!r} does not exist")
        return live

    async def outputs(self, urn: str, outputs: Properties) -> None:
        """Take the outputs of a component, which completes it."""
        self.control.learn(outputs)
        if urn in self.resources.unfulfilled or urn in self.resources.not_made:
            return
        record = self.resources.done.get(urn)
        if record is None:
            raise self.control.fail("outputs for a resource that is not registered", urn)
        outputs = self.control.kept(before=record.outputs, now=outputs)
        record = with_secret_outputs(replace(record, outputs=outputs))
        self.resources.done[urn] = record
        if urn in self.resources.left_alone:
            self._bring_forward(urn)
        self.journal.amend(record)
        await self.journal.settled()
        await self.applier.complete(record)


def _is_there(old: Resource, import_id: str) -> bool:
    """Whether a resource of the state is the object that is to be imported."""
    return not old.external and (old.import_id or old.id) == import_id


def default_provider(package: str, version: str, config: ProgramConfig) -> Goal:
    """Describe a default provider; an empty version is the only one there is.

    It is given the configuration of its namespace; the one for dynamic providers the whole, by full keys.
    """
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
    return Goal(type=f"{urns.PROVIDER_TYPE_PREFIX}{package}", name=name, custom=True, inputs=inputs)
