"""Hooks that prevent creating a resource, even in a preview, and the `pulumi import` command for it.

While the engine waits for a hook, all threads of the event loop's executor might wait in RegisterResource.
The checks therefore use their own threads.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pulumi

_LOOKS: Final = ThreadPoolExecutor(4, thread_name_prefix="credfleet-hook")


def refusing(name: str, refuse: Callable[[pulumi.ResourceHookArgs], None]) -> pulumi.ResourceHook:
    """Return a hook for a blocking check that raises RunError if the resource must not be created."""

    async def look(args: pulumi.ResourceHookArgs) -> None:
        await asyncio.get_running_loop().run_in_executor(_LOOKS, refuse, args)

    return pulumi.ResourceHook(name, look, pulumi.ResourceHookOptions(on_dry_run=True))


_SELF_MANAGED: Final = "organization"
"""The only organization of file and bucket backends."""


@dataclass(frozen=True, slots=True)
class Importer:
    """Resource as the program declares it. `parent`, `provider`: their URNs.

    Imported without them it would be another resource, which the next update deletes.
    """

    stack: str
    is_preview: bool
    type: str
    name: str
    parent: str
    provider: str

    def command(self, id_: str) -> str:
        """Return the shell command. `id_`: import id of the object.

        It generates no code, which would show a Secret's data. The parent must be in the state: an update
        records it before the resource, a preview does not.
        """
        options = ["--stack", self.stack, "--parent", f"parent={self.parent}"]
        options += ["--provider", f"provider={self.provider}", "--protect=false", "--generate-code=false"]
        command = shlex.join(["pulumi", "import", *options, self.type, self.name, id_])
        if not self.is_preview:
            return command
        first = shlex.join(["pulumi", "up", "--skip-preview", "--stack", self.stack])
        return f"{command} (if it says `unknown parent`, run `{first}` before, which stops here as well)"


def keep(
    importers: MutableMapping[str, Importer],
    type_: str,
    name: str,
    parent: pulumi.Resource,
    provided: pulumi.Resource,
) -> None:
    """Record a resource by its URN, which is known with its parent's, before the engine runs a hook.

    `provided`: the resource, or a component, whose provider it uses.
    """
    organization, stack = pulumi.get_organization(), pulumi.get_stack()
    stack = stack if organization == _SELF_MANAGED else f"{organization}/{pulumi.get_project()}/{stack}"
    is_preview = pulumi.runtime.is_dry_run()

    def noted(urns: list[str]) -> pulumi.Output[None]:
        own, above = urns
        provider = provided.get_provider(type_)
        if provider is None:
            raise TypeError(f"{own} has no provider of its own")

        def note(by: str) -> None:
            importers[own] = Importer(stack, is_preview, type_, name, above, by)

        return provider.urn.apply(note)

    pulumi.Output.all(pulumi.create_urn(name, type_, parent), parent.urn).apply(noted)
