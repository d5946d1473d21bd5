"""The stack itself: its outputs, and what the policy packs say of it as a whole."""

import asyncio
from dataclasses import replace

from pulumi_sandbox.engine.deploy.control import Control
from pulumi_sandbox.engine.deploy.resources import Resources
from pulumi_sandbox.engine.policies.pack import PolicyPack
from pulumi_sandbox.engine.state.journal import Journal
from pulumi_sandbox.protocol.values import Properties


class RootStack:
    """Keeps the stack's outputs aside until it is known how the deployment ends."""

    def __init__(self, urn: str, control: Control, journal: Journal, resources: Resources) -> None:
        self.urn = urn
        self._control = control
        self._journal = journal
        self._resources = resources
        self._outputs: Properties | None = None

    def keep(self, outputs: Properties) -> None:
        """Take the outputs the program registered."""
        self._control.learn(outputs)
        self._outputs = outputs

    def finish(self) -> Properties:
        """Record the outputs and return them: new ones replace the old, or join them after a failure."""
        root = self._resources.done.get(self.urn)
        if root is None:
            before = self._journal.live(self.urn)
            return before.outputs if before else {}
        if self._outputs is not None:
            known = self._control.kept(before=root.outputs, now=self._outputs)
            joined = {**root.outputs, **known} if self._control.failed else known
            root = replace(root, outputs=joined)
            self._outputs = None
            self._resources.done[root.urn] = root
            self._journal.amend(root)
        return root.outputs

    async def judge(self, packs: asyncio.Task[tuple[PolicyPack, ...]]) -> None:
        """Let the policy packs judge all managed resources together, by their outputs.

        Raises SandboxError `policy-pack-failed`.
        """
        done = self._resources.done
        resources = [
            (each, self._resources.goals.get(each.urn), done.get(each.provider_urn))
            for each in done.values()
            if not each.external
        ]
        for pack in await packs:
            for violation in await pack.judge_stack(resources, self.urn):
                self._control.objected(violation)
