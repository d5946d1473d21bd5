"""`credfleet pool` and `credfleet doctor`: who has which account, claims by hand, and the care of a pool."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated, Literal

import typer

from components.errors import Misused
from operations.cli.answer import CommandResult
from operations.cli.command import command, group, parameter
from operations.cli.options import form_option, stack_option
from operations.pool.access import (
    By,
    ClaimOptions,
    NamedPoolOptions,
    OptionalClaimOptions,
    PartOption,
    PoolOptions,
    PoolTarget,
    TenantOption,
    WritablePoolOptions,
    part_option,
)

app = group(
    "Inspect a pool of accounts; claim and release accounts.",
    "credfleet pool status",
    "credfleet pool claim --namespace account-pool --type aws --tenant acme",
)

alone = typer.Typer()

AccountArgument = Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of the account's Secret.")]
OrganizationOption = Annotated[
    str, typer.Option("--organization", help="Organization of the stack, part of its holder ids.")
]
UpdateOption = Annotated[bool, typer.Option("--update", help="Replace values that differ.")]
OnlyTypeOption = Annotated[str | None, typer.Option("--type", "-t", help="Only accounts of this type.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


@command(
    app,
    "credfleet pool status",
    "credfleet pool status --namespace account-pool --output json",
    "credfleet pool status --all --by tenant",
)
def status(
    *,
    all_: Annotated[
        bool, typer.Option("--all", "-A", help="Every pool of the cluster that you can read.")
    ] = False,
    by: Annotated[
        By | None,
        typer.Option("--by", help="Group by tenant, stack, or type."),
    ] = None,
    where: PoolOptions,
) -> CommandResult:
    """Show who has which account since when, and what is free.

    Counts by type and partition: free, claimed, dirty, being cleaned, quarantined. Accounts that need a
    cleaner or an operator have their age, the oldest first.
    """
    from operations.pool import status

    if all_:
        return status.status_everywhere(where, by=by)
    return status.status(where, by=by)


@command(
    app,
    "credfleet pool claim --namespace account-pool --type aws --tenant acme",
    "credfleet pool claim -n account-pool -t aws --tenant acme --slot eu --partition eu-access=true",
    "credfleet pool claim -n account-pool --plan trial --tenant acme --wait 10m --output json",
)
def claim(
    asked: ClaimOptions,
    *,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="TIME", help="Time to wait for a free account: 30s, 10m, 2h."),
    ] = None,
    where: NamedPoolOptions,
) -> CommandResult:
    """Claim an account for a tenant: the one it has, or a free one.

    A repeated claim returns the same account.

    Exit codes: 2 invalid arguments, 3 no free account, 4 invalid pool or request, 5 permission denied.
    """
    from operations.pool import claims

    return claims.claim(asked, where, wait)


@command(
    app,
    "credfleet pool release --namespace account-pool --type aws --tenant acme",
    "credfleet pool release -n account-pool -t aws --tenant acme --holder ci --yes",
    "credfleet pool release -n account-pool --stack-gone organization/credfleet/dev",
)
def release(
    asked: OptionalClaimOptions,
    *,
    stack_gone: Annotated[
        str | None,
        typer.Option(
            "--stack-gone",
            metavar="STACK",
            help="Instead: all claims of a deleted stack. Only shows them without --yes.",
        ),
    ] = None,
    where: NamedPoolOptions,
) -> CommandResult:
    """Release an account, or all accounts of a stack.

    The claim's release policy decides about its state. Releasing twice is not an error.

    To release for another holder, such as a stack, use --holder and --yes.

    Exit codes: 1 others hold it, or the stack holds nothing.
    """
    from operations.pool import claims

    if stack_gone is not None:
        return claims.release_of_stack(stack_gone, asked, where)
    return claims.release(asked, where)


@command(
    app,
    "credfleet pool explain --tenant acme --type aws",
    "credfleet pool explain --tenant acme --plan gcp --region cf-sa30",
    "credfleet pool explain --tenant acme --type aws --partition eu-access=true --output json",
)
def explain(asked: ClaimOptions, where: PoolOptions) -> CommandResult:
    """Explain why a claim gets an account, or none.

    Shows the rule that chose the pool, the existing claim, and every account of the type with its reason.
    """
    from operations.pool import explain

    return explain.explain_claim(asked, where)


@command(
    app,
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
def metrics(where: PoolOptions) -> CommandResult:
    """Print the metrics of a pool for Prometheus.

    By type and partition, zeros included, so that an alert on an empty pool has a series.
    """
    from operations.pool import metrics

    return metrics.metrics(where)


@command(
    app,
    "credfleet pool serve --stack prod",
    "credfleet pool serve --namespace account-pool --listen 0.0.0.0:9469",
)
def serve(
    *,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Address to listen on.")
    ] = "127.0.0.1:9469",
    where: PoolOptions,
) -> CommandResult:
    """Serve the pool's metrics to Prometheus, at /metrics."""
    from operations.pool import serving

    return serving.serve(where, listen)


