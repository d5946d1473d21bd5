"""Pure functions that derive what an update declared, claimed and skipped from the state and its steps."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import masked

from components.account_pool.forecast.skipping import SKIPPED
from components.errors import how_many
from operations.sandbox.deployment import DONE, TO_DO, Outcome, Step
from operations.sandbox.report import Claimed, Declared, Skipped
from operations.stack.state import Resource, short_type

UNCHANGED: Final = "unchanged"
"""Action of a resource without a step."""
_OWN: Final = "credfleet:index:"
_CLAIM_NOUN: Final = ":AccountClaim"
FLEET: Final = "credfleet:index:Fleet"


def list_declared(resources: Sequence[Resource], steps: Iterable[Step]) -> tuple[Declared, ...]:
    """Return the resources as a tree, without the stack itself and default providers."""
    actions = _actions(steps)
    shown = [
        each
        for each in resources
        if not (each.delete or each.type == urns.ROOT_STACK_TYPE or urns.is_default_provider(each.urn))
    ]
    known = {resource.urn for resource in shown}
    children: dict[str, list[Resource]] = {}
    for resource in shown:
        children.setdefault(resource.parent if resource.parent in known else "", []).append(resource)

    def below(parent: str, depth: int) -> Iterator[Declared]:
        for resource in children.get(parent, ()):
            action = actions.get(resource.urn, UNCHANGED)
            yield _declared(resource, action, depth, since=resource.created)
            yield from below(resource.urn, depth + 1)

    return tuple(below("", 0))


def pending(foreseen: Iterable[Step], done: Iterable[Step]) -> tuple[Declared, ...]:
    """Return the changes of a preview that no update has made since."""
    finished = {step.urn for step in done if step.done and not step.failed}
    left = {step.urn: step for step in foreseen if step.op in TO_DO}
    return tuple(
        _declared(step, TO_DO[step.op])
        for urn, step in left.items()
        if urn not in finished and not urns.is_default_provider(urn) and step.type != urns.ROOT_STACK_TYPE
    )


def _declared(what: Resource | Step, action: str, depth: int = 0, since: str = "") -> Declared:
    name, chain = urns.parse(what.urn).name, urns.parse(what.urn).qualified_type.split("$")
    part = short_type(chain[min(1, len(chain) - 1)]).removeprefix(_OWN)
    return Declared(what.urn, what.type, name, what.id, action, depth, part, namespace_of(what), since)


def namespace_of(resource: Resource | Step) -> str:
    """Return the namespace of a resource's object, empty if it has none."""
    metadata = masked(resource.inputs.get("metadata"))
    if isinstance(metadata, dict) and isinstance(metadata.get("namespace"), str):
        return str(metadata["namespace"])
    if isinstance(metadata, dict) and resource.type.endswith(":Namespace"):
        return str(metadata.get("name") or "")
    stated = resource.inputs.get("namespace")
    return stated if isinstance(stated, str) else resource.id.partition("/")[0] if "/" in resource.id else ""


def list_claimed(
    resources: Iterable[Resource],
    steps: Iterable[Step],
    since: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Claimed, ...]:
    """Return the accounts that the stack's claims hold. since: account → time of its claim."""
    actions = _actions(steps)
    return tuple(
        _claimed(resource, actions.get(resource.urn, UNCHANGED), since)
        for resource in resources
        if _is_claim(resource) and not _is_skipped(resource)
    )


def held_back(resources: Iterable[Resource]) -> tuple[Skipped, ...]:
    """Return what a fleet reports as not declared yet."""
    told = (masked(each.outputs.get("skipped")) for each in resources if each.type == FLEET)
    skipped = {what: str(why) for each in told if isinstance(each, dict) for what, why in each.items()}
    return tuple(Skipped(what, why) for what, why in sorted(skipped.items()))


def skips_claims(resources: Sequence[Resource]) -> bool:
    """Return whether a claim of the stack has no account, or is not declared yet."""
    is_kept_away = any(each.what.startswith("claim ") for each in held_back(resources))
    return is_kept_away or any(_is_claim(resource) and _is_skipped(resource) for resource in resources)


def _is_claim(resource: Resource) -> bool:
    return resource.type.endswith(_CLAIM_NOUN) and resource.custom and not resource.delete


def _is_skipped(claim: Resource) -> bool:
    return claim.outputs.get("phase") == SKIPPED


def headline(resources: Sequence[Declared], deleted: int, claims: int, skipped: int, outcome: Outcome) -> str:
    """Return one sentence about the outcome and the current resources."""
    actions = Counter(each.action for each in resources)
    words = ("created", "imported", "updated", "replaced")
    done = [f"{actions[word]} {word}" for word in words if actions[word]]
    done += [f"{deleted} deleted"] if deleted else []
    match outcome:
        case "succeeded":
            left = f"{how_many(len(resources), 'resource')} declared, {how_many(claims, 'account')} claimed"
            return f"{', '.join(done) or 'Nothing changed'}: {left}, {skipped} skipped"
        case "failed":
            return f"Failed: {', '.join(done) or 'nothing changed'} before it stopped"
        case "cancelled":
            return f"Stopped by you: {', '.join(done) or 'nothing changed'}; the next run goes on from there"


def _actions(steps: Iterable[Step]) -> dict[str, str]:
    actions: dict[str, str] = {}
    for step in steps:
        if step.failed:
            actions[step.urn] = "failed"
        elif step.done and step.op in DONE:
            actions[step.urn] = DONE[step.op]
    return actions


def _claimed(resource: Resource, action: str, since: Mapping[str, str]) -> Claimed:
    outputs = {key: masked(value) for key, value in resource.outputs.items()}
    names, reused = ("tenant", "slot", "type", "secretName", "namespace", "phase"), outputs.get("reused")
    texts = [str(outputs.get(each) or "") for each in names]
    is_new = action == DONE["create"] and reused is False
    return Claimed(*texts, reused=reused is True, is_new=is_new, since=since.get(texts[3], ""))
