"""The `credfleet` command: its command tree, whose parts are imported on demand."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.main import get_group_from_info
from typer.models import TyperInfo

from operations.cli.command import epilog
from operations.cli.failures import ReportingGroup

_ALONE: Final = "alone"
"""Name, in a module, of the group whose commands are at the top level of the CLI."""

_COMMANDS: Final = {
    "bootstrap": ("bootstrap.commands", _ALONE, "Print the permissions of workflows, or check them."),
    "init": ("project.commands", _ALONE, "Create a Pulumi project of your own."),
    "doctor": ("pool.commands", _ALONE, "Find what is wrong with a pool, and what fixes it."),
    "preview-report": ("preview_report.command", _ALONE, "Review a preview, for a pull request."),
    "sandbox": ("sandbox.commands", "app", "Run a stack without a cloud or a cluster."),
    "pool": ("pool.commands", "app", "Inspect a pool, and claim and release accounts."),
    "config": ("config.commands", "app", "Check the configuration of a stack."),
    "fleet": ("fleet.commands", "app", "Manage all stacks of a project together."),
    "aso": ("aso.commands", "app", "Show which credential Azure Service Operator uses."),
    "pull-secret": ("pull_secret.commands", "app", "Check pull secrets, and ask about clusters."),
    "review": ("review.commands", "app", "Preview a stack without its keys."),
    "stores": ("stores.commands", "app", "Explain which credentials secret stores use, and for whom."),
}
"""Command or group → module in this package, name in it, and help text."""


_OBJECTS: Final = 50_000
"""New objects before a garbage collection: imports create many that are never garbage."""


class _Loaded(Mapping[str, Any]):
    """The commands by name, each imported on first access."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def __getitem__(self, word: str) -> Any:
        if word not in self._known:
            module, name, _ = _COMMANDS[word]
            group = get_group_from_info(
                TyperInfo(getattr(import_module(f".{module}", __package__), name), name=word),
                pretty_exceptions_short=False,
                suggest_commands=True,
                rich_markup_mode=None,
            )
            self._known[word] = group.commands[word] if name == _ALONE else group
        return self._known[word]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Root(ReportingGroup):
    """The root of the command tree, whose help imports none of the commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Loaded()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(word, told) for word, (_, _, told) in _COMMANDS.items()])


app = typer.Typer(
    name="credfleet",
    cls=_Root,
    help="Credentials of a fleet of tenants: accounts from pools, what is made of them, and a sandbox.",
    epilog=epilog(
        "credfleet sandbox up              # a real API server, pools and claims",
        "credfleet pool status             # who has which account",
        "credfleet config check            # all problems of a stack's file",
        "credfleet --install-completion    # completion for your shell",
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root(
    *, version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False
) -> None:
    """Make the root a group, although nothing is registered in it."""
    del version  # the group handles it wherever it stands


def main() -> None:
    """Run the command line and end the process with its exit code.

    SIGTERM and SIGHUP act like Ctrl-C, unless they are ignored, as by nohup.
    """
    gc.set_threshold(_OBJECTS)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    app(prog_name="credfleet")


def _stop(number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)
