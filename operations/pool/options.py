"""The options of the pool's commands, and which of them go together."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from components.errors import Misused


def part_option(whole: str) -> Any:
    """Return an option that selects a part of a pool or a type."""
    help_ = f"Part of the {whole}. Can be repeated, once for each key."
    return typer.Option("--partition", metavar="KEY=VALUE", help=help_)


def _parse_reason(text: str) -> str:
    """Return a reason; raises Misused if it is blank."""
    if not text.strip():
        raise Misused(place="--reason", problem="must not be blank", fix="give --reason in a few words")
    return text.strip()


def reason_option(help_: str) -> Any:
    """Return an option for a reason."""
    return typer.Option("--reason", callback=_parse_reason, help=help_)


AccountArgument = Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of the account's Secret.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
HeldPartOption = Annotated[list[str] | None, part_option("type")]
HeldTypeOption = Annotated[str | None, typer.Option("--type", "-t", help="Type of the hold. [default: all]")]
OnlyTypeOption = Annotated[str | None, typer.Option("--type", "-t", help="Only accounts of this type.")]
PartOption = Annotated[list[str] | None, part_option("pool")]
ReasonOption = Annotated[str, reason_option("Reason, shown by `pool status` and `pool explain`.")]
TenantOption = Annotated[str, typer.Option("--tenant", help="Name of the tenant.")]
UpdateOption = Annotated[bool, typer.Option("--update", help="Replace values that differ.")]


class By(StrEnum):
    """How accounts are grouped: by tenant, by holding stack, or by type."""

    TENANT = "tenant"
    STACK = "stack"
    TYPE = "type"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOptions:
    """The requested account, by its type, or by a plan for which the stack's rules select a pool.

    holder: None if it was not given.
    """

    tenant: TenantOption
    type: Annotated[
        str | None, typer.Option("--type", "-t", help="Type of the account: aws, gcp_cf-sa30.")
    ] = None
    plan: Annotated[
        str | None, typer.Option(help="Plan instead of a type. The rules of the stack select the pool.")
    ] = None
    region: Annotated[str | None, typer.Option(help="Platform region of the plan.")] = None
    hyperscaler_region: Annotated[str | None, typer.Option(help="Hyperscaler region of the plan.")] = None
    hyperscaler: Annotated[str | None, typer.Option(help="Cloud, for a plan that runs on any cloud.")] = None
    shared: Annotated[
        bool, typer.Option("--shared", help="Claim a place on a shared account. --slot names it.")
    ] = False
    slot: Annotated[
        str | None, typer.Option(help="Slot of the claim. [default: the stack's, otherwise main]")
    ] = None
    spill: Annotated[
        bool, typer.Option("--spill", help="Claim one more account if those of the slot are full.")
    ] = False
    partition: PartOption = None
    holder: Annotated[str | None, typer.Option(help="Holder of the account. [default: cli]")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions(ClaimOptions):
    """The account to release, or a stack whose accounts are all released."""

    tenant: TenantOption = ""
    stack_gone: Annotated[
        str | None,
        typer.Option(
            metavar="STACK", help="Instead: all claims of a deleted stack. Only shows them without --yes."
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningOptions:
    """Which accounts are cleaned, by whom, with which commands, and the limits of a run."""

    type: OnlyTypeOption = None
    cleaner: Annotated[str, typer.Option(help="Id of this cleaner. It continues its own dead runs.")] = (
        f"cli@{platform.node()}"
    )
    take_over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ACCOUNT",
            help="Account of a run on another host. Its command must rotate the credential.",
        ),
    ] = None
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "--command",
            metavar="TYPE=COMMAND",
            help="Instead of the stack's accountPool.cleaning. Can be repeated.",
        ),
    ] = None
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="Maximum time of the command for one account.")
    ] = "30m"
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Accounts to clean in parallel.")] = 1
    attempts: Annotated[int, typer.Option(min=1, max=20, help="Maximum attempts for one account.")] = 1
    cooldown: Annotated[str, typer.Option(metavar="TIME", help="Time between two attempts.")] = "1m"
    within: Annotated[
        str, typer.Option(metavar="TIME", help="Time after which no more accounts are started.")
    ] = "24h"


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationOptions:
    """Which accounts get another key, and what is done to their keys."""

    accounts: Annotated[
        list[str] | None, typer.Argument(metavar="ACCOUNT", help="Names of accounts' Secrets.")
    ] = None
    type: OnlyTypeOption = None
    older_than: Annotated[
        int | None, typer.Option(metavar="DAYS", min=1, help="Only keys that are at least this old.")
    ] = None
    values: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="New key that you created, for one account. - is standard input."),
    ] = None
    complete: Annotated[
        bool,
        typer.Option("--complete", help="Instead: revoke the former key, and check that it is rejected."),
    ] = False
    abort: Annotated[
        bool, typer.Option("--abort", help="Instead: revoke a second key that is not in use yet.")
    ] = False
    roll_back: Annotated[bool, typer.Option("--roll-back", help="Instead: use the former key again.")] = False
    who: Annotated[bool, typer.Option("--who", help="Only show who can still use the former key.")] = False
    take_over: Annotated[
        list[str] | None,
        typer.Option(metavar="ACCOUNT", help="Account of a run on another host that has ended."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionOptions:
    """Slots and holders for claims on accounts that only have an owner's label."""

    organization: Annotated[str, typer.Option(help="Organization of the stack, part of its holder ids.")] = (
        "organization"
    )
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="TENANT/TYPE=SLOT",
            help="Slot of a tenant's account. Can be repeated.",
        ),
    ] = None
    slot: Annotated[str | None, typer.Option(help="Slot of every other account.")] = None
    holder: Annotated[
        str | None, typer.Option(help="Holder of what the stack does not claim. [default: cli]")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BringingOptions:
    """The account that a tenant brings, and the location of its credential."""

    tenant: TenantOption
    type: Annotated[str, typer.Option("--type", "-t", help="Type of the account.")]
    account_id: Annotated[str, typer.Option(help="Id of the account at its cloud.")]
    values: Annotated[
        str,
        typer.Option(metavar="FILE", help="JSON object of strings with the credential. - is standard input."),
    ]
    partition: PartOption = None
    update: UpdateOption = False
    expires_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the credential: 2027-01-31.")
    ] = None
