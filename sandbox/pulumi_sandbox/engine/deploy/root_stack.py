"""The stack itself: its outputs, and what the policy packs say of it as a whole."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from pulumi_sandbox.engine.deploy import order
from pulumi_sandbox.engine.deploy.control import Run
from pulumi_sandbox.engine.deploy.resources import Registrations
from pulumi_sandbox.engine.policies.pack import PolicyPack
from pulumi_sandbox.engine.state.journal import Ledger
from pulumi_sandbox.protocol.values import Properties


class RootStack:
    """Keeps the stack's outputs aside until it is known how the deployment ends."""

    def __init__(self, urn: str, run: Run, ledger: Ledger, registrations: Registrations) -> None:
        """Know no outputs yet."""
        self.urn = urn
        self._run = run
        self._ledger = ledger
        self._registrations = registrations
        self._outputs: Properties | None = None

    def keep(self, outputs: Properties) -> None:
        """Take the outputs the program registered."""
        self._run.learn(outputs)
        self._outputs = outputs

    def finish(self) -> Properties:
        """Record the outputs and return them: new ones replace the old, or join them after a failure."""
        root = self._registrations.done.get(self.urn)
        if root is None:
            before = self._ledger.live(self.urn)
            return before.outputs if before else {}
        if self._outputs is not None:
            joined = {**root.outputs, **self._outputs} if self._run.failed else self._outputs
            root = replace(root, outputs=joined)
            self._outputs = None
            self._registrations.done[root.urn] = root
            self._ledger.amend(root)
        return root.outputs

    async def judge(self, packs: asyncio.Task[tuple[PolicyPack, ...]]) -> None:
        """Let the policy packs judge all managed resources together, by their outputs.

        Raises:
            SandboxError: `policy-pack-failed`.
        """
        done = self._registrations.done
        resources = [
            (each, self._registrations.goals.get(each.urn), done.get(order.provider_urn(each)))
            for each in done.values()
            if not each.external
        ]
        for pack in await packs:
            for violation in await pack.judge_stack(resources, self.urn):
                self._run.objected(violation)
