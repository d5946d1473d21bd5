"""How a function becomes a command: its examples, its options, and the form it answers in.

A parameter whose type is a dataclass is a group: each field of it that is an option becomes one of the
command, and the function gets them as one object. One with `advise` completes the advice of errors by its
options.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from typing import Annotated, Any, Final, TypeVar, get_origin

import typer
from typer.core import TyperGroup

from components.errors import ExplainedError
from operations.cli.answer import CommandResult
from operations.cli.options import Form, JsonOption, OutputOption

_Function = TypeVar("_Function", bound=Callable[..., CommandResult | None])
_Parameters = Mapping[str, inspect.Parameter]

_WIDTH: Final = 72
"""Characters of an example's line: the help indents it, in a terminal of 80 columns."""
_BEFORE_AN_OPTION: Final = re.compile(r"(?<= )(?=--?[a-z]|[|>&])|(?<=; )")

_ORDER: Final = {"namespace": 0, "output": 2, "as_json": 3, "events": 3}
"""Where the help lists options, whatever group they are in; all others between."""


class Group(TyperGroup):
    """Commands below one word; the help lists each with the whole of its first paragraph."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of the commands."""
        below = ((name, self.commands[name]) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, each.short_help or " ".join((each.help or "").partition("\n\n")[0].split()))
                    for name, each in below
                    if not each.hidden
                ]
            )


def group(help_: str, *examples: str) -> typer.Typer:
    """Return a command that has only commands below it."""
    return typer.Typer(cls=Group, help=help_, epilog=epilog(*examples), no_args_is_help=True)


def epilog(*examples: str) -> str:
    """Return the epilog of a command: its examples, each to be copied, folded as a shell takes it."""
    return "\b\nExamples:\n" + "\n".join(f"  {_folded(example)}" for example in examples)


def _folded(example: str) -> str:
    lines = [""]
    for part in _BEFORE_AN_OPTION.split(example):
        if lines[-1].strip() and len(lines[-1]) + len(part) > _WIDTH:
            lines.append("    ")
        lines[-1] += part
    return "\\\n".join(lines)


def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return an option that a command has besides those of its function, which never sees it."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


OUTPUT: Final = parameter("output", OutputOption, Form.TABLE)
JSON: Final = parameter("as_json", JsonOption, default=False)


def command(
    app: typer.Typer,
    *examples: str,
    name: str | None = None,
    short_help: str | None = None,
    form: tuple[inspect.Parameter, ...] = (OUTPUT,),
) -> Callable[[_Function], _Function]:
    """Make a function a command. form: the options by which the form of its Answer is chosen, if any."""

    def register(function: _Function) -> _Function:
        signature = inspect.signature(function, eval_str=True)
        groups = {
            key: _options(each.annotation)
            for key, each in signature.parameters.items()
            if is_dataclass(each.annotation)
        }

        @wraps(function)
        def run(**values: Any) -> Any:
            given = {key: values[key] for key in signature.parameters if key not in groups}
            for key, fields in groups.items():
                make = signature.parameters[key].annotation
                given[key] = make(**{field: values[field] for field in fields})
            try:
                return function(**given)
            except ExplainedError as error:
                for each in given.values():
                    if (advise := getattr(each, "advise", None)) is not None:
                        error.fix = advise(error.fix)
                raise

        own = [
            option
            for key, each in signature.parameters.items()
            for option in (groups[key].values() if key in groups else (each,))
        ]
        chosen = form if signature.return_annotation is CommandResult else ()
        ordered = sorted(
            (each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *chosen)),
            key=lambda each: _ORDER.get(each.name, 1),
        )
        vars(run)["__signature__"] = inspect.Signature(ordered)
        run.__annotations__ = {}
        app.command(name, short_help=short_help, epilog=epilog(*examples))(run)
        return function

    return register


def _options(group_: Any) -> _Parameters:
    """Return the fields of a group that are options; the others have defaults."""
    fields = inspect.signature(group_, eval_str=True).parameters
    return {key: each for key, each in fields.items() if get_origin(each.annotation) is Annotated}
