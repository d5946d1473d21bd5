"""Plays a row, step by step, under whichever engine, and says what each step came to.

A row is a list of steps. A step's one key of `up`, `preview`, `refresh`, `destroy` holds the program of the
step (nothing: none). Beside it stand `flags` (of the CLI; `=a` is the URN of `a`), `config` and
`secret_config` (key → text), `fails` (`Create a` → the text it fails with, or `{partly: text}` where it was
done in part), `vanish` (names of what somebody deletes before) and `drift` (name → properties that somebody
changes before).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

import yaml
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.stubs import provider_pb2

from sandbox.tests.conformance import told
from sandbox.tests.conformance.program import Program
from sandbox.tests.support.furnished import furnish
from sandbox.tests.support.recording_provider import PartialFailureError, RecordingProvider

PASSPHRASE: Final = "correct horse"
HERE: Final = Path(__file__).parent
_OPERATIONS: Final = ("up", "preview", "refresh", "destroy")


@dataclass(frozen=True)
class Row:
    """A program with its steps, and what this engine is known to do otherwise.

    refused: what the engine's error names that it does not do. differs: aspect (`code`, `operations`,
    `changes`, `errors`, `requests`, `state`) → why.
    """

    group: str
    name: str
    steps: tuple[Mapping[str, Any], ...]
    refused: str = ""
    differs: Mapping[str, str] = field(default_factory=dict[str, str])


def rows() -> tuple[Row, ...]:
    """Return all rows, in their groups' order."""
    groups, differing = (
        yaml.safe_load((HERE / name).read_text(encoding="utf-8")) for name in ("rows.yaml", "differing.yaml")
    )
    asked = {
        f"{group}-{name}": Row(group, name, tuple(steps))
        for group, rows in groups.items()
        for name, steps in rows.items()
    }
    for name, differs in differing.items():
        refused = differs.pop("refused", "")
        asked[name] = replace(asked[name], refused=refused, differs=differs)
    return tuple(asked.values())


@dataclass(frozen=True)
class Ended:
    """How an engine's operation ended; `operations` as `create a`, `deployment` as it lies in the backend."""

    code: int
    operations: list[str]
    changes: Mapping[str, int]
    errors: list[str]
    deployment: Mapping[str, Any]
    said: tuple[str, ...] = ()


class Engine(Protocol):
    """Runs one operation on the project in a folder."""

    def run(self, folder: Path, operation: str, flags: list[str], program: Program | None) -> Ended: ...


@dataclass
class Laboratory:
    """A project in a folder, and the provider of all that its programs declare."""

    folder: Path
    crypter: PassphraseCrypter
    provider: RecordingProvider
    notes: list[Any] = field(default_factory=list[Any])

    def play(self, row: Row, engine: Engine) -> list[tuple[dict[str, Any], Ended]]:
        """Return what each step of the row came to."""
        self.folder.mkdir()
        self.provider.reset()
        self.provider.build = furnish
        self.provider.answer = lambda request: provider_pb2.CallResponse(**{"return": request.args})
        (self.folder / "Pulumi.yaml").write_text("name: test\nruntime: python\n")
        return [self._step(step, engine) for step in row.steps]

    def _step(self, step: Mapping[str, Any], engine: Engine) -> tuple[dict[str, Any], Ended]:
        operation = next(each for each in _OPERATIONS if each in step)
        self._configure(step.get("config", {}), step.get("secret_config", {}))
        self._disturb(step)
        self.provider.on = dict(map(_interference, step.get("fails", {}).items()))
        self.provider.calls.clear()
        rows = step[operation]
        calls: list[Any] = self.provider.calls
        program = None if rows is None else Program(rows, calls.append)
        ended = engine.run(self.folder, operation, [_flag(each) for each in step.get("flags", ())], program)
        operations = told.in_one_order(ended.operations)
        came: dict[str, Any] = {
            "code": ended.code,
            "operations": sorted(operations) if operation == "refresh" else operations,
            "changes": dict(sorted(ended.changes.items())),
            "errors": ended.errors,
            "requests": told.in_one_order(told.requests(calls)),
            "state": told.state(ended.deployment, self.crypter),
        }
        return came, ended

    def _configure(self, config: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        told = {**config, **{key: {"secure": self.crypter.encrypt(text)} for key, text in secrets.items()}}
        text = yaml.safe_dump({"encryptionsalt": self.crypter.salt, **({"config": told} if told else {})})
        (self.folder / "Pulumi.dev.yaml").write_text(text)

    def _disturb(self, step: Mapping[str, Any]) -> None:
        for id_, thing in [*self.provider.things.items()]:
            name = urns.parse(thing.urn).name
            if name in step.get("vanish", ()):
                del self.provider.things[id_]
            changed = step.get("drift", {}).get(name, {})
            thing.inputs = {**thing.inputs, **changed}
            thing.outputs = {**thing.outputs, **changed}


def _interference(told: tuple[str, Any]) -> tuple[tuple[str, str], Callable[[], None]]:
    method, _, name = told[0].partition(" ")

    def fail() -> None:
        if isinstance(told[1], Mapping):
            raise PartialFailureError(told[1]["partly"])
        raise ValueError(told[1])

    return (method, name), fail


def _flag(flag: str) -> str:
    return f"{told.PREFIX}fake:index:Thing::{flag[1:]}" if flag.startswith("=") else flag


def step_names(operations: Iterable[Mapping[str, Any]], failed: Iterable[str]) -> list[str]:
    """Return `create a` of events' metadata; `!create a` of what failed."""
    gone = [*failed]
    names: list[str] = []
    for metadata in operations:
        what = f"{metadata['op']} {metadata['urn']}"
        if what in gone:
            gone.remove(what)
            what = f"!{what}"
        names.append(what)
    return names
