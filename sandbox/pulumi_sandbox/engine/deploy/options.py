"""What a deployment is asked for, and how it ended."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pulumi_sandbox.engine.deploy.targets import Selection
from pulumi_sandbox.engine.model.events import PolicyViolation, StepFinished, StepPlanned, Summary
from pulumi_sandbox.engine.model.resource import Snapshot
from pulumi_sandbox.engine.plugins.process import Confinement
from pulumi_sandbox.engine.plugins.provider_processes import Trusted
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.protocol import urns
from pulumi_sandbox.protocol.calls import Calls
from pulumi_sandbox.protocol.values import Properties

_TYPE: Final = re.compile(r"[^:\s]+:[^:\s]*:[^:\s]+")


@dataclass(frozen=True, slots=True)
class Import:
    """An object that exists, and is to be the resource of this type and name.

    parent, provider: as the CLI takes them, the variable that holds it in the program and its URN
    (`NAME=URN`), or the URN alone; empty: the stack itself, and the default provider of the type's package.
    Raises SandboxError `import-invalid`.
    """

    type: str
    name: str
    id: str
    parent: str = ""
    provider: str = ""
    protect: bool = True

    def __post_init__(self) -> None:
        """Refuse what names nothing."""
        wrong = [f"{urn!r} is no URN" for urn in (self.parent_urn, self.provider_urn) if not _is_urn(urn)]
        if not _TYPE.fullmatch(self.type):
            wrong.append(f"{self.type!r} is no type of a resource")
        if not (self.name and self.id):
            wrong.append("a name and an id are needed")
        if self.parent and self.provider and len(self.variables) == 1:
            wrong.append(f"provider and parent are both called {next(iter(self.variables))}")
        if wrong:
            raise SandboxError(
                code="import-invalid",
                place="what is to be imported",
                cause="; ".join(wrong),
                mend="write a type as package:module:Type, and NAME=URN with a URN as the state has it",
            )

    @property
    def parent_urn(self) -> str:
        """The URN of the parent, empty for the stack."""
        return _named(self.parent, "parent")[1]

    @property
    def provider_urn(self) -> str:
        """The URN of the provider, empty for the default one."""
        return _named(self.provider, "provider")[1]

    @property
    def variables(self) -> dict[str, str]:
        """The program's variables of parent and provider, where these are given, with their URNs."""
        return dict(
            _named(each, kind)
            for each, kind in ((self.parent, "parent"), (self.provider, "provider"))
            if each
        )

    def urn(self, stack: str, project: str) -> str:
        """Return the name of the resource in a stack."""
        return urns.make(stack, project, self.parent_urn, self.type, self.name)


@dataclass(frozen=True, slots=True)
class Options:
    """How to deploy: steps at a time, folders of policy packs, whether any change is an error (exit 7).

    preview_only: show what a refresh or a destroy would do; nothing is written.

    refresh: read what the state has before anything else is done.

    run_program: let a destroy run the program, which changes nothing: for its hooks, and what it configures
    providers with.

    continue_on_error: after a failed step, go on with all that does not depend on it, and fail at the end.

    clear_pending_creates: let a refresh forget creates that an earlier run began and nobody saw end.

    providers: package → what serves it within this process, for packages that nothing else serves.

    policy_configs: folder of a pack → JSON file with levels and properties of its policies, in the form of
    the CLI's `--policy-pack-config`.

    selection: which resources are meant, where it is not all.

    imported: what an import takes up.

    confinement: how the program is shut in, if nobody trusts it; its hooks and transforms are not called. Its
    dynamic providers are then those of `trusted`: a folder, and type → the provider to be used for it, as the
    state holds it; those of other types are not asked.
    """

    parallel: int = 16
    providers: Mapping[str, Callable[[Path], Calls]] = field(
        default_factory=dict[str, "Callable[[Path], Calls]"]
    )
    policy_packs: tuple[Path, ...] = ()
    policy_configs: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    expect_no_changes: bool = False
    preview_only: bool = False
    refresh: bool = False
    run_program: bool = False
    continue_on_error: bool = False
    clear_pending_creates: bool = False
    selection: Selection = field(default_factory=Selection)
    imported: Import | None = None
    confinement: Confinement | None = None
    trusted: Trusted | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """How a deployment ended.

    `foreseen` is the state it left, or would leave.
    `outputs` are the stack's, secrets unmasked inside `Secret`; `exit_code` is 0, 1 failed, 7 changes
    where none were expected, 8 cancelled.
    """

    summary: Summary
    outputs: Properties
    steps: tuple[StepPlanned | StepFinished, ...]
    policy: tuple[PolicyViolation, ...]
    exit_code: int
    foreseen: Snapshot = field(default_factory=Snapshot, repr=False)


def _named(told: str, otherwise: str) -> tuple[str, str]:
    """Split `NAME=URN`; a URN alone is held by a variable of another name."""
    name, _, urn = told.partition("=")
    return (name, urn) if name and urn and _is_urn(urn) else (otherwise, told)


def _is_urn(text: str) -> bool:
    """Whether a text is a URN, or none is meant."""
    try:
        return not text or bool(urns.parse(text))
    except ValueError:
        return False
