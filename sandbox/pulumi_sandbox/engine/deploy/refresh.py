"""Refresh: the state learns what became of its resources (sandbox/docs/engine-facts.md, steps)."""

import asyncio
from dataclasses import replace
from typing import Final

from pulumi_sandbox.engine.deploy import decide
from pulumi_sandbox.engine.deploy.control import Control
from pulumi_sandbox.engine.deploy.register import Registrar
from pulumi_sandbox.engine.model.diff import NO_DIFFERENCE, Diff, PropertyDiff
from pulumi_sandbox.engine.model.events import Op
from pulumi_sandbox.engine.model.resource import Resource, now, with_secret_outputs
from pulumi_sandbox.engine.plugins.provider import Live, Provider, ProviderError, read_live
from pulumi_sandbox.engine.state.journal import Journal
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol.values import equal

_INVERSE: Final = {"add": "delete", "delete": "add", "update": "update"}


async def refresh(control: Control, journal: Journal, registrar: Registrar, *, forgets: bool) -> None:
    """Read all resources and put what was found in place of the state.

    forgets: creates that were begun are forgotten.

    Raises Stopped when a resource could not be read; the state is left as it was.
    """
    meant = [registrar.targets.refreshes(each) for each in journal.old]
    read = {each.urn for each, is_meant in zip(journal.old, meant, strict=True) if is_meant}
    found = await asyncio.gather(
        *(
            _refreshed(old, control, registrar) if is_meant else _as_it_is(old)
            for old, is_meant in zip(journal.old, meant, strict=True)
        ),
        return_exceptions=True,
    )
    remaining: list[Resource] = []
    for each in found:
        if isinstance(each, BaseException):
            raise each
        if each is not None:
            remaining.append(each)
    journal.rebase(without_dangling_references(remaining), known=read, forgets=forgets)
    await journal.settled()


def without_dangling_references(resources: list[Resource]) -> list[Resource]:
    """Return resources none of which refers to one that is gone; a child of one has no parent."""
    known: set[str] = set()
    repaired: list[Resource] = []
    for each in resources:
        known.add(each.urn)
        if known.issuperset(each.references):
            repaired.append(each)
            continue

        def kept(urns: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(urn for urn in urns if urn in known)

        repaired.append(
            replace(
                each,
                parent=each.parent if each.parent in known else "",
                dependencies=kept(each.dependencies),
                property_dependencies={key: kept(all_) for key, all_ in each.property_dependencies.items()},
                deleted_with=each.deleted_with if each.deleted_with in known else "",
                replace_with=kept(each.replace_with),
            )
        )
    return repaired


async def _as_it_is(old: Resource) -> Resource:
    return old


async def _refreshed(old: Resource, control: Control, registrar: Registrar) -> Resource | None:
    """Return a resource as it is now, None when it is gone; told as what became of it, as the CLI does."""
    if not old.custom or old.pending_replacement or old.is_provider:
        control.tell("same", old, old)
        return old
    diff = NO_DIFFERENCE

    async def read() -> Resource | None:
        nonlocal diff
        provider = await registrar.provider(old.provider)
        live, reasons = await read_live(old, provider)
        if not live.id:
            return None
        reasons = tuple(map(control.redacted, reasons))
        new = _learned(old, live, reasons)
        if reasons:
            listed = "\n* ".join(("it is in an unhealthy state:", *reasons))
            control.say("warning", listed, old.urn)
        diff = await _drift(old, new, provider)
        return new

    try:
        new = await control.step("refresh", old, old, read, announce=False)
    except (ProviderError, SandboxError) as error:
        raise control.fail(str(error), old.urn) from error
    became: Op = "delete" if new is None else "same" if diff.changes == "none" else "update"
    control.tell(became, old, new, Diff(diff.changes, detailed=_inverted(diff)))
    return new


def _learned(old: Resource, live: Live, reasons: tuple[str, ...]) -> Resource:
    """Return the record with what was read; its time changes only if anything else does."""
    new = with_secret_outputs(
        replace(
            old,
            id=live.id,
            inputs=old.inputs if live.inputs is None else live.inputs,
            outputs=live.outputs,
            init_errors=reasons,
        )
    )
    if equal(old.inputs, new.inputs) and equal(old.outputs, new.outputs) and new.id == old.id:
        return replace(old, init_errors=reasons) if old.init_errors != reasons else old
    return replace(new, modified=now())


async def _drift(old: Resource, new: Resource, provider: Provider) -> Diff:
    """Ask what an update would do about what was found; for what is only read, compare outputs."""
    if old.external:
        return NO_DIFFERENCE if equal(old.outputs, new.outputs) else Diff("some")
    answer = await provider.diff(new, old, preview=False)
    return decide.settle(answer, new.inputs, old.inputs, old.ignore_changes)


def _inverted(diff: Diff) -> dict[str, PropertyDiff] | None:
    """Turn the diff of the update that would follow into one of what happened outside."""
    if diff.detailed is None:
        return None
    inverted: dict[str, PropertyDiff] = {}
    for path, each in diff.detailed.items():
        kind, dash, rest = each.kind.partition("-")
        inverted[path] = replace(each, kind=f"{_INVERSE[kind]}{dash}{rest}")
    return inverted
