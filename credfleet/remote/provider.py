"""Constructs the components for programs in other languages.

Nothing but the plugin's own process imports this: the SDK's server of providers brings a copy of
`google.rpc.Status`, beside which Google's clients cannot be imported.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

import pulumi
from pulumi.provider import ConstructResult, Provider
from pulumi.provider import main as serve
from pulumi.runtime import register_resource_module
from pulumi.runtime.rpc import ResourceModule

from components.errors import ExplainedError
from credfleet.remote.remote_components import PACKAGE, SCHEMA, lacking, package_shapes, remote_components


class _Made(ResourceModule):
    """The components of this run by their URNs: what a program refers to is the very one."""

    def __init__(self) -> None:
        self.by_urn: dict[str, pulumi.ComponentResource] = {}

    def version(self) -> None:
        """Return none: whatever version a reference names, there is one of each."""

    def construct(self, name: str, typ: str, urn: str) -> Any:
        """Return the component; a program can refer to those only that it had constructed here."""
        del name, typ
        return self.by_urn.get(urn) or urn


class Components(Provider):
    """Answers `Construct` with the components as they are."""

    def __init__(self) -> None:
        super().__init__(version(PACKAGE), SCHEMA.read_text(encoding="utf-8"))
        self._components = remote_components(package_shapes())
        self._made = _Made()
        register_resource_module(PACKAGE, "index", self._made)

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Construct a component; see pulumi.provider.Provider.

        Raises RunError, so that there is no traceback, for what a person can mend.
        """
        component = self._components.get(resource_type)
        for problem in lacking(resource_type):
            raise pulumi.RunError(f"{problem.place}: {problem.cause}\n→ {problem.mend}")
        if component is None:
            raise pulumi.RunError(f"{resource_type}: no component\n→ one of {', '.join(self._components)}")
        try:
            made = component.made(name, inputs, options or pulumi.ResourceOptions())
        except ExplainedError as error:
            raise pulumi.RunError(str(error)) from None

        def remembered(urn: str) -> str:
            self._made.by_urn[urn] = made
            return urn

        return ConstructResult(made.urn.apply(remembered), component.told(made))


def main() -> None:
    """Serve them to the engine whose address is the first argument."""
    serve(Components(), sys.argv[1:])
