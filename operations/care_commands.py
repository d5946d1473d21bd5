"""`credfleet pool`, for those who run a pool: clean, quarantine, sweep, adopt, recover.

Adds to the commands of `pool_commands`.
"""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from operations.forms import Form, OutputOption, examples
from operations.options import ClusterOption, ContextOption, NamespaceOption, YesOption
from operations.pool_commands import app

AccountArgument = Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of the account's Secret.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]


@app.command(
    epilog=examples(
        "credfleet pool clean --command aws=cleaners/aws.sh --command azure=cleaners/azure.sh",
        "credfleet pool clean --command aws=cleaners/aws.sh --take-over aws-7 --yes",
    )
)
def clean(
    *,
    command: Annotated[
        list[str],
        typer.Option("--command", metavar="TYPE=PROGRAM", help="Cleans accounts of a type; repeat it."),
    ],
    namespace: NamespaceOption = "account-pool",
    cleaner: Annotated[
        str, typer.Option("--cleaner", help="Stable id of this cleaner, used by one process at a time.")
    ] = f"cli@{platform.node()}",
    take_over: Annotated[
        list[str] | None,
        typer.Option(
            "--take-over",
            metavar="ACCOUNT",
            help="Also one another cleaner left; rotate its credential.",
        ),
    ] = None,
    yes: YesOption = False,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Wipe dirty accounts by your own programs and let them back.

    The program of a type gets the account's name as its only argument. When it ends with 0 the account is
    free again; else it is quarantined.
    """
    from operations import care
    from operations.pool_access import Where

    care.clean(
        Where(namespace, kubeconfig, context),
        care.programs(command),
        cleaner,
        frozenset(take_over or ()),
        yes=yes,
        as_json=output is Form.JSON,
    )


@app.command(epilog=examples("credfleet pool quarantine aws-7 --reason 'key found in a log, ticket 4711'"))
def quarantine(
    account: AccountArgument,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who come after you.")],
    namespace: NamespaceOption = "account-pool",
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Keep an account from new holders; present ones keep it."""
    from operations import care
    from operations.pool_access import Where

    care.quarantine(Where(namespace, kubeconfig, context), account, reason, as_json=output is Form.JSON)


@app.command(epilog=examples("credfleet pool unquarantine aws-7 --yes"))
def unquarantine(
    account: AccountArgument,
    *,
    namespace: NamespaceOption = "account-pool",
    yes: YesOption = False,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Let a quarantined account back, to the cleaner if it was used."""
    from operations import care
    from operations.pool_access import Where

    care.unquarantine(Where(namespace, kubeconfig, context), account, yes=yes, as_json=output is Form.JSON)


@app.command(epilog=examples("credfleet pool decommission aws-7 --yes"))
def decommission(
    account: AccountArgument,
    *,
    namespace: NamespaceOption = "account-pool",
    yes: YesOption = False,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Give a dirty account up, so that it may be removed uncleaned."""
    from operations import care
    from operations.pool_access import Where

    care.decommission(Where(namespace, kubeconfig, context), account, yes=yes, as_json=output is Form.JSON)


@app.command(epilog=examples("credfleet pool sweep --dry-run", "credfleet pool sweep --yes"))
def sweep(
    *,
    namespace: NamespaceOption = "account-pool",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Finish what crashed claims and releases left behind.

    Without --yes no more than a few accounts are freed: many dead claims at once are a sign of something.
    """
    from operations import care
    from operations.pool_access import Where

    care.sweep(Where(namespace, kubeconfig, context), dry_run=dry_run, yes=yes, as_json=output is Form.JSON)


@app.command(epilog=examples("credfleet pool adopt", "credfleet pool adopt --holder legacy-broker --yes"))
def adopt(
    *,
    namespace: NamespaceOption = "account-pool",
    holder: Annotated[str, typer.Option("--holder", help="Who uses the accounts.")] = "cli",
    yes: YesOption = False,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Make claims for accounts that only bear an owner's label.

    Reports what it would do; does it with --yes or when you agree.
    """
    from operations import care
    from operations.pool_access import Where

    care.adopt(Where(namespace, kubeconfig, context), holder, yes=yes, as_json=output is Form.JSON)


@app.command(epilog=examples("credfleet pool recover --dry-run", "credfleet pool recover --yes"))
def recover(
    *,
    namespace: NamespaceOption = "account-pool",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Bind claims to accounts again after a restore from a backup."""
    from operations import care
    from operations.pool_access import Where

    care.recover(Where(namespace, kubeconfig, context), dry_run=dry_run, yes=yes, as_json=output is Form.JSON)