@command(
    app,
    "credfleet pool clean",
    "credfleet pool clean --type aws --cleaner nightly --yes",
    "credfleet pool clean --command aws=cleaners/aws.sh --take-over aws-7",
    "credfleet pool clean --cleaner nightly --at-once 8 --attempts 3 --cooldown 5m --within 2h --yes",
)
def clean(
    *,
    type_: OnlyTypeOption = None,
    cleaner: Annotated[
        str, typer.Option("--cleaner", help="Id of this cleaner. It continues its own dead runs.")
    ] = f"cli@{platform.node()}",
    take_over: Annotated[
        list[str] | None,
        typer.Option(
            "--take-over",
            metavar="ACCOUNT",
            help="Account of a run on another host. Its command must rotate the credential.",
        ),
    ] = None,
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "--command",
            metavar="TYPE=COMMAND",
            help="Instead of the stack's accountPool.cleaning. Can be repeated.",
        ),
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="Maximum time of the command for one account.")
    ] = "30m",
    at_once: Annotated[
        int, typer.Option("--at-once", min=1, max=64, help="Accounts to clean in parallel.")
    ] = 1,
    attempts: Annotated[
        int, typer.Option("--attempts", min=1, max=20, help="Maximum attempts for one account.")
    ] = 1,
    cooldown: Annotated[
        str, typer.Option("--cooldown", metavar="TIME", help="Time between two attempts.")
    ] = "1m",
    within: Annotated[
        str, typer.Option("--within", metavar="TIME", help="Time after which no more accounts are started.")
    ] = "24h",
    where: WritablePoolOptions,
) -> CommandResult:
    """Clean dirty accounts with your own commands, then free them.

    The command of a type runs without a shell. Its last argument is the account's name. It can read the
    Secret with KUBECONFIG and CREDFLEET_NAMESPACE. Exit code 0 frees the account. If every attempt fails, or
    the type has no command, the account is quarantined with the reason.

    The command and its children end with the run. Accounts of other runs are skipped.

    Exit codes: 1 an account was not cleaned, was taken over, or was not reached in time.
    """
    from operations.pool import cleaning
    from operations.pool.claims import seconds
    from operations.pool.launching import load_programs

    if commands:
        keys = load_programs(where.stack).keys if where.stack else {}
        given, folder = cleaning.parse_commands(commands), Path.cwd()
    else:
        given, keys, folder = cleaning.commands_of_pool(where.stack, where.namespace)
    limits = cleaning.Limits(
        at_once=at_once,
        seconds=seconds(timeout, option="--timeout"),
        within=seconds(within, option="--within"),
        attempts=attempts,
        cooldown=seconds(cooldown, option="--cooldown"),
    )
    return cleaning.clean(
        cleaning.Cleaner(given, folder, where, limits, keys),
        cleaner,
        frozenset(take_over or ()),
        account_type=type_,
    )


