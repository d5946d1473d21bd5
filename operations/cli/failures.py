"""Turns errors into messages and exit codes; no other module does."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import typer
from pulumi_sandbox import files
from pulumi_sandbox.errors import SandboxError
from pulumi_sandbox.steering import visible

from components.errors import ConfigurationError, CredfleetError, ExplainedError, NoReply, Problem, located
from operations.cli.answer import CommandResult, write, write_json
from operations.cli.command import Group
from operations.cli.inputs import shown
from operations.cli.options import Form, asks_for_json, wanted_form

GENERIC = 1
CONFIGURATION = 2
EXHAUSTED = 3
MISCONFIGURED = 4
NOT_ALLOWED = 5
CANCELLED = 8
CLAIMS_SKIPPED = 9
"""The update succeeded, but skipped claims or other resources."""
UNDECIDED = 10
"""The result depends on an unknown value."""

EXIT_CODES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "bad-configuration",
                "ciphertext-unreadable",
                "file-missing",
                "file-unreadable",
                "ids-unknown",
                "no-cluster",
                "no-names",
                "project-invalid",
                "salt-unreadable",
                "stack-unknown",
                "stack-unsupported",
                "usage",
                "wrong-context",
                "yaml-invalid",
            ),
            CONFIGURATION,
        ),
        "exhausted": EXHAUSTED,
        "quota-reached": EXHAUSTED,
        "misconfigured": MISCONFIGURED,
        "not-allowed": NOT_ALLOWED,
        "not-signed-in": NOT_ALLOWED,
        "cancelled": CANCELLED,
    }
)
"""Error code → exit code; 1, 2, 7 and 8 mean the same as in the Pulumi CLI."""

_POOL: Final = "docs/account-pool.md#errors"
_SANDBOX: Final = "docs/sandbox.md#troubleshooting"
_EXHAUSTED: Final = "docs/runbooks.md#exhausted"
_BACKUP: Final = "docs/runbooks.md#the-cluster-is-lost-and-comes-back-from-a-backup"

PAGES: Mapping[str, str] = MappingProxyType(
    {
        "bad-configuration": "docs/configuration.md",
        "exhausted": _EXHAUSTED,
        "pool-restored": _BACKUP,
        **dict.fromkeys(
            ("limit-reached", "lost-member", "misconfigured", "not-allowed", "quota-reached"), _POOL
        ),
        **dict.fromkeys(
            (
                "cloud-died",
                "cloud-not-ready",
                "cluster-unreachable",
                "go-missing",
                "kubeconfig-broken",
                "other-cluster",
                "port-taken",
                "public-passphrase",
                "stack-locked",
                "wrong-context",
                "wrong-passphrase",
            ),
            _SANDBOX,
        ),
    }
)
"""Error code → page about the error, relative to the checkout or the installed package."""

_HOME: Final = Path(__file__).parents[2]

_ARGUMENTS: Final = "credfleet.arguments"

DEFECTS = Path(".sandbox/logs")
"""Folder for tracebacks of unexpected errors, relative to the working directory."""

Foreseen = ExplainedError | SandboxError


def exit_code(error: Foreseen) -> int:
    """Return the process exit code for an expected error."""
    return EXIT_CODES.get(error.code, GENERIC)


def as_document(error: Foreseen) -> dict[str, Any]:
    """Return the JSON document of a failed command: stable code, message, and each problem."""
    at = _at(error)
    body: dict[str, Any] = {
        "code": error.code,
        "message": f"{error.place}: {error.problem} → {error.fix}",
        **(_place(at) if at else {}),
        **({"page": page} if (page := _page(error)) else {}),
    }
    if isinstance(error, ConfigurationError):
        body["problems"] = located_documents(error.problems)
    return {"error": body}


def located_documents(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Return problems of a configuration as JSON documents, each with its location in a file."""
    return [
        {"place": each.place, **_place(each.at), "problem": each.problem, "fix": each.fix}
        for each in problems
    ]


def as_lines(error: Foreseen) -> list[str]:
    """Return the text for people: what is wrong where, then the fix; each problem separately."""
    if isinstance(error, ConfigurationError):
        problems = [line for p in error.problems for line in _two_lines(p.where, p.problem, p.fix)]
        return [*problems, f"{error.problem}; {error.fix}", *_more(error)]
    return [*_two_lines(located(error.place, _at(error)), error.problem, error.fix), *_more(error)]


def _more(error: Foreseen) -> list[str]:
    return [f"  See {page}"] if (page := _page(error)) else []


