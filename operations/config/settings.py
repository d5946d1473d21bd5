"""What is wrong with a stack's configuration, found without running the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi_sandbox.engine import Workspace

from components.account_pool.rules import Fault, Request, Ruleset
from components.account_pool.settings import AccountPool
from components.credentials import KEY
from components.errors import ConfigurationError, CredfleetError, Misconfigured, Problem
from components.labels import EU_ACCESS
from components.naming import config_path
from components.settings.stack import NAMESPACE, Settings
from operations.cli.answer import Answer, as_json
from operations.folders import Folders
from operations.sandbox.stack_state import open_workspace


def schema() -> Answer:
    """Return the JSON Schema of all that stands under `credfleet:`, in one form for all."""
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()}
    return Answer(document, [as_json(document)])


def check(stack: str) -> Answer:
    """Say that a stack's configuration is sound; raises as `settings_of`."""
    settings_of(stack)
    sentence = f"✓ the configuration of stack {stack} is sound"
    return Answer({"stack": stack, "problems": []}, [sentence])


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


@dataclass(frozen=True, slots=True)
class Served:
    """The pool of a plan: its type, what the rules add to the partition, and the rule that chose."""

    type: str
    implied: Mapping[str, str]
    shared: bool
    rule: str


def pool_of_plan(stack: str, request: Request) -> Served:
    """Let the rules of a stack choose the pool of a plan.

    Raises:
        Misconfigured: When no rule serves the plan. ConfigurationError, SandboxError: as `sound_settings`.
    """
    section = settings_of(stack).account_pool
    rules, texts = (section.ruleset, section.rules) if section else (Ruleset(()), ())
    choice = rules.choose(request)
    if isinstance(choice, Fault):
        raise Misconfigured(place=f"plan {request.plan}", cause=choice.cause, mend=choice.mend)
    implied = {EU_ACCESS: "true"} if choice.eu_access else {}
    return Served(choice.type, implied, choice.shared, texts[choice.rule or 0])


def pool_of(settings: Settings, stack: str) -> AccountPool:
    """Return the pool a stack declares; raises CredfleetError with code `no-pool` when it declares none."""
    if settings.account_pool is None:
        raise CredfleetError(
            code="no-pool",
            place="credfleet:accountPool",
            cause=f"stack {stack} declares no pool",
            mend="add accountPool to its configuration, or name another stack with --stack",
        )
    return settings.account_pool


def settings_of(stack: str) -> Settings:
    """Read the configuration of a stack here; raises as `sound_settings` and `open_workspace`."""
    return sound_settings(open_workspace(Folders.find(Path.cwd()), stack))


def plain_credentials(config: Mapping[str, Any]) -> Iterator[Problem]:
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
            yield Problem(
                path,
                "it stands in the stack file in plain, where whoever reads the repository can use it",
                f"set it again with `credfleet sandbox config set --secret --path '{path}'`, and rotate it",
            )
