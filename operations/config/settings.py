"""Finds the problems of a stack's configuration without running the program."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from components.account_pool.rules import Fault, Pool, Request, Ruleset
from components.account_pool.settings import AccountPool
from components.config.document import misspelt
from components.config.places import locate
from components.credentials import KEY
from components.errors import ConfigurationError, CredfleetError, Misconfigured, Problem
from components.naming import config_path
from components.stack_config.cloud_keys import in_plain, is_encrypted
from components.stack_config.leaving import SILENCE, declares, find_losses, read_entries, read_former
from components.stack_config.stack import NAMESPACE, Settings
from operations.cli.answer import CommandResult, as_lines
from operations.cli.failures import located_documents
from operations.cli.tables import Column, Table
from operations.folders import Folders, stack_here
from operations.stack.at_rest import StackAtRest
from operations.stack.project_file import Project

_FLEET: Final = re.compile(r"\bFleet\b")
_RESPELT: Final = (
    "it is a whole number that is not written in digits alone, and readers of YAML differ on such",
    "write the digits alone, or quote it if it is a text",
)


def check(stack: str) -> CommandResult:
    """Return that a configuration is valid, what an update would warn of, and what was not checked.

    Raises as `settings_of`. Encrypted values are decrypted if the key is available.
    """
    folders = Folders.find(Path.cwd())
    at_rest = stack_here(stack)
    sealed, why = at_rest.read()[0].sealed, ""
    decrypt, of_the_salt = None, list[Problem]()
    if sealed:
        try:
            decrypt = at_rest.unlock(public=folders.public_passphrase(stack)).decrypt
        except CredfleetError as error:
            if error.code not in ("stack-unsupported", "passphrase-missing", "salt-unreadable"):
                raise
            why = error.code
            if why == "passphrase-missing" and os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
                raise  # the configured passphrase file cannot be read
            if why == "salt-unreadable":
                of_the_salt.append(Problem(error.place, error.problem, error.fix, at_rest.stack_file.salt_at))
    settings = read_settings(at_rest, decrypt, of_the_salt)
    refuse_what_cannot_run(at_rest, settings)
    unchecked = _unchecked(
        at_rest, sealed if decrypt is None else (), no_passphrase=why == "passphrase-missing"
    )
    unchecked += _refuse_losses(at_rest, settings)
    told = [f"{each['what']}: {each['why']}" for each in unchecked] or [""]
    warnings = locate(settings.warnings(), at_rest.stack_file.path)
    columns = (Column("Stack", names=True), Column("File", leaves=1), Column("Not checked", folds=True))
    checked = Table("Checked", columns, [(stack, at_rest.stack_file.path.name, each) for each in told])
    return CommandResult(
        {"stack": stack, "problems": [], "warnings": located_documents(warnings), "unchecked": unchecked},
        [*as_lines(warnings, "!"), f"✓ the configuration of stack {stack} is sound", checked],
    )


def _refuse_losses(at_rest: StackAtRest, settings: Settings) -> list[dict[str, str]]:
    """Compare the configuration with the state for losses; return why if the state is not available here."""
    known = at_rest.deployment().get("resources") or () if at_rest.backend_dir else ()
    if not known and settings.tenants:
        return [{"what": "renames and removals", "why": "no state is in a folder here; a preview does"}]
    living = {one["urn"]: one for one in known if not one.get("delete")}
    root, entries = at_rest.project.directory, read_entries(living)
    if problems := find_losses(read_former(living), settings, root, entries).refused:
        raise ConfigurationError(locate(problems, at_rest.stack_file.path))
    return []


def _unchecked(
    at_rest: StackAtRest, sealed: Sequence[Sequence[str | int]], *, no_passphrase: bool
) -> list[dict[str, str]]:
    """Return the sealed values, each once, and why they could not be checked."""
    if not sealed:
        return []
    own = [str(path[1]) for path in sealed if path[0] == NAMESPACE + KEY and len(path) > 1]
    others = [_place(path) for path in sealed if path[0] != NAMESPACE + KEY]
    held = [f"what the credentials {', '.join(own)} hold"] if own else []
    scheme = at_rest.stack_file.provider.partition(":")[0]
    why = (
        "encrypted, and PULUMI_CONFIG_PASSPHRASE gives no passphrase"
        if no_passphrase
        else f"encrypted by {scheme}, which only the Pulumi CLI asks"
    )
    return [{"what": "; ".join([*held, *others]), "why": why}]


def _place(path: Sequence[str | int]) -> str:
    key, *inside = path
    own = str(key).startswith(NAMESPACE)
    return config_path(str(key).removeprefix(NAMESPACE), *inside) if own else str(key)


def read_settings(
    at_rest: StackAtRest,
    decrypt: Callable[[str], str] | None = None,
    found: Sequence[Problem] = (),
) -> Settings:
    """Read the configuration of a stack, whose file must be valid as well.

    Without `decrypt`, encrypted values are not checked. found: problems that are already known. Raises
    ConfigurationError with all problems, each with its location in a file.
    """
    config, faults = at_rest.read(decrypt)
    problems = [*(_of_the_file(at_rest) or found), *plain_credentials(at_rest.stack_file.config)]
    settings = None
    try:
        settings = Settings.parse(
            config.values, config.secret_keys, at_rest.project.directory, config.sealed, at_rest.stack
        )
    except ConfigurationError as error:
        told = {problem.place for problem in problems}
        problems += (problem for problem in error.problems if problem.place not in told)
    told = {problem.place for problem in problems}
    of_the_file = [
        *(Problem(_place(each.path), f"it {each.problem.removeprefix('it ')}", each.fix) for each in faults),
        *(Problem(_place(path), *_RESPELT) for path in at_rest.stack_file.respelt),
    ]
    problems += (each for each in of_the_file if each.place not in told)
    if problems or settings is None:
        raise ConfigurationError(locate(problems, at_rest.stack_file.path))
    return settings


def refuse_what_cannot_run(at_rest: StackAtRest, settings: Settings) -> None:
    """Raise ConfigurationError if the program would lack a package on this machine."""
    try:
        settings.refuse_what_cannot_run()
    except ConfigurationError as error:
        raise ConfigurationError(locate(error.problems, at_rest.stack_file.path)) from None


def _of_the_file(at_rest: StackAtRest) -> Sequence[Problem]:
    """Return the problems of the file: unknown keys, or no declaration, which would count as empty."""
    file = at_rest.stack_file
    if file.unread:
        return [Problem(key, *misspelt(key, file.READ), at) for key, at in file.unread.items()]
    return [SILENCE] if file.path.exists() and not file.is_empty and _is_silent(at_rest) else []


def _is_silent(at_rest: StackAtRest) -> bool:
    """Return whether a stack file declares nothing; a program without Fleet only needs the cluster."""
    own = [key for key in at_rest.stack_file.config if key.startswith(NAMESPACE)]
    return not own or (not declares(own) and _is_of_a_fleet(at_rest.project))


def _is_of_a_fleet(project: Project) -> bool:
    """Return whether a program uses Fleet according to its Pulumi.yaml or its source code."""
    folder = project.program if project.program.is_dir() else project.program.parent
    sources = (each for each in folder.glob("*.py") if each.is_file())
    return declares(project.declarations) or any(
        _FLEET.search(each.read_text(encoding="utf-8", errors="replace")) for each in sources
    )


def pool_of_plan(stack: str, request: Request) -> tuple[Pool, str]:
    """Return the pool that a stack's rules select for a plan, and the rule that selected it.

    Raises Misconfigured if no rule serves the plan; ConfigurationError and CredfleetError as `settings_of`.
    """
    section = settings_of(stack).account_pool
    rules, texts = (section.ruleset, section.rules) if section else (Ruleset(()), ())
    choice = rules.choose(request)
    if isinstance(choice, Fault):
        raise Misconfigured(place=f"plan {request.plan}", problem=choice.problem, fix=choice.fix)
    return choice, texts[choice.rule or 0]


def pool_of(settings: Settings, stack: str) -> AccountPool:
    """Return the pool that a stack declares; raises CredfleetError `no-pool` if it declares none."""
    if settings.account_pool is None:
        raise CredfleetError(
            code="no-pool",
            place="credfleet:accountPool",
            problem=f"stack {stack} declares no pool",
            fix="add accountPool to its configuration, or name another stack with --stack",
        )
    return settings.account_pool


def settings_of(stack: str) -> Settings:
    """Read a stack's configuration here, without its key; raises as `read_settings` and `stack_here`."""
    return read_settings(stack_here(stack))


def plain_credentials(config: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for every credential that is unencrypted in the stack file.

    config: the values of the stack file as written. The program cannot detect this: a single encrypted entry
    marks the whole key of credentials as secret.
    """
    entries = config.get(NAMESPACE + KEY)
    named = entries.items() if isinstance(entries, dict) else ()
    return (in_plain(config_path(KEY, name)) for name, entry in named if not is_encrypted(entry))
