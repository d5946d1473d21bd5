"""What is wrong with a stack's configuration, found without running the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from components.account_pool.errors import Misconfigured
from components.account_pool.rules import Fault, Request, Ruleset
from components.credentials import KEY
from components.errors import ConfigurationError, ConfigurationProblem
from components.labels import EU_ACCESS
from components.naming import config_path
from components.settings import Settings
from components.settings.stack import NAMESPACE
from operations.forms import print_json
from operations.site import Site
from operations.stack_state import open_workspace
from sandbox.engine.workspace import Workspace


def print_schema() -> None:
    """Print the JSON Schema of all that stands under `credfleet:`."""
    print_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()})


def check(stack: str, *, as_json: bool) -> None:
    """Say that a stack's configuration is sound; raises as `sound_settings` and `open_workspace`."""
    sound_settings(open_workspace(Site.find(Path.cwd()), stack))
    if as_json:
        print_json({"stack": stack, "problems": []})
    else:
        typer.echo(f"✓ the configuration of stack {stack} is sound")


def sound_settings(workspace: Workspace) -> Settings:
    """Read the configuration of a stack that has nothing wrong with it, in its file either.

    Raises:
        ConfigurationError: With everything that is wrong.
        SandboxError: `config-invalid` when it breaks what Pulumi.yaml declares.
    """
    problems = [*plain_credentials(workspace.stack_file.config)]
    config = workspace.config()
    try:
        settings = Settings.parse(config.values, config.secret_keys, workspace.project.directory)
    except ConfigurationError as error:
        raise ConfigurationError([*problems, *error.problems]) from None
    if problems:
        raise ConfigurationError(problems)
    return settings


def pool_of_plan(stack: str, request: Request) -> tuple[str, Mapping[str, str]]:
    """Let the rules of a stack choose the pool of a plan: its type, and the partition the rules add.

    Raises:
        Misconfigured: When no rule serves the plan. ConfigurationError, SandboxError: as `sound_settings`.
    """
    pool = sound_settings(open_workspace(Site.find(Path.cwd()), stack)).account_pool
    choice = (pool.ruleset if pool else Ruleset(())).choose(request)
    if isinstance(choice, Fault):
        raise Misconfigured(place=f"plan {request.plan}", cause=choice.cause, mend=choice.mend)
    return choice.type, {EU_ACCESS: "true"} if choice.eu_access else {}


def plain_credentials(config: Mapping[str, Any]) -> Iterator[ConfigurationProblem]:
    """Name every credential that stands in the stack file without encryption, beside encrypted ones too.

    config: the values of the stack file as they are written. The program cannot see this: one encrypted entry
    marks the whole key as secret.
    """
    entries = config.get(NAMESPACE + KEY)
    if not isinstance(entries, dict):
        return
    for name, entry in entries.items():
        if not (isinstance(entry, dict) and set(entry) == {"secure"}):
            path = config_path(KEY, name)
            yield ConfigurationProblem(
                path,
                "it stands in the stack file in plain, where whoever reads the repository can use it",
                f"set it again with `credfleet sandbox config set --secret --path '{path}'`, and rotate it",
            )
