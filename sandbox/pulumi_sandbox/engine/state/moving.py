"""Resources that go to the state of another stack of their project: no provider is asked.

Nothing outside changes: what goes keeps its id, inputs and outputs; only the stack in its name is another.
The files are replaced all or none (sandbox/docs/engine-facts.md, States that change together).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pulumi_sandbox import files
from pulumi_sandbox.documents import read_json
from pulumi_sandbox.engine.model.resource import Resource, Snapshot
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns

_MEND: Final = "move the one with the other, or leave both"


def regrouped(
    states: Mapping[str, Snapshot],
    place: Callable[[Resource], str | None],
    is_shared: Callable[[Resource], bool] = lambda _: False,
) -> dict[str, Snapshot]:
    """Return the states of stacks, each resource in the one where it belongs.

    states: by stack; one that is to be made is empty. place: the stack of a resource and of all below it;
    None: that of its parent. What moved resources refer to and what stays is copied, if it stands for nothing
    outside: components, providers, and what is_shared says.
    Raises SandboxError `state-entangled`, where one of two has to know the other, or an update is unfinished.
    """
    homes: dict[str, str] = {}
    for stack, snapshot in states.items():
        if snapshot.pending or any(each.delete for each in snapshot.resources):
            cause = "an update of it was not finished, so what it has is not known"
            raise _entangled(f"stack {stack}", cause, "run refresh, then up")
        for each in snapshot.resources:
            homes[each.urn] = place(each) or homes.get(each.parent, stack)
    found = {
        stack: {each.urn: each for each in snapshot.resources if homes[each.urn] == stack}
        for stack, snapshot in states.items()
    }
    for stack, snapshot in states.items():
        known = {each.urn: each for each in snapshot.resources}

        def bring(resource: Resource, to: str, known: Mapping[str, Resource] = known) -> None:
            for urn in (*resource.references, resource.provider_urn):
                if urn and _within(urn, to) not in found[to]:
                    referred = known[urn]
                    if referred.custom and not (referred.is_provider or is_shared(referred)):
                        raise _entangled(
                            resource.urn, f"it goes to stack {to} and refers to {urn}, which does not"
                        )
                    bring(referred, to)
            moved = _moved(resource, to)
            there = found[to].get(moved.urn)
            if there is not None and there.id == moved.id:
                return
            if there is not None:
                raise _entangled(resource.urn, f"stack {to} has one of that name already")
            provider = found[to].get(moved.provider_urn)
            reference = f"{provider.urn}::{provider.id}" if provider else ""
            found[to][moved.urn] = replace(moved, provider=reference)

        for each in snapshot.resources:
            if homes[each.urn] != stack:
                bring(each, homes[each.urn])
            elif gone := [urn for urn in each.references if homes[urn] != stack]:
                raise _entangled(
                    each.urn, f"it stays in stack {stack} and refers to {gone[0]}, which does not"
                )
    return {stack: Snapshot(tuple(resources.values())) for stack, resources in found.items()}


def _entangled(place: str, cause: str, mend: str = _MEND) -> SandboxError:
    return SandboxError(code="state-entangled", place=place, cause=cause, mend=mend)


def _moved(resource: Resource, to: str) -> Resource:
    def named(references: Iterable[str]) -> tuple[str, ...]:
        return tuple(_within(each, to) for each in references)

    return replace(
        resource,
        urn=_within(resource.urn, to),
        parent=_within(resource.parent, to),
        provider=_within(resource.provider, to),
        deleted_with=_within(resource.deleted_with, to),
        dependencies=named(resource.dependencies),
        replace_with=named(resource.replace_with),
        aliases=named(resource.aliases),
        property_dependencies={key: named(each) for key, each in resource.property_dependencies.items()},
    )


def _within(urn: str, stack: str) -> str:
    """Return the name of a resource in another stack; that of the stack itself ends in the stack's."""
    if not urn:
        return urn
    named = urns.parse(urn)
    own = f"{named.project}-{stack}" if named.qualified_type == urns.ROOT_STACK_TYPE else named.name
    return str(named._replace(stack=stack, name=own))


def journal_of(backend: Path, project: str) -> Path:
    """Return the file that says which files of a project's states are being replaced together."""
    return backend / ".pulumi" / "moves" / f"{project}.json"


def replace_together(journal: Path, texts: Mapping[Path, str]) -> None:
    """Replace files, all or none: from the moment that the journal is there `finish` can write the rest.

    Raises SandboxError as `files.replace` does, and `move-unfinished` while another journal is there.
    """
    refuse_unfinished(journal, journal)
    changes = {str(path): {"before": _digest(path), "text": text} for path, text in texts.items()}
    files.replace(journal, json.dumps({str(journal): None, **changes}))
    finish(journal)


def finish(journal: Path) -> bool:
    """Write what a killed `replace_together` left; return whether there was any. The locks are the caller's.

    Raises SandboxError `state-invalid` where anybody else has changed one of the files since, or
    `state-unreadable`.
    """
    changes = _unfinished(journal)
    if not changes:
        return False
    del changes[str(journal)]
    for name, change in changes.items():
        if _digest(Path(name)) not in (change["before"], _digest_of(change["text"])):
            raise SandboxError(
                code="state-invalid",
                place=name,
                cause="another tool has changed it since a move of resources between states was killed",
                mend=f"restore it as it was; or delete {journal}, and move again what is not written",
            )
    for name, change in changes.items():
        files.replace(Path(name), change["text"])
        Path(f"{name}.attrs").unlink(missing_ok=True)
    journal.unlink()
    return True


def refuse_unfinished(journal: Path, file: Path) -> None:
    """Raise SandboxError `move-unfinished` for a file that a killed `replace_together` has to write.

    And `state-unreadable`, where nobody can tell.
    """
    if str(file) in _unfinished(journal):
        raise SandboxError(
            code="move-unfinished",
            place=str(file),
            cause="resources were being moved between the states of stacks, and that was killed",
            mend="run the command again that moved them: it ends what it began",
        )


def _unfinished(journal: Path) -> dict[str, Any]:
    """Return the files that are being replaced, none without a journal.

    Raises SandboxError `state-unreadable` for what is no journal of this place.
    """
    try:
        changes = read_json(journal.read_bytes())
        if changes.pop(str(journal)) is None and all(map(_is_change, changes.values())):
            return {str(journal): None, **changes}
        cause = "it is no journal"
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        cause = type(error).__name__
    raise SandboxError(
        code="state-unreadable",
        place=str(journal),
        cause=f"it says which states are being replaced together, and cannot be read here ({cause})",
        mend="restore it; or see to it that the states of the project are whole, and delete it",
    )


def _is_change(change: Any) -> bool:
    return isinstance(change["text"], str) and isinstance(change["before"], str | None)


def _digest(path: Path) -> str | None:
    return _digest_of(path.read_text(encoding="utf-8")) if path.exists() else None


def _digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