@command(
    app,
    "credfleet pool rotate aws-7 --stack prod",
    "credfleet pool rotate --type aws --older-than 90 --stack prod --yes",
    "vault read … | credfleet pool rotate aws-7 --values - --namespace account-pool --yes",
    "credfleet pool rotate aws-7 --who",
    "credfleet pool rotate aws-7 --complete --stack prod",
)
def rotate(
    accounts: Annotated[
        list[str] | None, typer.Argument(metavar="[ACCOUNT]…", help="Names of accounts' Secrets.")
    ] = None,
    *,
    type_: OnlyTypeOption = None,
    older_than: Annotated[
        int | None,
        typer.Option("--older-than", metavar="DAYS", min=1, help="Only keys that are at least this old."),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(
            "--values",
            metavar="FILE",
            help="New key that you created, for one account. - is standard input.",
        ),
    ] = None,
    complete: Annotated[
        bool,
        typer.Option("--complete", help="Instead: revoke the former key, and check that it is rejected."),
    ] = False,
    abort: Annotated[
        bool, typer.Option("--abort", help="Instead: revoke a second key that is not in use yet.")
    ] = False,
    roll_back: Annotated[
        bool, typer.Option("--roll-back", help="Instead: use the former key again.")
    ] = False,
    who: Annotated[bool, typer.Option("--who", help="Only show who can still use the former key.")] = False,
    take_over: Annotated[
        list[str] | None,
        typer.Option(
            "--take-over",
            metavar="ACCOUNT",
            help="Account of a run on another host that has ended.",
        ),
    ] = None,
    where: WritablePoolOptions,
) -> CommandResult:
    """Put a second key of accounts into use. The former key is valid until --complete.

    The stack's accountPool.keys names your program for each type. It runs without a shell. Its last arguments
    are the account and `identify`, `create`, `test`, or `revoke`, and its input is JSON. The next run
    continues a run that was stopped. Nothing is revoked automatically.

    Exit codes: 1 an account stayed in its phase, for the reason shown.
    """
    from operations.pool import rotating
    from operations.pool.launching import load_programs

    asked = {
        rotating.Doing.COMPLETE: complete,
        rotating.Doing.ABORT: abort,
        rotating.Doing.ROLL_BACK: roll_back,
    }
    doing = [each for each, is_asked in asked.items() if is_asked]
    if len(doing) + who > 1 or (values is not None and (doing or who)):
        raise Misused(
            place="credfleet pool rotate",
            problem="--complete, --abort, --roll-back, --who and --values exclude each other",
            fix="give one of them",
        )
    chosen = rotating.Chosen(names=accounts or (), account_type=type_, days=older_than)
    if who:
        return rotating.who(where, chosen)
    _, commands, folder = load_programs(where.stack) if where.stack else ({}, {}, Path.cwd())
    rotation = rotating.Rotation(
        doing=doing[0] if doing else rotating.Doing.ROTATE,
        commands=commands,
        folder=folder,
        values=values,
        take_over=frozenset(take_over or ()),
    )
    return rotating.rotate(where, chosen, rotation)


HeldTypeOption = Annotated[str | None, typer.Option("--type", "-t", help="Type of the hold. [default: all]")]
HeldPartOption = Annotated[list[str] | None, part_option("type")]


@command(app, "credfleet pool hold --type aws --reason 'accounts are moved to another organization'")
def hold(
    *,
    reason: Annotated[str, typer.Option("--reason", help="Reason, shown to rejected claims.")],
    type_: HeldTypeOption = None,
    partition: HeldPartOption = None,
    where: WritablePoolOptions,
) -> CommandResult:
    """Stop new claims until `pool resume`. Existing claims are not affected.

    Exit codes: 5 permission denied.
    """
    from operations.pool import maintenance
    from operations.pool.claims import parse_text

    return maintenance.hold(where, parse_text("--reason", reason), type_, partition or ())


@command(app, "credfleet pool resume")
def resume(
    *, type_: HeldTypeOption = None, partition: HeldPartOption = None, where: WritablePoolOptions
) -> CommandResult:
    """Allow new claims again, of one type or of everything that is held."""
    from operations.pool import maintenance

    return maintenance.hold(where, "", type_, partition or ())


