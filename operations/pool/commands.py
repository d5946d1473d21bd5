"""`credfleet pool` and `credfleet doctor`: accounts and their holders, manual claims, and maintenance."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from operations.cli.answer import CommandResult
from operations.cli.command import command, group, parameter
from operations.cli.options import form_option
from operations.pool.access import NamedPool, PoolOptions, PoolToRead, PoolToWrite
from operations.pool.options import (
    AccountArgument,
    AdoptionOptions,
    BringingOptions,
    By,
    ClaimOptions,
    CleaningOptions,
    DryRunOption,
    HeldPartOption,
    HeldTypeOption,
    ReasonOption,
    ReleaseOptions,
    RotationOptions,
    UpdateOption,
    reason_option,
)

app = group(
    "Inspect a pool of accounts; claim and release accounts.",
    "credfleet pool status",
    "credfleet pool claim --namespace account-pool --type aws --tenant acme",
)

_observes = partial(command, app, panel="Observe")
_claims = partial(command, app, panel="Claim")
_adds = partial(command, app, panel="Add accounts")
_cleans = partial(command, app, panel="Clean and rotate")
_withholds = partial(command, app, panel="Withhold accounts")
_repairs = partial(command, app, panel="Repair")

alone = typer.Typer()


@_observes(
    "credfleet pool status",
    "credfleet pool status --namespace account-pool --output json",
    "credfleet pool status --all --by tenant",
)
def status(
    *,
    all_: Annotated[
        bool, typer.Option("--all", "-A", help="Every pool of the cluster that you can read.")
    ] = False,
    by: Annotated[By | None, typer.Option(help="Group by tenant, stack, or type.")] = None,
    where: PoolToRead,
) -> CommandResult:
    """Show who has which account since when, and what is free.

    Counts by type and partition: free, claimed, dirty, being cleaned, quarantined. Accounts that need a
    cleaner or an operator have their age, the oldest first.
    """
    from operations.pool import status

    if all_:
        return status.status_everywhere(where, by=by)
    return status.status(where, by=by)


@_claims(
    "credfleet pool claim --namespace account-pool --type aws --tenant acme",
    "credfleet pool claim -n account-pool -t aws --tenant acme --slot eu --partition eu-access=true",
    "credfleet pool claim -n account-pool --plan trial --tenant acme --wait 10m --output json",
)
def claim(
    asked: ClaimOptions,
    *,
    wait: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time to wait for a free account: 30s, 10m, 2h.")
    ] = None,
    where: NamedPool,
) -> CommandResult:
    """Claim an account for a tenant: the one it has, or a free one.

    A repeated claim returns the same account.

    Exit codes: 2 invalid arguments, 3 no free account, 4 invalid pool or request, 5 permission denied.
    """
    from operations.pool import claims

    return claims.claim(asked, where, wait)


@_claims(
    "credfleet pool release --namespace account-pool --type aws --tenant acme",
    "credfleet pool release -n account-pool -t aws --tenant acme --holder ci --yes",
    "credfleet pool release -n account-pool --stack-gone organization/credfleet/dev",
)
def release(asked: ReleaseOptions, where: NamedPool) -> CommandResult:
    """Release an account, or all accounts of a stack.

    The claim's release policy decides about its state. Releasing twice is not an error.

    To release for another holder, such as a stack, use --holder and --yes.

    Exit codes: 1 others hold it, or the stack holds nothing.
    """
    from operations.pool import claims

    return claims.release(asked, where)


@_observes(
    "credfleet pool explain --tenant acme --type aws",
    "credfleet pool explain --tenant acme --plan gcp --region cf-sa30",
    "credfleet pool explain --tenant acme --type aws --partition eu-access=true --output json",
)
def explain(asked: ClaimOptions, where: PoolToRead) -> CommandResult:
    """Explain why a claim gets an account, or none.

    Shows the rule that chose the pool, the existing claim, and every account of the type with its reason.
    """
    from operations.pool import explain

    return explain.explain_claim(asked, where)


@_observes(
    "credfleet pool metrics",
    "credfleet pool metrics > pool.prom.new && mv pool.prom.new /var/lib/node_exporter/pool.prom",
    form=(
        parameter(
            "output",
            Annotated[Literal["prometheus", "json"], form_option("--output", "-o")],
            "prometheus",
        ),
    ),
)
def metrics(where: PoolToRead) -> CommandResult:
    """Print the metrics of a pool for Prometheus.

    By type and partition, zeros included, so that an alert on an empty pool has a series.
    """
    from operations.pool import metrics

    return metrics.metrics(where)


@_observes(
    "credfleet pool serve --stack prod",
    "credfleet pool serve --namespace account-pool --listen 0.0.0.0:9469",
)
def serve(
    *,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address to listen on.")
    ] = "127.0.0.1:9469",
    where: PoolToRead,
) -> CommandResult:
    """Serve the pool's metrics to Prometheus, at /metrics."""
    from operations.pool import metrics

    return metrics.serve(where, listen)