def _page(error: Foreseen) -> str | None:
    page = PAGES.get(error.code)
    is_checkout = (_HOME / "pyproject.toml").is_file()
    return page if page is None or is_checkout else str(_HOME / page)


def as_annotations(error: Foreseen) -> list[str]:
    """Return the error as GitHub annotations: one command for each problem with a location in a file.

    Escaped as in GitHub's own toolkit: in data %, CR and LF, in properties also `:` and `,`.
    """
    problems = error.problems if isinstance(error, ConfigurationError) else ()
    told = [(each.at, each) for each in problems] or [(_at(error), error)]
    return [
        f"::error file={_escaped(at[0], ':,')},line={at[1]},col={at[2]}::"
        + _escaped(f"{each.place}: {each.problem} → {each.fix}")
        for at, each in told
        if at is not None
    ]


def _escaped(text: str, more: str = "") -> str:
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return visible(text)


def _at(error: Foreseen) -> tuple[str, int, int] | None:
    return error.at if isinstance(error, ExplainedError) else None


def _place(at: tuple[str, int, int] | None) -> dict[str, Any]:
    return dict(zip(("file", "line", "column"), at or (None, None, None), strict=True))


def _two_lines(place: str, problem: str, fix: str) -> list[str]:
    """Return an error's two lines; foreign text never starts a line, as a runner would obey `::…`."""
    where, why, fixed = (shown(text).replace("\n", "\n  ") for text in (place, problem, fix))
    return [
        f"{typer.style('✗', fg='red')} {typer.style(where, bold=True)}: {why}",
        f"{typer.style('→', fg='green')} {fixed}",
    ]


def foreseen(error: BaseException) -> Foreseen | None:
    """Return the error that users should see for this exception; None if it is a defect."""
    match error:
        case ExplainedError() | SandboxError():
            return error
        case NoReply():
            return error.as_error("start it, or correct KUBECONFIG or credfleet:cluster, then run this again")
        case KeyboardInterrupt():
            return CredfleetError(
                code="cancelled",
                place="credfleet",
                problem=f"stopped by {str(error) or 'Ctrl-C'}; what was finished before is kept",
                fix="run the same command again, it goes on from there",
            )
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return CredfleetError(
                code="disk-full",
                place=str(error.filename or "disk"),
                problem="no space is left to write to",
                fix="free some space, then run the same command again",
            )
        case _:
            return None


def defect(error: BaseException, directory: Path) -> CredfleetError:
    """Write the traceback of an unexpected exception to a file, and return an error that names it."""
    path = directory / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.log"
    try:
        files.replace(path, "".join(traceback.format_exception(error)), mode=files.PRIVATE)
        fix = f"report it with the traceback in {path}"
    except (OSError, SandboxError) as unwritable:
        fix = f"its traceback could not be written to {path} ({type(unwritable).__name__})"
    return CredfleetError(
        code="defect",
        place="credfleet",
        problem=f"this is a defect of credfleet: an unexpected {type(error).__name__}",
        fix=fix,
    )


class ReportingGroup(Group):
    """The root of the command tree, which writes the result or error of a command in the requested format."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments, which tell the requested format if parsing fails.

        `--version` is accepted by every command.
        """
        ctx.meta[_ARGUMENTS] = tuple(args)
        if "--version" in args and not ctx.resilient_parsing:
            from importlib.metadata import version

            typer.echo(f"credfleet {version('credfleet')}")
            raise typer.Exit
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command and write its result; exit with its exit code, or that of its error."""
        try:
            answer = super().invoke(ctx)
            if isinstance(answer, CommandResult):
                write(answer, wanted_form(ctx))
        except typer.TyperException as error:
            if isinstance(error, typer.BadParameter):  # a prefix by the library that reads options for typer
                error.message = error.message.replace("Value error, ", "")
            if error.exit_code != CONFIGURATION or not asks_for_json(ctx.meta[_ARGUMENTS]):
                raise
            write_json({"error": {"code": "usage", "message": error.format_message()}})
            raise typer.Exit(CONFIGURATION) from error
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise  # the command parser's own ways to end a command
        except (Exception, KeyboardInterrupt) as error:
            told = foreseen(error) or defect(error, DEFECTS)
            if (form := wanted_form(ctx)) in (Form.JSON, Form.YAML):
                write(CommandResult(as_document(told), ()), form)
            else:
                typer.echo("\n".join(as_lines(told)), err=True)
                if os.environ.get("GITHUB_ACTIONS") == "true":
                    typer.echo("\n".join(as_annotations(told)), err=True)
            raise typer.Exit(exit_code(told)) from error
        if isinstance(answer, CommandResult):
            raise typer.Exit(answer.exit_code)
        return answer
