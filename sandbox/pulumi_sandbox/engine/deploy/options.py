"""What a deployment is asked for, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pulumi_sandbox.engine.model.events import PolicyViolation, StepFinished, StepPlanned, Summary
from pulumi_sandbox.protocol.values import Properties


@dataclass(frozen=True, slots=True)
class Options:
    """How to deploy: steps at a time, folders of policy packs, whether any change is an error (exit 7).

    continue_on_error: after a failed step, go on with all that does not depend on it, and fail at the end.

    providers: package → Python module that serves it, run by this interpreter; for packages that nothing
    else serves.

    policy_configs: folder of a pack → JSON file with levels and properties of its policies, in the form of
    the CLI's `--policy-pack-config`.
    """

    parallel: int = 16
    providers: Mapping[str, str] = field(default_factory=dict[str, str])
    policy_packs: tuple[Path, ...] = ()
    policy_configs: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    expect_no_changes: bool = False
    continue_on_error: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """How a deployment ended.

    `outputs` are the stack's, secrets unmasked inside `Secret`; `exit_code` is 0, 1 failed, 7 changes
    where none were expected, 8 cancelled.
    """

    summary: Summary
    outputs: Properties
    steps: tuple[StepPlanned | StepFinished, ...]
    policy: tuple[PolicyViolation, ...]
    exit_code: int