@command(app, "credfleet pool quarantine aws-7 --cut --reason 'key found in a log, ticket 4711'")
def quarantine(
    account: AccountArgument,
    *,
    reason: Annotated[
        str, typer.Option("--reason", help="Reason, shown by `pool status` and `pool explain`.")
    ],
    cut: Annotated[
        bool,
        typer.Option("--cut", help="Also remove the tenant's copies and Role until `unquarantine`."),
    ] = False,
    where: WritablePoolOptions,
) -> CommandResult:
    """Keep an account from new holders. Present holders keep it, unless --cut is given.

    Exit codes: 1 a copy or a Role could not be removed.
    """
    from operations.pool import cutting, maintenance

    if cut:
        return cutting.cut_off(where, account, reason)
    return maintenance.quarantine(where, account, reason)


@command(app, "credfleet pool evacuate aws-7 --reason 'its organization is closed, ticket 4711' --yes")
def evacuate(
    account: AccountArgument,
    *,
    reason: Annotated[
        str, typer.Option("--reason", help="Reason, shown by `pool status` and `pool explain`.")
    ],
    where: WritablePoolOptions,
) -> CommandResult:
    """Move the holders of an account to other accounts, then release it.

    The next update of each stack that holds it claims another account, delivers it, and releases this one.
    While no account is free, the stack keeps this one. `pool unquarantine` cancels the evacuation.
    """
    from operations.pool import maintenance
    from operations.pool.claims import parse_text

    return maintenance.evacuate(where, account, parse_text("--reason", reason))


@command(app, "credfleet pool unquarantine aws-7 --yes")
def unquarantine(
    account: AccountArgument,
    *,
    decommissioned: Annotated[
        bool, typer.Option("--decommissioned", help="Also a decommissioned account.")
    ] = False,
    where: WritablePoolOptions,
) -> CommandResult:
    """End the quarantine of an account.

    If it was dirty, or a tenant had it since it was clean, it must be cleaned first.
    """
    from operations.pool import maintenance

    return maintenance.unquarantine(where, account, decommissioned=decommissioned)


@command(app, "credfleet pool decommission aws-7 --yes")
def decommission(account: AccountArgument, *, where: WritablePoolOptions) -> CommandResult:
    """Exclude a dirty account from all future claims.

    Its entry can be removed without cleaning.
    """
    from operations.pool import maintenance

    return maintenance.decommission(where, account)


@command(app, "credfleet pool mark-dirty aws-7 --reason 'used manually'", name="mark-dirty")
def mark_dirty(
    account: AccountArgument,
    *,
    reason: Annotated[
        str, typer.Option("--reason", help="Reason, shown by `pool status` and `pool explain`.")
    ],
    where: WritablePoolOptions,
) -> CommandResult:
    """Mark an unclaimed account as dirty, so that it is cleaned.

    An account with an owner keeps its owner.
    """
    from operations.pool import maintenance

    return maintenance.mark_dirty(where, account, reason)


@command(app, "credfleet pool return aws-7 --yes", name="return")
def take_back(account: AccountArgument, *, where: WritablePoolOptions) -> CommandResult:
    """Return a retained account to the pool.

    It becomes dirty, and is free after cleaning. An account that its tenant brought is rejected.
    """
    from operations.pool import maintenance

    return maintenance.take_back(where, account)


@command(app, "credfleet pool sweep --dry-run", "credfleet pool sweep --yes")
def sweep(*, dry_run: DryRunOption = False, where: WritablePoolOptions) -> CommandResult:
    """Finish claims and releases that crashed.

    Without --yes, it frees only a few accounts: many dead claims look like a restored backup.

    Exit codes: 1 some need --yes.
    """
    from operations.pool import maintenance

    return maintenance.sweep(where, dry_run=dry_run)


