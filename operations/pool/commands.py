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
    DEFAULT_STACK,
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
UpdateOption = Annotated[
    bool, typer.Option("--update", help="Put a value in place of another one that is there.")
]
OnlyTypeOption = Annotated[str | None, typer.Option("--type", "-t", help="Only accounts of this type.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]


@command(
    app,
    "credfleet pool status",
    "credfleet pool status --namespace account-pool --output json",
    "credfleet pool status --all --by tenant",
)
def status(
    *,
    all_: Annotated[
        bool, typer.Option("--all", "-A", help="Every pool of the cluster that you may read.")
    ] = False,
    by: Annotated[
        By | None,
        typer.Option("--by", help="Tell together what a tenant has, a stack holds, or is of a type."),
    ] = None,
    where: PoolOptions,
) -> CommandResult:
    """Show who has which account since when, and what is free.

    By type and partition: free, claimed, dirty, being cleaned, quarantined. What waits for a cleaner or an
    operator is told with its age, the oldest first.
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
        typer.Option("--wait", metavar="TIME", help="Wait so long for a free account: 30s, 10m, 2h."),
    ] = None,
    where: NamedPoolOptions,
) -> CommandResult:
    """Give a tenant an account: the one it has, or a free one.

    Asking again gives the same account.

    Exit codes: 2 the command line makes no sense, 3 no account is free, 4 the pool or the request does
    not, 5 not allowed.
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
            help="Instead: all that a stack holds which is gone. Only tells it, unless --yes is given.",
        ),
    ] = None,
    where: NamedPoolOptions,
) -> CommandResult:
    """Give an account back, or all of a stack.

    What becomes of it is the claim's release policy. Releasing twice is no error.

    The account of another holder, one of a stack for example, is given back only with --holder and --yes.

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
    """Tell why a claim gets an account, or none.

    Shows the rule that chose the pool, the claim there is, and every account of the type with its reason.
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
    """Print the pool as metrics for Prometheus.

    By type and partition, zeros included, so that an alert on an empty pool has a series. Counters are told
    where `pool serve` counts.
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
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where to serve it.")
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
        str, typer.Option("--cleaner", help="Stable id of this cleaner, whose dead runs it goes on from.")
    ] = f"cli@{platform.node()}",
    take_over: Annotated[
        list[str] | None,
        typer.Option(
            "--take-over",
            metavar="ACCOUNT",
            help="Also one of a run that cannot be seen from here; the command must rotate its credential.",
        ),
    ] = None,
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "--command",
            metavar="TYPE=COMMAND",
            help="Instead of the stack's accountPool.cleaning; repeat it for each type.",
        ),
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="How long the command of one account may take.")
    ] = "30m",
    at_once: Annotated[
        int, typer.Option("--at-once", min=1, max=64, help="Accounts that are wiped side by side.")
    ] = 1,
    attempts: Annotated[
        int, typer.Option("--attempts", min=1, max=20, help="How often a command is tried for an account.")
    ] = 1,
    cooldown: Annotated[
        str, typer.Option("--cooldown", metavar="TIME", help="How long to wait between two attempts.")
    ] = "1m",
    within: Annotated[
        str, typer.Option("--within", metavar="TIME", help="Begin no more after this time of the run.")
    ] = "24h",
    where: WritablePoolOptions,
) -> CommandResult:
    """Wipe dirty accounts by your own commands and let them back.

    The command of a type is run without a shell, with the account's name as its last argument, and with
    KUBECONFIG and CREDFLEET_NAMESPACE to read the Secret by. When it ends with 0 the account is free
    again; else, when it fails at each attempt or the type has no command, it is quarantined with the reason.

    It ends with the run, with all that it started. What another run wipes is left to that one.

    Exit codes: 1 an account was not wiped, was taken from this run, or its turn did not come within the time.
    """
    from operations.pool import cleaning
    from operations.pool.claims import seconds
    from operations.pool.launching import load_programs

    if commands:
        keys = load_programs(where.stack).keys if where.stack else {}
        given, folder = cleaning.parse_commands(commands), Path.cwd()
    else:
        given, keys, folder = cleaning.load_commands(where.stack or DEFAULT_STACK)
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
        typer.Option("--older-than", metavar="DAYS", min=1, help="Only keys that were set so long ago."),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(
            "--values",
            metavar="FILE",
            help="The new key, which you made; - is standard input. For one account.",
        ),
    ] = None,
    complete: Annotated[
        bool, typer.Option("--complete", help="Instead: revoke the former key, and prove it rejected.")
    ] = False,
    abort: Annotated[
        bool, typer.Option("--abort", help="Instead: revoke a second key that is not in use yet.")
    ] = False,
    roll_back: Annotated[
        bool, typer.Option("--roll-back", help="Instead: put the former key back into use.")
    ] = False,
    who: Annotated[bool, typer.Option("--who", help="Only tell who may still use the former key.")] = False,
    take_over: Annotated[
        list[str] | None,
        typer.Option(
            "--take-over",
            metavar="ACCOUNT",
            help="Also one of a run that is over, and cannot be seen from here.",
        ),
    ] = None,
    where: WritablePoolOptions,
) -> CommandResult:
    """Give accounts a second key and put it into use; the former one is valid until --complete.

    The stack's accountPool.keys names your program for each type: it is run without a shell, with the account
    and `identify`, `create`, `test` or `revoke` as its last arguments, and with JSON on its input. A run that
    was stopped is continued by the next. Nothing is revoked by itself.

    Exit codes: 1 an account stayed in its phase, which is told with the reason.
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


