"""A stack of its own for a test: made-up project, state in a temporary directory, events kept."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pulumi_sandbox import engine
from pulumi_sandbox.engine import (
    Diagnostic,
    Event,
    Import,
    Options,
    Resource,
    Result,
    Snapshot,
    StepFinished,
    StepPlanned,
    Workspace,
)
from pulumi_sandbox.engine.model.events import StdoutLine
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.engine.project.project_file import Project
from pulumi_sandbox.engine.project.stack_file import StackFile
from pulumi_sandbox.engine.show.event_json import event_json
from pulumi_sandbox.engine.state.store import Store
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.providers import STAND_INS

from sandbox.tests.support.recording_provider import RecordingProvider
from sandbox.tests.support.scripted_program import Program, Script, environment, playing


@dataclass
class Watched:
    """A sink that keeps all events."""

    events: list[Event] = field(default_factory=list[Event])

    def handle(self, event: Event) -> None:
        self.events.append(event)


@dataclass(frozen=True)
class Outcome:
    """What a deployment did and said."""

    result: Result
    events: tuple[Event, ...]

    @property
    def code(self) -> int:
        return self.result.exit_code

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Return (op, logical name) of all steps, in the order of their ends; failed ones as `!op`."""
        steps = (event for event in self.events if isinstance(event, StepPlanned | StepFinished))
        return [
            (
                f"{'!' if isinstance(each, StepFinished) and each.error is not None else ''}{each.step.op}",
                each.step.name,
            )
            for each in steps
        ]

    def ops(self, name: str) -> list[str]:
        """Return what was done to one resource."""
        return [op for op, each in self.steps if each == name]

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        return Counter(self.steps)

    @property
    def messages(self) -> list[str]:
        """Return all that was said as warnings or errors, `severity: text`."""
        return [
            f"{event.severity}: {event.message}"
            for event in self.events
            if isinstance(event, Diagnostic) and event.severity in ("warning", "error")
        ]

    def said(self, severity: str) -> list[str]:
        """Return all messages of one severity."""
        return [
            event.message
            for event in self.events
            if isinstance(event, Diagnostic) and event.severity == severity
        ]

    @property
    def printed(self) -> list[str]:
        """Return what the program printed."""
        return [event.line for event in self.events if isinstance(event, StdoutLine)]

    @property
    def errors(self) -> list[str]:
        return [each.removeprefix("error: ") for each in self.messages if each.startswith("error: ")]

    def failed_with(self, text: str) -> bool:
        """Whether it ended with exit code 1 and an error that holds this text."""
        return self.code == 1 and any(text in error for error in self.errors)

    @property
    def text(self) -> str:
        """Return everything that was told, as one text."""
        return json.dumps([event_json(event) for event in self.events])


@dataclass
class Stack:
    """A stack whose programs the test plays, and whose resources are the recording provider's."""

    directory: Path
    crypter: PassphraseCrypter
    provider: RecordingProvider
    store: Store
    virtualenv: Path

    @classmethod
    def make(cls, directory: Path, crypter: PassphraseCrypter, provider: RecordingProvider) -> Stack:
        """Lay out a project `test` and its stack `dev`."""
        directory.mkdir()
        virtualenv = environment(directory / "environment")
        (directory / "Pulumi.yaml").write_text(
            "name: test\nruntime:\n  name: python\n  options:\n    virtualenv: environment\n"
        )
        (directory / "Pulumi.dev.yaml").write_text(f"encryptionsalt: {crypter.salt}\n")
        store = Store(directory / "backend", "test", "dev", crypter)
        return cls(directory, crypter, provider, store, virtualenv)

    @classmethod
    def genuine(
        cls, directory: Path, crypter: PassphraseCrypter, provider: RecordingProvider, program: Path
    ) -> Stack:
        """Lay out a project with a real program, which the real SDK runs in this environment."""
        shutil.copytree(program, directory)
        (directory / "Pulumi.yaml").write_text(
            f"name: test\nruntime:\n  name: python\n  options:\n    virtualenv: {sys.prefix}\n"
        )
        store = Store(directory / "backend", "test", "dev", crypter)
        stack = cls(directory, crypter, provider, store, Path(sys.prefix))
        stack.configure("  test:none: none\n")
        return stack

    def configure(self, config: str) -> None:
        """Return the stack a configuration: the lines below `config:`."""
        (self.directory / "Pulumi.dev.yaml").write_text(
            f"encryptionsalt: {self.crypter.salt}\nconfig:\n{config}"
        )

    def workspace(self, store: Store | None = None) -> Workspace:
        project = Project.load(self.directory)
        stack_file = StackFile.load(self.directory / "Pulumi.dev.yaml", project.name)
        return Workspace(project, "dev", stack_file, self.crypter, store or self.store)

    def up(self, program: Program | None = None, **options: Any) -> Outcome:
        """Deploy, the test playing the program; without one, the project's own runs."""
        with playing(program, self.virtualenv) if program else nullcontext():
            return self._deploy(engine.up, options)

    def repainted(self, program: Callable[[Script, str], object]) -> Outcome:
        """Deploy with the colour blue, then again with red."""
        self.up(lambda script: program(script, "blue"))
        return self.up(lambda script: program(script, "red"))

    def preview(self, program: Program | None = None, **options: Any) -> Outcome:
        """Preview, in the same way."""
        with playing(program, self.virtualenv) if program else nullcontext():
            return self._deploy(engine.preview, options)

    def refresh(self, **options: Any) -> Outcome:
        return self._deploy(engine.refresh, options)

    def destroy(self, **options: Any) -> Outcome:
        return self._deploy(engine.destroy, options)

    def import_(self, imported: Import, **options: Any) -> Outcome:
        return self._deploy(engine.import_, {**options, "imported": imported})

    def _deploy(
        self, operation: Callable[[Workspace, Options, Watched], Result], options: Mapping[str, Any]
    ) -> Outcome:
        watched = Watched()
        options = {"providers": STAND_INS, **options}
        result = operation(self.workspace(), Options(**options), watched)
        return Outcome(result, tuple(watched.events))

    # The state

    @property
    def snapshot(self) -> Snapshot:
        return self.store.load()

    @property
    def state_text(self) -> str:
        return self.store.path.read_text()

    def resource(self, name: str) -> Resource:
        """Return the one record of this logical name that is not about to be deleted."""
        (found,) = (each for each in self.records(name) if not each.delete)
        return found

    def records(self, name: str) -> list[Resource]:
        return [each for each in self.snapshot.resources if urns.parse(each.urn).name == name]

    @property
    def names(self) -> list[str]:
        """Return the logical names in the state, in its order."""
        return [urns.parse(each.urn).name for each in self.snapshot.resources]

    def change(self, name: str, **fields: Any) -> None:
        """Alter a record behind the engine's back."""
        old = self.resource(name)
        resources = tuple(
            replace(each, **fields) if each == old else each for each in self.snapshot.resources
        )
        self.store.save(replace(self.snapshot, resources=resources))


def urn_of(name: str, type_: str = "fake:index:Thing") -> str:
    """Return the URN of a resource of the test stack without parent."""
    return urns.make("dev", "test", "", type_, name)
