"""What a deployment tells while it runs, as plain facts that hold no secret.

Values are masked and texts redacted when an event is built; nothing downstream has to take care.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, Protocol, TypeAlias, cast

from pulumi_sandbox.engine.model.diff import PropertyDiff
from pulumi_sandbox.engine.model.resource import Resource
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.differences import differences
from pulumi_sandbox.protocol.paths import Path, covers, get, parse, render
from pulumi_sandbox.protocol.values import MASK, Json, Properties, Value, masked

Operation: TypeAlias = Literal["preview", "update", "refresh", "destroy", "import"]
Op: TypeAlias = Literal[
    "same",
    "create",
    "update",
    "delete",
    "replace",
    "create-replacement",
    "delete-replaced",
    "read",
    "read-replacement",
    "discard",
    "discard-replaced",
    "refresh",
    "import",
    "import-replacement",
    "remove-pending-replace",
]
Severity: TypeAlias = Literal["debug", "info", "info#err", "warning", "error"]
Outcome: TypeAlias = Literal["succeeded", "failed", "cancelled"]

HIDDEN: Final = "[hidden]"
"""Stands for both sides of a difference that the program does not want shown (`hide_diffs`)."""


@dataclass(frozen=True, slots=True)
class Change:
    """One property that differs, with what may be shown of both sides."""

    path: str
    kind: str
    old: Json
    new: Json


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on one resource; `keys` are the properties that force a replacement.

    `old` and `new` are its records, all that is secret in them masked.
    """

    op: Op
    urn: str
    old: Resource | None
    new: Resource | None
    keys: tuple[str, ...] = ()
    detailed_diff: Mapping[str, PropertyDiff] | None = None
    changes: tuple[Change, ...] = ()

    @classmethod
    def of(
        cls,
        op: Op,
        old: Resource | None,
        new: Resource | None,
        *,
        keys: tuple[str, ...] = (),
        detailed_diff: Mapping[str, PropertyDiff] | None = None,
    ) -> Step:
        """Describe a step, from the records before and after it (None: not there).

        Without a provider's own account of the differences, old and new inputs are compared. Of a record that
        stayed the one it was, a single masked copy is made: an update keeps all its steps.
        """
        resource = new or old
        if resource is None:
            raise ValueError(op)
        before = old and _shown(old)
        after = before if new is old else new and _shown(new)
        changes: tuple[Change, ...] = ()
        if old and new and before and after:
            found = detailed_diff or {
                render(each.path): PropertyDiff(each.kind, input_diff=True)
                for each in differences(old.inputs, new.inputs)
            }
            hidden = [*map(parse, resource.hide_diff)]
            changes = tuple(
                _change(path, diff, before, after, hidden) for path, diff in sorted(found.items())
            )
        return cls(op, resource.urn, before, after, keys, detailed_diff, changes)

    @property
    def resource(self) -> Resource:
        """The record after the step, or the one before it when nothing is left."""
        record = self.new or self.old
        if record is None:
            raise ValueError(self.op)
        return record

    @property
    def type(self) -> str:
        """The resource's type token."""
        return self.resource.type

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return urns.parse(self.urn).name


@dataclass(frozen=True, slots=True)
class StackStarted:
    """A deployment begins; `config` is shown as it is, secrets masked already."""

    stack: str
    project: str
    operation: Operation
    config: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class PolicyPackLoaded:
    """A policy pack answers and will judge."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class StepPlanned:
    """A preview found that this step would be taken."""

    step: Step


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step is being taken."""

    step: Step


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step ended; `error` (redacted) tells why it failed and is None when it did not."""

    step: Step
    seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something a person should read; `message` is redacted, `urn` empty when it is about no resource."""

    severity: Severity
    message: str
    urn: str = ""


@dataclass(frozen=True, slots=True)
class StdoutLine:
    """A line the program printed (redacted)."""

    line: str


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """A policy objects (`advisory`, `mandatory`) or changed the resource itself (`remediate`)."""

    policy: str
    pack: str
    pack_version: str
    level: Literal["advisory", "mandatory", "remediate"]
    message: str
    urn: str = ""


@dataclass(frozen=True, slots=True)
class Outputs:
    """What the stack exports, masked."""

    values: dict[str, Json]

    @classmethod
    def of(cls, outputs: Properties) -> Outputs:
        """Mask a stack's outputs."""
        return cls(_masked(outputs))


@dataclass(frozen=True, slots=True)
class Summary:
    """How a deployment ended: steps by kind (default providers left out), and seconds taken."""

    operation: Operation
    changes: Mapping[str, int]
    seconds: float
    outcome: Outcome = "succeeded"


Event: TypeAlias = (
    StackStarted
    | PolicyPackLoaded
    | StepPlanned
    | StepStarted
    | StepFinished
    | Diagnostic
    | StdoutLine
    | PolicyViolation
    | Outputs
    | Summary
)


def _shown(resource: Resource) -> Resource:
    """Return a record as it may be told."""
    inputs, outputs = (cast("Properties", _masked(each)) for each in (resource.inputs, resource.outputs))
    return replace(resource, inputs=inputs, outputs=outputs)


def _masked(properties: Properties) -> dict[str, Json]:
    return {key: masked(value) for key, value in properties.items() if key != "__provider"}


def _change(
    path: str, diff: PropertyDiff, before: Resource, after: Resource, hidden: Iterable[Path]
) -> Change:
    """Look both sides up in what is masked already, so that no secret can surface here."""
    elements = parse(path)
    if any(covers(each, elements) for each in hidden):
        return Change(path, diff.kind, HIDDEN, HIDDEN)
    old = _at(before.inputs if diff.input_diff else before.outputs, elements)
    return Change(path, diff.kind, old, _at(after.inputs, elements))


def _at(value: Value, path: Path) -> Json:
    for element in path:
        if value == MASK:
            return MASK
        found, value = get(value, (element,))
        if not found:
            return None
    return cast("Json", value)


class Sink(Protocol):
    """Whoever is told what happens."""

    def handle(self, event: Event) -> None:
        """Take one event; events arrive one at a time."""
        ...