@command(
    app,
    "credfleet pool adopt --stack prod",
    "credfleet pool adopt --map acme/aws=main --map acme/gcp=data --yes",
    "credfleet pool adopt --slot main --holder legacy-broker --yes",
)
def adopt(
    *,
    organization: OrganizationOption = "organization",
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="TENANT/TYPE=SLOT",
            help="Slot of a tenant's account. Can be repeated.",
        ),
    ] = None,
    slot: Annotated[str | None, typer.Option("--slot", help="Slot of every other account.")] = None,
    holder: Annotated[
        str | None, typer.Option("--holder", help="Holder of what the stack does not claim. [default: cli]")
    ] = None,
    where: WritablePoolOptions,
) -> CommandResult:
    """Create claims for accounts that have only an owner's label.

    Each claim gets the slot that --map, the stack, or --slot names, so that the stack's claim finds it. In
    another slot, the stack would claim a second account.

    Without --yes, it only shows what it would do.
    """
    from operations.pool import adopting

    return adopting.adopt(where, organization=organization, mapped=mapped or (), slot=slot, holder=holder)


@command(
    app,
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
            "--values",
            metavar="FOLDER",
            help="Folder with NAME.json for each account. - reads one JSON object of all.",
        ),
    ],
    update: UpdateOption = False,
    dry_run: DryRunOption = False,
    where: NamedPoolOptions,
) -> CommandResult:
    """Create the Secrets of accounts in a CSV, and compare existing ones.

    A value is a JSON object of strings, which become the keys of the Secret. Nothing is written if any row or
    value is invalid. Of an existing Secret, only the value is changed.

    Exit codes: 1 one differs or was rejected.
    """
    from operations.pool import importing

    return importing.import_accounts(where, file, values, update=update, dry_run=dry_run)


@command(
    app,
    "credfleet pool bring --tenant acme --type aws --account-id 111122223333 --values key.json",
    "vault read … | credfleet pool bring --tenant acme -t gcp --account-id acme-prod --values -",
)
def bring(
    *,
    tenant: TenantOption,
    type_: Annotated[str, typer.Option("--type", "-t", help="Type of the account.")],
    account_id: Annotated[str, typer.Option("--account-id", help="Id of the account at its cloud.")],
    values: Annotated[
        str,
        typer.Option(
            "--values",
            metavar="FILE",
            help="JSON object of strings with the credential. - is standard input.",
        ),
    ],
    partition: PartOption = None,
    update: UpdateOption = False,
    expires_at: Annotated[
        str | None,
        typer.Option("--expires-at", metavar="TIME", help="End of the credential: 2027-01-31."),
    ] = None,
    where: WritablePoolOptions,
) -> CommandResult:
    """Add an account that belongs to a tenant to the pool.

    It needs no stack, only the permission of accountPool.bringers for this tenant. The tenant's next claim of
    the type takes it first.

    Exit codes: 1 it exists with another value, or one that you cannot read; 5 permission denied.
    """
    from operations.pool import importing
    from operations.pool.claims import partition as parts

    account = {"tenant": tenant, "type": type_, "accountId": account_id, "partition": parts(partition or ())}
    ends = {} if expires_at is None else {"expiresAt": expires_at}
    return importing.brought(where, {**account, **ends}, values, update=update)


@command(app, "credfleet pool recover --dry-run", "credfleet pool recover --yes")
def recover(*, dry_run: DryRunOption = False, where: WritablePoolOptions) -> CommandResult:
    """Bind claims to accounts again after a restored backup."""
    from operations.pool import maintenance

    return maintenance.recover(where, dry_run=dry_run)


@command(alone, "credfleet doctor", "credfleet doctor --stack prod --output json")
def doctor(
    *,
    stack: Annotated[str | None, stack_option("Stack of the pool and cluster.")] = None,
    where: PoolTarget,
) -> CommandResult:
    """Find what is wrong with a pool, and the command that fixes it.

    Checks the cluster, your permissions, the admission policies, the pool, its accounts, and claims. Writes
    nothing.

    Exit codes: 1 something is wrong.
    """
    from operations.pool import doctor

    return doctor.doctor(where, stack)
