"""`credfleet pool`, for those who run a pool: clean, quarantine, sweep, adopt, recover.

Adds to the commands of `pool_commands`.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated

import typer

from operations.cli.answer import Form, OutputOption, examples
from operations.cli.options import ClusterOption, ContextOption, NamespaceOption, StackOption, YesOption
from operations.pool.commands import app

AccountArgument = Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of the account's Secret.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]


@app.command(
    epilog=examples(
        "credfleet pool clean",
        "credfleet pool clean --type aws --cleaner nightly --yes",
        "credfleet pool clean --command 'aws=cleaners/aws.sh --fast' --take-over aws-7",
    )
)
def clean(
    *,
    namespace: NamespaceOption = "account-pool",
    type_: Annotated[str | None, typer.Option("--type", "-t", help="Only accounts of this type.")] = None,
    cleaner: Annotated[
        str, typer.Option("--cleaner", help="Stable id of this cleaner, used by one process at a time.")
    ] = f"cli@{platform.node()}",
    take_over: Annotated[
        list[str] | None,
        typer.Option(
            "--take-over",
            metavar="ACCOUNT",
            help="Also one another cleaner left; the command must rotate its credential.",
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option(
            "--command",
            metavar="TYPE=COMMAND",
            help="Instead of the stack's accountPool.cleaning; repeat it for each type.",
        ),
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="How long one account may take.")
    ] = "30m",
    stack: StackOption = "dev",
    yes: YesOption = False,
    kubeconfig: ClusterOption = None,
    context: ContextOption = None,
    output: OutputOption = Form.TABLE,
) -> None:
    """Wipe dirty accounts by your own commands and let them back.

    The command of a type is run without a shell, with the account's name as its last argument, and with
    KUBECONFIG and CREDFLEET_NAMESPACE to read the Secret by. When it ends with 0 the account is free
    again; else, or when the type has no command, it is quarantined with the reason.
    """
    from operations.pool import cleaning
    from operations.pool.access import Where
    from operations.pool.claims import seconds

    given = (cleaning.given(command), Path.cwd()) if command else cleaning.configured(stack)
    where = Where(namespace, kubeconfig, context)
    cleaning.clean(
        cleaning.Cleaner(*given, where, seconds(timeout, option="--timeout")),
        cleaner,
        frozenset(take_over or ()),
        account_type=type_,
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
    from operations.pool import maintenance
    from operations.pool.access import Where

    maintenance.quarantine(
        Where(namespace, kubeconfig, context), account, reason, as_json=output is Form.JSON
    )


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
    """Let a quarantined account back.

    If a tenant had it since it was clean, it goes to the cleaner first.
    """
    from operations.pool import maintenance
    from operations.pool.access import Where

    maintenance.unquarantine(
        Where(namespace, kubeconfig, context), account, yes=yes, as_json=output is Form.JSON
    )


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
    """Give a dirty account up.

    It is never handed out again, and whoever declares it may remove it without cleaning.
    """
    from operations.pool import maintenance
    from operations.pool.access import Where

    maintenance.decommission(
        Where(namespace, kubeconfig, context), account, yes=yes, as_json=output is Form.JSON
    )


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
    from operations.pool import maintenance
    from operations.pool.access import Where

    maintenance.sweep(
        Where(namespace, kubeconfig, context), dry_run=dry_run, yes=yes, as_json=output is Form.JSON
    )


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

    Only reports what it would do, unless --yes is given.
    """
    from operations.pool import maintenance
    from operations.pool.access import Where

    maintenance.adopt(Where(namespace, kubeconfig, context), holder, yes=yes, as_json=output is Form.JSON)


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
    from operations.pool import maintenance
    from operations.pool.access import Where

    maintenance.recover(
        Where(namespace, kubeconfig, context), dry_run=dry_run, yes=yes, as_json=output is Form.JSON
    )
