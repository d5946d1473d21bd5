"""Turns functions into commands with examples, options, and output formats.

A parameter whose type is a dataclass is a group: its fields that are options become options of the command,
and the function gets them as one object; if it is annotated with a dataclass, the result of its `resolve`. An
object with `advise` completes the advice in errors with its options.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import is_dataclass
from functools import wraps
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from components.errors import ExplainedError
from operations.cli.answer import CommandResult
from operations.cli.options import Form, JsonOption, OutputOption

_Function = TypeVar("_Function", bound=Callable[..., CommandResult | None])
_Parameters = Mapping[str, inspect.Parameter]

_WIDTH: Final = 72
"""Maximum length of an example's line, so that it fits indented into 80 columns."""
_BEFORE_AN_OPTION: Final = re.compile(r"(?<= )(?=--?[a-z]|[|>&])|(?<=; )")

_ORDER: Final = {"namespace": 0, "output": 2, "as_json": 3}
"""Position of options in the help, whatever group defines them; all others are between."""


class Group(TyperGroup):
    """A group of commands by task; its help lists each with the whole first paragraph of its help text."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the list of commands."""
        _write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        tasks: dict[str | None, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            each: Any = self.commands[name]
            told = " ".join((each.help or "").partition("\n\n")[0].split())
            tasks.setdefault(each.rich_help_panel, []).append((name, told))
        with formatter.section("Commands"):
            for task, commands in tasks.items():
                with formatter.section(task) if task else nullcontext():
                    formatter.write_dl(commands)


class Command(TyperCommand):
    """A command with a conventional usage line: `pool rotate [OPTIONS] [ACCOUNT]...`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line."""
        return [re.sub("[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options."""
        _write_options(self, ctx, formatter)


def _write_options(command_: Any, ctx: Any, formatter: Any) -> None:
    """Write arguments and options; a value is named after its option's last word, or N for a number."""
    told: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for each in command_.get_params(ctx):
        is_option = each.param_type_name == "option"
        if is_option and not each.type_descriptor.is_choice and each.metavar is None:
            is_number = each.type_descriptor.is_ranged
            each.metavar = "N" if is_number else max(each.opts, key=len).rpartition("-")[2].upper()
        name, help_ = each.get_help_record(ctx)
        told["Options" if is_option else "Arguments"].append((name if is_option else each.metavar, help_))
    for title, records in told.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def group(help_: str, *examples: str) -> typer.Typer:
    """Return a Typer app that only has subcommands."""
    return typer.Typer(cls=Group, help=help_, epilog=epilog(*examples), no_args_is_help=True)


def epilog(*examples: str) -> str:
    """Return the epilog of a command: its examples, folded with line continuations for a shell."""
    return "\b\nExamples:\n" + "\n".join(f"  {_folded(example)}" for example in examples)


def _folded(example: str) -> str:
    lines = [""]
    for part in _BEFORE_AN_OPTION.split(example):
        if lines[-1].strip() and len(lines[-1]) + len(part) > _WIDTH:
            lines.append("    ")
        lines[-1] += part
    return "\\\n".join(lines)


def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return the parameter for an option that is not passed to the function."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


OUTPUT: Final = parameter("output", OutputOption, Form.TABLE)
JSON: Final = parameter("as_json", JsonOption, default=False)


def command(
    app: typer.Typer,
    *examples: str,
    name: str | None = None,
    panel: str | None = None,
    form: tuple[inspect.Parameter, ...] = (OUTPUT,),
) -> Callable[[_Function], _Function]:
    """Return a decorator that registers a function as a command.

    panel: the task under which it is listed. form: the options that select the output format.
    """

    def register(function: _Function) -> _Function:
        signature = inspect.signature(function, eval_str=True)
        parameters = signature.parameters
        kinds = {key: kind for key, each in parameters.items() for kind in _groups_in(each.annotation)}
        groups = {key: _options(kind) for key, kind in kinds.items()}

        @wraps(function)
        def run(**values: Any) -> Any:
            given = {key: values[key] for key in parameters if key not in groups}
            for key, kind in kinds.items():
                made = kind(**{field: values[field] for field in groups[key]})
                given[key] = made if kind is parameters[key].annotation else made.resolve()
            try:
                return function(**given)
            except ExplainedError as error:
                for each in given.values():
                    if (advise := getattr(each, "advise", None)) is not None:
                        error.fix = advise(error.fix)
                raise

        own = [
            option
            for key, each in parameters.items()
            for option in (groups[key].values() if key in groups else (each,))
        ]
        chosen = form if signature.return_annotation is CommandResult else ()
        ordered = sorted(
            (each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *chosen)),
            key=lambda each: _ORDER.get(each.name, 1),
        )
        vars(run)["__signature__"] = inspect.Signature(ordered)
        run.__annotations__ = {}
        app.command(name, cls=Command, epilog=epilog(*examples), rich_help_panel=panel)(run)
        return function

    return register


def _groups_in(annotation: Any) -> list[Any]:
    """Return the dataclass whose fields are options, if the type or its annotation is one."""
    return [each for each in (annotation, *get_args(annotation)[1:]) if is_dataclass(each)]


def _options(group_: Any) -> _Parameters:
    """Return the fields of a group that are options; the others must have defaults."""
    fields = inspect.signature(group_, eval_str=True).parameters
    return {key: each for key, each in fields.items() if get_origin(each.annotation) is Annotated}
