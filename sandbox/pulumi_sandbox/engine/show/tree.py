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
    """A line of the tree, the guides in front of it, and those in front of what is told underneath."""

    node: Node
    guides: str
    below: str


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

    def rows(self, wanted: Callable[[Node], bool]) -> list[Row]:
        """Return the tree, by name, of the wanted resources and all above them; the stack is left out."""
        shown: set[str] = set()
        for node in self.nodes.values():
            above = node if wanted(node) and is_shown(node.step) else None
            while above and above.step.urn not in shown:
                shown.add(above.step.urn)
                above = self.nodes.get(above.step.resource.parent)
        children: dict[str, list[Node]] = {}
        for urn, node in self.nodes.items():
            if urn in shown and node.step.type != urns.ROOT_STACK_TYPE:
                parent = node.step.resource.parent
                is_top = parent not in shown or self.nodes[parent].step.type == urns.ROOT_STACK_TYPE
                children.setdefault("" if is_top else parent, []).append(node)

        def below(parent: str, indent: str) -> Iterator[Row]:
            siblings = sorted(children.get(parent, []), key=lambda node: node.step.name)
            for index, node in enumerate(siblings):
                is_last = index == len(siblings) - 1
                deeper = indent + ("   " if is_last else "│  ")
                beneath = deeper + ("│ " if node.step.urn in children else "  ")
                yield Row(node, indent + ("└─ " if is_last else "├─ "), beneath)
                yield from below(node.step.urn, deeper)

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


def is_told_apart(step: Step) -> bool:
    """Whether a step deserves a line of its own: not when nothing changes, once per replacement."""
    return is_shown(step) and step.op != "same" and step.op not in _REST_OF_REPLACEMENT