@_cleans(
    "credfleet pool clean",
    "credfleet pool clean --type aws --cleaner nightly --yes",
    "credfleet pool clean --command aws=cleaners/aws.sh --take-over aws-7",
    "credfleet pool clean --cleaner nightly --at-once 8 --attempts 3 --cooldown 5m --within 2h --yes",
)
def clean(options: CleaningOptions, where: PoolToWrite) -> CommandResult:
    """Clean dirty accounts with your own commands, then free them.

    The command of a type runs without a shell. Its last argument is the account's name. It can read the
    Secret with KUBECONFIG and CREDFLEET_NAMESPACE. Exit code 0 frees the account. If every attempt fails, or
    the type has no command, the account is quarantined with the reason.

    The command and its children end with the run. Accounts of other runs are skipped.

    Exit codes: 1 an account was not cleaned, was taken over, or was not reached in time.
    """
    from operations.pool import cleaning

    return cleaning.clean(options, where)


@_cleans(
    "credfleet pool rotate aws-7 --stack prod",
    "credfleet pool rotate --type aws --older-than 90 --stack prod --yes",
    "vault read … | credfleet pool rotate aws-7 --values - --namespace account-pool --yes",
    "credfleet pool rotate aws-7 --who",
    "credfleet pool rotate aws-7 --complete --stack prod",
)
def rotate(options: RotationOptions, where: PoolToWrite) -> CommandResult:
    """Put a second key of accounts into use. The former key is valid until --complete.

    The stack's accountPool.keys names your program for each type. It runs without a shell. Its last arguments
    are the account and `identify`, `create`, `test`, or `revoke`, and its input is JSON. The next run
    continues a run that was stopped. Nothing is revoked automatically.

    Exit codes: 1 an account stayed in its phase, for the reason shown.
    """
    from operations.pool import rotating

    return rotating.rotate(options, where)


@_withholds("credfleet pool hold --type aws --reason 'accounts are moved to another organization'")
def hold(
    *,
    reason: Annotated[str, reason_option("Reason, shown to rejected claims.")],
    type_: HeldTypeOption = None,
    partition: HeldPartOption = None,
    where: PoolToWrite,
) -> CommandResult:
    """Stop new claims until `pool resume`. Existing claims are not affected.

    Exit codes: 5 permission denied.
    """
    from operations.pool import maintenance

    return maintenance.hold(where, reason, type_, partition or ())


@_withholds("credfleet pool resume")
def resume(
    *, type_: HeldTypeOption = None, partition: HeldPartOption = None, where: PoolToWrite
) -> CommandResult:
    """Allow new claims again, of one type or of everything that is held."""
    from operations.pool import maintenance

    return maintenance.hold(where, "", type_, partition or ())


@_withholds("credfleet pool quarantine aws-7 --cut --reason 'key found in a log, ticket 4711'")
def quarantine(
    account: AccountArgument,
    *,
    reason: ReasonOption,
    cut: Annotated[
        bool,
        typer.Option("--cut", help="Also remove the tenant's copies and Role until `unquarantine`."),
    ] = False,
    where: PoolToWrite,
) -> CommandResult:
    """Keep an account from new holders. Present holders keep it, unless --cut is given.

    Exit codes: 1 a copy or a Role could not be removed.
    """
    from operations.pool import cutting, maintenance

    if cut:
        return cutting.cut_off(where, account, reason)
    return maintenance.quarantine(where, account, reason)


@_withholds("credfleet pool evacuate aws-7 --reason 'its organization is closed, ticket 4711' --yes")
def evacuate(account: AccountArgument, *, reason: ReasonOption, where: PoolToWrite) -> CommandResult:
    """Move the holders of an account to other accounts, then release it.

    The next update of each stack that holds it claims another account, delivers it, and releases this one.
    While no account is free, the stack keeps this one. `pool unquarantine` cancels the evacuation.
    """
    from operations.pool import maintenance

    return maintenance.evacuate(where, account, reason)


@_withholds("credfleet pool unquarantine aws-7 --yes")
def unquarantine(
    account: AccountArgument,
    *,
    decommissioned: Annotated[
        bool, typer.Option("--decommissioned", help="Also a decommissioned account.")
    ] = False,
    where: PoolToWrite,
) -> CommandResult:
    """End the quarantine of an account.

    If it was dirty, or a tenant had it since it was clean, it must be cleaned first.
    """
    from operations.pool import maintenance

    return maintenance.unquarantine(where, account, decommissioned=decommissioned)


