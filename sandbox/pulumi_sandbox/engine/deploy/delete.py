"""The end of a deployment.

Whatever the program no longer registers goes, dependents first.
See sandbox/docs/engine-facts.md, steps.
"""

import asyncio

from pulumi_sandbox.engine.deploy import order
from pulumi_sandbox.engine.deploy.apply import Applier
from pulumi_sandbox.engine.deploy.callbacks import CallbackError
from pulumi_sandbox.engine.deploy.control import Control, Unfulfilled
from pulumi_sandbox.engine.deploy.register import Registrar
from pulumi_sandbox.engine.model.events import Op
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.engine.plugins.provider import ProviderError
from pulumi_sandbox.engine.state.journal import Journal
from pulumi_sandbox.errors import SandboxError


async def delete_the_rest(control: Control, journal: Journal, registrar: Registrar, applier: Applier) -> None:
    """Delete all that is left of the old state, ring by ring, but for what stays as it was.

    A protected resource is an error that leaves the other deletions alone, but spares what it depends on; so
    is a deletion that failed, where the deployment goes on.
    With targets, what depends on one of them would go as well: that is an error, unless dependents are meant.
    Raises Stopped when a deletion failed or the user stopped the deployment.
    """
    targets, resources = registrar.targets, registrar.resources
    stays = order.with_all_below(resources.left_as_they_were, journal.old)
    if not targets.are_all:
        stays |= targets.spared()
    condemned = [each for each in journal.old if each.urn not in stays]
    unasked = [each.urn for each in condemned if not targets.asks_for(each.urn)]
    for urn in unasked:
        control.flaw(
            "it will be destroyed but was not specified in --target list\n"
            "→ include it in the --target list, or pass --target-dependents",
            urn,
        )
    if unasked and not control.preview:
        raise control.stop()
    for each in () if targets.are_all else journal.old:
        if each.urn in stays - resources.planned and not each.delete:
            control.tell("same", each, each)
    applier.announce(condemned)
    spared: set[str] = set()
    for ring in order.deletion_rings(condemned):
        control.check()
        for each in ring:
            if each.urn in spared or (each.protect and not each.delete):
                spared |= order.depends_on(each)
        deleting = [each for each in ring if each.urn not in spared]
        deletions = [_delete(each, control, journal, registrar, applier) for each in deleting]
        results = await asyncio.gather(*deletions, return_exceptions=True)
        for each, result in zip(deleting, results, strict=True):
            if isinstance(result, Unfulfilled):
                spared |= order.depends_on(each)
            elif isinstance(result, BaseException):
                raise result


async def _delete(
    old: Resource, control: Control, journal: Journal, registrar: Registrar, applier: Applier
) -> None:
    if old.pending_replacement:
        applier.gone(old, lambda: journal.drop(old))
        control.tell("remove-pending-replace", old, None)
        return

    try:
        provider = await registrar.provider_of(old)
        if old.protect and not old.delete:
            control.refuse(
                _op(old),
                old,
                "it is protected and cannot be deleted\n"
                "→ remove `protect` from it in the program, run up, then delete it",
            )
            return

        async def delete() -> None:
            await applier.delete(old, provider, lambda: journal.drop(old))

        await control.step(_op(old), old, None, delete)
    except (CallbackError, ProviderError, SandboxError) as error:
        if control.goes_on and not control.stopping:
            control.flaw(str(error), old.urn)
            raise Unfulfilled(old.urn) from error
        if isinstance(error, CallbackError):
            raise control.fail_unless_stopping(str(error), old.urn) from error
        raise control.fail(str(error), old.urn) from error


def _op(old: Resource) -> Op:
    if old.external:
        return "discard-replaced" if old.delete else "discard"
    return "delete-replaced" if old.delete else "delete"
