"""What a deployment is asked for, and how it ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pulumi_sandbox.engine.deploy.targets import Selection
from pulumi_sandbox.engine.model.events import PolicyViolation, StepFinished, StepPlanned, Summary
from pulumi_sandbox.engine.model.resource import Snapshot
from pulumi_sandbox.engine.plugins.process import Confinement
from pulumi_sandbox.engine.plugins.provider_processes import Trusted
from pulumi_sandbox.protocol.values import Properties


@dataclass(frozen=True, slots=True)
class Options:
    """How to deploy: steps at a time, folders of policy packs, whether any change is an error (exit 7).

    preview_only: show what a refresh or a destroy would do; nothing is written.

    refresh: read what the state has before anything else is done.

    run_program: let a destroy run the program, which changes nothing: for its hooks, and what it configures
    providers with.

    continue_on_error: after a failed step, go on with all that does not depend on it, and fail at the end.

    clear_pending_creates: let a refresh forget creates that an earlier run began and nobody saw end.

    providers: package → Python module that serves it, run by this interpreter; for packages that nothing
    else serves.

    policy_configs: folder of a pack → JSON file with levels and properties of its policies, in the form of
    the CLI's `--policy-pack-config`.

    direct: package → what serves it within this process: it asks nobody.

    selection: which resources are meant, where it is not all.

    confinement: how the program is shut in, if nobody trusts it; its hooks and transforms are not called. Its
    dynamic providers are then those of `trusted`: a folder, and type → the provider to be used for it, as the
    state holds it; those of other types are not asked.
    """

    parallel: int = 16
    providers: Mapping[str, str] = field(default_factory=dict[str, str])
    policy_packs: tuple[Path, ...] = ()
    policy_configs: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    expect_no_changes: bool = False
    preview_only: bool = False
    refresh: bool = False
    run_program: bool = False
    continue_on_error: bool = False
    clear_pending_creates: bool = False
    direct: Mapping[str, Callable[[], object]] = field(default_factory=dict[str, "Callable[[], object]"])
    selection: Selection = field(default_factory=Selection)
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
