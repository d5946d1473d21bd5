"""How a deployment is put into words: the same on a terminal and in a log. Pure, without colours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pulumi_sandbox.engine.model.events import (
    Change,
    Diagnostic,
    Op,
    Operation,
    PolicyViolation,
    Severity,
    Step,
    Summary,
)
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.values import Json

_LONGEST_VALUE: Final = 60
_MOST_CHANGES: Final = 8

SHOWN_SEVERITIES: Final[frozenset[Severity]] = frozenset({"info", "info#err", "warning"})
"""Of messages shown where they belong in time; errors come last, debugging is not shown."""


class Words(NamedTuple):
    """How an operation is called before, during and after, and its mark."""

    symbol: str
    plan: str
    doing: str
    done: str


WORDS: Final[Mapping[Op, Words]] = {
    "same": Words(" ", "keep", "keeping", "unchanged"),
    "create": Words("+", "create", "creating", "created"),
    "update": Words("~", "update", "updating", "updated"),
    "delete": Words("-", "delete", "deleting", "deleted"),
    "replace": Words("±", "replace", "replacing", "replaced"),
    "create-replacement": Words("±", "replace", "replacing", "replaced"),
    "delete-replaced": Words("±", "replace", "deleting the old one", "replaced"),
    "read": Words(">", "read", "reading", "read"),
    "read-replacement": Words("±", "replace", "reading", "replaced"),
    "discard": Words("<", "forget", "forgetting", "forgotten"),
    "discard-replaced": Words("±", "replace", "forgetting the old one", "replaced"),
    "refresh": Words("~", "refresh", "refreshing", "refreshed"),
    "import": Words("=", "import", "importing", "imported"),
    "import-replacement": Words("±", "replace", "importing", "replaced"),
    "remove-pending-replace": Words("±", "replace", "replacing", "replaced"),
}

_COUNTED: Final = (
    ("create", "to create", "created"),
    ("update", "to update", "updated"),
    ("replace", "to replace", "replaced"),
    ("import", "to import", "imported"),
    ("delete", "to delete", "deleted"),
    ("read", "to read", "read"),
    ("discard", "to forget", "forgotten"),
    ("same", "unchanged", "unchanged"),
)
"""Operations a person counts; a replacement is one, however many steps it takes."""

_TITLES: Final[Mapping[Operation, str]] = {
    "preview": "Previewing",
    "update": "Updating",
    "refresh": "Refreshing",
    "destroy": "Destroying",
    "import": "Importing",
}


def title(operation: Operation, project: str, stack: str) -> str:
    """Return what begins, in words."""
    return f"{_TITLES[operation]} {project}/{stack}"


def short_type(type_: str) -> str:
    """Return a type token without what repeats itself (`gcp:secretmanager/secret:Secret`) or is plumbing."""
    package, _, rest = type_.partition(":")
    module, _, name = rest.rpartition(":")
    if package == "pulumi-python":
        return f"{module.removeprefix('dynamic/')}:{name}"
    head, _, tail = module.rpartition("/")
    return f"{package}:{head}:{name}" if head and tail.lower() == name.lower() else type_


def seconds(duration: float) -> str:
    """Write a duration: `0.4s`, `2m05s`."""
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes}m{rest:02}s" if duration >= 60 else f"{duration:.1f}s"


def changes(step: Step) -> Iterator[str]:
    """Yield a line for each of the first few properties that differ; what forces a replacement is marked."""
    shown = [change for change in step.changes if not change.path.startswith("__")]
    for change in shown[:_MOST_CHANGES]:
        forces = change.kind.endswith("-replace") or change.path in step.keys
        yield _change(change) + (" (forces replacement)" if forces else "")
    if len(shown) > _MOST_CHANGES:
        yield f"… {len(shown) - _MOST_CHANGES} more"


def _change(change: Change) -> str:
    match change.kind.removesuffix("-replace"):
        case "add":
            return f"+ {change.path}: {_value(change.new)}"
        case "delete":
            return f"- {change.path}: {_value(change.old)}"
        case _:
            return f"~ {change.path}: {_value(change.old)} → {_value(change.new)}"


def _value(value: Json) -> str:
    """Write a value in one short line; what stands for a secret or an unknown is not quoted."""
    if isinstance(value, str) and re.fullmatch(r"\[(secret|unknown|hidden)\]", value):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def attempt(op: Op | None) -> str:
    """Return what comes before the name of a resource that a step failed for; nothing without a step."""
    return f"{WORDS[op].plan} of " if op else ""


def message(found: Diagnostic) -> str:
    """Return what the program, a provider or the engine had to say."""
    return f"{found.severity.removesuffix('#err')}{_about(found.urn)}: {found.message.rstrip()}"


def violation(found: PolicyViolation) -> str:
    """Return what a policy found, in words."""
    level = "remediated" if found.level == "remediate" else found.level
    return f"{level}: {found.policy}{_about(found.urn)}: {found.message.strip()}"


def _about(urn: str) -> str:
    return f" on {urns.parse(urn).name}" if urn else ""


def outputs(values: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Return the lines of a stack's outputs: name and value; texts are not quoted."""
    return [(name, value if isinstance(value, str) else _value(value)) for name, value in values.items()]


def summary(found: Summary, counts: Mapping[str, int]) -> str:
    """Return how it ended: `Resources: 12 created, 3 unchanged · 4.1s`."""
    told: Sequence[str] = [
        f"{counts[op]} {planned if found.operation == 'preview' else done}"
        for op, planned, done in _COUNTED
        if counts.get(op)
    ]
    ended = {"succeeded": "", "failed": "Failed. ", "cancelled": "Cancelled. "}[found.outcome]
    return f"{ended}Resources: {', '.join(told) or 'none'} · {seconds(found.seconds)}"
