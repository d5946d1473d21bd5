"""What is known of a deployment so far, gathered from its events, ready to be drawn. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from pulumi_sandbox.engine.model.events import (
    Diagnostic,
    Event,
    Op,
    Outputs,
    PolicyViolation,
    StackStarted,
    Step,
    StepFinished,
    StepPlanned,
    StepStarted,
    Summary,
)
from pulumi_sandbox.protocol import urns

_TOLD_WHOLE: Final = frozenset({"create", "delete", "read", "same"})
"""Operations without changes of properties to tell."""

Status: TypeAlias = Literal["planned", "running", "done", "failed"]

_REST_OF_REPLACEMENT: Final = frozenset({"replace", "delete-replaced"})
"""Steps of a replacement that tell nothing its `create-replacement` does not tell."""


@dataclass(slots=True)
class Node:
    """One resource: the step that tells most about it, how far it is, when it began, how long it took."""

    step: Step
    status: Status
    began: float
    seconds: float = 0

    @property
    def is_unchanged(self) -> bool:
        """Whether there is nothing to show of it."""
        return self.step.op == "same" and self.status != "failed"


class Failed(NamedTuple):
    """A resource that something went wrong with, and at which step, if one was begun or planned."""

    op: Op | None
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the tree, the guides in front of it, and those in front of what is told underneath.

    count: how many resources it stands for, itself and all below it, of which the same is to be said. Without
    a node they are those around it that are unchanged.
    """

    node: Node | None
    guides: str
    below: str
    count: int = 1


class _Whole(NamedTuple):
    """A resource with all below it: how many, whether one is wanted, whether the same happened to all."""

    size: int
    is_wanted: bool
    is_alike: bool


@dataclass(slots=True)
class Picture:
    """The events so far, sorted by what a person wants to know; failures by resource."""

    start: StackStarted | None = None
    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    messages: list[Diagnostic] = field(default_factory=list[Diagnostic])
    violations: list[PolicyViolation] = field(default_factory=list[PolicyViolation])
    failures: dict[str, str] = field(default_factory=dict[str, str])
    outputs: Outputs | None = None
    summary: Summary | None = None

    def add(self, event: Event, now: float) -> None:
        """Take note of an event; `now` is any clock in seconds."""
        match event:
            case StackStarted():
                self.start = event
            case StepPlanned(step):
                self._note(step, "planned", now)
            case StepStarted(step):
                self._note(step, "running", now)
            case StepFinished(step, seconds, None):
                self._note(step, "done", now).seconds += seconds
            case StepFinished(step, seconds, error):
                self._note(step, "failed", now).seconds += seconds
                self.failures[step.urn] = error or ""
            case Diagnostic():
                self.messages.append(event)
            case PolicyViolation():
                self.violations.append(event)
            case Outputs():
                self.outputs = event
            case Summary():
                self.summary = event
            case _:
                pass

    def counts(self) -> dict[str, int]:
        """Return how many resources each operation was for, by the summary; the stack itself is none."""
        counts = dict[str, int](self.summary.changes if self.summary else {})
        for node in self.nodes.values():
            if node.step.type == urns.ROOT_STACK_TYPE and counts.get(node.step.op):
                counts[node.step.op] -= 1
        return counts

    def errors(self) -> Iterator[tuple[Failed | None, str]]:
        """Yield what failed and why, each once: steps first, then what the program or the engine said."""
        for urn, error in self.failures.items():
            yield self._failed(urn), error
        for message in self.messages:
            if message.severity == "error" and message.message != self.failures.get(message.urn):
                yield self._failed(message.urn), message.message

    def _failed(self, urn: str) -> Failed | None:
        """Return the resource an error is about; one refused before it was planned has no step."""
        if not urn:
            return None
        node, about = self.nodes.get(urn), urns.parse(urn)
        return Failed(node.step.op if node else None, about.name, about.type)

    def rows(self, wanted: Callable[[Node], bool], *, brief: bool = False) -> list[Row]:
        """Return the tree, by name, of the wanted resources and all above them; the stack is left out.

        What is left out beside resources that are shown is one row. brief: so is whatever lies below a
        resource and came to the same as it did, but for all there is.
        """
        children: dict[str, list[Node]] = {}
        for node in self.nodes.values():
            if node.step.type != urns.ROOT_STACK_TYPE and is_shown(node.step):
                parent = self.nodes.get(node.step.resource.parent)
                is_top = parent is None or parent.step.type == urns.ROOT_STACK_TYPE
                children.setdefault("" if is_top else node.step.resource.parent, []).append(node)
        wholes: dict[str, _Whole] = {}

        def weigh(node: Node) -> _Whole:
            below = [(child, weigh(child)) for child in children.get(node.step.urn, ())]
            whole = wholes[node.step.urn] = _Whole(
                1 + sum(each.size for _, each in below),
                wanted(node) or any(each.is_wanted for _, each in below),
                all(each.is_alike and _is_alike(child, node) for child, each in below),
            )
            return whole

        def below(parent: str, indent: str) -> Iterator[Row]:
            siblings = sorted(children.get(parent, []), key=lambda node: node.step.name)
            shown = [node for node in siblings if wholes[node.step.urn].is_wanted]
            hidden = sum(
                wholes[node.step.urn].size for node in siblings if not wholes[node.step.urn].is_wanted
            )
            for index, node in enumerate(shown):
                is_last = index == len(shown) - 1 and not hidden
                whole = wholes[node.step.urn]
                is_all = not parent and len(siblings) == 1
                alike = brief and whole.size > 1 and whole.is_alike and not is_all
                deeper = indent + ("   " if is_last else "│  ")
                beneath = deeper + ("│ " if whole.size > 1 and not alike else "  ")
                yield Row(node, indent + ("└─ " if is_last else "├─ "), beneath, whole.size if alike else 1)
                if not alike:
                    yield from below(node.step.urn, deeper)
            if shown and hidden:
                yield Row(None, f"{indent}└─ ", f"{indent}   ", hidden)

        for node in children.get("", ()):
            weigh(node)
        return list(below("", ""))

    def _note(self, step: Step, status: Status, now: float) -> Node:
        node = self.nodes.setdefault(step.urn, Node(step, status, now))
        if node.step.op != "create-replacement" or step.op not in _REST_OF_REPLACEMENT:
            node.step = step
        if status == "running":
            node.began = now
        node.status = status
        return node


def is_shown(step: Step) -> bool:
    """Whether a person is shown a step: providers the engine made itself are none of theirs."""
    return not urns.is_default_provider(step.urn)


def _is_alike(node: Node, other: Node) -> bool:
    """Whether the same happened to both, with nothing to tell of either."""
    return (node.step.op, node.status) == (other.step.op, other.status) and (
        node.status != "failed" and node.step.op in _TOLD_WHOLE
    )


def is_told_apart(step: Step) -> bool:
    """Whether a step deserves a line of its own: not when nothing changes, once per replacement."""
    return is_shown(step) and step.op != "same" and step.op not in _REST_OF_REPLACEMENT