HeldTypeOption = Annotated[
    str | None, typer.Option("--type", "-t", help="Type that is held; by default all.")
]
HeldPartOption = Annotated[list[str] | None, part_option("type")]


@command(app, "credfleet pool hold --type aws --reason 'accounts are moved to another organization'")
def hold(
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who ask for an account.")],
    type_: HeldTypeOption = None,
    partition: HeldPartOption = None,
    where: WritablePoolOptions,
) -> CommandResult:
    """Give no new accounts until `pool resume`; those that tenants have are used and released as before.

    Exit codes: 5 not allowed.
    """
    from operations.pool import maintenance
    from operations.pool.claims import parse_text

    return maintenance.hold(where, parse_text("--reason", reason), type_, partition or ())


@command(app, "credfleet pool resume")
def resume(
    *, type_: HeldTypeOption = None, partition: HeldPartOption = None, where: WritablePoolOptions
) -> CommandResult:
    """Give new accounts again; without a type, of all that `pool hold` holds."""
    from operations.pool import maintenance

    return maintenance.hold(where, "", type_, partition or ())


@command(app, "credfleet pool quarantine aws-7 --cut --reason 'key found in a log, ticket 4711'")
def quarantine(
    account: AccountArgument,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who come after you.")],
    cut: Annotated[
        bool,
        typer.Option("--cut", help="Take its tenant's copies and right to read it, until it is let back."),
    ] = False,
    where: WritablePoolOptions,
) -> CommandResult:
    """Keep an account from new holders; present ones keep it, unless --cut takes it from them at once.

    Exit codes: 1 a copy or a right could not be taken.
    """
    from operations.pool import cutting, maintenance

    if cut:
        return cutting.cut_off(where, account, reason)
    return maintenance.quarantine(where, account, reason)


@command(app, "credfleet pool evacuate aws-7 --reason 'its organization is closed, ticket 4711' --yes")
def evacuate(
    account: AccountArgument,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who come after you.")],
    where: WritablePoolOptions,
) -> CommandResult:
    """Have an account left: its holders get another one before this one is given back.

    The next update of each stack that holds it claims another account, delivers it, and releases this one at
    its end. While none is free it keeps this one. `pool unquarantine` takes it back.
    """
    from operations.pool import maintenance
    from operations.pool.claims import parse_text

    return maintenance.evacuate(where, account, parse_text("--reason", reason))


@command(app, "credfleet pool unquarantine aws-7 --yes")
def unquarantine(
    account: AccountArgument,
    *,
    decommissioned: Annotated[
        bool, typer.Option("--decommissioned", help="Also an account that was given up.")
    ] = False,
    where: WritablePoolOptions,
) -> CommandResult:
    """Let a quarantined account back.

    If it was dirty, or a tenant had it since it was clean, it goes to the cleaner first.
    """
    from operations.pool import maintenance

    return maintenance.unquarantine(where, account, decommissioned=decommissioned)


@command(app, "credfleet pool decommission aws-7 --yes")
def decommission(account: AccountArgument, *, where: WritablePoolOptions) -> CommandResult:
    """Give a dirty account up.

    It is never handed out again, and its entry can be removed without cleaning.
    """
    from operations.pool import maintenance

    return maintenance.decommission(where, account)