@_withholds("credfleet pool decommission aws-7 --yes")
def decommission(account: AccountArgument, *, where: PoolToWrite) -> CommandResult:
    """Exclude a dirty account from all future claims.

    Its entry can be removed without cleaning.
    """
    from operations.pool import maintenance

    return maintenance.decommission(where, account)


@_cleans("credfleet pool mark-dirty aws-7 --reason 'used manually'", name="mark-dirty")
def mark_dirty(account: AccountArgument, *, reason: ReasonOption, where: PoolToWrite) -> CommandResult:
    """Mark an unclaimed account as dirty, so that it is cleaned.

    An account with an owner keeps its owner.
    """
    from operations.pool import maintenance

    return maintenance.mark_dirty(where, account, reason)


@_cleans("credfleet pool return aws-7 --yes", name="return")
def take_back(account: AccountArgument, *, where: PoolToWrite) -> CommandResult:
    """Return a retained account to the pool.

    It becomes dirty, and is free after cleaning. An account that its tenant brought is rejected.
    """
    from operations.pool import maintenance

    return maintenance.take_back(where, account)


@_repairs("credfleet pool sweep --dry-run", "credfleet pool sweep --yes")
def sweep(*, dry_run: DryRunOption = False, where: PoolToWrite) -> CommandResult:
    """Finish claims and releases that crashed.

    Without --yes, it frees only a few accounts: many dead claims look like a restored backup.

    Exit codes: 1 some need --yes.
    """
    from operations.pool import maintenance

    return maintenance.sweep(where, dry_run=dry_run)


@_claims(
    "credfleet pool adopt --stack prod",
    "credfleet pool adopt --map acme/aws=main --map acme/gcp=data --yes",
    "credfleet pool adopt --slot main --holder legacy-broker --yes",
)
def adopt(options: AdoptionOptions, where: PoolToWrite) -> CommandResult:
    """Create claims for accounts that have only an owner's label.

    Each claim gets the slot that --map, the stack, or --slot names, so that the stack's claim finds it. In
    another slot, the stack would claim a second account.

    Without --yes, it only shows what it would do.
    """
    from operations.pool import adopting

    return adopting.adopt(options, where)


@_adds(
    "credfleet pool import members.csv --values keys/ --stack prod",
    "credfleet pool import members.csv --values keys/ --stack prod --update",
    "vault read -format=json … | credfleet pool import members.csv --values - --namespace account-pool",
    name="import",
)
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.csv", help="CSV file with columns name, type, accountId.")
    ],
    *,
    values: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="Folder with NAME.json for each account. - reads one JSON object of all."
        ),
    ],
    update: UpdateOption = False,
    dry_run: DryRunOption = False,
    where: NamedPool,
) -> CommandResult:
    """Create the Secrets of accounts in a CSV, and compare existing ones.

    A value is a JSON object of strings, which become the keys of the Secret. Nothing is written if any row or
    value is invalid. Of an existing Secret, only the value is changed.

    Columns of the CSV: name, type, accountId, one for each partition key, and optionally expiresAt.

    Exit codes: 1 one differs or was rejected.
    """
    from operations.pool import importing

    return importing.import_accounts(where, file, values, update=update, dry_run=dry_run)


@_adds(
    "credfleet pool bring --tenant acme --type aws --account-id 111122223333 --values key.json",
    "vault read … | credfleet pool bring --tenant acme -t gcp --account-id acme-prod --values -",
)
def bring(options: BringingOptions, where: PoolToWrite) -> CommandResult:
    """Add an account that belongs to a tenant to the pool.

    It needs no stack, only the permission of accountPool.bringers for this tenant. The tenant's next claim of
    the type takes it first.

    Exit codes: 1 it exists with another value, or one that you cannot read; 5 permission denied.
    """
    from operations.pool import importing

    return importing.bring(options, where)


@_repairs("credfleet pool recover --dry-run", "credfleet pool recover --yes")
def recover(*, dry_run: DryRunOption = False, where: PoolToWrite) -> CommandResult:
    """Bind claims to accounts again after a restored backup."""
    from operations.pool import maintenance

    return maintenance.recover(where, dry_run=dry_run)


@command(alone, "credfleet doctor", "credfleet doctor --stack prod --output json")
def doctor(options: PoolOptions) -> CommandResult:
    """Find what is wrong with a pool, and the command that fixes it.

    Checks the cluster, your permissions, the admission policies, the pool, its accounts, and claims. Writes
    nothing.

    Exit codes: 1 something is wrong.
    """
    from operations.pool import doctor

    return doctor.doctor(options)
