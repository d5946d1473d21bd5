"""What is to become of one registered resource.

Inputs checked and judged, differences asked for, a plan made.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from pulumi_sandbox.engine.deploy import decide, order
from pulumi_sandbox.engine.deploy.control import Control
from pulumi_sandbox.engine.deploy.decide import Plan
from pulumi_sandbox.engine.deploy.provider_resources import ProviderResources
from pulumi_sandbox.engine.deploy.resources import Resources
from pulumi_sandbox.engine.deploy.targets import Targets
from pulumi_sandbox.engine.model.diff import NO_DIFFERENCE, Diff
from pulumi_sandbox.engine.model.goal import Goal
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.provider import CheckFailure, DiffUnavailableError, Provider, read_live
from pulumi_sandbox.engine.policies.pack import PolicyPack
from pulumi_sandbox.engine.state.journal import Journal
from pulumi_sandbox.protocol.values import contains_unknown, equal

_MADE_ANEW: Final = Diff("some", replaces=("id",))
_PENDING_CONFIG: Final = (
    "the configuration of this resource's provider is not known during preview: "
    "this preview may not show what the update will do"
)


@dataclass(frozen=True, slots=True)
class Planned:
    """The outcome of planning one registration.

    `plan` is None for what does not exist yet or is not managed here, and for what is `recreating`: deleted
    earlier in this run, together with what it depends on.
    """

    new: Resource
    old: Resource | None
    plan: Plan | None
    recreating: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Planner:
    """Asks providers and policy packs, and leaves the decision to the planner's rules."""

    control: Control
    journal: Journal
    provider_resources: ProviderResources
    resources: Resources
    targets: Targets
    packs: asyncio.Task[tuple[PolicyPack, ...]]

    async def plan(
        self,
        urn: str,
        former: str,
        goal: Goal,
        provider: Provider | None,
        imported: Resource | None = None,
    ) -> Planned:
        """Plan a registration whose record the state has under `former`, if it has one, or was just imported.

        Raises Stopped when provider or policies refuse it, ProviderError when the provider fails.
        """
        old = imported or self.journal.live(former)
        new = goal.record(urn, former if former != urn else "", old)
        self.control.learn(goal.inputs)
        recreating = former in self.resources.recreated_later
        is_made_anew = bool(old) and (old.taint or self.targets.replaces(urn))
        known = None if recreating or (old and old.external) else old
        new = await self._check(new, goal, provider, None if is_made_anew else known)
        new = await self._judge(new, goal)
        if old is None or known is None:
            return Planned(new, old, None, recreating)
        if contains_unknown(new.replacement_trigger) and not self.control.preview:
            raise self.control.fail("its replacement_trigger is not known", urn)
        uncertain = self.journal.uncertain(former)
        replaced = self.resources.replaced | self._hosts_about_to_go(known, new.deleted_with)
        diff = _MADE_ANEW if is_made_anew else decide.forced_by(known, new, replaced)
        diff = diff or await self._diff(known, new, provider)
        was_deleted = uncertain == "deleting" and provider and not (await read_live(old, provider))[0].id
        plan = decide.plan(
            replace(old, pending_replacement=True) if was_deleted else old,
            diff,
            replace_on_changes=goal.replace_on_changes,
            delete_first=goal.delete_before_replace,
        )
        if was_deleted:
            old = replace(old, pending_replacement=True)
        elif uncertain and plan.verdict == "same":
            plan = replace(plan, verdict="update")
        if plan.verdict == "replace":
            if old.protect and new.protect:
                self._refuse_replacement(urn)
            if goal.import_id:
                self._refuse_reimport(urn, plan.diff)
                old = replace(old, pending_replacement=True) if imported else old
            if not is_made_anew:
                new = await self._remedied(await self._check(new, goal, provider, None), goal)
        return Planned(new, old, plan)

    def _hosts_about_to_go(self, guest: Resource, deleted_with: str) -> set[str]:
        """Return what a resource is deleted with, if an earlier run replaced that and its old half is left.

        The resource came before the replacement: it goes with the old half, at the end of this run.
        """
        host = self.resources.before(deleted_with)
        former = host and order.host_of(replace(guest, deleted_with=host.urn), self.journal.old)
        return {deleted_with} if former and former.delete else set()

    async def _check(
        self, new: Resource, goal: Goal, provider: Provider | None, old: Resource | None
    ) -> Resource:
        """Let the provider complete the inputs; without old inputs it chooses new automatic names.

        What an interrupted create had chosen counts as old inputs, so that the same name comes out and
        the provider finds what it made.
        """
        inputs = goal.inputs
        if old is not None:
            inputs, refused = decide.ignore_changes(old.inputs, inputs, goal.ignore_changes)
            if refused:
                self.control.say(
                    "info", f"cannot ignore added or removed elements of {', '.join(refused)}", new.urn
                )
        if provider is None:
            return replace(new, inputs=inputs)
        begun = self.journal.interrupted(new.urn)
        olds = old.inputs if old else begun.inputs if begun else None
        checked = await provider.check(new.urn, olds, inputs, preview=self.control.preview)
        if checked.failures:
            self._refuse_inputs(new, checked.failures)
        return replace(new, inputs=checked.inputs)

    def _refuse_inputs(self, new: Resource, failures: Iterable[CheckFailure]) -> NoReturn:
        for failure in failures:
            about = f"its property {failure.property} " if failure.property else ""
            self.control.flaw(f"{about}{'is invalid: ' if about else ''}{failure.reason}", new.urn)
        raise self.control.stop()

    async def _remedied(self, new: Resource, goal: Goal) -> Resource:
        """Let the policy packs change inputs that were checked anew; what they say of it they have said."""
        provider = self.resources.done.get(new.provider_urn)
        for pack in await self.packs:
            new = replace(new, inputs=(await pack.remedied(new, goal, provider)).inputs)
        return new

    async def _judge(self, new: Resource, goal: Goal) -> Resource:
        """Let the policy packs change and then judge a resource.

        In previews their objections stop nothing.
        """
        provider = self.resources.done.get(new.provider_urn)
        mandatory = False
        for pack in await self.packs:
            judged = await pack.judge(new, goal, provider)
            new = replace(new, inputs=judged.inputs)
            for violation in judged.violations:
                self.control.objected(violation)
                mandatory |= violation.level == "mandatory"
        if mandatory and not self.control.preview:
            raise self.control.stop()
        return new

    async def _diff(self, old: Resource, new: Resource, provider: Provider | None) -> Diff:
        if await self._provider_changed(old, new):
            return Diff("some", replaces=("provider",))
        if provider is None:
            return NO_DIFFERENCE if equal(old.inputs, new.inputs) else Diff("some")
        try:
            answer = await provider.diff(old, new, preview=self.control.preview)
        except DiffUnavailableError:
            self.control.say("warning", _PENDING_CONFIG, new.urn)
            return Diff("some")
        return decide.settle(answer, old.inputs, new.inputs, new.ignore_changes)

    async def _provider_changed(self, old: Resource, new: Resource) -> bool:
        """Whether moving to another provider means replacement: that provider's own opinion."""
        if old.provider == new.provider:
            return False
        if not old.provider or not new.provider:
            return True
        former = self.resources.before(old.provider_urn)
        present = self.resources.done.get(new.provider_urn)
        if former is None or present is None:
            return True
        diff = await self.provider_resources.diff_config(new.provider, former, present.inputs)
        return diff.demands_replacement

    def _refuse_reimport(self, urn: str, diff: Diff) -> None:
        """Refuse to replace what is to have a certain id; a preview goes on to show what would happen."""
        message = (
            "previously-imported resources that still specify an ID may not be replaced "
            f"(it would be, for {', '.join(diff.replaces) or 'what was asked for'})\n"
            "→ let the program say what is there, or remove the `import_` declaration from it"
        )
        if not self.control.preview:
            raise self.control.fail(message, urn)
        self.control.warn(urn, message)

    def _refuse_replacement(self, urn: str) -> None:
        """Refuse to replace what is protected; a preview goes on to show what would happen."""
        message = (
            "it must be replaced, but it is protected\n→ remove `protect` from it in the program, run again"
        )
        if not self.control.preview:
            raise self.control.fail(message, urn)
        self.control.flaw(message, urn)