@command(app, "credfleet pool mark-dirty aws-7 --reason 'used manually'", name="mark-dirty")
def mark_dirty(
    account: AccountArgument,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who come after you.")],
    where: WritablePoolOptions,
) -> CommandResult:
    """Have an account cleaned that is not claimed.

    If a tenant owns it, it is the tenant's afterwards, too.
    """
    from operations.pool import maintenance

    return maintenance.mark_dirty(where, account, reason)


@command(app, "credfleet pool return aws-7 --yes", name="return")
def take_back(account: AccountArgument, *, where: WritablePoolOptions) -> CommandResult:
    """Return an account to the pool that its tenant retained.

    It is dirty then, and free once it was cleaned. An account its tenant brought along is refused.
    """
    from operations.pool import maintenance

    return maintenance.take_back(where, account)


@command(app, "credfleet pool sweep --dry-run", "credfleet pool sweep --yes")
def sweep(*, dry_run: DryRunOption = False, where: WritablePoolOptions) -> CommandResult:
    """Finish what crashed claims and releases left behind.

    Without --yes no more than a few accounts are freed: many dead claims at once are a sign of something.

    Exit codes: 1 some were left for --yes.
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
            help="Slot of a tenant's account; repeat it for each account.",
        ),
    ] = None,
    slot: Annotated[str | None, typer.Option("--slot", help="Slot of every other account.")] = None,
    holder: Annotated[
        str | None, typer.Option("--holder", help="Who uses what the stack does not claim; by default `cli`.")
    ] = None,
    where: WritablePoolOptions,
) -> CommandResult:
    """Make claims for accounts that only bear an owner's label.

    Each under the slot that --map, a stack or --slot names, so that the stack's claim finds it. No slot is
    guessed: under another one the stack would claim a second account.

    Only reports what it would do, unless --yes is given.
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
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Rows of name, type and accountId.")],
    *,
    values: Annotated[
        str,
        typer.Option(
            "--values",
            metavar="FOLDER",
            help="Folder with NAME.json for each account; - is standard input: one JSON object of all.",
        ),
    ],
    update: UpdateOption = False,
    dry_run: DryRunOption = False,
    where: NamedPoolOptions,
) -> CommandResult:
    """Make the Secrets of accounts that a CSV lists, and compare those that are there with it.

    A value is the JSON object whose texts become the keys of the Secret, never an argument. Nothing is
    written when any row or value is wrong. Of a Secret that is there, no more than the value is ever changed.

    Exit codes: 1 when one differs or was refused.
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
            "--values", metavar="FILE", help="JSON object of texts, the credential; - is standard input."
        ),
    ],
    partition: PartOption = None,
    update: UpdateOption = False,
    expires_at: Annotated[
        str | None,
        typer.Option("--expires-at", metavar="TIME", help="When the credential ends: 2027-01-31."),
    ] = None,
    where: WritablePoolOptions,
) -> CommandResult:
    """Bring an account of a tenant's own into the pool: the tenant's from the first instant.

    It needs the right of accountPool.bringers for this tenant and no other, and no stack. The tenant's next
    claim of the type takes it before any other. The value is in no argument and no answer.

    Exit codes: 1 it is there with another value, or one that you may not see; 5 not allowed.
    """
    from operations.pool import importing
    from operations.pool.claims import partition as parts

    account = {"tenant": tenant, "type": type_, "accountId": account_id, "partition": parts(partition or ())}
    ends = {} if expires_at is None else {"expiresAt": expires_at}
    return importing.brought(where, {**account, **ends}, values, update=update)


@command(app, "credfleet pool recover --dry-run", "credfleet pool recover --yes")
def recover(*, dry_run: DryRunOption = False, where: WritablePoolOptions) -> CommandResult:
    """Bind claims to accounts again after a restore from a backup."""
    from operations.pool import maintenance

    return maintenance.recover(where, dry_run=dry_run)


@command(alone, "credfleet doctor", "credfleet doctor --stack prod --output json")
def doctor(
    *,
    stack: Annotated[str | None, stack_option("Look at the pool and the cluster that a stack means.")] = None,
    where: PoolTarget,
) -> CommandResult:
    """Find what is wrong with a pool, and the command that fixes it.

    Looks at the cluster, your rights, the admission policies, the pool, its accounts and claims.
    Writes nothing.

    Exit codes: 0 all is well, 1 something is wrong.
    """
    from operations.pool import doctor

    return doctor.doctor(where, stack)
