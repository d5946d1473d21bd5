"""The command import: an object that exists becomes a resource (sandbox/docs/engine-facts.md, import)."""

from dataclasses import replace

from pulumi_sandbox.engine.deploy.apply import as_it_exists
from pulumi_sandbox.engine.deploy.control import Control
from pulumi_sandbox.engine.deploy.options import Import
from pulumi_sandbox.engine.deploy.register import Registrar
from pulumi_sandbox.engine.model.goal import Goal, package_of
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.provider import Provider, ProviderError
from pulumi_sandbox.engine.state.journal import Journal
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns


async def take_up(wanted: Import, control: Control, journal: Journal, registrar: Registrar) -> None:
    """Record an object as a resource that no program registers as yet; all others stay as they are.

    What is recorded under that name and id already stays so, too.
    Raises Stopped when it cannot be.
    """
    identity = registrar.identity
    root = identity.root
    urn = wanted.urn(identity.stack, identity.project)
    for each in journal.old:
        if not each.delete:
            control.tell("same", each, each)
    old = journal.live(urn)
    if old and (old.import_id or old.id) == wanted.id:
        return
    if old:
        raise control.fail(f"resource '{urn}' already exists", urn)
    if wanted.parent_urn not in ("", root) and journal.live(wanted.parent_urn) is None:
        raise control.fail(f"unknown parent '{wanted.parent_urn}' for resource '{urn}'", urn)
    if wanted.type.startswith(urns.PROVIDER_TYPE_PREFIX):
        raise control.fail("provider resources may not be imported", urn)
    if journal.live(root) is None:
        await registrar.register(Goal(urns.ROOT_STACK_TYPE, urns.parse(root).name, False, {}))
    try:
        goal = Goal(
            wanted.type,
            wanted.name,
            True,
            {},
            parent=wanted.parent_urn or root,
            provider=await _reference(wanted, journal, registrar),
            protect=wanted.protect,
            import_id=wanted.id,
        )
        new = goal.record(urn, "", None)
        provider = await registrar.provider(goal.provider)

        async def read() -> Resource:
            record = replace(await as_it_exists(new, provider, control), import_id="")
            control.learn(record.inputs)
            control.learn(record.outputs)
            await _doubt(record, provider, control)
            journal.add(record)
            await journal.settled()
            return record

        await control.step("import", None, new, read)
    except (ProviderError, SandboxError) as error:
        raise control.fail(str(error), urn) from error


async def _reference(wanted: Import, journal: Journal, registrar: Registrar) -> str:
    """Return the reference of the provider to ask: as the state has it, whatever is configured now."""
    package, identity = package_of(wanted.type), registrar.identity
    type_ = f"{urns.PROVIDER_TYPE_PREFIX}{package}"
    default = urns.make(identity.stack, identity.project, "", type_, "default")
    known = journal.live(wanted.provider_urn or default)
    if known is not None and known.is_provider:
        return f"{known.urn}::{known.id}"
    if wanted.provider:
        raise SandboxError(
            code="provider-unknown",
            place=wanted.provider_urn,
            cause="the state of the stack has no such provider",
            mend="let the program declare it and update first, or leave it out for the default one",
        )
    return await registrar.provider_reference(package, "", "")


async def _doubt(record: Resource, provider: Provider, control: Control) -> None:
    """Warn of what its own provider objects to in an object as it stands; it is recorded all the same."""
    checked = await provider.check(record.urn, record.inputs, record.inputs, preview=control.preview)
    if checked.failures:
        control.warn(
            record.urn,
            "one or more imported inputs failed to validate: it is recorded all the same, and the code has to"
            " be edited once it is in the program",
        )
    for failure in checked.failures:
        about = f"its property {failure.property} is invalid: " if failure.property else ""
        control.warn(record.urn, f"{about}{failure.reason}")
