"""The package `pulumi`, which the engine serves itself: what is known of this stack, and of others."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from pulumi_sandbox.engine.model.diff import NO_DIFFERENCE, Diff
from pulumi_sandbox.engine.model.goal import unsupported
from pulumi_sandbox.engine.model.resource import Resource, Snapshot
from pulumi_sandbox.engine.plugins.provider import Checked, CheckFailure, Live, ProviderError
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.urns import ROOT_STACK_TYPE, parse
from pulumi_sandbox.protocol.values import UNKNOWN, Properties, Value, contains_secret, equal

_REFERENCE: Final = "pulumi:pulumi:StackReference"
_STASH: Final = "pulumi:index:Stash"


class Builtin:
    """Serves `StackReference` (read only), `Stash`, and the functions of both kinds. See `Provider`.

    Seen of the genuine engine: sandbox/docs/engine-facts.md, the built-in provider.
    """

    def __init__(
        self, find: Callable[[str], Resource | None], state_of: Callable[[str], Snapshot | None]
    ) -> None:
        """Take what finds a resource of this run by its URN, and the state of a stack by its name."""
        self._find = find
        self._state_of = state_of

    async def invoke(self, token: str, args: Properties, *, preview: bool) -> Checked:
        """Return what a resource of this run is, or what another stack has."""
        match token:
            case "pulumi:pulumi:getResource":
                return Checked(self._resource(args.get("urn"), preview=preview))
            case "pulumi:pulumi:readStackOutputs":
                return Checked(self._stack(args.get("name")))
            case "pulumi:pulumi:readStackResourceOutputs":
                name = args.get("stackName")
                found = (each for each in self._state(name).resources if not each.delete)
                all_: Properties = {each.urn: {"type": each.type, "outputs": each.outputs} for each in found}
                return Checked({"name": name, "outputs": all_})
            case _:
                raise unsupported(f"the function {token}", "the builtin package pulumi")

    async def check(self, urn: str, olds: Properties | None, news: Properties, *, preview: bool) -> Checked:
        """Hold a stash to its one input; a reference to a stack is read, not made."""
        del olds, preview
        if parse(urn).type != _STASH:
            raise unsupported(f"the resource type {parse(urn).type}", urn)
        failures = [CheckFailure(key, f'unknown property "{key}"') for key in news if key != "input"]
        if "input" not in news:
            failures.append(CheckFailure("input", 'missing required property "input"'))
        return Checked(news, tuple(failures))

    async def diff(self, old: Resource, new: Resource, *, preview: bool) -> Diff:
        """Compare what is stashed."""
        del preview
        if equal(old.inputs.get("input"), new.inputs.get("input")):
            return NO_DIFFERENCE
        return Diff("some", changed=("input",))

    async def create(self, new: Resource, *, preview: bool) -> Live:
        """Stash the input."""
        input_ = new.inputs["input"]
        return Live("" if preview else str(uuid.uuid4()), {"input": input_, "output": input_})

    async def update(self, old: Resource, new: Resource, *, preview: bool) -> Live:
        """Take the new input; the output is what was stashed first."""
        del preview
        return Live(old.id, {**old.outputs, "input": new.inputs["input"]})

    async def read(self, known: Resource) -> Live:
        """Look up the outputs of another stack; a stash is as it is known."""
        if known.type == _STASH:
            return Live(known.id, known.outputs, known.inputs)
        if known.type != _REFERENCE:
            raise unsupported(f"the resource type {known.type}", known.urn)
        return Live(known.id, self._stack(known.outputs.get("name")), known.inputs)

    async def delete(self, old: Resource) -> None:
        """Forget the resource: nothing stands behind it outside the state."""

    def _resource(self, urn: Value, *, preview: bool) -> Properties:
        resource = self._find(str(urn))
        if resource is None:
            raise ProviderError(f"unknown resource {urn}")
        id_ = resource.id or (UNKNOWN if preview and resource.custom else "")
        return {"urn": resource.urn, "id": id_, "state": resource.outputs}

    def _stack(self, name: Value) -> Properties:
        resources = self._state(name).resources
        root = next((each for each in resources if each.type == ROOT_STACK_TYPE and not each.parent), None)
        outputs = root.outputs if root else {}
        secret: list[Value] = [key for key, value in sorted(outputs.items()) if contains_secret(value)]
        return {"name": name, "outputs": outputs, "secretOutputNames": secret}

    def _state(self, name: Value) -> Snapshot:
        try:
            found = self._state_of(str(name))
        except SandboxError as error:
            raise ProviderError(f'stack "{name}": {error}') from error
        if found is None:
            raise ProviderError(f'unknown stack "{name}"')
        return found
