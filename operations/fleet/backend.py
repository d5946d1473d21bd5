"""The stacks of a project in any backend, through the Pulumi CLI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from pulumi.automation import CommandError, LocalWorkspace, PulumiCommand, Stack
from pulumi_sandbox import pulumi_cli
from pulumi_sandbox.progress_line import ProgressLine
from pulumi_sandbox.pulumi_cli import PulumiCli

from components.errors import CredfleetError
from operations.folders import Folders
from operations.sandbox.control_plane import OWNER
from operations.sandbox.deployment import free_dead_lock, last_words, select_stack
from operations.sandbox.processes import exports, furnish
from operations.stack.project_file import Project

Exported: TypeAlias = Mapping[str, Any]
"""Output of `pulumi stack export`: `version`, `features` and `deployment`."""

_BACKEND: Final = "PULUMI_BACKEND_URL"
_ANY: Final = "dev"
"""Stack whose variables are used if no stack is given; those used are the same for all stacks."""


class _Workspace(LocalWorkspace):
    """A workspace that never changes the user's selected stack: all commands here name theirs."""

    def create_stack(self, stack_name: str) -> None:
        named = ["--secrets-provider", self.secrets_provider] if self.secrets_provider else []
        self._run_pulumi_cmd_sync(["stack", "init", stack_name, "--no-select", *named])

    def select_stack(self, stack_name: str) -> None:
        self._run_pulumi_cmd_sync(["stack", "--stack", stack_name])


@dataclass(frozen=True, slots=True)
class Backend:
    """The stacks and the CLI to access them. sandbox: the CLI of the project's sandbox, if that is used."""

    folders: Folders
    command: PulumiCommand
    sandbox: PulumiCli | None = None
    kubeconfig: Path | None = None

    @classmethod
    def find(cls, folders: Folders, kubeconfig: Path | None = None) -> Backend:
        """Return the backend of the environment, otherwise that of the project's sandbox, if any.

        Raises CredfleetError `cli-missing`; SandboxError as `pulumi_cli.find`.
        """
        cli = None
        if _BACKEND not in os.environ and folders.sandbox.is_dir():
            with ProgressLine() as progress:
                cli = pulumi_cli.find(OWNER, progress)
            furnish(folders)
            os.environ["PATH"] = exports(folders, _ANY, os.environ, cli)["PATH"]
        if shutil.which("pulumi") is None:
            raise CredfleetError(
                code="cli-missing",
                place="PATH",
                problem="the Pulumi CLI is not there",
                fix='install it, or take that of the sandbox: eval "$(credfleet sandbox env)"',
            )
        return cls(folders, PulumiCommand(), cli, kubeconfig)

    def variables(self, stack: str) -> dict[str, str]:
        """Return the environment variables that a stack needs in addition to the current ones."""
        own = exports(self.folders, stack, os.environ, self.sandbox) if self.sandbox else {}
        return own | ({"KUBECONFIG": str(self.kubeconfig)} if self.kubeconfig else {})

    def stack(self, name: str, variables: Mapping[str, str] | None = None) -> Stack:
        """Return a stack, which is created if it does not exist; raises as `select_stack`."""
        workspace = self._workspace(self.variables(name) if variables is None else variables)
        return select_stack(self.folders.project, name, workspace)

    def names(self) -> list[str]:
        """Return the stacks of the project; raises CredfleetError `backend-unreachable`."""
        try:
            return [each.name for each in self._workspace(self.variables(_ANY)).list_stacks()]
        except CommandError as error:
            place = os.environ.get(_BACKEND, "the backend")
            raise _failed("backend-unreachable", place, "list its stacks", "pulumi stack ls", error) from None

    def exported(self, stack: str, *, in_plain: bool = False) -> Exported:
        """Return the exported state of a stack, secrets encrypted or plain; raises `state-unreadable`."""
        return self._ask(stack, "export", *(["--show-secrets"] if in_plain else []))

    def last_failure(self, stack: str) -> list[str]:
        """Return a message if the last update failed, which the state does not show; raises as `exported`."""
        last = self._ask(stack, "history", "--json", "--page-size", "1", "--page", "1")
        return [f"the last {each['kind']} failed" for each in last if each["result"] == "failed"]

    def _ask(self, stack: str, *words: str) -> Any:
        """Return the JSON output of a command of `pulumi stack`, which needs no key."""
        asked = ["stack", *words, "--stack", stack]
        try:
            done = self.command.run(asked, str(self.folders.project), self.variables(stack))
        except CommandError as error:
            command = f"pulumi {' '.join(asked)}"
            raise _failed("state-unreadable", f"stack {stack}", "read it", command, error) from None
        return json.loads(done.stdout)

    def deployments(self, stacks: Iterable[str], at_once: int = 1) -> dict[str, Mapping[str, Any]]:
        """Return the states of stacks. at_once: the number of parallel reads; raises as `exported`."""
        names = [*stacks]
        with ThreadPoolExecutor(at_once) as threads:
            return dict(zip(names, map(deployment_of, threads.map(self.exported, names)), strict=True))

    def import_(self, stack: str, state: Exported) -> None:
        """Replace the state of a stack. Its secrets, in plaintext, are never written to a file.

        Raises CredfleetError `state-refused`.
        """
        if self.sandbox:
            free_dead_lock(self.folders.backend, Project.load(self.folders.project).name, stack)
        done = subprocess.run(
            ["pulumi", "stack", "import", "--stack", stack, "--non-interactive", "--color", "never"],
            cwd=self.folders.project,
            env={**os.environ, **self.variables(stack)},
            input=json.dumps(state),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CredfleetError(
                code="state-refused",
                place=f"stack {stack}",
                problem=f"the Pulumi CLI does not import its state: {' '.join(done.stderr.split())}",
                fix="wait where an update of it runs, or correct what is said; then run the same again",
            )

    def _workspace(self, variables: Mapping[str, str]) -> LocalWorkspace:
        return _Workspace(work_dir=str(self.folders.project), env_vars=variables, pulumi_command=self.command)


def _failed(code: str, place: str, what: str, command: str, error: CommandError) -> CredfleetError:
    problem, fix = f"the Pulumi CLI cannot {what}: {last_words(error)}", f"`{command}` must answer"
    return CredfleetError(code=code, place=place, problem=problem, fix=f"correct that: {fix}")


def deployment_of(exported: Exported) -> Mapping[str, Any]:
    """Return the deployment in an exported state; empty if there is none."""
    return exported.get("deployment") or {}
